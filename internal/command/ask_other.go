//go:build !unix

package command

import "os"

// askSignals is empty: this system has no such signals.
func askSignals() []os.Signal { return nil }
