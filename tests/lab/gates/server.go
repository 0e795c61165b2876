package gates

import (
	"time"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
)

// Config describes a server, for any law that calls it.
type Config struct {
	Gates   []Gate
	Answers Answers
	Refusal time.Duration // time of a refusal
	Status  sim.Kind      // of a refusal: RateLimited or Overloaded
	Headers bool
	Lie     Lie           // nil: headers tell the truth
	Retry   bool          // refusals carry Retry-After
	Named   time.Duration // the wait in Retry-After; negative: the true wait, in whole seconds
	Breaks  float64       // share of admitted calls that end with a 500, after their time
	Outages []Outage
	Seed    uint64
}

// An Outage is a period in which each call gets a 503.
type Outage struct{ From, For time.Duration }

func (o Outage) over(at time.Duration) bool { return at >= o.From+o.For }

func (o Outage) now(at time.Duration) bool { return at >= o.From && !o.over(at) }

// Books count what a server did with our calls.
type Books struct {
	Admitted, Refused int
	Imposed           int // refused by chance alone: every other gate was open
	Broken            int
	Down              int // calls that met an outage
}

// A Server is a row of gates. It judges as [sim.Model] does.
type Server struct {
	Config
	Books

	answers  *answers
	breaks   *breaks
	admitted int // the neighbour's calls included
}

// NewServer begins with fresh gates of its own.
func NewServer(c Config) *Server {
	return &Server{Config: c, answers: newAnswers(c.Answers, c.Seed), breaks: newBreaks(c.Breaks, c.Seed)}
}

// Decide judges a call that arrives now. Calls must arrive in order.
func (s *Server) Decide(now time.Time, c sim.Call) sim.Verdict {
	at := now.Sub(lab.Start)
	neighbour := lab.FromNeighbour(c)
	for _, o := range s.Outages {
		if o.now(at) {
			return s.down(neighbour)
		}
	}
	shut, wait, chance := s.ask(at, c.Tokens)
	if shut {
		if !neighbour {
			s.Refused++
			if chance {
				s.Imposed++
			}
		}
		return s.refuse(at, c.Tokens, wait)
	}
	return s.admit(at, c.Tokens, neighbour)
}

// ask asks every gate, as each must see each call. Chance reports that no other gate was
// shut.
func (s *Server) ask(at time.Duration, tokens float64) (shut bool, wait time.Duration, chance bool) {
	chance = true
	for _, g := range s.Gates {
		open, w := g.Ask(at, tokens)
		if open {
			continue
		}
		shut = true
		wait = max(wait, w)
		if _, ok := g.(*Shed); !ok {
			chance = false
		}
	}
	return shut, wait, chance
}

func (s *Server) down(neighbour bool) sim.Verdict {
	if !neighbour {
		s.Down++
	}
	return sim.Verdict{Status: sim.Overloaded.Status(), Kind: sim.Overloaded, Latency: s.Refusal}
}

func (s *Server) refuse(at time.Duration, tokens float64, wait time.Duration) sim.Verdict {
	for _, g := range s.Gates {
		g.Refused(at, tokens)
	}
	v := sim.Verdict{Status: s.Status.Status(), Kind: s.Status, Latency: s.Refusal, Wait: wait}
	v.RetryAfter, v.HasRetryAfter = s.retryAfter(wait)
	return s.tell(at, v)
}

// retryAfter returns the wait in whole seconds, as most servers give it: 0 where the next
// call may pass at once.
func (s *Server) retryAfter(wait time.Duration) (time.Duration, bool) {
	if !s.Retry || s.Named >= 0 {
		return max(0, s.Named), s.Retry
	}
	return (wait + time.Second - 1).Truncate(time.Second), true
}

// admit takes a call through every gate, and draws the time of its answer. A call that breaks has
// passed the gates and takes as long as a good one.
func (s *Server) admit(at time.Duration, tokens float64, neighbour bool) sim.Verdict {
	v := sim.Verdict{Status: sim.Accepted.Status(), Kind: sim.Accepted, Latency: s.answers.next()}
	for _, g := range s.Gates {
		g.Take(at, tokens, at+v.Latency)
	}
	s.admitted++
	if !neighbour {
		s.Admitted++
	}
	if s.breaks.next() {
		if !neighbour {
			s.Broken++
		}
		v.Status, v.Kind = sim.ServerError.Status(), sim.ServerError
	}
	return s.tell(at, v)
}

// tell adds the headers about the first gate of each kind.
func (s *Server) tell(at time.Duration, v sim.Verdict) sim.Verdict {
	if !s.Headers {
		return v
	}
	v.HasHeaders = true
	for _, g := range s.Gates {
		t, ok := g.(teller)
		if !ok {
			continue
		}
		d, q := t.quota(at)
		if s.Lie != nil {
			q = s.Lie(at, q, s.admitted)
		}
		switch {
		case d == sim.Requests && v.Requests.Limit == 0:
			v.Requests = q
		case d == sim.Tokens && v.Tokens.Limit == 0:
			v.Tokens = q
		}
	}
	return v
}
