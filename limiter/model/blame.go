package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file decides who is to blame for a refusal. It tries the explanations one after the
// other, and the first that fits decides:
//
//	refusal ─▶ 1 probe, drought?  it was sent to find out, or nothing is let in → the lane cools on
//	          tokens?             it names a limit on them, told  → none are left; hold
//	        ─▶ 2 cap?             too many were in flight         → the item goes first, the lane flows
//	        ─▶ 3 headers?         they say there is no room       → hold; more reserve
//	        ─▶ 4 a cap at once?   a search's first refusal        → a cap is guessed
//	        ─▶ 5 asked for?       more was being tried            → the rate is learned; hold
//	        ─▶ 6 chance?          no thicker than it explains     → the item alone waits
//	        ─▶ 7 alarm            a search goes on from below; else the rate is learned, and the trial begins

// plainShare is the share of chance up to which a single refusal during a try blames the try.
// Where chance strikes more often, refusals must come thicker than that.
const plainShare = 0.02

// Refused is part of [limiter.Law].
func (m *Law) Refused(now time.Time, n limiter.News) limiter.Refusal {
	t, s := m.seconds(now), m.seconds(n.Sent)
	sighted := m.hear(t, s, &n)
	if n.Slow {
		m.slowStart(t, slowDoubling)
	}
	if n.Probe || m.drought != nil && s >= m.drought.began {
		return m.dry(t, &n)
	}
	if m.shortOf(t, &n) {
		return m.cool(t, &n, nil)
	}
	if m.atOnce(&n) { // calls that leave at one moment overtake each other
		n.Ticket.Beside = uint16(min(m.flying, math.MaxUint16))
	}
	m.refusedOne(t, s, &n)
	return m.judge(t, s, &n, sighted)
}

// shortOf takes a refusal for a limit on tokens that the user told. The level of that limit was
// zero, and neither the rate of requests nor chance is to blame. Where the limit is not known,
// requests are the only thing to slow down.
func (m *Law) shortOf(t float64, n *limiter.News) bool {
	k := index(n.On)
	if k <= dimRequests || m.gauges[k].source != limiter.Told {
		return false
	}
	m.fates.mute(n.Ticket.Number)
	g := &m.gauges[k]
	g.advance(t)
	g.level = min(g.level, 0)
	return true
}

// hear takes the news that every refusal has, before anything is blamed for it.
func (m *Law) hear(t, s float64, n *limiter.News) (sighted bool) {
	m.quoted, m.window = quote{}, 0
	m.bookAlike()
	if m.refusals++; m.refusals == 1 && m.serves && m.estimate.search != nil {
		m.estimate.search.pace = max(firstRate, float64(n.Ticket.Pace)) // it does not only queue: find out how fast it takes calls
	}
	if n.Latency > 0 {
		m.delay += delayWeight * (n.Latency.Seconds() - m.delay)
	}
	m.sends.refuse(s, n.Cost.Requests)
	m.gone(t, false)
	m.ripen(t, n.Ticket.Number)
	for k := range m.gauges {
		m.gauges[k].recheck()
	}
	if sighted = m.see(t, n); !sighted {
		m.refund(t, m.charged(n))
	}
	m.lastRefused = max(m.lastRefused, s)
	return sighted
}

// judge asks the explanations in turn.
func (m *Law) judge(t, s float64, n *limiter.News, sighted bool) limiter.Refusal {
	tk := &n.Ticket
	x := float64(tk.Pace)
	bin := paceBin(x)
	switch {
	case m.overCap(tk, bin):
		return m.first(t, n)
	case sighted && m.empty(t, n):
		return m.cool(t, n, nil)
	case m.mayBeCap(n):
		m.crowd.ask(tk, m.fates.next)
		return limiter.Refusal{Alone: true}
	case m.estimate.try != nil && s >= m.estimate.try.began && m.chance.share(bin) < plainShare:
		l := m.learn(t, s, x, 0)
		m.chance.calm()
		return m.cool(t, n, l)
	case m.trial != nil:
		return m.tried(t, s, n, bin)
	}
	let := m.chance.run
	alarm := m.chance.strikes(bin, x)
	m.chance.strike(bin, n)
	if !alarm {
		return m.alone(t, n)
	}
	return m.alarm(t, s, n, let)
}

