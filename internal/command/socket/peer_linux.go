package socket

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// KnowsPeers says whether the system says whose process connects.
const KnowsPeers = true

func peerUID(fd int) (int, error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// ownerOf returns the user who owns a file; -1: that is not known.
func ownerOf(info os.FileInfo) int {
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		return int(stat.Uid)
	}
	return -1
}
