package model

import (
	"math"

	"github.com/headrace/headrace/limiter"
)

// This file estimates the rate of requests where nobody tells it. Between two moments at which
// the provider's bucket was empty, the calls let in show the inflow.
//
//	search ──alarm──▶ search from below ──alarm──▶ a rate is believed ◀──▶ a try: a little more
const (
	searchAgain   = 1.5  // seconds in which the pace of a search doubles once there was an alarm
	searchWave    = 8.0  // calls that it may leave until a refusal is heard, once there was an alarm;
	searchFall    = 2.0  // but its pace falls to such a part at most
	searchFloor   = 0.2  // calls per second that a search goes on from at least
	searchMinute  = 60.0 // seconds of a full bucket that what was let in at first is spread over
	evidenceSpan  = 1.5  // seconds at least between two alarms that a rate is made of, and
	evidenceLeast = 4    // calls let in;
	evidenceMany  = 8    // of so many, half a second is enough
	historySpan   = 30.0 // seconds: likewise, where nothing more was tried
	surplusSpan   = 60.0 // seconds in which a burst is looked for: the deepest bucket holds as much
)

// An estimate holds what is known about the rate of requests, and from what evidence.
type estimate struct {
	search    *search  // nil: a rate is believed
	try       *try     // nil: no more than that is asked for
	inflow    inflow   // the evidence
	anchor    float64  // the bucket was empty then, or the lane began
	at        float64  // when the rate was last estimated
	base      float64  // the rate that it was estimated at then, before it was raised
	every     float64  // seconds between tries
	emptied   interval // from the call that raised the latest alarm until that was known
	confirmed bool     // a trial found the pace guilty
}

// made notes that an estimate was made, from the knowledge up to a moment.
func (e *estimate) made(anchor, t, rate float64) {
	e.anchor, e.try, e.at, e.base = anchor, nil, t, rate
}

// A search is for a rate that is unknown, or only known to have been too high once.
type search struct {
	pace     float64 // calls per second; it doubles while it holds calls back
	over     float64 // the pace that was refused last
	refused  bool    // there was an alarm
	first    float64 // when that call left
	accepted float64 // calls let in until then
}

// beliefs are the beliefs that an alarm may replace, and that come back if it was a false one.
type beliefs struct {
	estimate estimate
	gauge    gauge
}

// clone returns a copy that later lessons do not reach.
func (e *estimate) clone() estimate {
	c := *e
	if e.search != nil {
		s := *e.search
		c.search = &s
	}
	c.try = nil // it has ended
	return c
}

// A lesson is what an alarm taught: the calls let in from one moment to another.
type lesson struct {
	interval
	accepted float64
	before   beliefs
}

func (m *Law) beliefs() beliefs {
	return beliefs{m.estimate.clone(), m.gauges[dimRequests]}
}

// learn estimates the rate at the alarm of a refused call. The call left at sent, at that pace.
// excess is the share of calls refused since chance first fell short of explaining them; 0 for a
// try.
func (m *Law) learn(t, sent, pace, excess float64) *lesson {
	e, g := &m.estimate, &m.gauges[dimRequests]
	taught := &lesson{interval: interval{e.anchor, sent, pace}, before: m.beliefs()}
	if e.search == nil && e.try == nil {
		taught.from = max(taught.from, sent-historySpan)
	}
	taught.accepted = m.sends.accepted(taught.from, sent)
	enough := taught.accepted >= evidenceLeast && (sent-taught.from >= evidenceSpan || sent-taught.from >= tryLeast && taught.accepted >= evidenceMany)
	switch {
	case e.search != nil && (!e.search.refused || !enough):
		e.search.slowDown(sent, pace, excess, m.sends.accepted(-1, sent), t-sent)
		if e.search.first == sent {
			e.anchor = sent
		}
		e.emptied = interval{sent, t, pace}
		return taught
	case e.search != nil:
		m.endSearch(g, taught)
	case enough:
		m.addEvidence(g, taught)
	case g.source != limiter.Seen: // too soon after the last one to say how much flows in
		m.setRate(g, min(g.refill, max(pace*(1-excess), g.refill/2)))
		e.every = min(tryMost, trySure*e.every)
	}
	e.emptied = interval{sent, t, pace}
	e.made(sent, t, g.refill)
	if g.source != limiter.Seen {
		g.source = limiter.Learned
		m.settleLevel(g, sent, t)
	}
	return taught
}

