package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// This file decides when a call may leave, by the model: the rate, the credit, the debt. The
// questions here change no belief; Sent charges a call, and slowStart begins a ramp.

var (
	unlimited = math.Inf(1)
	nothing   = limiter.PaceBound{Pace: unlimited}
)

// takeLower replaces b by another bound if that is lower.
func takeLower(b *limiter.PaceBound, by limiter.Bound, pace float64) {
	if pace < b.Pace {
		b.By, b.Pace = by, pace
	}
}

// opened returns the fastest rate at which a limit may be spent, in multiples of its refill.
// After an outage, or where the server minds the growth of the rate, it starts at one half.
func (m *Law) opened(t float64) float64 {
	if doublings := (t - m.openAt) / m.openTime; doublings < openDoublings {
		return openShare * math.Exp2(doublings)
	}
	return burstCap
}

// slowStart begins with half of the rate, which doubles in so many seconds.
func (m *Law) slowStart(t, doubling float64) { m.openAt, m.openTime = t, doubling }

// fullAt returns when a slow start has led to the whole rate.
func (m *Law) fullAt() float64 { return m.openAt - m.openTime*math.Log2(openShare) }

const (
	leastReserve  = 0.5  // seconds of refill kept back where no refusal asked for more
	reserveFades  = 60.0 // seconds in which a fifth of what refusals asked for is forgotten
	reserveGrowth = 1.3
	reserveMost   = 20.0 // seconds of refill
	reserveLarge  = 5.0  // seconds, from which on it outweighs the usual reserve of headers
)

// reserveNow returns the seconds of refill that are kept back. The reserve grows with refusals
// whose headers show no room, and fades over minutes.
func (m *Law) reserveNow(t float64) float64 {
	if m.reserve <= leastReserve {
		return leastReserve
	}
	return max(leastReserve, m.reserve*math.Pow(0.8, (t-m.reserveAt)/reserveFades))
}

// spare returns the level that is kept back. It is enough for a call that arrives before the one
// that left before it.
func (m *Law) spare(g *gauge, t, cost float64) float64 {
	switch {
	case g.isFixed():
		return 0
	case g.source != limiter.Seen:
		return min(m.reserveNow(t)*g.refill, 0.35*g.capacity)
	}
	if r := m.reserveNow(t); r > reserveLarge {
		return min(r*g.refill, g.capacity/2)
	}
	return max(min(1.5*cost, g.capacity), min(headerSpare*g.refill, g.capacity/4))
}

// paceOf returns how many calls of that cost may leave per second, and which bound gives that rate.
func (m *Law) paceOf(t float64, cost [dims]float64) (float64, limiter.Bound) {
	least, ending, fastest := nothing, m.ending(t), m.opened(t)
	for k := range m.used {
		if g := &m.gauges[k]; g.known() && cost[k] > 0 {
			takeLower(&least, limiter.BoundRequests+limiter.Bound(k), m.gaugePace(k, t, cost[k], fastest, ending)/cost[k])
		}
	}
	if s := m.estimate.search; s != nil && !m.onlyQueues() {
		takeLower(&least, limiter.BoundSearch, s.pace)
	}
	if m.refusals > 0 {
		if m.trial != nil {
			takeLower(&least, limiter.BoundTrial, m.trial.pace)
		}
		least.Pace = m.leavingRate(least.Pace)
	}
	if m.slowed(t) {
		takeLower(&least, limiter.BoundErrors, float64(m.slowPace))
	}
	return max(least.Pace, m.gauges[dimRequests].capped(floorRate)), least.By
}

// leavingRate returns the rate at which calls must leave so that net of them are let in, as chance
// refuses some. The user's limit bounds the calls that leave.
func (m *Law) leavingRate(net float64) float64 {
	return max(net, m.gauges[dimRequests].capped(net/(1-m.chanceShare)))
}

// slowed reports whether the lane goes slower because too many calls break.
func (m *Law) slowed(t float64) bool { return m.errors.Slows() && m.stillSlowed(t) }

func (m *Law) stillSlowed(t float64) bool { return m.errors.Slowed(m.time(t)) > 0 }

