//go:build linux || darwin || freebsd

package socket

import (
	"os"
	"syscall"
)

// KnowsPeers says whether the system says whose process connects.
const KnowsPeers = true

// ownerOf returns the user who owns a file; -1: that is not known.
func ownerOf(info os.FileInfo) int {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid)
	}
	return -1
}
