package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// tier is a server over TLS that holds a wave of calls until all of it is there, and counts
// the connections that were opened to it.
type tier struct {
	*httptest.Server
	opened atomic.Int32
	wave   *wave
}

// wave ends once all of its calls are there, or one of them has failed.
type wave struct {
	arrived atomic.Int32
	calls   int32
	all     chan struct{}
	end     func()
}

func newWave(calls int) *wave {
	w := &wave{calls: int32(calls), all: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.all) })
	return w
}

// join waits for the others.
func (w *wave) join(req *http.Request) {
	if w.arrived.Add(1) == w.calls {
		w.end()
	}
	select {
	case <-w.all:
	case <-req.Context().Done():
		w.arrived.Add(-1)
	}
}

// newTier starts a server that speaks HTTP/2 with so many streams on a connection; 0: it
// speaks HTTP/1.1 alone.
func newTier(t testing.TB, streams int, answer http.HandlerFunc) *tier {
	t.Helper()
	return newTierAt(t, "127.0.0.1:0", streams, answer)
}

func newTierAt(t testing.TB, address string, streams int, answer http.HandlerFunc) *tier {
	t.Helper()
	s := &tier{}
	if answer == nil {
		answer = s.answer
	}
	s.Server = httptest.NewUnstartedServer(answer)
	own := must.Get(net.Listen("tcp", address))(t)
	_ = s.Listener.Close()
	s.Listener = own
	s.EnableHTTP2 = streams > 0
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.opened.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// answer answers once the wave is there.
func (s *tier) answer(w http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	s.wave.join(req)
	_, _ = io.WriteString(w, chat)
}

// client is one of the server's, over its own transport.
func (s *tier) client(t testing.TB, conns int) *Client {
	t.Helper()
	c := must.Get(New(local(Config{BaseURL: s.URL, Conns: conns, TLS: trust(s.Server)})))(t)
	t.Cleanup(c.CloseIdle)
	return c
}

// transport is one that trusts the server, for tests that look into it.
func (s *tier) transport() *http.Transport {
	own := provider.NewHTTPTransport(1)
	own.TLSClientConfig = trust(s.Server).Clone()
	return own
}

// over makes a client whose calls share the connections of a transport.
func over(t testing.TB, baseURL string, base *http.Transport) *Client {
	t.Helper()
	c := must.Get(New(local(Config{BaseURL: baseURL, Transport: newPool(base, baseURL)})))(t)
	t.Cleanup(c.CloseIdle)
	return c
}

func poolOf(c *Client) *pool { return c.http.Transport.(*provider.Transport).Base.(*pool) }

// awaitQueue waits until so many calls wait for a connection.
func awaitQueue(c *Client, calls int) {
	for p := poolOf(c); ; runtime.Gosched() {
		p.mu.Lock()
		n := len(p.queue)
		p.mu.Unlock()
		if n == calls {
			return
		}
	}
}

// awaitEnd waits until a client has seen the end of all its connections: a call that is written
// to one just then fails, as with net/http.
func awaitEnd(c *Client) {
	for p := poolOf(c); ; runtime.Gosched() {
		p.mu.Lock()
		p.dropEnded()
		left := len(p.conns)
		p.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// trust returns the TLS configuration for a client that trusts a server of the test.
func trust(s *httptest.Server) *tls.Config {
	return s.Client().Transport.(*http.Transport).TLSClientConfig
}

// send makes a wave of calls at once, and reports how many of them failed.
func (s *tier) send(t testing.TB, c *Client, calls int) (failed int32) {
	t.Helper()
	s.wave = newWave(calls)
	var (
		all  sync.WaitGroup
		bad  atomic.Int32
		once sync.Once
	)
	for range calls {
		all.Go(func() {
			if _, err := ask(t.Context(), c, "{}"); err != nil {
				bad.Add(1)
				s.wave.end()
				once.Do(func() { t.Errorf("a call failed: %v", err) })
			}
		})
	}
	all.Wait()
	return bad.Load()
}

// Calls to a server that speaks HTTP/2 share its connections: at most twice as many are
// opened as hold them all, from a cold start and in the wave after it. No call waits on a full one
// where others have room.
func TestConnectionsAreShared(t *testing.T) {
	for _, streams := range []int{5, 10, 100, 128, 250} {
		for _, calls := range []int{64, 512, 1000} {
			if calls > 64*streams {
				continue // far more connections than any server of few streams would take
			}
			t.Run(fmt.Sprintf("%d calls, %d streams", calls, streams), func(t *testing.T) {
				s := newTier(t, streams, nil)
				c := s.client(t, calls)
				needed := (calls + streams - 1) / streams
				for _, start := range []string{"cold", "warm"} {
					if failed := s.send(t, c, calls); failed > 0 {
						t.Errorf("%s: %d of %d calls failed", start, failed, calls)
					}
					if opened := int(s.opened.Load()); opened > 2*needed {
						t.Errorf("%s: %d connections were opened; %d hold %d calls", start, opened, needed, calls)
					}
				}
			})
		}
	}
}

// A server ends connections as it likes: idle ones, or with GOAWAY in the middle of a wave. No
// call fails of that, and no more new connections are opened than a cold start needs.
func TestEndedConnectionsAreReplaced(t *testing.T) {
	const streams, calls, needed = 100, 512, 6
	for name, c := range map[string]struct{ between, goAway bool }{
		"idle ones are closed": {between: true}, "GOAWAY": {goAway: true}, "both": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			var s *tier
			s = newTier(t, streams, func(w http.ResponseWriter, req *http.Request) {
				if c.goAway && s.wave.arrived.Load() == calls/2 {
					w.Header().Set("Connection", "close") // which is GOAWAY in HTTP/2
				}
				s.answer(w, req)
			})
			client := s.client(t, calls)
			for round := range 3 {
				before := s.opened.Load()
				if failed := s.send(t, client, calls); failed > 0 {
					t.Errorf("round %d: %d calls failed", round, failed)
				}
				if opened := s.opened.Load() - before; opened > 2*needed {
					t.Errorf("round %d: %d connections were opened, where %d hold the calls", round, opened, needed)
				}
				if c.between {
					s.CloseClientConnections()
					awaitEnd(client)
				}
			}
		})
	}
}

// A server that comes back at its address is found again. Calls that were in flight have failed
// as faults of the transport, and no connection of before is waited for.
func TestRestartedServer(t *testing.T) {
	const streams, calls, needed = 128, 512, 4
	first := newTier(t, streams, nil)
	address, client := first.Listener.Addr().String(), first.client(t, calls)
	first.send(t, client, calls)
	first.wave = newWave(calls + 1) // which never ends
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := ask(t.Context(), client, "{}"); !errors.Is(err, provider.TransportFault) {
				t.Errorf("a call to a server that ends: %v", err)
			}
		})
	}
	for first.wave.arrived.Load() < calls {
		runtime.Gosched()
	}
	_ = first.Listener.Close()
	first.CloseClientConnections()
	all.Wait()
	second := newTierAt(t, address, streams, nil)
	second.send(t, client, calls)
	if opened := second.opened.Load(); opened > 2*needed {
		t.Errorf("%d connections were opened to the new server, where %d hold the calls", opened, needed)
	}
}