// gaugePace returns the rate that one limit allows for a call of that cost, in units per second.
func (m *Law) gaugePace(k int, t, cost, fastest float64, ending bool) float64 {
	g := &m.gauges[k]
	level, spare, keep := g.levelAt(t), 0.0, margin
	if !ending {
		spare = m.spare(g, t, cost)
	}
	if g.source == limiter.Configured {
		keep = 1 // the level alone holds calls to the configured limit
	}
	pace := keep*g.refill - g.othersDraw() + (level+cost/2-spare)/horizon
	most := max(fastest*g.refill, level/longBurst)
	switch try := m.estimate.try; {
	case g.isFixed():
		pace = g.fixed.rate(t, level, pace)
		if ending {
			pace = most
		}
	case k == dimRequests && try != nil && g.source != limiter.Seen:
		pace = max(pace, try.rate)
	case g.source == limiter.Configured && cost > g.capacity: // it waits for its debt after it has left
		pace = most
	}
	if g.spacing(k) {
		most = min(most, 1/max(1/(margin*g.refill), 1/g.refill+leastJitter))
	}
	if g.ceiling > 0 && g.source != limiter.Configured {
		most = min(most, g.ceiling+max(0, m.userLevel(k, t)+cost/2)/horizon)
	}
	return max(0.05*g.refill, min(pace, most))
}

// rate spreads the rest of a window over the rest of its time.
func (w *fixedWindow) rate(t, level, least float64) float64 {
	if t >= w.ends+fixedEdge {
		return max(least, w.most/max(w.period, fixedLeast))
	}
	return max(least, level/max(w.ends-t, fixedEdge))
}

// ending reports whether the rest of the batch fits the levels. A reserve is then of no use.
func (m *Law) ending(t float64) bool {
	if m.remains == (limiter.Cost{}) || m.onlyQueues() || !m.gauges[dimRequests].known() {
		return false
	}
	remaining := perDimension(m.remains)
	for k := range m.used {
		if g := &m.gauges[k]; g.known() && remaining[k] > g.levelAt(t) {
			return false
		}
	}
	return true
}

// Remaining is part of [limiter.Law].
func (m *Law) Remaining(c limiter.Cost) {
	if c != m.remains {
		m.remains, m.quoted = c, quote{}
	}
}

// A quote is the rate that Wait found. It is for the call that Wait lets go, and that is sent
// at the same moment. Any news voids it. Lessons of time in Tick do not: another Wait follows
// them, or nothing, and no call leaves unasked. The zero quote is void.
type quote struct {
	at, rate float64
	cost     limiter.Cost
}

// Wait returns the time until a call of that cost may leave: 0 is now. It is an estimate from
// below, at most 250 ms: the rate changes, so ask again. Only the wait for a hold is longer.
func (m *Law) Wait(now time.Time, c limiter.Cost) (time.Duration, limiter.Bound) {
	t := m.seconds(now)
	if t < m.hold {
		return ceilSeconds(m.hold - t), limiter.BoundCooldown
	}
	charge := m.weigh(c)
	cost := perDimension(charge)
	rate, by := m.paceOf(t, cost)
	m.quoted.at, m.quoted.rate, m.quoted.cost = t, rate, charge
	if credit := m.creditAt(t, rate); credit < 1-1e-9 {
		return min(AskAgain, ceilSeconds((1-credit)/rate)), by
	}
	if wait := m.waitBeyondCap(t); wait > 0 {
		return min(AskAgain, wait), limiter.BoundTrial
	}
	if wait, k := m.debtWait(t, cost); wait > 0 {
		return min(AskAgain, wait), limiter.BoundRequests + limiter.Bound(k) | limiter.BoundShort
	}
	return 0, limiter.BoundNone
}

// creditAt returns the number of calls that may leave at once. The whole time since the latest call
// counts at the present rate, so that a rising rate shortens a wait that has begun. The time of a
// hold does not count, so that its end is no burst. Where the server lets in one call at a time, no
// call is saved up.
func (m *Law) creditAt(t, rate float64) float64 {
	if math.IsInf(rate, 1) {
		return 1 // without a rate no credit is saved up for a later one
	}
	most := 1 + measure.Slack*rate
	if m.gauges[dimRequests].spacing(dimRequests) {
		most = 1
	}
	return min(most, m.credit+rate*max(0, t-max(m.credited, m.hold)))
}

// waitBeyondCap returns how long a call must wait that would be one more than a cap was ever seen
// to let in. Such a call leaves alone.
func (m *Law) waitBeyondCap(t float64) time.Duration {
	if !m.beyondCap() {
		return 0
	}
	return ceilSeconds(m.credited + capApart*m.gap - t)
}

// beyondCap reports whether the next call would be one more than a cap was ever seen to let in. It
// does so only if the cap came from a refusal at once, or while a search is under way. Otherwise
// the pace finds the cap as well, and this would only cost refusals.
func (m *Law) beyondCap() bool {
	c := m.crowd.cap
	return c != nil && (c.exact || m.estimate.search != nil) && float64(m.inFlight) >= math.Floor(c.mostSeen)
}

// ProbeWait is part of [limiter.Law].
func (m *Law) ProbeWait(now time.Time, c limiter.Cost) time.Duration {
	wait, _ := m.Wait(now, c)
	return wait
}

