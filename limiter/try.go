package limiter

import "math"

// Where time teaches: a search widens while it holds calls back, and where a rate is
// believed a little more is tried from time to time.

// Numbers of tries. Of these, the gain and the longest time between tries weigh most:
// see what was tried in ARCHITECTURE.md.
const (
	tryEvery   = 3.0  // seconds at most for a try, and between tries at first; a quarter of a deep bucket
	tryCalls   = 30   // calls that show whether more is let in, where calls are many,
	tryLeast   = 0.5  // and seconds at least, to hear of their refusals
	tryMost    = 60.0 // seconds at most between tries: a limit that doubles is found in a minute
	tryGain    = 1.1  // a tenth more is seen in a second's debt
	tryGrowth  = 1.5  // of what is tried beyond the rate, each time that it is let in
	tryFastest = 2.0  // times the rate, at most,
	tryDeep    = 1.25 // and of deep buckets, which flatter
	trySure    = 1.5  // times as long until the next try, if the last one confirmed the rate,
	tryFell    = 1.2  // or found a lower one
	tryReached = 0.95 // of the rate must have been asked for, or nothing was tested
	sameRate   = 0.1  // within a tenth a rate is confirmed
	outgrown   = 1.3  // times what a full bucket could give: more was not flattery

	sureTries = 2    // that confirmed a rate make it sure:
	sureGain  = 1.05 // a bucket of one call is refused at a tenth more,
	sureDepth = 1.5  // and one that holds more seconds of refill gives a twentieth all the same

	dipGain  = 1.5 // a rate that passed three minutes ago is asked for in larger steps,
	dipStep  = 1.0 // seconds each,
	dipEvery = 5.0 // after so many without a refusal
)

// A try asks for more than is believed.
type try struct {
	rate   float64 // calls per second
	before float64 // the rate that was believed when it began
	began  float64
	let    uint64  // calls let in until then
	sent   uint64  // calls sent until then
	most   float64 // calls per second at most, in a dip; 0: it is none
}

// gain is how much more than the rate is tried at first.
func (e *estimate) gain(g *gauge) float64 {
	if e.sure >= sureTries && g.capacity < sureDepth*g.refill {
		return sureGain
	}
	return tryGain
}

// tryTime is how many seconds a try takes at least, at a rate.
func tryTime(rate float64) float64 { return min(tryEvery, max(tryLeast, tryCalls/rate)) }

// tryEach is how many seconds lie between tries at first.
func tryEach(g *gauge) float64 { return max(tryTime(g.refill), g.burstSeconds()/4) }

// grow lets time teach: a search widens while it holds calls back, and where a rate is
// believed, a little more is tried from time to time.
func (m *ModelLaw) grow(t, gap float64, held bool) {
	if m.trial != nil || m.drought != nil || m.slowed(t) {
		return
	}
	e, g := &m.estimate, &m.gauges[dimRequests]
	switch {
	case !g.known():
		if held && !m.beyondCap() && e.search.pace <= m.brake() {
			m.widen(t, min(gap, 1)/m.searchTime())
		}
	case g.source == Seen || g.ceiling > 0 && g.refill >= 0.999*g.ceiling:
	case e.try != nil:
		m.goOn(t, g)
	case held:
		m.consider(t, g)
	}
}

// searchBurst is how many calls leave at the moment at which a search leaps: two have
// company, and more would hear of no refusal in time.
const searchBurst = 2

// widen doubles the pace of a search so many times. It leaps where nobody has asked for
// longer than it takes to double. No call has left at the new pace then, and where the
// search alone paces calls, few of them leave at once.
func (m *ModelLaw) widen(t, doublings float64) {
	s := m.estimate.search
	s.pace *= math.Exp2(doublings)
	if doublings > 1 && !m.limited() {
		m.credit, m.credited = min(searchBurst, m.creditAt(t, s.pace)), t
	}
}

// limited reports whether any limit is known.
func (m *ModelLaw) limited() bool {
	for k := range m.used {
		if m.gauges[k].known() {
			return true
		}
	}
	return false
}

// searchTime is how long the pace of a search takes to double: long enough to hear of
// a refusal first, which takes a fraction of an answer's time.
func (m *ModelLaw) searchTime() float64 {
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
func (m *ModelLaw) consider(t float64, g *gauge) {
	e := &m.estimate
	quiet := t - max(m.lastRefused, e.at, m.hold)
	if quiet > peakQuiet && m.refusals > 0 {
		m.neighbour.paced(t, g.refill)
	}
	switch {
	case m.crowd.cap != nil && m.atCap:
	case quiet > dipEvery && m.neighbour.dip(t, g.refill, g.capacity/g.refill):
		peak := m.neighbour.peak.rate
		m.tryMore(t, g, min(peak, dipGain*g.refill), peak)
	case t-e.at > e.every:
		m.tryMore(t, g, e.gain(g)*g.refill, 0)
	}
}

func (m *ModelLaw) tryMore(t float64, g *gauge, rate, most float64) {
	m.estimate.try = &try{rate: g.capped(rate), before: g.refill, began: t, let: m.letIns, sent: m.sent, most: most}
}

// goOn raises the rate where a try met silence: the model is in debt, or enough time has
// passed. What nobody asked for teaches nothing.
func (m *ModelLaw) goOn(t float64, g *gauge) {
	e := &m.estimate
	r := e.try
	depth, dip := g.burstSeconds(), r.most > 0
	step := max(tryTime(max(e.base, floorRate)), depth/10)
	if dip {
		step = dipStep
	}
	age := t - r.began
	inDebt := g.levelAt(t) < -max(2, g.refill/2) && age > step/2
	if !inDebt && age <= 2.5*step && !(dip && age > step) {
		return
	}
	reached := float64(m.letIns - r.let)
	if !m.neighbour.clean.held {
		reached = float64(m.sent - r.sent)
	}
	if reached < tryReached*g.refill*age {
		r.began, r.let, r.sent = t, m.letIns, m.sent
		return
	}
	m.raise(t, g)
}

// raise believes in the rate that was tried, and tries more.
func (m *ModelLaw) raise(t float64, g *gauge) {
	e := &m.estimate
	gain, most := e.try.rate/g.refill, e.try.most
	depth := g.burstSeconds()
	g.advance(t)
	m.setRate(g, e.try.rate)
	g.level = min(g.level, 0)
	e.inflow.fade()
	if e.outgrown(t, m.letIns, g.capacity) {
		e.inflow.forget(g.refill)
		e.anchor = e.try.began
	}
	e.at, e.every = t, tryEach(g)
	fastest := tryFastest
	if depth > deepest {
		fastest = tryDeep
	}
	next := g.refill * min(fastest, 1+tryGrowth*(gain-1))
	if most > 0 {
		next = min(next, most)
	}
	if g.capped(next) <= g.refill || g.source == Told && g.refill >= g.ceiling {
		e.try = nil
		return
	}
	m.tryMore(t, g, next, most)
}
