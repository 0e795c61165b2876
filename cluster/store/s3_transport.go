package store

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout bounds the beginning of a connection, and that of TLS on it.
	dialTimeout = 10 * time.Second
	// stallTimeout is how long nothing may move on a connection before it is given up. A server
	// answers a PUT only when it has stored it, which for some megabytes takes seconds.
	stallTimeout = time.Minute
	// idleConnections is how many are kept: a worker has a few chunks in hand.
	idleConnections = 32
	idleTimeout     = 30 * time.Second
)

// newTransport makes requests that cannot hang for ever: a server that was frozen, or a network that
// drops everything, costs stallTimeout.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stalling{conn, stallTimeout}, nil
		},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: stallTimeout,
		MaxIdleConnsPerHost:   idleConnections,
		IdleConnTimeout:       idleTimeout,
		DisableCompression:    true, // a part of an object is a part of its bytes
	}
}

// stalling is a connection that is given up if nothing moves on it. The network's own deadlines
// know but the real clock.
type stalling struct {
	net.Conn
	after time.Duration
}

func (s *stalling) Read(p []byte) (int, error) {
	if err := s.SetReadDeadline(time.Now().Add(s.after)); err != nil {
		return 0, err
	}
	return s.Conn.Read(p)
}

func (s *stalling) Write(p []byte) (int, error) {
	if err := s.SetWriteDeadline(time.Now().Add(s.after)); err != nil {
		return 0, err
	}
	return s.Conn.Write(p)
}
