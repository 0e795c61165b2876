//go:build unix

package main

import (
	"os"
	"syscall"
)

// peakMemory returns the most memory that a process held, in bytes.
func peakMemory(of *os.ProcessState) int64 {
	use := of.SysUsage().(*syscall.Rusage)
	kib := int64(use.Maxrss) //nolint:unconvert // an int32 on systems of 32 bits
	return kib << 10         // Linux counts in KiB
}
