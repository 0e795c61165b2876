//go:build linux || darwin || freebsd

package socket

// KnowsPeers says whether the system says whose process connects.
const KnowsPeers = true
