package limiter

import (
	"math"
	"time"
)

const (
	latencyWeight = 0.02 // of a new answer in the smoothed latency
	silentHold    = 30.0 // seconds, the longest hold that no server asked for
	busyHold      = 2.3  // seconds likewise, of a server that is too busy
	rejectsKept   = 4096
)

// step lets time teach: the search widens while pacing holds calls back, a cut
// that nobody asked for is undone in a straight line, and a probe that meets
// silence while the model is in debt raises the rate.
func (m *ModelLaw) step(t float64) {
	gap := t - m.stepped
	if gap <= 0 {
		return // whoever asks again at the same moment changes nothing
	}
	m.stepped = t
	g := &m.gauges[dimRequests]
	switch m.mode {
	case startup, discover:
		if m.binding {
			m.unknownRate *= math.Exp2(min(gap, 1) / m.searchTime())
		}
	case cruise:
		m.stepCruise(t, g)
	case probing:
		m.stepProbe(t, g)
	}
	m.binding = false
}

// searchTime is how long the unknown rate takes to double: long enough to hear
// of a refusal first, which takes a fraction of an answer's time.
func (m *ModelLaw) searchTime() float64 {
	d := doubling
	if m.mode == discover {
		d = discoverRate
	}
	if m.latency > 0 {
		d = min(d, max(2.5*m.latency, 0.002))
	}
	return d
}

func (m *ModelLaw) stepCruise(t float64, g *gauge) {
	if g.source == seen || g.source == unknown {
		return
	}
	if g.refill < m.remember && t > m.lowAt {
		m.setRate(g, min(m.remember, max(g.refill, m.low+(m.remember-m.low)*(t-m.lowAt)/m.climbTime)))
		return
	}
	if m.binding && m.refused > 0 && t-max(m.lowAt+m.climbTime, m.lastRefuse, m.estimated) > 2 {
		if g.refill >= 0.95*m.proven || t-m.provenAt > proofTime {
			m.proven, m.provenAt = g.refill, t
		}
		m.contended = 0
	}
	if (g.ceiling == 0 || g.refill < 0.999*g.ceiling) && t-m.estimated > m.probeEvery {
		m.mode = probing
		m.probeAt, m.probeFrom, m.probeRate = t, g.refill, g.capped(1.1*g.refill)
	}
}

func (m *ModelLaw) stepProbe(t float64, g *gauge) {
	depth := g.burstSeconds()
	step := max(3, depth/10)
	g.advance(t)
	silent := g.level < -max(2, 0.5*g.refill) && t-m.probeAt > step/2
	if !silent && t-m.probeAt <= 2.5*step {
		return
	}
	gain := m.probeRate / g.refill
	m.setRate(g, m.probeRate)
	g.level = min(g.level, 0)
	most := 1.5
	if depth > 10 {
		most = 1.25
	}
	m.probeRate = g.capped(g.refill * min(most, 1+1.5*(gain-1)))
	m.probeAt = t
	if g.ceiling > 0 && g.refill >= g.ceiling {
		m.mode, m.estimated = cruise, t
	}
}

// setRate believes in a rate of requests, under the user's ceiling.
func (m *ModelLaw) setRate(g *gauge, refill float64) {
	g.refill = g.capped(refill)
	g.take(0) // the bounds of a debt move with the rate
}

// Answered takes the lesson of a call that was answered.
func (m *ModelLaw) Answered(now time.Time, n News) {
	m.quoted, m.window = quote{}, 0
	t := m.seconds(now)
	m.errors.Record(now, false)
	m.answered.Add(now)
	m.gone(now, false)
	if m.serves && n.Good {
		m.local.Answered(n.Latency)
	}
	if n.Present {
		m.silentRun, m.doublings = 0, 0
	} else if m.seconds(n.Sent) > m.waveBefore {
		// It left between the two latest waves: it ends no wait, but says that they were
		// two, and not one that goes on.
		m.doublings = min(m.doublings, 1)
	}
	if n.Latency > 0 {
		if m.latency == 0 {
			m.latency = n.Latency.Seconds()
		}
		m.latency += latencyWeight * (n.Latency.Seconds() - m.latency)
	}
	m.settle(t, &n)
	m.see(t, &n)
}