// slowDown continues the search below a pace that was too fast. delay is the seconds after which
// the refusal was heard. What leaves until the second alarm is heard is refused, too. If that is
// many calls, the search continues from well below. If it is few, they are evidence of a cap.
func (rising *search) slowDown(sent, pace, excess, accepted, delay float64) {
	rising.over = pace
	if !rising.refused {
		rising.refused, rising.first, rising.accepted = true, sent, accepted
		rising.pace = max(accepted/(searchMinute+sent), max(pace/searchFall, min(pace, searchWave/delay))*(1-excess), searchFloor)
		return
	}
	rising.pace = max(min(rising.pace, pace*(1-excess)), searchFloor)
}

// depth returns what the bucket held at first, if it refills at that rate.
func (rising *search) depth(rate float64) float64 { return max(1, rising.accepted-rate*rising.first) }

// endSearch ends the search with the rate that the lesson shows.
func (m *Law) endSearch(g *gauge, taught *lesson) {
	e := &m.estimate
	search := e.search
	rateBefore := m.sends.refillRate(taught.interval, search.depth)
	e.inflow.begin(&m.sends, taught.interval, search.depth(rateBefore), m.sends.emptyInflow(e.emptied))
	g.source = limiter.Learned
	m.markUsed(dimRequests)
	rate := e.inflow.rate()
	m.setRate(g, rate)
	g.capacity = max(1, 1.5*rate, search.depth(rate))
	g.level, g.at = 0, taught.to
	e.search, e.every = nil, firstTryGap(g)
}

// addEvidence adds the evidence of an alarm to the earlier evidence, and sets the rate by both.
func (m *Law) addEvidence(g *gauge, taught *lesson) {
	e := &m.estimate
	rateBefore := g.refill
	if e.try != nil {
		rateBefore = e.try.before
	}
	e.inflow.addStretch(&m.sends, taught.interval, m.sends.emptyInflow(e.emptied))
	if g.source == limiter.Seen {
		return // headers are in force until they are convicted
	}
	m.setRate(g, e.inflow.rate())
	g.capacity = max(1, g.capacity-max(0, g.levelAt(taught.to)))
	if g.ceiling == 0 { // or it is the user who says how much may be saved up
		g.capacity = max(g.capacity, m.sends.surplus(max(taught.from, taught.to-surplusSpan), taught.to, g.refill))
	}
	least := firstTryGap(g)
	switch {
	case math.Abs(g.refill-rateBefore) <= sameRate*rateBefore:
		e.every = min(tryMost, trySure*max(e.every, least))
		return
	case g.refill > rateBefore:
		e.every = least
	default:
		e.every = min(tryMost, tryFell*max(e.every, least))
	}
}

// settleLevel records that the bucket was empty at s.
func (m *Law) settleLevel(g *gauge, s, t float64) {
	g.level, g.at = m.sends.replay(dimRequests, 0, g.refill, g.capacity, s, t), t
	g.take(0)
}

// setRate believes in a rate of requests, under the user's ceiling.
func (m *Law) setRate(g *gauge, refill float64) {
	g.refill = g.capped(max(refill, floorRate))
	g.take(0) // the bounds of a debt move with the rate
}

// redoEstimate estimates the rate of a lesson anew, once the lesson turned out to be about a
// window. Until it ends, such a window allows nothing beyond the calls let in since it began.
func (m *Law) redoEstimate(taught *lesson, ended float64) {
	g := &m.gauges[dimRequests]
	if taught.accepted < evidenceLeast || g.source == limiter.Seen || ended-taught.from < evidenceSpan {
		return
	}
	e := &m.estimate
	whole := lesson{interval: interval{taught.from, ended, taught.accepted / (ended - taught.from)}, accepted: taught.accepted}
	if e.search != nil {
		e.search.accepted, e.search.first = taught.accepted, taught.to
		m.endSearch(g, &whole)
	} else {
		e.inflow = taught.before.estimate.inflow
		e.inflow.addStretch(&m.sends, whole.interval, 0) // a window is not empty, but closed
	}
	m.setRate(g, e.inflow.rate())
	e.made(ended, ended, g.refill)
}

