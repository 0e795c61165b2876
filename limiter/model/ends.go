package model

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// This file takes the ends of calls for the model law.

const (
	latencyWeight = 0.02 // of a new answer in the smoothed latency
	delayWeight   = 0.2  // of a new refusal in the smoothed time that refusals take
	firstDelay    = 0.5  // seconds that a refusal is thought to take before there was one
)

// Answered is part of [limiter.Law]. It learns from a call that was answered.
func (m *Law) Answered(now time.Time, n limiter.News) {
	m.quoted, m.window = quote{}, 0
	t := m.seconds(now)
	if n.Overheard {
		m.learnOverheard(now, t, &n)
		return
	}
	if !n.Again {
		m.noteEnd(now, n.Sent, false)
	}
	m.answered.Add(now)
	m.countEnded(t, false)
	if m.crowd.refutesGuess(&n.Ticket) {
		m.dropGuessedCap()
	}
	if m.isLocal && n.Good {
		m.local.Answered(n.Latency)
	}
	if m.mean != nil && n.Good {
		m.mean.Answered(now, n.Latency, int(n.Ticket.Beside))
	}
	m.noteDuration(measure.Bounded(n.Latency) + measure.Bounded(n.Detour))
	m.correctCost(t, &n)
	m.readHeaders(t, &n)
	m.takeKnownFates(t, 0)
}

// noteDuration adds to the mean how long an answer held its place, as calls in flight are counted
// by places.
func (m *Law) noteDuration(d time.Duration) {
	if d <= 0 {
		return
	}
	if m.latency == 0 {
		m.latency = d.Seconds()
	}
	m.latency += latencyWeight * (d.Seconds() - m.latency)
}

// learnOverheard learns from an answer to a call of the law before this one. Such an answer shows
// that the server answers, how often and how fast, and what was left of its limits. It says nothing
// of this law's pace, company or charges.
func (m *Law) learnOverheard(now time.Time, t float64, n *limiter.News) {
	m.answered.Add(now)
	m.noteDuration(measure.Bounded(n.Latency) + measure.Bounded(n.Detour))
	if n.Measured {
		m.correct(n)
	}
	m.readHeaders(t, n)
}

// Failed is part of [limiter.Law]. A call that broke was let in, if it left at all.
func (m *Law) Failed(now time.Time, n limiter.News) {
	t := m.seconds(now)
	m.quoted = quote{}
	if n.Overheard {
		m.readHeaders(t, &n)
		return
	}
	if !n.Again {
		m.noteEnd(now, n.Sent, true)
	}
	m.countEnded(t, n.Timeout)
	if m.mean != nil && n.Timeout {
		m.mean.Faulted(now)
	}
	if n.Unsent {
		m.neverLeft(t, &n)
		return
	}
	m.correctCost(t, &n)
	m.readHeaders(t, &n)
	m.takeKnownFates(t, 0)
}

const (
	easedSpan  = 10.0 // seconds over which the pace is measured that is to be halved
	easedLeast = 1.0  // seconds of it at least: right after a hold the latest call's pace says more
)

// noteEnd adds a call to the error window, and slows down if too many calls break. The new pace is
// half of the one at which calls left recently, and at most half of the believed inflow. So neither
// a saved-up level nor later lessons make up for it.
func (m *Law) noteEnd(now, sent time.Time, failed bool) {
	if !m.errors.Concerns(sent) || !m.errors.Watch(now, failed) {
		return
	}
	t := m.seconds(now)
	pace, from := m.lastPace, max(0, t-easedSpan, min(m.hold, t))
	if span := t - from; span >= easedLeast {
		pace = m.sends.sent(from, t) / span
	}
	if !m.onlyQueues() {
		pace = min(pace, m.believed())
	}
	m.slowPace = float32(max(floorRate, m.errors.Slowed(now)*pace))
}

// Vanished is part of [limiter.Law].
func (m *Law) Vanished(now time.Time, n limiter.News) {
	if n.Overheard {
		return
	}
	t := m.seconds(now)
	m.countEnded(t, false)
	if n.Unsent {
		m.neverLeft(t, &n)
	}
}