// settle corrects the token gauges by what the call really drew. At most what
// was charged comes back, and a debt stays bounded, so that one absurd report
// cannot undo a model. Headers need no help.
func (m *ModelLaw) settle(t float64, n *News) {
	if !n.Measured {
		return
	}
	m.correct(n)
	charged, actual := m.charged(n), spread(n.Actual)
	for k := dimTokens; k < m.used; k++ {
		if g := &m.gauges[k]; g.source == told || g.source == learned {
			g.advance(t)
			g.take(max(0, actual[k]) - charged[k])
		}
	}
}

// charged is what was charged for a call when it left.
func (m *ModelLaw) charged(n *News) [dims]float64 {
	if n.Send < m.sends.count && n.Send >= m.sends.oldest() {
		return spread(m.sends.cost(n.Send))
	}
	return spread(m.weigh(n.Cost))
}

const (
	factorWeight = 0.05 // of a new answer in the factor
	factorMost   = 2.0  // an estimate is not wrong by more than this, one way or the other
)

// correct learns how good the estimates of input tokens are.
func (m *ModelLaw) correct(n *News) {
	if n.Cost.Input <= 0 || n.Actual.Input <= 0 {
		return
	}
	ratio := min(factorMost, max(1/factorMost, n.Actual.Input/n.Cost.Input))
	m.factor += factorWeight * (ratio - m.factor)
}

// see takes what the headers showed.
func (m *ModelLaw) see(t float64, n *News) bool {
	found := false
	for _, s := range n.Sightings {
		k := index(s.Dimension)
		if k < 0 || s.Limit <= 0 {
			continue
		}
		found = true
		m.use(k)
		if m.gauges[k].see(k, s, &m.sends, m.seconds(n.Sent), t) && m.mode != cruise {
			m.mode = cruise
		}
	}
	return found
}

func index(d Dimension) int {
	for k, dim := range dimensionOf {
		if dim == d {
			return k
		}
	}
	return -1
}

// Straggled takes the lesson of a refusal that belongs to a wave already
// reacted to: the call was charged in our model, and not by the provider.
func (m *ModelLaw) Straggled(now time.Time, n News) time.Time {
	m.quoted = quote{}
	t := m.seconds(now)
	s := m.seconds(n.Sent)
	m.reject(n.Send, s)
	m.settle(t, &n)
	m.gone(now, n.Overloaded)
	if !m.see(t, &n) {
		m.refund(t, m.charged(&n))
	}
	m.lastRefuse = max(m.lastRefuse, s)
	if !n.Directed {
		return time.Time{}
	}
	m.hold = max(m.hold, t+n.RetryAfter.Seconds())
	return m.time(m.hold)
}

func (m *ModelLaw) time(t float64) time.Time {
	return m.begin.Add(time.Duration(math.Ceil(t * 1e9)))
}

func (m *ModelLaw) reject(send uint64, sent float64) {
	m.refused++
	m.sends.refuse(send)
	m.rejects = append(m.rejects, sent)
	if len(m.rejects) > 2*rejectsKept {
		m.rejects = append(m.rejects[:0], m.rejects[rejectsKept:]...)
	}
}

func (m *ModelLaw) refund(t float64, cost [dims]float64) {
	for k := range m.used {
		if g := &m.gauges[k]; g.source != unknown {
			g.advance(t)
			g.take(-cost[k])
		}
	}
}