// overCap reports whether a cap explains a refusal.
func (m *Law) overCap(tk *limiter.Ticket, bin int) bool {
	if c := m.crowd.cap; c != nil && c.guess != nil {
		if c.holds(tk, m.fates.next) {
			return true
		}
		m.wrongCap()
	}
	return m.trial == nil && m.crowd.explains(tk, m.fates.next, int(m.row), m.share(), m.chance.share(bin))
}

// mayBeCap reports whether to guess a cap from a refusal. It must be the first refusal of all,
// in a search, come at once, name no wait and strike a call that was not alone.
func (m *Law) mayBeCap(n *limiter.News) bool {
	return m.refusals == 1 && m.estimate.search != nil && n.Ticket.Beside > 0 && m.atOnce(n) && !n.NamesWait()
}

// soon is the largest part of the gap between two calls that a refusal may take to be at once.
const soon = 0.25

// atOnce reports whether a refusal came long before another call was to leave: as many are
// in flight now as there were when the server refused.
func (m *Law) atOnce(n *limiter.News) bool { return n.Latency.Seconds()*float64(n.Ticket.Pace) < soon }

// wrongCap takes a guess back: chance or the pace caused the refusal that suggested it.
func (m *Law) wrongCap() {
	m.chance.paces.book(paceBin(m.crowd.cap.guess.pace), true)
	m.crowd.cap = nil
}

// first lets the item go as soon as a place is free, or as the server said, and the lane flow.
func (m *Law) first(t float64, n *limiter.News) limiter.Refusal {
	if n.NamesWait() {
		return m.alone(t, n)
	}
	return limiter.Refusal{Alone: true}
}

// alone lets the item wait, and the lane flow.
func (m *Law) alone(t float64, n *limiter.News) limiter.Refusal {
	wait := (0.5 + m.rng.Float64()) * max(droughtLeast, 2*m.delay)
	if n.NamesWait() {
		wait = m.directed(n)
	}
	return limiter.Refusal{Until: m.time(t + wait), Alone: true}
}

// directed returns the wait that the server named, in seconds, and a little more.
func (m *Law) directed(n *limiter.News) float64 {
	return n.RetryAfter.Seconds() * (1 + directedSpread*m.rng.Float64())
}

// cool has the lane hold. l is the lesson of the refusal, if there is one.
func (m *Law) cool(t float64, n *limiter.News, l *lesson) limiter.Refusal {
	m.drought = &drought{began: t, refusals: 1, busy: n.Overloaded, lesson: l, pace: m.lastPace}
	return m.wait(t, n)
}

// dry takes a refusal while nothing is let in.
func (m *Law) dry(t float64, n *limiter.News) limiter.Refusal {
	m.fates.mute(n.Ticket.Number)
	if m.drought == nil {
		m.drought = &drought{began: t, busy: true, pace: m.lastPace}
	}
	m.drought.refusals++
	m.drought.busy = m.drought.busy && n.Overloaded
	return m.wait(t, n)
}

func (m *Law) wait(t float64, n *limiter.News) limiter.Refusal {
	wait := m.drought.hold(m.delay, 1/max(m.believed(), floorRate), n.Overloaded) * (1 + holdSpread*m.rng.Float64())
	if n.NamesWait() {
		wait = m.directed(n)
	}
	m.hold = max(m.hold, t+wait)
	return limiter.Refusal{Until: m.time(m.hold)}
}

// empty reports whether the headers of a refusal say that there is no room. It then keeps more
// in reserve.
func (m *Law) empty(t float64, n *limiter.News) bool {
	cost := m.charged(n)
	for _, s := range n.Sightings {
		k := index(s.Dimension)
		if k < 0 || m.gauges[k].source != limiter.Seen || s.Remaining >= max(1, cost[k]) {
			continue
		}
		m.setReserve(t, min(reserveMost, reserveGrowth*max(m.reserveNow(t), 1)))
		return true
	}
	return false
}