// neverLeft gives back the charge of a call that never left. Such a call says nothing of those
// before it.
func (m *Law) neverLeft(t float64, n *limiter.News) {
	m.quoted = quote{}
	m.fates.mute(n.Ticket.Number)
	m.sends.takeBack(m.seconds(n.Sent), m.weighedCost(n))
	m.refund(t, m.charged(n))
}

// Straggled is part of [limiter.Law]. It books a refusal to which the lane has already reacted, and
// lengthens the hold if the server names a wait.
func (m *Law) Straggled(now time.Time, n limiter.News) time.Time {
	t := m.seconds(now)
	if n.Overheard {
		m.quoted = quote{}
		m.readHeaders(t, &n)
	} else {
		m.bookRefusal(t, &n)
	}
	if !n.NamesWait() {
		return time.Time{}
	}
	m.hold = max(m.hold, t+n.RetryAfter.Seconds())
	return m.time(m.hold)
}

// bookRefusal books a refusal that must have no consequences, as its wave has had them.
func (m *Law) bookRefusal(t float64, n *limiter.News) {
	sent := m.seconds(n.Sent)
	m.noteRefusal(t, sent, n)
	if m.drought == nil || sent < m.drought.began {
		m.takeRefusedFate(t, sent, n)
	} else {
		m.fates.mute(n.Ticket.Number)
	}
}

// countEnded counts a call that has ended, and tells a local server's window of it. fault says that
// the server was at fault.
func (m *Law) countEnded(t float64, fault bool) {
	m.inFlight = max(0, m.inFlight-1)
	if !m.isLocal {
		return
	}
	m.local.Ended()
	if fault {
		m.local.Faulted(m.time(t))
	}
}

// correctCost corrects the token gauges by the real draw of a call. At most the charge comes back,
// and a debt stays bounded, so that one absurd report cannot undo a model. Gauges with headers need
// no correction.
func (m *Law) correctCost(t float64, n *limiter.News) {
	if !n.Measured {
		return
	}
	m.correct(n)
	charged, actual := m.charged(n), perDimension(n.Actual.Drawn())
	for k := dimTokens; k < m.used; k++ {
		m.drawUser(k, t, charged[k], actual[k]-charged[k])
		if g := &m.gauges[k]; g.source == limiter.Configured || g.source == limiter.Learned {
			g.advance(t)
			g.takeOf(charged[k], actual[k]-charged[k])
		}
	}
}

// weighedCost returns the cost at which a call was charged when it left.
func (m *Law) weighedCost(n *limiter.News) limiter.Cost {
	c := n.Cost
	c.Input *= float64(n.Ticket.Factor)
	if x := n.Ticket.Longer; x > 1 {
		c.Output *= float64(x)
	}
	return c
}

// charged returns the charge of a call when it left, by dimension.
func (m *Law) charged(n *limiter.News) [dims]float64 { return perDimension(m.weighedCost(n)) }

const (
	factorWeight = 0.05 // of a new answer in the factor
	factorMost   = 2.0  // an estimate of input is not wrong by more than this, one way or the other
	longerMost   = 10.0 // an answer is charged at most this many times its estimate
)

// correct learns how good the estimates of input tokens are. Tokens that were read from a cache
// were estimated too, whether or not they are free.
func (m *Law) correct(n *limiter.News) {
	m.correctOutput(measure.Amount(n.Cost.Output), measure.Amount(n.Actual.Output))
	estimate, read := measure.Amount(n.Cost.Input), measure.Amount(n.Actual.Input)+measure.Amount(n.Cached)
	if estimate == 0 || read == 0 {
		return
	}
	ratio := min(factorMost, max(1/factorMost, read/estimate))
	m.factor += factorWeight * (ratio - m.factor)
}

