package serve

import (
	"net/http"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider"
)

// books are the counts that all requests share. They pass from hand to hand: a goroutine that has
// taken them from their channel is alone with them, waits for nothing, and puts them back.
type books struct {
	door         *door.Door
	bodies       int64 // bytes of all bodies that are held
	waiting      int
	clients      map[string]*counts // by the name of a client; those without any request are not kept
	open         int                // requests that have come in and not ended
	withoutUsage map[string]bool    // lanes whose servers refuse the question for the usage of a stream
	streams      int                // answers of which more comes, piece by piece
	total        purse              // the money of all clients
	purses       map[string]*purse  // of each client that has called
	moneyBack    chan struct{}      // closed when money comes back
	closing      bool               // nobody comes in any more
	idle         chan struct{}      // closed when closing and the last has ended
}

// counts are those of one client.
type counts struct {
	waiting  [len(door.Classes)]int
	inFlight int
}

// waitingInAll returns the number of the client's requests that wait, of all classes.
func (c *counts) waitingInAll() (n int) {
	for _, w := range c.waiting {
		n += w
	}
	return n
}

// withBooks calls f with the books, while nobody else has them.
func (s *Server) withBooks(f func(b *books)) {
	b := <-s.books
	defer func() { s.books <- b }()
	f(b)
}

// takeRoom takes n bytes of the room for bodies, and returns false if there is less. Requests give back what they
// have taken at their end.
func (s *Server) takeRoom(n int64) (has bool) {
	s.withBooks(func(b *books) {
		if has = b.bodies+n <= s.cfg.MaxBodies; has {
			b.bodies += n
		}
	})
	return has
}

// countIn counts a request that comes in. It returns a refusal if the server is closing.
func (s *Server) countIn() (refusal *provider.Refusal) {
	s.withBooks(func(b *books) {
		if b.closing {
			refusal = stopping()
			return
		}
		b.open++
	})
	return refusal
}

// countOut counts a request that has ended, and gives back the room for its body.
func (s *Server) countOut(bytes int64) {
	s.withBooks(func(b *books) {
		b.bodies -= bytes
		if b.open--; b.open == 0 && b.closing {
			close(b.idle)
		}
	})
}

// countWaiting counts a request of a client among those that wait.
func (s *Server) countWaiting(client string, class door.Class) {
	s.withBooks(func(b *books) {
		mine := b.clients[client]
		if mine == nil {
			mine = new(counts)
			b.clients[client] = mine
		}
		b.waiting++
		mine.waiting[class]++
	})
}

// countDeparture moves a request from those that wait to those in flight; countReturn undoes that.
func (s *Server) countDeparture(name string, class door.Class) { s.moveWaiting(name, class, -1) }
func (s *Server) countReturn(name string, class door.Class)    { s.moveWaiting(name, class, 1) }

// moveWaiting changes the number of a client's requests that wait by the given number, and the number in flight the
// other way.
func (s *Server) moveWaiting(name string, class door.Class, by int) {
	s.withBooks(func(b *books) {
		b.waiting += by
		b.clients[name].waiting[class] += by
		b.clients[name].inFlight -= by
	})
}

// countEnd removes a request from those that wait, or else from those in flight. It forgets a client that has no
// further request.
func (s *Server) countEnd(name string, class door.Class, waits bool) {
	s.withBooks(func(b *books) {
		mine := b.clients[name]
		if waits {
			b.waiting--
			mine.waiting[class]--
		} else {
			mine.inFlight--
		}
		if mine.inFlight == 0 && mine.waitingInAll() == 0 {
			delete(b.clients, name)
		}
	})
}

func queueFull(message string) *provider.Refusal {
	return &provider.Refusal{Status: http.StatusTooManyRequests, Code: "headrace_queue_full", Message: message}
}

func stopping() *provider.Refusal {
	return &provider.Refusal{Status: http.StatusServiceUnavailable, Code: "headrace_stopped", Message: "this server is stopping"}
}
