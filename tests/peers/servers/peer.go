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

// Peer is a server that stands.
type Peer struct {
	URL   string // what --base-url is given
	Tally func() (Tally, error)
	stops []func()
}

// Stop stops it, and whatever it stands on.
func (p *Peer) Stop() {
	for _, stop := range p.stops {
		stop()
	}
}

// Start starts a server. It may use the folder, which is its own, and must be gone
// when the context has ended.
type Start func(ctx context.Context, dir string) (*Peer, error)

// inProcess serves a handler from here, a new one each time: what the last one
// remembers of a run is not the next one's.
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
	// No call is this long: it only keeps a client that hangs from staying for ever.
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // ends by Close, and says so
	return l.Addr().String(), func() { _ = server.Close() }, nil
}
