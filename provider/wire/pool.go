package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

// protocol2 is HTTP/2's name in a TLS handshake.
const protocol2 = "h2"

// firstStreams is the number of calls that net/http puts on a connection of HTTP/2 before the
// server says how many it takes. Calls over the server's bound would wait on the connection for
// others to end, whatever room there is elsewhere.
const firstStreams = 100

// settle bounds the time that a new connection waits for the server's bound on calls. The server
// sends it a round trip after the dial, and the longest ways on Earth take a quarter of a second.
const settle = 250 * time.Millisecond

// glance is the time between two looks at a new connection during that wait: its hook does not
// report a bound below firstStreams.
const glance = 2 * time.Millisecond

// resends is the number of times that a call is sent again if the server has not begun with it.
// As in net/http, it is sent again at once, then after one second, two, four, eight and sixteen.
const resends = 6

// pool puts the calls to one origin on as few connections of HTTP/2 as hold them. net/http dials
// for every call that finds no room, and so for each of those that start together.
//
// The first connection tells the protocol. To a server of HTTP/1.1 all further calls go by base,
// as many connections as calls. To one of HTTP/2 calls without room queue. The first connection
// also tells how many calls one holds; then as many are dialled, all at once, as hold the queue.
type pool struct {
	base *http.Transport // it makes connections, and keeps those of HTTP/1.1
	to   *url.URL

	// freed has a word once a connection may have room again. A waiting call takes the word and
	// looks: the connection cannot, as it may speak while mu is held.
	freed chan struct{}

	mu      sync.Mutex
	plain   bool // the server speaks HTTP/1.1 only
	conns   []*conn
	queue   []*waiting
	dialing int
	streams int  // how many calls a connection holds; 0: not known yet
	closing bool // idle connections were closed, and no call came since
}

// conn is a connection that calls share. Until it has settled, the server has not said, as far as
// is known, how many calls it takes.
type conn struct {
	*http.ClientConn
	settled bool
}

// waiting is a call for which there is no room yet.
type waiting struct {
	ctx  context.Context
	turn chan turn // of capacity one
}

// turn says how a call goes: on a connection with room reserved for it, by base, or not at all.
type turn struct {
	conn *http.ClientConn // nil: base, if there is no error
	err  error
}

// newPool returns a pool over base for calls to a base URL's origin. It returns base itself where
// nothing can be shared: HTTP/2 is spoken over TLS. Base must not be used for anything else.
func newPool(base *http.Transport, baseURL string) http.RoundTripper {
	to, err := url.Parse(strings.TrimSpace(baseURL))
	if err != nil || to.Scheme != "https" || strings.ContainsFunc(to.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return base // NewClientConn does not put a name into ASCII
	}
	if proxy := base.Proxy; proxy != nil {
		base.Proxy = func(req *http.Request) (*url.URL, error) { return proxy(aimed(req)) }
	}
	return &pool{base: base, to: to, freed: make(chan struct{}, 1)}
}

// aim is the key of a dial's URL in its context.
type aim struct{}

// aimed returns the request for which a proxy is chosen. NewClientConn has a stand-in, whose URL
// lacks the port that NO_PROXY may name.
func aimed(req *http.Request) *http.Request {
	to, is := req.Context().Value(aim{}).(*url.URL)
	if !is {
		return req
	}
	req = req.WithContext(req.Context())
	req.URL, req.Host = to, to.Host
	return req
}

// RoundTrip makes a call. It sends the call again if the server has certainly not begun with it. That
// is so if the server ends the connection or has no room.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != p.to.Scheme || req.URL.Host != p.to.Host {
		return p.base.RoundTrip(req)
	}
	now := req
	for sent := 0; ; sent++ {
		resp, err := p.sendOnce(now)
		if err == nil {
			resp.Request = req
			return resp, nil
		}
		if sent == resends || !isUnbegun(err) {
			return nil, err
		}
		if ended := pause(req.Context(), sent); ended != nil {
			return nil, ended
		}
		if now, err = rewound(req, err); err != nil {
			return nil, err
		}
	}
}

