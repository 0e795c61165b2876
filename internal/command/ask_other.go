//go:build !unix

package command

import "os"

// askSignals: there are none here.
func askSignals() []os.Signal { return nil }