// The rest has the lessons of time. A search widens while it holds calls back. Where a rate is
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

// tryDuration returns the least seconds that a try lasts at that rate.
func tryDuration(rate float64) float64 { return min(tryEvery, max(tryLeast, tryCalls/rate)) }

// firstTryGap returns the seconds between the first tries.
func firstTryGap(g *gauge) float64 { return max(tryDuration(g.refill), g.burstSeconds()/4) }

// learnFromTime learns from time that passes. A search gets faster while it holds calls back. Where
// a rate is believed, the law tries a little more from time to time.
func (m *Law) learnFromTime(t, gap float64, blocked bool) {
	if m.trial != nil {
		m.endLongTrial(t)
	}
	if m.trial != nil || m.drought != nil || m.slowed(t) {
		return
	}
	e, g := &m.estimate, &m.gauges[dimRequests]
	switch {
	case !g.known():
		if blocked && !m.beyondCap() {
			m.speedUpSearch(t, min(gap, 1)/m.searchTime())
		}
	case g.source == limiter.Seen || g.ceiling > 0 && g.refill >= 0.999*g.ceiling:
	case e.try != nil:
		m.continueTry(t, g)
	case blocked:
		m.beginTryWhenDue(t, g)
	}
}

// searchBurst is the number of calls that leave at the moment at which a search leaps. Two have
// company, and more would leave before a refusal is heard.
const searchBurst = 2

// speedUpSearch doubles the pace of a search so many times. If nobody has asked for longer than a
// doubling takes, no call has left at the new pace yet. So where the search alone paces calls, only
// a few of them may leave at once.
func (m *Law) speedUpSearch(t, doublings float64) {
	s := m.estimate.search
	s.pace *= math.Exp2(doublings)
	if doublings > 1 && !m.knowsLimit() {
		m.credit, m.credited = min(searchBurst, m.creditAt(t, s.pace)), t
	}
}

// knowsLimit reports whether any limit is known.
func (m *Law) knowsLimit() bool {
	for k := range m.used {
		if m.gauges[k].known() {
			return true
		}
	}
	return false
}

// searchTime returns the seconds in which the pace of a search doubles. They are long enough to
// hear of a refusal first, which takes a fraction of an answer's time.
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

// beginTryWhenDue begins a try of a higher rate once enough time has passed since the last
// estimate.
func (m *Law) beginTryWhenDue(t float64, g *gauge) {
	e := &m.estimate
	if (m.crowd.cap == nil || !m.atCap) && t-e.at > e.every {
		m.tryMore(t, g, tryGain*g.refill)
	}
}

func (m *Law) tryMore(t float64, g *gauge, rate float64) {
	m.estimate.try = &try{rate: g.capped(rate), before: g.refill, began: t, sent: m.sent}
}

// continueTry raises the rate if a try was met with silence: the model is in debt, or enough time
// has passed. A try that calls did not use teaches nothing.
func (m *Law) continueTry(t float64, g *gauge) {
	e := &m.estimate
	r := e.try
	step := max(tryDuration(max(e.base, floorRate)), g.burstSeconds()/10)
	age := t - r.began
	inDebt := g.levelAt(t) < -max(2, g.refill/2) && age > step/2
	if !inDebt && age <= 2.5*step {
		return
	}
	if float64(m.sent-r.sent) < tryReached*g.refill*age {
		r.began, r.sent = t, m.sent
		return
	}
	m.acceptTry(t, g)
}

// acceptTry makes the rate that was tried the believed one, and tries more.
func (m *Law) acceptTry(t float64, g *gauge) {
	e := &m.estimate
	gain := e.try.rate / g.refill
	g.advance(t)
	m.setRate(g, e.try.rate)
	g.level = min(g.level, 0)
	e.inflow.fade()
	e.at, e.every = t, firstTryGap(g)
	next := g.refill * min(tryFastest, 1+tryGrowth*(gain-1))
	if g.capped(next) <= g.refill || g.source == limiter.Configured && g.refill >= g.ceiling {
		e.try = nil
		return
	}
	m.tryMore(t, g, next)
}