// correctOutput learns how many tokens are written per estimated one. Each answer weighs as much as
// its estimate, so that longer becomes the ratio of the sums.
func (m *Law) correctOutput(estimate, written float64) {
	if estimate == 0 || written == 0 {
		return
	}
	if m.output == 0 {
		m.output = estimate
	}
	m.output += factorWeight * (estimate - m.output)
	m.longer += min(1, factorWeight*estimate/m.output) * (min(longerMost, written/estimate) - m.longer)
}

// readHeaders learns from the limits that a call's headers showed, and reports whether it believed
// any.
func (m *Law) readHeaders(t float64, n *limiter.News) bool {
	found := false
	for _, s := range n.Sightings {
		k := index(s.Dimension)
		if k < 0 || s.Limit <= 0 || m.ignoresSighting(k, t, &s) {
			continue
		}
		found = true
		m.markUsed(k)
		g := &m.gauges[k]
		if g.takeSighting(k, s, &m.sends, m.seconds(n.Sent), t, m.drewBefore(k, n)) && k == dimRequests {
			m.forgetOtherLimit()
		}
		if g.outgrown() && k == dimRequests {
			m.distrustHeaders(g)
		}
	}
	return found
}

// drewBefore returns the units per second that the law before this one drew when it let an
// overheard call go. That is its remembered pace times the charge of such a call, but at most
// the fastest rate at which any limit is spent.
func (m *Law) drewBefore(k int, n *limiter.News) float64 {
	if !n.Overheard {
		return 0
	}
	drew := m.lastPace * max(0, perDimension(m.weigh(n.Cost))[k])
	return min(drew, burstCap*m.gauges[k].refill)
}

// saidLeast is the least limit that the words of a refusal are believed to name. The calls that
// are let in find a smaller one as quickly.
const saidLeast = 10

// ignoresSighting reports whether to ignore a sighting. It ignores headers that were found wrong,
// and words that the calls let in contradict. No bucket lets in more than twice its limit within
// the limit's period.
func (m *Law) ignoresSighting(k int, t float64, s *limiter.Sighting) bool {
	if k == dimRequests && m.headersLie {
		return true
	}
	if !s.Said || k != dimRequests {
		return false
	}
	span := searchMinute
	if s.Window > 0 {
		span = min(span, s.Window.Seconds())
	}
	accepted := m.sends.accepted(t-span, t)
	return s.Limit < saidLeast || accepted > 2*s.Limit+2 || accepted < s.Limit/2
}

// distrustHeaders ignores all headers on requests from now on. The lane learns as if the server
// were silent, from its present pace.
func (m *Law) distrustHeaders(g *gauge) {
	m.headersLie, m.liedRate = true, g.refill
	if g.shown != nil {
		m.liedRate = max(g.refill, g.printed)
		if p := g.period.period(); !g.named && p < usualPeriod {
			m.liedRate = g.printed * p / usualPeriod
		}
	}
	if e := &m.estimate; e.inflow.known() || g.ceiling > 0 {
		g.source, g.shown, g.others = limiter.Learned, nil, 0
		if e.inflow.known() {
			m.setRate(g, e.inflow.rate())
		}
		g.capacity = max(1, 1.5*g.refill)
		if g.ceiling > 0 { // the user's limit and burst bind without headers, too; a search would pass them
			g.source, g.capacity = limiter.Configured, g.usersCapacity()
			e.at = m.clock
		}
		g.level = min(0, g.level)
		return
	}
	pace := max(g.refill, searchFloor)
	*g = gauge{ceiling: g.ceiling}
	m.estimate.search = &search{pace: pace}
}

// refund gives the cost of a call back to the gauges and to the user's own limits.
func (m *Law) refund(t float64, cost [dims]float64) {
	for k := range m.used {
		if g := &m.gauges[k]; g.known() {
			g.advance(t)
			g.take(-cost[k])
		}
		m.drawUser(k, t, 0, -cost[k])
	}
}

func (m *Law) setReserve(t, seconds float64) { m.reserve, m.reserveAt = seconds, t }

func (m *Law) time(t float64) time.Time {
	return m.begin.Add(measure.Span(t))
}
