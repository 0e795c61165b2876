//go:build linux

package tests

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A link is the only way between two processes, and it can be spoiled. (Toxiproxy can do the same until a connection
// breaks off while it holds something back: then it does not heal any more.)
type link struct {
	t        *testing.T
	to       string
	listener net.Listener
	all      sync.WaitGroup

	mu      sync.Mutex
	spoiled map[string]spoil     // by direction
	changed chan struct{}        // closed when that is another
	open    map[*connection]bool // true: something of it was lost
	ended   bool
}

// The directions of a link, from him who connects: to the other, and from the other.
const (
	up   = "upstream"
	down = "downstream"
)

// A spoil is what is done to one direction. The zero value is nothing.
type spoil struct {
	swallows bool
	holds    bool
	slows    time.Duration
}

// A connection is two, as they are seen from in between.
type connection struct{ from, to net.Conn }

func (c *connection) close() { _, _ = c.from.Close(), c.to.Close() }

// A piece is what came at once, and when.
type piece struct {
	data []byte
	at   time.Time
}

// What a link keeps while it is held or slow: more than anybody says in that time. Then it is not read any more.
const (
	pieceSize  = 32 << 10
	piecesKept = 1 << 14
)

// newLink returns a link to an address. Each user of an address gets its own link.
func newLink(t *testing.T, to string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{t: t, to: to, listener: listener, spoiled: map[string]spoil{}, changed: make(chan struct{}), open: map[*connection]bool{}}
	l.all.Go(l.serve)
	t.Cleanup(l.end)
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) end() {
	_ = l.listener.Close()
	l.mu.Lock()
	l.ended = true
	for c := range l.open {
		c.close()
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	l.all.Wait()
}

func (l *link) serve() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return // it has ended
		}
		l.all.Go(func() { l.join(from) })
	}
}

// join makes the other half of a connection, and hands on what goes in either direction.
func (l *link) join(from net.Conn) {
	to, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = from.Close()
		return
	}
	c := &connection{from, to}
	l.mu.Lock()
	l.open[c] = false
	if l.ended {
		c.close()
	}
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.handOn(c, up, c.from, c.to) })
	both.Go(func() { l.handOn(c, down, c.to, c.from) })
	both.Wait()
	c.close()
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
}

// handOn brings the data of one direction to its end, when it may. The end of the data arrives as late as the data.
func (l *link) handOn(c *connection, direction string, from, to net.Conn) {
	pieces := make(chan piece, piecesKept)
	l.all.Go(func() {
		defer close(pieces)
		for {
			data := make([]byte, pieceSize)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{data[:n], time.Now()}
			}
			if err != nil {
				return
			}
		}
	})
	for p := range pieces {
		if l.may(c, direction, p.at) {
			if _, err := to.Write(p.data); err != nil {
				c.close() // and what is read then is thrown away
			}
		}
	}
	l.may(c, direction, time.Now())
	_ = to.(*net.TCPConn).CloseWrite() // it fails if it is closed
}

// may waits until something that came then goes on; false: it is lost.
func (l *link) may(c *connection, direction string, at time.Time) bool {
	for {
		l.mu.Lock()
		s, changed, ended := l.spoiled[direction], l.changed, l.ended
		if s.swallows {
			l.open[c] = true
		}
		l.mu.Unlock()
		var timer <-chan time.Time
		wait := time.Until(at.Add(s.slows))
		switch {
		case s.swallows || ended:
			return false
		case s.holds:
		case wait > 0:
			timer = time.After(wait)
		default:
			return true
		}
		select {
		case <-changed:
		case <-timer:
		}
	}
}

// swallow drops all data in these directions, and keeps the connections: nothing arrives and no error shows. When
// the link heals the connections break, as data is missing.
func (l *link) swallow(directions ...string) { l.spoil(spoil{swallows: true}, directions) }

// hold keeps what goes in these directions, and hands it on when it heals: late, and in order.
func (l *link) hold(directions ...string) { l.spoil(spoil{holds: true}, directions) }

// slow makes the way so long.
func (l *link) slow(by time.Duration, directions ...string) { l.spoil(spoil{slows: by}, directions) }

func (l *link) spoil(how spoil, directions []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range directions {
		l.spoiled[d] = how
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) heal() {
	l.mu.Lock()
	for c, lossy := range l.open {
		if lossy {
			c.close()
		}
	}
	l.mu.Unlock()
	l.spoil(spoil{}, []string{up, down})
}