// CloseIdleConnections closes the connections that no call uses.
func (p *pool) CloseIdleConnections() {
	p.base.CloseIdleConnections()
	p.mu.Lock()
	var idle []*conn
	p.conns = slices.DeleteFunc(p.conns, func(c *conn) bool {
		if c.InFlight() == 0 {
			idle = append(idle, c)
		}
		return c.InFlight() == 0
	})
	p.closing = true
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close() // nothing is left to be said on it
	}
}

// sendOnce sends a call once: on a shared connection, or through base if the server speaks no HTTP/2.
func (p *pool) sendOnce(req *http.Request) (*http.Response, error) {
	t := p.acquire(req.Context())
	switch {
	case t.err != nil:
		if req.Body != nil {
			_ = req.Body.Close() // as each RoundTripper does
		}
		return nil, t.err
	case t.conn == nil:
		resp, err := p.base.RoundTrip(req)
		if err == nil && resp.ProtoMajor == 2 { // the server has learned HTTP/2 since
			p.mu.Lock()
			p.plain = false
			p.mu.Unlock()
		}
		return resp, err
	}
	return t.conn.RoundTrip(req)
}

// acquire waits for a call's turn, and returns the connection with room for it. The turn has no
// connection if the server speaks no HTTP/2.
func (p *pool) acquire(ctx context.Context) turn {
	p.mu.Lock()
	p.closing = false
	if p.plain {
		p.mu.Unlock()
		return turn{}
	}
	if len(p.queue) == 0 {
		if c := p.reserveRoom(); c != nil {
			p.mu.Unlock()
			return turn{conn: c}
		}
	}
	waiter := &waiting{ctx, make(chan turn, 1)}
	p.queue = append(p.queue, waiter)
	p.assign()
	p.mu.Unlock()
	for {
		select {
		case t := <-waiter.turn:
			return t
		case <-p.freed:
			p.mu.Lock()
			p.assign()
			p.mu.Unlock()
		case <-ctx.Done():
			p.leave(waiter)
			return turn{err: context.Cause(ctx)}
		}
	}
}

// leave takes a call out of the queue, or gives back the turn that it got meanwhile.
func (p *pool) leave(waiter *waiting) {
	p.mu.Lock()
	p.queue = slices.DeleteFunc(p.queue, func(o *waiting) bool { return o == waiter })
	p.mu.Unlock()
	select {
	case t := <-waiter.turn:
		if t.conn != nil {
			t.conn.Release()
		}
	default:
	}
}

// reserveRoom takes room on the oldest connection that has some: so the youngest fall idle, and end,
// once they are not needed. A connection that has not settled takes as many calls as others of the
// server, and one call if there are no others. The caller holds mu.
func (p *pool) reserveRoom() *http.ClientConn {
	for _, c := range p.conns {
		if !c.settled && c.InFlight() >= max(1, p.streams) {
			continue
		}
		if c.Available() > 0 && c.Reserve() == nil {
			return c.ClientConn
		}
	}
	return nil
}

// assign gives room to the calls that have waited longest, and dials for the others. Its caller
// holds mu.
func (p *pool) assign() {
	for len(p.queue) > 0 {
		c := p.reserveRoom()
		if c == nil {
			break
		}
		p.giveTurn(turn{conn: c})
	}
	p.dialMore()
}

// giveTurn gives a turn to the call that has waited longest. Its caller holds mu.
func (p *pool) giveTurn(t turn) {
	p.queue[0].turn <- t
	p.queue[0] = nil
	p.queue = p.queue[1:]
}

// dialMore dials if calls wait: one connection, or as many as hold all calls, once it is known how many
// calls one holds. Its caller holds mu.
func (p *pool) dialMore() {
	if len(p.queue) == 0 {
		return
	}
	p.dropEnded()
	calls, hold, coming := len(p.queue), p.dialing*p.streams, p.dialing
	for _, c := range p.conns {
		n := c.InFlight()
		calls += n
		switch {
		case !c.settled:
			hold += p.streams
			coming++
		case c.Available() == 0:
			hold += n // it is full, or takes no more because it is about to end
		default:
			hold += p.streams
		}
	}
	for ; coming == 0 || p.streams > 0 && hold < calls; coming++ {
		hold += p.streams
		p.dialing++
		go p.dial(p.queue[0].ctx)
	}
}

