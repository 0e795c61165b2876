package machine

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// An answer is how a call will end, and when.
type answer struct {
	outcome Outcome
	latency time.Duration
}

var (
	errSimExhausted = errors.New("sim: the account is empty")
	errSimBroke     = errors.New("sim: it broke")
)

// call answers a call of that cost that arrives now, so long after the world began.
func (s *server) call(rng *rand.Rand, now time.Time, age time.Duration, c limiter.Cost) answer {
	a := s.judge(rng, now, age, c)
	if gone, is := s.absent(age); is {
		return gone
	}
	s.tell(rng, age, &a.outcome)
	return a
}

func (s *server) judge(rng *rand.Rand, now time.Time, age time.Duration, c limiter.Cost) answer {
	took := s.latency + time.Duration(rng.Float64()*float64(s.spread))
	if s.slow {
		s.refusal = took
	}
	switch {
	case s.exhaustedAt > 0 && age >= s.exhaustedAt:
		return s.end(Exhausted, s.refusal)
	case within(s.outage, age) && s.outageKind == Nothing:
		return s.breaks(byTimeout, 30*time.Second) // the attempt's timeout
	case within(s.outage, age):
		return s.refused(rng, s.outageKind)
	case s.day > 0 && !s.ofDay():
		return s.refused(rng, s.refusalKind())
	case within(s.storm, age), s.crowded(), rng.Float64() < s.shed, !s.admits(now):
		return s.refused(rng, s.refusalKind())
	case !s.serves(now, c):
		a := s.refused(rng, s.refusalKind())
		if s.names {
			a.outcome.On = limiter.Tokens
		}
		return a
	case rng.Float64() < s.errors:
		a := s.breaks(byError, took)
		a.outcome.Signal = []Signal{Failed, Failed, Answered}[rng.IntN(3)]
		return a
	}
	return s.end(Succeeded, took)
}

// breaks is the end of a call that breaks in that way.
func (s *server) breaks(way uint8, took time.Duration) answer {
	a := s.end(Failed, took)
	a.outcome.Way, a.outcome.Cause = way, errSimBroke
	return a
}

func (s *server) crowded() bool { return s.places > 0 && s.flying >= s.places }

func (s *server) refusalKind() Signal {
	if s.busy {
		return Overloaded
	}
	return Throttled
}

func within(span [2]time.Duration, age time.Duration) bool { return span[0] <= age && age < span[1] }

// admits is the server's own token bucket: refusals are not charged.
func (s *server) admits(now time.Time) bool {
	if s.perSecond == 0 {
		return true
	}
	if !s.last.IsZero() {
		s.level = min(s.depth, s.level+s.perSecond*now.Sub(s.last).Seconds())
	}
	s.last = now
	if s.level < 1 {
		return false
	}
	s.level--
	return true
}

func (s *server) end(signal Signal, took time.Duration) answer {
	a := answer{Outcome{Signal: signal, Latency: took, Cause: errSimExhausted}, took}
	if s.onlyIfFirst {
		a.outcome.Alike, a.outcome.First, a.outcome.Later = 404, 1, 5
	}
	return a
}

func (s *server) refused(rng *rand.Rand, signal Signal) answer {
	a := s.end(signal, s.refusal)
	if s.retryAfter == 0 {
		return a
	}
	a.outcome.Directed, a.outcome.RetryAfter = true, s.retryAfter
	if s.badRetryAfter && rng.IntN(5) == 0 {
		a.outcome.RetryAfter = []time.Duration{0, -time.Second, time.Minute, time.Hour}[min(3, rng.IntN(20))]
	}
	return a
}
