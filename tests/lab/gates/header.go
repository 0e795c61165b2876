package gates

import (
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A teller is a gate that headers can report.
type teller interface {
	quota(at time.Duration) (sim.Dimension, sim.Quota)
}

// quota returns the bucket's state as headers print it. The limit is per minute whatever the depth,
// and a debt is shown as nothing remaining.
func (b *Bucket) quota(at time.Duration) (sim.Dimension, sim.Quota) {
	b.advance(at)
	perSecond := b.rate.of(b.at)
	q := sim.Quota{Limit: 60 * perSecond, Remaining: max(0, b.level)}
	if missing := b.depth() - b.level; missing > grain {
		q.Reset = after(missing / perSecond)
	}
	if b.Tokens {
		return sim.Tokens, q
	}
	return sim.Requests, q
}

func (w *Window) quota(at time.Duration) (sim.Dimension, sim.Quota) {
	w.advance(at)
	perMinute := float64(w.n) / w.width.Minutes()
	return sim.Requests, sim.Quota{Limit: perMinute, Remaining: float64(max(0, w.left)), Reset: w.end() - at}
}

// A Lie returns what a server prints instead of the truth, given how many calls it has
// admitted.
type Lie func(at time.Duration, q sim.Quota, admitted int) sim.Quota

// NeverFalls always prints the limit as remaining.
func NeverFalls(_ time.Duration, q sim.Quota, _ int) sim.Quota {
	return sim.Quota{Limit: q.Limit, Remaining: q.Limit}
}

// TenTimes prints a limit ten times too high, of which as much is gone as of the true one.
func TenTimes(_ time.Duration, q sim.Quota, _ int) sim.Quota {
	gone := q.Reset.Seconds() * q.Limit / 60
	return sim.Quota{Limit: 10 * q.Limit, Remaining: 10*q.Limit - gone, Reset: q.Reset / 10}
}

// DaysLimit prints the limit by the day, which fills at midnight, and hides the limit by the
// minute.
func DaysLimit(at time.Duration, q sim.Quota, admitted int) sim.Quota {
	const day = 24 * time.Hour
	perDay := q.Limit * day.Minutes()
	return sim.Quota{Limit: perDay, Remaining: perDay - float64(admitted), Reset: day - at}
}
