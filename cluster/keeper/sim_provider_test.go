package keeper

import (
	"errors"
	"math"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A bucket of tokens that refuses what it does not hold, and does not charge for that.
type bucket struct {
	l     *lab
	level float64
	at    time.Duration
	full  bool // it was, since somebody looked
}

func (b *bucket) rate() float64 {
	if f := b.l.plan.limit; f != nil {
		return b.l.plan.rate * f(b.l.now)
	}
	return b.l.plan.rate
}

func (b *bucket) refill() {
	b.level += b.rate() * (b.l.now - b.at).Seconds()
	b.at = b.l.now
	if most := b.rate() * b.l.plan.depth; b.level >= most {
		b.level, b.full = most, true
	}
}

// serve judges a call that arrives.
func (b *bucket) serve(c limiter.Cost, w *worker, x *simLane) (o machine.Outcome) {
	b.refill()
	l := b.l
	if q := l.plan.quota; q > 0 && l.now >= q {
		l.sums.refusal(l)
		return machine.Outcome{Signal: machine.Exhausted, Cause: errQuota}
	}
	l.sums.arrived += c.Tokens()
	o.Signal = machine.Throttled
	if b.level >= c.Tokens() {
		b.level -= c.Tokens()
		o = machine.Outcome{Signal: machine.Succeeded, Measured: true, Actual: c}
		l.sums.serve(l, w, x, c.Tokens())
	} else {
		l.sums.refusal(l)
		if l.sums.onRefusal != nil {
			l.sums.onRefusal(c.Tokens())
		}
	}
	if l.plan.headers {
		o.Sightings = []limiter.Sighting{{
			Dimension: limiter.Tokens, Limit: 60 * b.rate(), Window: time.Minute, Remaining: math.Floor(b.level),
			Reset: time.Duration((b.rate()*l.plan.depth - b.level) / b.rate() * 1e9), HasReset: true,
		}}
	}
	return o
}

var errQuota = errors.Join(&provider.Error{Kind: provider.QuotaExhausted, Status: 429, Code: "insufficient_quota", Message: "you have used all of your credit"})
