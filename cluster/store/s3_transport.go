package store

import (
	"context"
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout bounds the opening of a connection, and the TLS handshake on it.
	dialTimeout = 10 * time.Second
	// stallTimeout bounds the time without traffic before a connection is given up. A server answers
	// a PUT only when it has stored it, which takes seconds for some megabytes.
	stallTimeout = time.Minute
	// idleConnections bounds the idle connections that are kept: a worker has a few chunks in hand.
	idleConnections = 32
	idleTimeout     = 30 * time.Second
)

// newTransport returns a transport whose requests cannot hang for ever: a frozen server, or a
// network that drops everything, costs stallTimeout.
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

// stalling is a connection that fails if nothing moves on it. The network's deadlines only know the
// real clock.
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
