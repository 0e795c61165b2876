//go:build !linux && !darwin && !freebsd

package serve

import "errors"

const knowsPeers = false

func peerUID(int) (int, error) { return 0, errors.ErrUnsupported }
