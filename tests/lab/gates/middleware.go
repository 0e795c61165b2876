package gates

import (
	"math"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// The limiters here are those of middlewares that many servers use. They print the limit of
// their window as it is, whatever its length, and times in whole seconds.

// A Counter approximates a sliding window by two fixed ones. It adds, to the calls of this
// window, as many of the last one's as still lie within a width. httprate and HAProxy's
// stick tables count like this.
type Counter struct {
	Charged bool // a refused call counts too, as in HAProxy

	n        int
	width    time.Duration
	nth      time.Duration
	now, was int // calls of this window, and of the one before
}

// NewCounter makes one of n calls. Its first window begins with the world.
func NewCounter(n int, width time.Duration) *Counter { return &Counter{n: max(1, n), width: width} }

func (c *Counter) advance(at time.Duration) {
	switch nth := at / c.width; {
	case nth <= c.nth:
	case nth == c.nth+1:
		c.nth, c.was, c.now = nth, c.now, 0
	default:
		c.nth, c.was, c.now = nth, 0, 0
	}
}

// rate returns the number of calls that count at a moment of this window.
func (c *Counter) rate(at time.Duration) float64 {
	ahead := float64(c.end()-at) / float64(c.width)
	return float64(c.was)*ahead + float64(c.now)
}

func (c *Counter) end() time.Duration { return (c.nth + 1) * c.width }

// Ask is part of [Gate]: one call more must find room.
func (c *Counter) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	c.advance(at)
	if c.rate(at) < float64(c.n) {
		return true, 0
	}
	room := c.n - c.now
	if room <= 0 {
		return false, c.end() - at
	}
	ahead := float64(room) / float64(c.was) // the rest of this window, when only these calls of the last one count
	return false, max(1, c.end()-time.Duration(ahead*float64(c.width))+1-at)
}

// Take is part of [Gate].
func (c *Counter) Take(at time.Duration, _ float64, _ time.Duration) {
	c.advance(at)
	c.now++
}

// Refused is part of [Gate].
func (c *Counter) Refused(at time.Duration, _ float64) {
	if c.Charged {
		c.advance(at)
		c.now++
	}
}

// Next is part of [Gate].
func (c *Counter) Next(at time.Duration, _ float64) time.Duration {
	at = max(at, c.nth*c.width)
	for {
		open, wait := c.Ask(at, 0)
		if open {
			return at
		}
		at += wait
	}
}

func (c *Counter) quota(at time.Duration) (sim.Dimension, sim.Quota) {
	c.advance(at)
	left := max(0, float64(c.n)-math.Round(c.rate(at)))
	return sim.Requests, sim.Quota{Limit: float64(c.n), Remaining: left, Reset: secondsTo(c.end(), at)}
}

// An Expiring window begins with the first call that finds none, and lets n calls in until
// it expires. ulule/limiter counts like this.
type Expiring struct {
	n, left int
	width   time.Duration
	end     time.Duration
}

// NewExpiring makes one of n calls.
func NewExpiring(n int, width time.Duration) *Expiring { return &Expiring{n: max(1, n), width: width} }

// Ask is part of [Gate].
func (e *Expiring) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	if at >= e.end || e.left > 0 {
		return true, 0
	}
	return false, e.end - at
}

// Take is part of [Gate].
func (e *Expiring) Take(at time.Duration, _ float64, _ time.Duration) {
	if at >= e.end {
		e.left, e.end = e.n, at+e.width
	}
	e.left--
}

// Refused is part of [Gate].
func (e *Expiring) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (e *Expiring) Next(at time.Duration, _ float64) time.Duration {
	_, wait := e.Ask(at, 0)
	return at + wait
}

func (e *Expiring) quota(at time.Duration) (sim.Dimension, sim.Quota) {
	if at >= e.end {
		return sim.Requests, sim.Quota{Limit: float64(e.n), Remaining: float64(e.n)}
	}
	return sim.Requests, sim.Quota{Limit: float64(e.n), Remaining: float64(e.left), Reset: secondsTo(e.end, at)}
}

// secondsTo returns a wait as a client computes it from a Unix time and the answer's Date.
func secondsTo(end, at time.Duration) time.Duration {
	return end.Truncate(time.Second) - at.Truncate(time.Second)
}

// AsGCRA prints a bucket as throttled and redis-cell do: the limit is the bucket's depth,
// not its inflow, and the reset is in whole seconds until it is full.
func AsGCRA(holds float64) Lie {
	return func(_ time.Duration, q sim.Quota, _ int) sim.Quota {
		return sim.Quota{
			Limit: holds, Remaining: q.Remaining,
			Reset: (q.Reset + time.Second - 1).Truncate(time.Second),
		}
	}
}

// A TokenLog is a sliding window of tokens: it admits no more than n of them in any stretch
// of its length. A call that is larger than n would never pass.
type TokenLog struct {
	n     float64
	width time.Duration
	log   []drawn // the draws that count, oldest first
	sum   float64
}

// drawn records the draw of a call, and its time.
type drawn struct {
	at     time.Duration
	tokens float64
}

// NewTokenLog makes one of n tokens.
func NewTokenLog(n float64, width time.Duration) *TokenLog { return &TokenLog{n: n, width: width} }

// Ask is part of [Gate].
func (l *TokenLog) Ask(at time.Duration, tokens float64) (bool, time.Duration) {
	for len(l.log) > 0 && l.log[0].at+l.width <= at {
		l.sum -= l.log[0].tokens
		l.log = l.log[1:]
	}
	over := l.sum + tokens - l.n
	if over <= grain {
		return true, 0
	}
	for _, d := range l.log {
		if over -= d.tokens; over <= grain {
			return false, d.at + l.width - at
		}
	}
	return false, never
}

// Take is part of [Gate].
func (l *TokenLog) Take(at time.Duration, tokens float64, _ time.Duration) {
	l.log = append(l.log, drawn{at: at, tokens: tokens})
	l.sum += tokens
}

// Refused is part of [Gate].
func (l *TokenLog) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (l *TokenLog) Next(at time.Duration, tokens float64) time.Duration {
	_, wait := l.Ask(at, tokens)
	return at + wait
}
