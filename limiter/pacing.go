package limiter

import (
	"math"
	"time"
)

// When a call may leave, by the model: the rate, the credit, the debt.

// pace is the share of the full rate that may be used: it starts low and
// doubles, without a bound, as it only limits the burst.
func (m *ModelLaw) pace(t float64) float64 {
	if doublings := (t - m.paceAt) / m.paceTime; doublings < unbounded {
		return m.paceFrom * math.Exp2(doublings)
	}
	return math.Inf(1)
}

// unbounded is how many doublings take every share that is begun with, a quarter or
// more, past the fastest that is ever asked for, burstCap. From then on the pace
// bounds nothing, and need not be computed for every call.
const unbounded = 6

func (m *ModelLaw) slowStart(t, share, time float64) {
	m.paceFrom, m.paceAt, m.paceTime = share, t, time
}

// leastReserve is the reserve where no refusal asked for more, in seconds of refill.
const leastReserve = 0.5

// reserveNow is how many seconds of refill are kept back on silent lanes: it
// grew with refusals that nobody asked for, and is forgotten over minutes.
func (m *ModelLaw) reserveNow(t float64) float64 {
	if m.reserve <= leastReserve {
		return leastReserve
	}
	return max(leastReserve, m.reserve*math.Pow(0.8, (t-m.reserveAt)/60))
}

func (m *ModelLaw) spare(g *gauge, t float64) float64 {
	if g.source == seen {
		if r := m.reserveNow(t); r > 5 {
			return min(r*g.refill, g.capacity/2)
		}
		return min(headerSpare*g.refill, g.capacity/4)
	}
	return min(m.reserveNow(t)*g.refill, 0.35*g.capacity)
}

// rate is how many calls of that cost may leave per second.
func (m *ModelLaw) rate(t float64, cost [dims]float64) float64 {
	r, ending := math.Inf(1), m.ending(t)
	fastest := min(burstCap, m.pace(t))
	for k := range m.used {
		g := &m.gauges[k]
		if g.source == unknown || cost[k] == 0 {
			continue
		}
		g.advance(t)
		spare := m.spare(g, t)
		if ending {
			spare = 0
		}
		x := margin*g.refill - g.draw() + (g.level+cost[k]/2-spare)/horizon
		if m.mode == probing && k == dimRequests && g.source != seen {
			x = max(x, m.probeRate)
		}
		most := max(fastest*g.refill, g.level/longBurst)
		x = max(0.05*g.refill, min(x, most))
		r = min(r, x/cost[k])
	}
	if m.mode == discover || (m.mode == startup && !m.serves) {
		r = min(r, m.unknownRate)
	}
	if m.errors.slowed {
		r *= m.errors.Factor(m.time(t))
	}
	return max(r, m.gauges[dimRequests].capped(floorRate))
}

// ending reports whether what remains of the batch fits the levels: then the
// reserve is of no use to anyone.
func (m *ModelLaw) ending(t float64) bool {
	if m.remains == (Cost{}) || m.serves {
		return false
	}
	left := spread(m.remains)
	for k := range m.used {
		g := &m.gauges[k]
		if g.source == unknown {
			continue
		}
		g.advance(t)
		if left[k] > g.level {
			return false
		}
	}
	return m.gauges[dimRequests].source != unknown
}

// Remaining is part of [Law].
func (m *ModelLaw) Remaining(c Cost) {
	if c != m.remains {
		m.remains, m.quoted = c, quote{}
	}
}

// A quote is the rate that Wait found, for the call that is let go by it and sent at the
// same moment. Whatever teaches the law anything voids it; the zero quote is void.
type quote struct {
	at, rate float64
	cost     Cost
}

// Wait is how long until a call of that cost may leave: 0 is now. It is an
// estimate from below, at most 250 ms: the rate changes, so ask again.
func (m *ModelLaw) Wait(now time.Time, c Cost) (time.Duration, string) {
	t := m.seconds(now)
	if t < m.hold {
		return ceilSeconds(m.hold - t), "hold"
	}
	charge := m.weigh(c)
	cost := spread(charge)
	m.step(t)
	r := m.rate(t, cost)
	m.quoted = quote{at: t, rate: r, cost: charge}
	if credit := m.creditAt(t, r); credit < 1-1e-9 {
		m.binding = true
		return min(AskAgain, ceilSeconds((1-credit)/r)), "rate"
	}
	if wait, on := m.debtWait(t, cost); wait > 0 {
		m.binding = true
		return min(AskAgain, wait), on.String()
	}
	return 0, ""
}

// creditAt is how many calls may leave at once: the whole time since the latest
// one counts at the present rate, and none of a hold does, so that a rising rate
// shortens a wait that has begun and a hold does not end in a burst.
func (m *ModelLaw) creditAt(t, r float64) float64 {
	if math.IsInf(r, 1) {
		return 1 // without a rate nothing is saved up for when there is one
	}
	return min(1+0.1*r, m.credit+r*max(0, t-max(m.credited, m.hold)))
}

// ProbeWait is part of [Law].
func (m *ModelLaw) ProbeWait(now time.Time, c Cost) time.Duration {
	wait, _ := m.Wait(now, c)
	return wait
}

// debtWait is how long until the call fits the gauges, with the debt that each
// allows: none where headers tell the level, else a second's worth or two calls.
func (m *ModelLaw) debtWait(t float64, cost [dims]float64) (time.Duration, Dimension) {
	var (
		wait float64
		on   Dimension
	)
	for k := range m.used {
		g := &m.gauges[k]
		if g.source == unknown || (m.mode == probing && k == dimRequests) {
			continue
		}
		g.advance(t)
		need := cost[k] // a call without an estimate is still held to what others drew
		if g.source != seen {
			need -= max(2*cost[k], g.slack())
		}
		if cost[k] > 0.95*g.capacity { // it will never fit: full must do
			need = min(need, 0.95*g.capacity)
		}
		if g.level < need-1e-9 {
			if w := (need - g.level) / max(g.refill-g.draw(), 0.05*g.refill); w > wait {
				wait, on = w, dimensionOf[k]
			}
		}
	}
	return ceilSeconds(wait), on
}

func ceilSeconds(s float64) time.Duration {
	if s <= 0 {
		return 0
	}
	return time.Duration(math.Ceil(min(s, MaxWait.Seconds()) * 1e9))
}

// Sent notes that a call leaves, and gives it its number.
func (m *ModelLaw) Sent(now time.Time, c Cost) uint64 {
	t := m.seconds(now)
	charge := m.weigh(c)
	cost := spread(charge)
	r := m.quoted.rate
	if m.quoted.at != t || m.quoted.cost != charge || r == 0 {
		r = m.rate(t, cost)
	}
	m.quoted = quote{}
	m.credit, m.credited = m.creditAt(t, r)-1, t
	for k := range m.used {
		if g := &m.gauges[k]; g.source != unknown {
			g.advance(t)
			g.take(cost[k])
		}
	}
	if m.serves {
		m.local.Sent()
	}
	return m.sends.add(t, charge)
}

// weigh is what a call is charged: its estimate, corrected by what the estimates
// of calls like it have been worth.
func (m *ModelLaw) weigh(c Cost) Cost {
	c.Input *= m.factor
	return c
}
