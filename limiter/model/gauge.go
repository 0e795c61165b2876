package model

import (
	"github.com/headrace/headrace/limiter"
)

// The dimensions as indexes of arrays.
const (
	dimRequests = iota
	dimTokens
	dimInput
	dimOutput
	dims
)

var dimensionOf = [dims]limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

func index(d limiter.Dimension) int {
	for k, dim := range dimensionOf {
		if dim == d {
			return k
		}
	}
	return -1
}

func spread(c limiter.Cost) [dims]float64 {
	return [dims]float64{c.Requests, c.Tokens(), c.Input, c.Output}
}

// neighbourFloor is the share of the refill under which other clients' draw is
// taken for noise: remaining is rounded, and a rounded difference is never
// exactly nought.
const neighbourFloor = 0.03

// A gauge is our model of one of the provider's buckets. Times are seconds
// since the law began.
//
//	level(t) rises by refill − others, never above capacity; a call takes its cost
//
// The level may be negative: a debt, which says that the provider has been
// found to hold more than was believed, or less than was charged. The zero gauge
// knows of no limit.
type gauge struct {
	source   limiter.Source
	fresh    bool    // told, and nothing was drawn yet: any bucket holds the first call
	holds    float32 // told: a call that draws no more leaves something in the bucket
	refill   float64 // units per second
	capacity float64
	level    float64
	others   float64 // units per second that other clients draw; signed, for an unbiased mean
	at       float64 // the level is true of this moment
	ceiling  float64 // the user's limit, units per second; 0: none

	*shown // nil: no header spoke of this limit, so that most gauges are a line of a processor's cache
}

func (g *gauge) known() bool { return g.source != limiter.Unknown }

// draw is what other clients take, as far as it is more than noise. It is less than the
// refill, which may have been lowered since: else the level would fall for ever, and
// nothing would leave again.
func (g *gauge) draw() float64 {
	if g.others >= neighbourFloor*g.refill && !g.isFixed() {
		return min(g.others, othersMost*g.refill)
	}
	return 0
}

// levelAt is the level at t; asking changes nothing.
func (g *gauge) levelAt(t float64) float64 {
	switch {
	case t <= g.at:
		return g.level
	case g.isFixed():
		return g.fixed.levelAt(g.level, t)
	}
	return min(g.capacity, g.level+(g.refill-g.draw())*(t-g.at))
}

func (g *gauge) advance(t float64) {
	if t > g.at {
		g.level = g.levelAt(t)
		if g.isFixed() {
			g.fixed.advance(t)
		}
		g.at = t
	}
}

// most is what the level may come to: nobody waits for more.
func (g *gauge) most() float64 {
	if g.isFixed() {
		return min(g.capacity, g.fixed.most)
	}
	return g.capacity
}

const (
	// leastDebt is what a debt may be at least: two calls. Where a minute's refill is
	// less, a bound that one call reaches would let the next one pass at once.
	leastDebt = 2

	// debtSeconds and toldDebtSeconds bound a debt, in seconds of refill. A provider that
	// counts by the minute has forgotten what is older, and one wrong number must not stop
	// a lane for days. What was told is a ceiling, so an hour of it is paid back.
	debtSeconds     = 60
	toldDebtSeconds = 3600
)

// take draws n units; a negative n gives them back. The debt is bounded.
func (g *gauge) take(n float64) { g.takeOf(0, n) }

// takeOf is take for a call that was charged so much: that may be owed in any case, or calls
// of more than the bound would leave too often.
func (g *gauge) takeOf(charged, n float64) {
	if g.fresh {
		g.fresh, g.level = false, max(g.level, min(n, g.capacity))
	}
	bound := debtSeconds * g.refill
	if g.source == limiter.Told {
		bound = toldDebtSeconds * g.refill
	}
	g.level = min(g.capacity, max(g.level-n, -max(bound, leastDebt, charged)))
}

func (g *gauge) warm() uint64 { return uint64(g.source) + uint64(int64(g.ceiling)) }

// capped is a refill under the user's ceiling.
func (g *gauge) capped(refill float64) float64 {
	if g.ceiling > 0 {
		return min(refill, g.ceiling)
	}
	return refill
}

// slack is how far into debt a call of that cost may lead where no header tells the level:
// two calls, or a second's refill, which is less than any bucket that was learned holds. A
// told limit has none: it is a ceiling, and may be kept by a window that slides.
func (g *gauge) slack(cost float64) float64 {
	if g.source == limiter.Told {
		return 0
	}
	return max(2*cost, margin*g.refill)
}

// burstSeconds is how many seconds of refill the gauge holds, within reason: it
// decides how long tries take.
func (g *gauge) burstSeconds() float64 {
	return min(60, max(1.5, g.capacity/g.refill))
}

// spacing reports whether one call at a time is let in: they must then arrive as
// evenly as the bucket refills.
func (g *gauge) spacing(k int) bool {
	return k == dimRequests && g.source == limiter.Seen && g.capacity < 2 && !g.isFixed()
}

// toldBurst is how many seconds of a told limit may be saved up where its burst is
// not told. What was saved is sent on top of the limit, and a window, fixed or
// sliding, forgives none of it; a fifth of a second is what timers and schedulers
// need.
const toldBurst = 0.2

// Calls on their way overtake one another's pace: one that arrives sooner than the one before
// it did finds a bucket that holds no more than it draws not full yet.
const (
	toldEarly = 0.02 // of what such a call draws is drawn besides
	toldKept  = 0.05 // seconds of refill are kept of a burst
)

// early is what a call draws besides its cost.
func (g *gauge) early(cost float64) float64 {
	if cost > float64(g.holds) && g.source == limiter.Told {
		return toldEarly * cost
	}
	return 0
}

// tell takes the user's word: refill in units per second, none if not over 0.
func (g *gauge) tell(t, refill, burst float64, tokens bool) {
	g.ceiling = refill
	switch {
	case refill <= 0 && g.source == limiter.Told:
		g.forget(tokens)
		return
	case refill <= 0:
		return
	}
	g.advance(t)
	capacity := min(burst, max(burst-toldKept, toldBurst)) * refill
	if g.holds = float32(capacity); burst == 0 { // any bucket holds DefaultBurst
		capacity = toldBurst * refill
		g.holds = float32((limiter.DefaultBurst.Seconds() - toldKept) * refill)
	}
	switch g.source {
	case limiter.Unknown:
		g.level, g.at, g.fresh = burst*refill, t, true
		g.refill, g.capacity = refill, capacity
	case limiter.Told:
		g.refill, g.capacity = refill, capacity
	default: // found out, and now bounded
		g.refill, g.capacity = min(g.refill, refill), min(g.capacity, capacity)
	}
	if g.source != limiter.Seen {
		g.source = limiter.Told
	}
	g.level = min(g.level, g.capacity)
}

// forget is what remains of a told limit that is taken back: for requests a first
// guess, for tokens nothing, as no refusal would ever correct it.
func (g *gauge) forget(tokens bool) {
	g.source = limiter.Learned
	if tokens {
		*g = gauge{}
	}
}
