package model

import (
	"math"

	"github.com/headrace/headrace/limiter"
)

// This file has the lessons of time. A search widens while it holds calls back. Where a rate is
// believed, the law tries a little more from time to time.

// Numbers of tries. Of these, the gain and the longest time between tries weigh most:
// docs/measurements.md has the values that were tried.
const (
	tryEvery   = 3.0  // seconds at most for a try, and between tries at first; a quarter of a deep bucket
	tryCalls   = 30   // calls that show whether more is let in, where calls are many,
	tryLeast   = 0.5  // and seconds at least, to hear of their refusals
	tryMost    = 60.0 // seconds at most between tries: a limit that doubles is found in a minute
	tryGain    = 1.1  // a tenth more is seen in a second's debt
	tryGrowth  = 1.5  // of what is tried beyond the rate, each time that it is let in
	tryFastest = 1.25 // times the rate, at most: deep buckets flatter
	trySure    = 1.5  // times as long until the next try, if the last one confirmed the rate,
	tryFell    = 1.2  // or found a lower one
	tryReached = 0.95 // of the rate must have been asked for, or nothing was tested
	sameRate   = 0.1  // within a tenth a rate is confirmed
)

// A try asks for more than is believed.
type try struct {
	rate   float64 // calls per second
	before float64 // the rate that was believed when it began
	began  float64
	sent   uint64 // calls sent until then
}

// tryTime returns the least seconds of a try, at a rate.
func tryTime(rate float64) float64 { return min(tryEvery, max(tryLeast, tryCalls/rate)) }

// tryEach returns the seconds between tries at first.
func tryEach(g *gauge) float64 { return max(tryTime(g.refill), g.burstSeconds()/4) }

// grow takes the lessons of time: a search widens while it holds calls back, and where a rate
// is believed, the law tries a little more from time to time.
func (m *Law) grow(t, gap float64, held bool) {
	if m.trial != nil || m.drought != nil || m.slowed(t) {
		return
	}
	e, g := &m.estimate, &m.gauges[dimRequests]
	switch {
	case !g.known():
		if held && !m.beyondCap() {
			m.widen(t, min(gap, 1)/m.searchTime())
		}
	case g.source == limiter.Seen || g.ceiling > 0 && g.refill >= 0.999*g.ceiling:
	case e.try != nil:
		m.goOn(t, g)
	case held:
		m.consider(t, g)
	}
}

// searchBurst is the number of calls that leave at the moment at which a search leaps. Two have
// company, and more would leave before a refusal is heard.
const searchBurst = 2

// widen doubles the pace of a search so many times. It leaps if nobody has asked for longer than
// a doubling takes. No call has left at the new pace then. So where the search alone paces calls,
// only a few of them leave at once.
func (m *Law) widen(t, doublings float64) {
	s := m.estimate.search
	s.pace *= math.Exp2(doublings)
	if doublings > 1 && !m.limited() {
		m.credit, m.credited = min(searchBurst, m.creditAt(t, s.pace)), t
	}
}

// limited reports whether any limit is known.
func (m *Law) limited() bool {
	for k := range m.used {
		if m.gauges[k].known() {
			return true
		}
	}
	return false
}

// searchTime returns the time in which the pace of a search doubles. It is long enough to hear
// of a refusal first, which takes a fraction of an answer's time.
func (m *Law) searchTime() float64 {
	d := doubling
	if m.estimate.search.refused {
		d = searchAgain
	}
	if m.latency > 0 {
		d = min(d, max(m.latency, 0.002))
	}
	return d
}

// consider begins a try when it is time for one.
func (m *Law) consider(t float64, g *gauge) {
	e := &m.estimate
	if (m.crowd.cap == nil || !m.atCap) && t-e.at > e.every {
		m.tryMore(t, g, tryGain*g.refill)
	}
}

func (m *Law) tryMore(t float64, g *gauge, rate float64) {
	m.estimate.try = &try{rate: g.capped(rate), before: g.refill, began: t, sent: m.sent}
}

// goOn raises the rate where a try met silence: the model is in debt, or enough time has
// passed. A try that calls did not use teaches nothing.
func (m *Law) goOn(t float64, g *gauge) {
	e := &m.estimate
	r := e.try
	step := max(tryTime(max(e.base, floorRate)), g.burstSeconds()/10)
	age := t - r.began
	inDebt := g.levelAt(t) < -max(2, g.refill/2) && age > step/2
	if !inDebt && age <= 2.5*step {
		return
	}
	if float64(m.sent-r.sent) < tryReached*g.refill*age {
		r.began, r.sent = t, m.sent
		return
	}
	m.raise(t, g)
}

// raise believes in the rate that was tried, and tries more.
func (m *Law) raise(t float64, g *gauge) {
	e := &m.estimate
	gain := e.try.rate / g.refill
	g.advance(t)
	m.setRate(g, e.try.rate)
	g.level = min(g.level, 0)
	e.inflow.fade()
	e.at, e.every = t, tryEach(g)
	next := g.refill * min(tryFastest, 1+tryGrowth*(gain-1))
	if g.capped(next) <= g.refill || g.source == limiter.Told && g.refill >= g.ceiling {
		e.try = nil
		return
	}
	m.tryMore(t, g, next)
}
