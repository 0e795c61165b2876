//go:build unix

package main

import (
	"os"
	"syscall"
)

// peakMemory returns the most memory that a process held, in bytes.
func peakMemory(of *os.ProcessState) int64 {
	use := of.SysUsage().(*syscall.Rusage)
	return int64(use.Maxrss) << 10 // Linux counts in KiB
}
