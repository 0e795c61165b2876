package permit

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// Hear is part of [limiter.Listener]. It takes *[Give] and *[Cool]. It ignores a message for
// another lane, of an earlier keeper, or that makes no sense.
func (l *Law) Hear(now time.Time, word any) (r limiter.Reply) {
	switch w := word.(type) {
	case *Give:
		if w.Validate() == nil && w.Worker == l.worker && w.Job == l.job && w.Limit == l.limit && w.Epoch >= l.epoch {
			return l.given(now, w)
		}
	case *Cool:
		if w.Validate() == nil && w.Limit == l.limit && w.Epoch >= l.epoch {
			return l.cooled(now, w)
		}
	}
	return r
}

// believe follows a later keeper. Permits of an earlier one stay in hand.
func (l *Law) believe(epoch uint64) {
	if epoch > l.epoch {
		l.epoch, l.wave, l.got = epoch, 0, 0
	}
}

func (l *Law) given(now time.Time, g *Give) (r limiter.Reply) {
	l.believe(g.Epoch)
	l.answered = l.answered || g.Answered
	r.Answered = l.answered
	if g.Wave > l.wave {
		r.Resume = l.newWave(now, g.Wave)
	}
	until := l.heard(now, g.Heard)
	for _, p := range g.Permits {
		if p.Number <= l.got {
			continue // it is doubled, or late: nothing shows any more whether it was in hand
		}
		l.got = p.Number
		l.asks.unmet--
		l.asks.came++
		x := inHand{Permit: p, epoch: g.Epoch, wave: g.Wave, until: until}
		if g.Wave < l.wave || !now.Before(until) || len(l.hand.permits) >= MaxPermits {
			l.unused(now, x)
			continue
		}
		l.hand.add(x)
	}
	return r
}

// heard notes that the keeper heard an ask. It returns the time until which the ask's permits
// are good; the zero time if that ask is too old.
func (l *Law) heard(now time.Time, seq uint64) (until time.Time) {
	a := &l.asks
	for i := range a.sent {
		s := &a.sent[i]
		if s.seq != seq {
			continue
		}
		l.reports.heard(s.report)
		if way := now.Sub(s.at).Seconds(); s.seq == a.seq {
			if a.way == 0 {
				a.way = way
			}
			a.way += wayWeight * (way - a.way)
		}
		return s.at.Add(Life)
	}
	return time.Time{}
}

// newWave voids the permits of older waves. It reports whether a stopped lane resumes.
func (l *Law) newWave(now time.Time, wave uint64) (resume bool) {
	l.wave = wave
	l.drop(now, l.epoch, wave)
	resume, l.stopped = l.stopped, false
	return resume
}

func (l *Law) cooled(now time.Time, c *Cool) (r limiter.Reply) {
	later := c.Epoch > l.epoch
	l.believe(c.Epoch)
	if c.Wave < l.wave || c.Wave == l.wave && !later && (c.Stopped == nil) == !l.stopped {
		return r // it is old, or was heard before
	}
	r.Resume = l.newWave(now, c.Wave)
	if c.Stopped != nil {
		l.stopped, r = true, limiter.Reply{Stop: c.Stopped}
	}
	return r
}
