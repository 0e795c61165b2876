//go:build !unix

package main

import "os"

// peakMemory returns 0: this system does not say.
func peakMemory(*os.ProcessState) int64 { return 0 }