// debtWait returns the time until the call fits the gauges, with the debt that each allows. It also
// returns the dimension that it waits for. Where headers or the user tell the level, no debt is
// allowed.
func (m *Law) debtWait(t float64, cost [dims]float64) (_ time.Duration, on int) {
	var wait float64
	for k := range m.used {
		g := &m.gauges[k]
		if g.ceiling > 0 {
			if missing := min(cost[k], g.usersCapacity()) - m.userLevel(k, t) - 1e-9; missing/g.ceiling > wait {
				wait, on = missing/g.ceiling, k
			}
		}
		if !g.known() || g.fresh || m.estimate.try != nil && k == dimRequests {
			continue
		}
		need := cost[k] // a call without an estimate still waits for the debt of others
		if g.source != limiter.Seen {
			need -= g.slack(cost[k])
			if g.source != limiter.Configured && cost[k] > 0.95*g.capacity { // it will never fit: nearly full must do
				need = min(need, 0.95*g.capacity)
			}
		}
		if need = min(need, g.most()); g.levelAt(t) < need-1e-9 {
			if w := g.timeUntil(t, need); w > wait {
				wait, on = w, k
			}
		}
	}
	return ceilSeconds(wait), on
}

// timeUntil returns the seconds until the level is that high.
func (g *gauge) timeUntil(t, level float64) float64 {
	if g.isFixed() {
		return max(fixedEdge, g.fixed.ends+fixedEdge-t)
	}
	return (level - g.levelAt(t)) / max(g.refill-g.othersDraw(), 0.05*g.refill)
}

func ceilSeconds(s float64) time.Duration {
	if s <= 0 {
		return 0
	}
	return measure.Span(min(s, measure.MaxWait.Seconds()))
}

// Sent is part of [limiter.Law]. It charges a call that leaves with so many others in flight, and
// returns its ticket.
func (m *Law) Sent(now time.Time, c limiter.Cost, inFlight int) (ticket limiter.Ticket) {
	t := m.seconds(now)
	charge := m.weigh(c)
	cost := perDimension(charge)
	rate := m.quoted.rate
	if m.quoted.at != t || m.quoted.cost != charge || rate == 0 {
		rate, _ = m.paceOf(t, cost)
	}
	m.quoted = quote{}
	m.credit = m.creditAt(t, rate) - 1
	for d := range m.used {
		if g := &m.gauges[d]; g.known() {
			g.advance(t)
			g.takeOf(cost[d], cost[d]+g.early(cost[d]))
		}
		m.drawUser(d, t, cost[d], cost[d])
	}
	if m.isLocal {
		m.local.Sent()
	}
	m.sends.add(t, charge)
	m.sent++
	m.inFlight++
	if m.used > 0 {
		m.window = 0 // a configured rate is more calls if they are cheap
	}
	m.fillTicket(&ticket, t, rate, inFlight)
	return ticket
}

const (
	gapWeight = 1.0 / 8 // of a new gap between two calls, in the smoothed one
	// bunchTime is the seconds in which calls are counted together: where many leave at one
	// moment, the gap between them says nothing of their pace.
	bunchTime = 0.05
)

// fillTicket notes on a ticket the pace at which a call left and how many others were in flight.
// The pace is the one that held calls back. If nothing did, it is the one at which calls really
// leave.
func (m *Law) fillTicket(ticket *limiter.Ticket, t, rate float64, inFlight int) {
	m.bunch++
	if span := t - max(m.bunched, m.hold); span >= bunchTime {
		m.gap += min(1, gapWeight*m.bunch) * (span/m.bunch - m.gap)
		m.bunch, m.bunched = 0, t
	}
	m.credited = t
	pace := 1 / max(m.gap, 1e-4)
	if m.heldBack {
		pace = min(rate, 1e4)
	}
	ticket.Factor, ticket.Longer = float32(m.factor), float32(m.longer)
	ticket.Pace, ticket.Beside = float32(pace), uint16(min(inFlight, math.MaxUint16))
	if c := m.crowd.cap; c != nil {
		ticket.AtCap = inFlight+1 >= c.places()
		m.atCap = ticket.AtCap
	}
	ticket.Number = m.fates.add(t, ticket)
}

// weigh returns the charge of a call: its estimate, corrected by the real draw of calls like
// it. The charge for output is never less than its estimate: the estimate may be a bound, which
// some providers draw in full until the answer is there.
func (m *Law) weigh(c limiter.Cost) limiter.Cost {
	c.Input *= m.factor
	if m.longer > 1 {
		c.Output *= m.longer
	}
	return c
}
