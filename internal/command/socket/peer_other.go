//go:build !linux && !darwin && !freebsd

package socket

import "errors"

// KnowsPeers says whether the system says whose process connects.
const KnowsPeers = false

func peerUID(int) (int, error) { return 0, errors.ErrUnsupported }