// A server of HTTP/1.1 gets as many connections as calls, and one more that tells its protocol.
// One that learns HTTP/2 meanwhile gets few.
func TestPlainServerGetsAConnectionForEachCall(t *testing.T) {
	const calls, later, needed = 64, 300, 3
	first := newTier(t, 0, nil)
	address, client := first.Listener.Addr().String(), first.client(t, calls)
	for range 2 {
		first.send(t, client, calls)
		if opened := first.opened.Load(); opened < calls || opened > calls+1 {
			t.Errorf("%d connections were opened for %d calls", opened, calls)
		}
	}
	client.CloseIdle()
	first.Close()
	second := newTierAt(t, address, 128, nil)
	second.send(t, client, 1)
	second.send(t, client, later)
	if opened := second.opened.Load(); opened > 2*needed {
		t.Errorf("%d connections were opened for %d calls after it had learned HTTP/2", opened, later)
	}
}

// Calls through a proxy's tunnel share connections too. Whether one is used is asked with the
// whole address: NO_PROXY may name a port.
func TestConnectionsAreSharedThroughAProxy(t *testing.T) {
	const calls = 64
	s := newTier(t, 100, nil)
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		tunnels.Add(1)
		tunnel(t, w, req.Host)
	}))
	t.Cleanup(proxy.Close)
	through := must.Get(url.Parse(proxy.URL))(t)
	base := s.transport()
	base.Proxy = func(req *http.Request) (*url.URL, error) {
		if req.URL.Host != s.Listener.Addr().String() || req.URL.Scheme != "https" {
			t.Errorf("a proxy was asked for to %s", req.URL)
		}
		return through, nil
	}
	client := over(t, s.URL, base)
	s.send(t, client, calls)
	if n, opened := tunnels.Load(), s.opened.Load(); n != 1 || opened != 1 {
		t.Errorf("%d tunnels and %d connections for %d calls", n, opened, calls)
	}
}

