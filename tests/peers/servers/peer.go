package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrAbsent says that a server is not installed on this machine.
var ErrAbsent = errors.New("servers: not on this machine")

// Peer is a running server.
type Peer struct {
	URL   string // the value of --base-url
	Tally func() (Tally, error)
	stops []func()
}

// Stop stops it, and everything that it depends on.
func (p *Peer) Stop() {
	for _, stop := range p.stops {
		stop()
	}
}

// Start starts a server. It may use the folder, which is its own. The server must be gone
// when the context has ended.
type Start func(ctx context.Context, dir string) (*Peer, error)

// inProcess serves a handler in this process, a new one each time: nothing that one
// remembers of a run reaches the next.
func inProcess(fresh func() http.Handler) Start {
	return func(context.Context, string) (*Peer, error) {
		var c counter
		addr, stop, err := listen(c.around(fresh()))
		if err != nil {
			return nil, err
		}
		return &Peer{URL: "http://" + addr + "/v1", Tally: c.tally, stops: []func(){stop}}, nil
	}
}

func listen(h http.Handler) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("servers: listen: %w", err)
	}
	// No call is this long: the timeout only ends the connection of a client that hangs.
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // ends at Close, with its error
	return l.Addr().String(), func() { _ = server.Close() }, nil
}