// dropEnded drops the connections that have ended, and closes those that have no calls and take none.
// Its caller holds mu.
func (p *pool) dropEnded() {
	p.conns = slices.DeleteFunc(p.conns, func(c *conn) bool {
		useless := c.settled && c.InFlight() == 0 && c.Available() == 0
		if useless {
			go func() { _ = c.Close() }() // it speaks, as mu is held
		}
		return useless || c.Err() != nil
	})
}

// dial makes a connection. It goes on if its call ends meanwhile: others can use the connection.
func (p *pool) dial(ctx context.Context) {
	var protocol string
	ctx = context.WithValue(context.WithoutCancel(ctx), aim{}, p.to)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(s tls.ConnectionState, _ error) { protocol = s.NegotiatedProtocol }, // of a proxy first, if it speaks TLS
	})
	c, err := p.base.NewClientConn(ctx, p.to.Scheme, net.JoinHostPort(p.to.Hostname(), p.to.Port()))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing--
	switch {
	case err != nil:
		p.failDial(err)
	case protocol != protocol2:
		p.plain = true
		for len(p.queue) > 0 {
			p.giveTurn(turn{})
		}
		go func() { _ = c.Close() }() // base keeps only connections of its own
	case p.closing && len(p.queue) == 0:
		go func() { _ = c.Close() }() // nobody needs it
	default:
		p.add(&conn{ClientConn: c})
	}
}

// add shares a new connection. Its caller holds mu, which is free while the connection settles.
func (p *pool) add(c *conn) {
	changed := make(chan struct{})
	notify := sync.OnceFunc(func() { close(changed) })
	c.SetStateHook(func(*http.ClientConn) { // there is more room, a call has ended, or the connection has
		notify()
		select {
		case p.freed <- struct{}{}:
		default: // it was said already
		}
	})
	p.conns = append(p.conns, c)
	p.assign()
	t := time.NewTicker(glance)
	defer t.Stop()
	for waited := time.Duration(0); waited < settle && c.Available()+c.InFlight() == firstStreams; waited += glance {
		p.mu.Unlock()
		select {
		case <-changed:
			waited = settle
		case <-t.C:
		}
		p.mu.Lock()
	}
	c.settled = true
	p.learn(c)
	p.assign()
}

// learn notes how many calls a connection holds. A connection without any room may be full, or
// about to end: few calls on it prove nothing. Its caller holds mu.
func (p *pool) learn(c *conn) {
	free := c.Available()
	if n := free + c.InFlight(); c.Err() == nil && (free > 0 || n >= firstStreams) {
		p.streams = n
	}
}

// failDial gives the error of a dial to the call that has waited longest. Without a connection on which
// the others might find room, the last dial's error is theirs too. Its caller holds mu.
func (p *pool) failDial(err error) {
	p.dropEnded()
	n := min(1, len(p.queue))
	switch {
	case len(p.conns) == 0 && p.dialing > 0:
		return
	case len(p.conns) == 0:
		n = len(p.queue)
	}
	for range n {
		p.giveTurn(turn{err: err})
	}
	p.dialMore()
}

// isUnbegun reports whether an error says that the server has certainly not begun with the call.
// net/http exports no type for that, but turns an error of a stream into any type of the same shape.
func isUnbegun(err error) bool {
	switch err.Error() {
	case "http2: client conn not usable", "http2: Transport received Server's graceful shutdown GOAWAY":
		return true
	}
	const protocolError, refusedStream = 0x1, 0x7
	var stream streamError
	if !errors.As(err, &stream) {
		return false
	}
	return stream.Code == refusedStream || stream.Code == protocolError && stream.Cause != nil && stream.Cause.Error() == "received from peer"
}

// streamError has the shape of net/http's error of one stream.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// Error makes streamError a target of errors.As. Callers get the original error.
func (streamError) Error() string { return "stream error" }

// rewound returns the request with its body from the beginning, or err if it cannot.
func rewound(req *http.Request, err error) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if req.GetBody == nil {
		return nil, err
	}
	again := req.WithContext(req.Context())
	again.Body, err = req.GetBody()
	return again, err
}

// pause waits before a call is sent again; the wait grows with the number of tries.
func pause(ctx context.Context, sent int) error {
	if sent == 0 {
		return nil
	}
	t := time.NewTimer(time.Second << (sent - 1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
