//go:build darwin || freebsd

package socket

import "golang.org/x/sys/unix"

// KnowsPeers says whether the system says whose process connects.
const KnowsPeers = true

func peerUID(fd int) (int, error) {
	peer, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
