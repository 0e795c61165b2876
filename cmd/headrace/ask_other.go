//go:build !unix

package main

import "os"

// askSignals: there are none here.
func askSignals() []os.Signal { return nil }
