package serve

import (
	"net/http"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider"
)

// books are the counts that all requests share. They pass from hand to hand: a goroutine that has
// taken them from their channel is alone with them, waits for nothing, and puts them back.
type books struct {
	door    *door.Door
	bodies  int64 // bytes of all bodies that are held
	waiting int
	of      map[string]*counts // by the name of a client; those without any request are not kept
	open    int                // requests that have come in and not ended
	bare    map[string]bool    // lanes whose servers refuse the question for the usage of a stream
	streams int                // answers of which more comes, piece by piece
	all     purse              // the money of all clients
	purses  map[string]*purse  // of each client that has called
	money   chan struct{}      // closed when money comes back
	closing bool               // nobody comes in any more
	idle    chan struct{}      // closed when closing and the last has ended
}

// counts are those of one client.
type counts struct {
	waiting  [len(door.Classes)]int
	inFlight int
}

func (c *counts) waits() (n int) {
	for _, w := range c.waiting {
		n += w
	}
	return n
}

// with runs f alone with the books.
func (s *Server) with(f func(b *books)) {
	b := <-s.books
	defer func() { s.books <- b }()
	f(b)
}

// room takes n bytes for bodies, or none. Requests give back what they have taken at their end.
func (s *Server) room(n int64) (has bool) {
	s.with(func(b *books) {
		if has = b.bodies+n <= s.cfg.MaxBodies; has {
			b.bodies += n
		}
	})
	return has
}

// comesIn counts a request in, or says that the server is closing.
func (s *Server) comesIn() (refusal *provider.Refusal) {
	s.with(func(b *books) {
		if b.closing {
			refusal = stopping()
			return
		}
		b.open++
	})
	return refusal
}

// goesOut counts a request out.
func (s *Server) goesOut(bytes int64) {
	s.with(func(b *books) {
		b.bodies -= bytes
		if b.open--; b.open == 0 && b.closing {
			close(b.idle)
		}
	})
}

// joinsLine counts a request of a client among those that wait.
func (s *Server) joinsLine(client string, class door.Class) {
	s.with(func(b *books) {
		mine := b.of[client]
		if mine == nil {
			mine = new(counts)
			b.of[client] = mine
		}
		b.waiting++
		mine.waiting[class]++
	})
}

// departs moves a request from those that wait to those in flight; returns undoes that.
func (s *Server) departs(name string, class door.Class) { s.moves(name, class, -1) }
func (s *Server) returns(name string, class door.Class) { s.moves(name, class, 1) }

func (s *Server) moves(name string, class door.Class, by int) {
	s.with(func(b *books) {
		b.waiting += by
		b.of[name].waiting[class] += by
		b.of[name].inFlight -= by
	})
}

// leaves counts a request out of the line or the air.
func (s *Server) leaves(name string, class door.Class, waits bool) {
	s.with(func(b *books) {
		mine := b.of[name]
		if waits {
			b.waiting--
			mine.waiting[class]--
		} else {
			mine.inFlight--
		}
		if mine.inFlight == 0 && mine.waits() == 0 {
			delete(b.of, name)
		}
	})
}

func full(message string) *provider.Refusal {
	return &provider.Refusal{Status: http.StatusTooManyRequests, Code: "headrace_queue_full", Message: message}
}

func stopping() *provider.Refusal {
	return &provider.Refusal{Status: http.StatusServiceUnavailable, Code: "headrace_stopped", Message: "this server is stopping"}
}