// Refused takes the first refusal of a wave, and answers how long nothing may
// leave.
func (m *ModelLaw) Refused(now time.Time, n News) time.Time {
	m.quoted = quote{}
	t, s := m.seconds(now), m.seconds(n.Sent)
	m.reject(n.Send, s)
	m.settle(t, &n)
	m.gone(now, n.Overloaded)
	for k := range m.gauges {
		m.gauges[k].recheck()
	}
	sighted := m.see(t, &n)
	if n.Directed {
		m.hold = max(m.hold, t+n.RetryAfter.Seconds()*(1+0.05*m.rng.Float64()))
	} else {
		m.hold = max(m.hold, t+m.silentWait(n)*(1+0.2*m.rng.Float64()))
	}
	m.silentRun++
	m.doublings++
	m.waveBefore, m.episode = m.episode, t
	if n.Slow {
		m.slowStart(m.hold, slowShare, slowDoubling)
	} else if m.hold-t > longHold {
		m.slowStart(m.hold, startShare, doubling)
	}
	if n.Overloaded {
		m.broken = true
		return m.time(m.hold) // says nothing about the rate
	}
	if m.shortOf(t, n.On) {
		return m.time(m.hold)
	}
	if sighted {
		m.setReserve(t, min(20, 1.3*max(m.reserveNow(t), 1)))
	} else {
		m.learnRate(t, s)
	}
	m.lastRefuse = max(m.lastRefuse, s)
	return m.time(m.hold)
}

// silentWait is how long to hold where the server does not say. A server that is
// too busy is asked again soon: a refused probe costs nothing, and its return
// should be noticed within seconds.
func (m *ModelLaw) silentWait(n News) float64 {
	most := silentHold
	if n.Overloaded {
		most = busyHold
	}
	return min(most, math.Exp2(float64(min(m.doublings, 10))))
}

// shortOf takes a refusal that names a limit on tokens which is known: the level of
// that one was nought, and the rate of requests is not to blame. Where the limit is
// not known, requests are the only thing to slow down.
func (m *ModelLaw) shortOf(t float64, on Dimension) bool {
	k := index(on)
	if k <= dimRequests || m.gauges[k].source != told {
		return false
	}
	g := &m.gauges[k]
	g.advance(t)
	g.level = min(g.level, 0)
	return true
}

func (m *ModelLaw) setReserve(t, seconds float64) { m.reserve, m.reserveAt = seconds, t }

// accepted is how many calls sent in (from, to] were not refused.
func (m *ModelLaw) accepted(from, to float64) float64 {
	n := m.sends.drawn(from, to)
	for i := len(m.rejects) - 1; i >= 0; i-- {
		if m.rejects[i] > from && m.rejects[i] <= to {
			n--
		}
	}
	return max(0, n)
}

func (m *ModelLaw) acceptedRate(from, to float64) float64 {
	return m.accepted(from, to) / max(to-from, 1e-3)
}

// learnRate learns the rate of requests from a refusal without headers, whose
// call was sent at s. Between two moments at which the bucket was empty, what
// was accepted is what flowed in, unless it overflowed.
func (m *ModelLaw) learnRate(t, s float64) {
	g := &m.gauges[dimRequests]
	m.refusedRate = m.unknownRate
	switch {
	case g.source == unknown && m.refused == 1:
		m.firstAt, m.firstAcc = s, m.accepted(math.Inf(-1), s)
		m.unknownRate = max(0.3, m.firstAcc/(60+s))
		m.mode = discover
		return
	case g.source == unknown:
		if !m.learnFirst(s, g) {
			m.unknownRate = max(0.2, m.unknownRate/2)
			return
		}
	case m.mode == probing:
		m.learnProbe(s, g)
	default:
		m.learnUnasked(t, s, g)
	}
	m.setRate(g, max(g.refill, floorRate, 0.1*m.best*math.Exp2(-(t-m.bestAt)/300)))
	if g.refill > m.best*math.Exp2(-(t-m.bestAt)/300) {
		m.best, m.bestAt = g.refill, t
	}
	g.level, g.at = g.refill*(t-s)-m.sends.drawn(s, t), t
	g.take(0) // within the bounds of a debt
	m.mode, m.estimated = cruise, t
}