// tunnel does what CONNECT asks for.
func tunnel(t *testing.T, w http.ResponseWriter, address string) {
	far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = far.Close() }()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = near.Close() }()
	if _, err = io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		t.Error(err)
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // until either side ends it
			_, _ = near.Close(), far.Close()
		})
	}
	both.Wait()
}

// Where nothing can be dialled all calls that wait fail with the last dial, as never sent, and no
// more is dialled than would have held them.
func TestNothingCanBeDialled(t *testing.T) {
	const calls = 130
	s := newTier(t, 100, nil)
	base := s.transport()
	var (
		dials  atomic.Int32
		client *Client
	)
	base.DialContext = func(_ context.Context, network, _ string) (net.Conn, error) {
		dials.Add(1)
		awaitQueue(client, calls)
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("nobody is there")}
	}
	client = over(t, s.URL, base)
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := ask(t.Context(), client, "{}"); !errors.Is(err, provider.TransportFault) || !provider.Unsent(err) {
				t.Errorf("nobody is there: %v", err)
			}
		})
	}
	all.Wait()
	if n := dials.Load(); n != 1 {
		t.Errorf("%d dials, where the first tells enough", n)
	}
}

// While there is a connection a dial that fails is the failure of one call. Another that waits
// gets the room that comes free.
func TestDialThatFailsCostsOneCall(t *testing.T) {
	const streams = 100
	s := newTier(t, streams, nil)
	base := s.transport()
	var (
		dials    atomic.Int32
		dial     = base.DialContext
		waiting  = make(chan struct{})
		over2    = make(chan struct{})
		refusing = func(until chan struct{}) (net.Conn, error) {
			<-until
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no more")}
		}
	)
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch dials.Add(1) {
		case 1:
			return dial(ctx, network, address)
		case 2:
			return refusing(waiting)
		}
		return refusing(over2)
	}
	client := over(t, s.URL, base)
	s.wave = newWave(streams + 1) // which does not end by itself
	var (
		all    sync.WaitGroup
		failed = make(chan error, streams+2)
	)
	for range streams + 2 {
		all.Go(func() {
			if _, err := ask(t.Context(), client, "{}"); err != nil {
				failed <- err
			}
		})
	}
	awaitQueue(client, 2)
	for s.wave.arrived.Load() < streams {
		runtime.Gosched()
	}
	close(waiting)
	if err := <-failed; !errors.Is(err, provider.TransportFault) || !provider.Unsent(err) {
		t.Errorf("%v", err)
	}
	s.wave.end()
	all.Wait()
	close(over2)
	if n := len(failed); n > 0 {
		t.Errorf("%d more calls failed: %v", n, <-failed)
	}
}

// blockedTransport says that it dials, and does so once it may. It dials once.
func (s *tier) blockedTransport() (base *http.Transport, dialling, may chan struct{}) {
	base, dialling, may = s.transport(), make(chan struct{}), make(chan struct{})
	dial := base.DialContext
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		close(dialling)
		<-may
		return dial(ctx, network, address)
	}
	return base, dialling, may
}

// A call that ends while it waits for a connection is over at once. The connection serves the
// others, and room that was meant for the call is free.
func TestCallEndsWhileItWaits(t *testing.T) {
	s := newTier(t, 100, nil)
	base, dialling, may := s.blockedTransport()
	client := over(t, s.URL, base)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := ask(ctx, client, "{}"); !errors.Is(err, provider.Canceled) {
			t.Errorf("%v", err)
		}
	})
	<-dialling
	cancel()
	all.Wait()
	close(may)
	s.send(t, client, 100)
	p := poolOf(client)
	given := &waiting{t.Context(), make(chan turn, 1)}
	given.turn <- p.acquire(t.Context())
	p.leave(given) // which got its turn as it left
	s.send(t, client, 100)
	if opened := s.opened.Load(); opened != 1 {
		t.Errorf("%d connections were opened, where one holds the calls", opened)
	}
}

// A connection that is there once all are closed, and no call waits any more, is closed too.
func TestLateConnectionIsClosed(t *testing.T) {
	s := newTier(t, 100, nil)
	base, dialling, may := s.blockedTransport()
	client := over(t, s.URL, base)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-dialling
		cancel()
	}()
	if _, err := ask(ctx, client, "{}"); !errors.Is(err, provider.Canceled) {
		t.Errorf("%v", err)
	}
	client.CloseIdle()
	close(may)
	for p := poolOf(client); ; runtime.Gosched() {
		p.mu.Lock()
		dialing, kept := p.dialing, len(p.conns)
		p.mu.Unlock()
		if kept > 0 {
			t.Fatal("it is kept")
		}
		if dialing == 0 {
			return
		}
	}
}