// learnFirst takes the rate between the first two refusals far enough apart.
func (m *ModelLaw) learnFirst(s float64, g *gauge) bool {
	from := m.lastRefuse
	if s-from < 1.5 || m.accepted(from, s) < 4 {
		// A bucket of a call or two refuses again before four are accepted: since the
		// first refusal is a lower bound, and probes lift it.
		from = m.firstAt
		if s-from < 10 || m.accepted(from, s) < 4 {
			return false
		}
	}
	r := m.acceptedRate(from, s)
	g.source = learned
	m.use(dimRequests)
	m.setRate(g, r)
	m.remember, m.weight = r, s-m.lastRefuse
	g.capacity = max(1.5*r, m.firstAcc-r*m.firstAt)
	m.probeEvery = max(3, g.burstSeconds()/4)
	return true
}

// learnProbe takes the rate from a refusal that a probe was out for. The rate
// since the last refusal is a lower bound, since the bucket may have overflowed
// in between; that of the last three seconds an upper one.
func (m *ModelLaw) learnProbe(s float64, g *gauge) {
	least := max(3, g.burstSeconds()/4)
	since := max(m.lastRefuse, 0) // what was told or guessed may be probed before anything was refused
	low, high := m.acceptedRate(since, s), m.acceptedRate(s-3, s)
	r := min(max(low, 0.75*high), max(high, low))
	if math.Abs(r-m.probeFrom) < 0.1*m.probeFrom {
		span := s - since
		r = (m.probeFrom*m.weight + r*span) / (m.weight + span)
		m.weight = min(90, m.weight+span)
		m.probeEvery = min(120, 1.7*m.probeEvery)
	} else {
		m.weight = 5
		if r > 1.25*m.probeFrom {
			m.probeEvery = least
		} else {
			m.probeEvery = min(120, 1.3*m.probeEvery)
		}
	}
	m.setRate(g, r)
	m.remember = r
}

// learnUnasked takes the rate from a refusal while cruising: the limit fell, or
// somebody else draws on it. The rate is cut, and climbs back to a little more
// than what was just accepted.
func (m *ModelLaw) learnUnasked(t, s float64, g *gauge) {
	g.advance(t)
	if g.source == told && m.refused == 1 {
		m.firstAt, m.firstAcc = s, m.accepted(math.Inf(-1), s)
		g.capacity = min(g.capacity, max(1.5*g.refill, m.firstAcc-g.refill*s))
	}
	depth := g.burstSeconds()
	if m.remember == 0 {
		m.remember = g.refill
	}
	span := min(30, max(5, depth/2))
	m.remember = min(m.remember, max(m.remember/2, 1.05*m.acceptedRate(s-span, s)))
	switch {
	case depth < shallow && t-m.provenAt < proofTime:
		m.contend(t, g)
		return
	case g.capacity > 5*g.refill && g.level > g.capacity/2:
		g.capacity = max(1.5*g.refill, 0.7*g.capacity)
	default:
		m.setRate(g, min(m.remember, max(0.7*g.refill, 0.7*m.remember)))
		m.low, m.lowAt, m.climbTime = g.refill, max(m.hold, t), 5
	}
	m.setReserve(t, min(20, 1.5*m.reserveNow(t)+0.3))
	if depth < 5 {
		m.probeEvery = max(3, depth/4)
	}
}

const (
	shallow   = 5   // seconds of refill: less is no cushion against a neighbour
	proofTime = 120 // seconds for which a rate that was sustained is believed to be the limit

	contendHold   = 0.8 // seconds of the first pause
	contendGrowth = 1.6
	contendMost   = 1.5
	contendShare  = 0.6 // of the proven rate, to come back with
	contendClimb  = 1.5 // seconds from there to all of it
)

// contend backs off from a neighbour on a shallow bucket. A refusal there says
// nothing about the limit, which was met without one a while ago; it says that
// somebody else calls now. So the rate stays known, calls pause a little longer
// each time, and come back quickly.
func (m *ModelLaw) contend(t float64, g *gauge) {
	m.hold = max(m.hold, t+min(contendMost, contendHold*math.Pow(contendGrowth, m.contended)))
	m.contended++
	m.remember, m.climbTime = m.proven, contendClimb
	m.setRate(g, contendShare*m.proven)
	m.low, m.lowAt = g.refill, m.hold
}
