package limiter

import (
	"math"
	"math/rand/v2"
	"time"
)

// Numbers of the law that are choices. They were found by simulating the law
// against token buckets of 1 s, 5 s and 60 s and fixed windows of 10 s, with and
// without headers, and are not sensitive: halving or doubling one costs a few
// percent.
const (
	longBurst    = 60.0 // seconds over which a limit by the hour or day may be spent at the fastest
	margin       = 0.98 // of the refill is asked for: clocks and roundings differ
	horizon      = 10.0 // seconds over which a surplus or debt of level is spread
	burstCap     = 4.0  // times the refill is the fastest that a surplus is spent
	startShare   = 0.25 // of the full pace, at the start
	backShare    = 0.5  // of the full pace, after an outage
	backDoubling = 1.0  // seconds: it was full before, so what is felt for is only who else comes back
	doubling     = 2.5  // seconds in which the starting pace doubles, and the unknown rate
	discoverRate = 1.5  // seconds likewise, once a refusal has bounded the search
	firstRate    = 2.0  // calls per second to begin with where nothing is known
	floorRate    = 0.05 // calls per second, the least
	slowShare    = 0.5  // of the pace is left after a server minded its growth
	slowDoubling = 60.0
	longHold     = 60.0 // seconds of hold after which the pace starts afresh
	headerSpare  = 5.0  // seconds of refill kept in reserve where headers tell the level
)

// AskAgain is the longest wait that a [ModelLaw] answers with: its rate changes
// with time, so it wants to be asked again by then.
const AskAgain = 250 * time.Millisecond

type mode uint8

const (
	startup  mode = iota // nothing is known and nothing was refused: double
	discover             // refused once: double again from below, to be refused at the limit
	cruise               // a rate is believed
	probing              // a little more than it is tried
)

// ModelLaw decides when calls may leave by a model of the provider's own
// buckets, one for each dimension, that three kinds of evidence correct:
// headers (exact, at the moment when their call was sent), refusals (the level
// was nought then), and silence while the model is in debt (the limit is higher
// than believed).
//
//	rate = 0.98·refill − others + (level − reserve)/10 s
//
// so that a surplus is spent and a debt paid back within ten seconds or so. It
// is a value told the time; the zero value is not ready, [NewModelLaw] makes one.
type ModelLaw struct {
	begin  time.Time
	gauges [dims]gauge
	mode   mode
	sends  sends
	rng    *rand.Rand

	unknownRate float64 // calls per second while nothing is known
	refusedRate float64 // what it was when it was last refused
	paceFrom    float64 // share of the pace at paceAt; it doubles from there
	paceAt      float64
	paceTime    float64 // seconds in which it doubles
	credit      float64 // calls that may leave at once
	credited    float64 // when the credit was that
	stepped     float64 // when step looked last
	binding     bool    // pacing held calls back since then

	hold       float64 // nothing leaves before
	episode    float64 // when the latest wave of refusals was reacted to
	broken     bool    // the breaker has opened since the last climb
	silentRun  int     // episodes since the latest success
	lastRefuse float64
	refused    int
	rejects    []float64 // when the latest refused calls were sent

	reserve   float64 // seconds of refill kept back
	reserveAt float64
	remember  float64 // rate that was right before an unasked cut
	low       float64 // rate that it was cut to
	lowAt     float64
	climbTime float64 // seconds from low to remember
	proven    float64 // rate that was sustained without a refusal
	provenAt  float64
	contended float64 // refusals in a row that a neighbour was blamed for
	best      float64
	bestAt    float64

	probeEvery float64 // seconds between probes
	estimated  float64 // when the rate was last estimated
	probeAt    float64
	probeFrom  float64
	probeRate  float64
	weight     float64 // seconds of evidence for the present estimate

	firstAt  float64 // when the first refused call was sent
	firstAcc float64 // calls accepted until then
	errors   ErrorWindow
	answered Meter
	latency  float64      // of answers, smoothed, seconds
	factor   float64      // real input tokens per estimated one
	local    *LocalWindow // nil: the server refuses what is too much
	remains  Cost         // what is still to come, if the end is near; zero: unknown
}

// NewModelLaw starts a law with the limits that the user told.
func NewModelLaw(c LawConfig, now time.Time, rng *rand.Rand) *ModelLaw {
	m := &ModelLaw{
		begin: now, rng: rng, unknownRate: firstRate,
		paceFrom: startShare, paceTime: doubling, reserve: 0.5, factor: 1,
		errors: NewErrorWindow(c.Errors), credit: 1, lastRefuse: math.Inf(-1), episode: math.Inf(-1), probeEvery: 3, climbTime: 5, provenAt: math.Inf(-1),
	}
	if c.Local {
		m.local = &LocalWindow{Target: c.Target}
	}
	m.SetLimits(now, c.Limits)
	m.guess(c.Rate.Initial)
	return m
}

// guess begins with a rate that the user thinks is right: it is believed like one
// that was learned, and corrected like one.
func (m *ModelLaw) guess(rate float64) {
	if g := &m.gauges[dimRequests]; rate > 0 && g.source == unknown {
		g.source, g.refill, g.capacity = learned, rate, 1.5*rate
		m.mode, m.remember = cruise, rate
	}
}

// SetLimits changes what the user told. A limit that headers have shown stays,
// under the new ceiling.
func (m *ModelLaw) SetLimits(now time.Time, l Limits) {
	t := m.seconds(now)
	for k, perMinute := range [dims]float64{l.RPM, l.TPM, l.InputTPM, l.OutputTPM} {
		m.gauges[k].tell(t, perMinute/60, l.Burst.Seconds(), k != dimRequests)
	}
	if m.gauges[dimRequests].source != unknown { // a probe was about another limit
		m.mode, m.estimated = cruise, t
	}
}

// leastTokens is what a bucket of tokens holds at least: one call's worth, or
// nothing would ever fit.
const leastTokens = 5000

func (g *gauge) tell(t, refill, burst float64, tokens bool) {
	g.ceiling = refill
	switch {
	case refill <= 0 && g.source == told:
		g.forget(tokens)
		return
	case refill <= 0:
		return
	}
	g.advance(t)
	capacity := max(burst, 1) * refill
	if tokens {
		capacity = max(capacity, leastTokens)
	}
	switch g.source {
	case unknown:
		g.level, g.at = burst*refill, t
		g.refill, g.capacity = refill, capacity
	case told:
		g.refill, g.capacity = refill, capacity
	default: // found out, and now bounded
		g.refill, g.capacity = min(g.refill, refill), min(g.capacity, capacity)
	}
	if g.source != seen {
		g.source = told
	}
	g.take(0)
}

// forget is what remains of a told limit that is taken back: for requests a first
// guess, for tokens nothing, as no refusal would ever correct it.
func (g *gauge) forget(tokens bool) {
	g.source = learned
	if tokens {
		*g = gauge{}
	}
}

func (m *ModelLaw) seconds(now time.Time) float64 { return now.Sub(m.begin).Seconds() }

// pace is the share of the full rate that may be used: it starts low and
// doubles, without a bound, as it only limits the burst.
func (m *ModelLaw) pace(t float64) float64 {
	return m.paceFrom * math.Exp2(min(60, (t-m.paceAt)/m.paceTime))
}

func (m *ModelLaw) slowStart(t, share, time float64) {
	m.paceFrom, m.paceAt, m.paceTime = share, t, time
}

// reserveNow is how many seconds of refill are kept back on silent lanes: it
// grew with refusals that nobody asked for, and is forgotten over minutes.
func (m *ModelLaw) reserveNow(t float64) float64 {
	return max(0.5, m.reserve*math.Pow(0.8, (t-m.reserveAt)/60))
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
	for k := range m.gauges {
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
		most := max(min(burstCap, m.pace(t))*g.refill, g.level/longBurst)
		x = max(0.05*g.refill, min(x, most))
		r = min(r, x/cost[k])
	}
	if m.mode == discover || (m.mode == startup && m.local == nil) {
		r = min(r, m.unknownRate)
	}
	return max(r*m.errors.Factor(m.time(t)), floorRate)
}

// ending reports whether what remains of the batch fits the levels: then the
// reserve is of no use to anyone.
func (m *ModelLaw) ending(t float64) bool {
	if m.remains == (Cost{}) || m.local != nil {
		return false
	}
	left := spread(m.remains)
	for k := range m.gauges {
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
func (m *ModelLaw) Remaining(c Cost) { m.remains = c }

// Wait is how long until a call of that cost may leave: 0 is now. It is an
// estimate from below, at most 250 ms: the rate changes, so ask again.
func (m *ModelLaw) Wait(now time.Time, c Cost) (time.Duration, string) {
	t := m.seconds(now)
	if t < m.hold {
		return ceilSeconds(m.hold - t), "hold"
	}
	cost := m.weigh(c)
	m.step(t)
	r := m.rate(t, cost)
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
	for k := range m.gauges {
		g := &m.gauges[k]
		if g.source == unknown || (m.mode == probing && k == dimRequests) {
			continue
		}
		g.advance(t)
		need := cost[k] // a call without an estimate is still held to what others drew
		if g.source != seen {
			need -= max(2*cost[k], margin*g.refill)
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
	cost := m.weigh(c)
	m.credit, m.credited = m.creditAt(t, m.rate(t, cost))-1, t
	for k := range m.gauges {
		if g := &m.gauges[k]; g.source != unknown {
			g.advance(t)
			g.take(cost[k])
		}
	}
	if m.local != nil {
		m.local.Sent()
	}
	return m.sends.add(t, cost)
}

// weigh is what a call is charged: its estimate, corrected by what the estimates
// of calls like it have been worth.
func (m *ModelLaw) weigh(c Cost) [dims]float64 {
	c.Input *= m.factor
	return spread(c)
}

// The in-flight governor. A call that hangs gives no sign, so neither rate nor
// breaker reacts; what Little's law justifies for the calls that do end, three
// times over, is all that may hang. The floor lets a lane start at full width.
const (
	leastWindow  = 64
	windowSpare  = 32
	windowFactor = 3
)

// Window is part of [Law].
func (m *ModelLaw) Window(now time.Time) int {
	if m.local != nil {
		return m.local.Size()
	}
	return max(leastWindow, windowSpare+int(windowFactor*m.answered.PerSecond(now)*m.latency))
}

// Resume is part of [Law]. Where a level is known there is nothing to probe.
func (m *ModelLaw) Resume(now time.Time) bool {
	g := &m.gauges[dimRequests]
	return g.source != unknown
}

// Vanished is part of [Law].
func (m *ModelLaw) Vanished(now time.Time) { m.gone(now, false) }

// gone tells the window of a local server that a call has ended, and whether that
// was the server's fault.
func (m *ModelLaw) gone(now time.Time, fault bool) {
	if m.local == nil {
		return
	}
	m.local.Ended()
	if fault {
		m.local.Faulted(now)
	}
}

// Broken is part of [Law].
func (m *ModelLaw) Broken(time.Time) {
	m.broken = true
}

// Climb is part of [Law]. After an ordinary refusal the level says how much may
// leave, and there is nothing to climb; after an outage nobody knows who else
// comes back.
func (m *ModelLaw) Climb(now time.Time) time.Time {
	t := m.seconds(now)
	if m.broken {
		m.slowStart(t, backShare, backDoubling)
	}
	m.broken = false
	if m.gauges[dimRequests].source == unknown && m.unknownRate < m.refusedRate {
		// The search goes on from below. It has climbed back when it is as fast as when
		// it was refused.
		return now.Add(ceilSeconds(m.searchTime() * math.Log2(m.refusedRate/m.unknownRate)))
	}
	if m.pace(t) >= 1 {
		return now
	}
	return now.Add(ceilSeconds(m.paceAt + m.paceTime*math.Log2(1/m.paceFrom) - t))
}

// Pace is part of [Law].
func (m *ModelLaw) Pace(now time.Time) float64 {
	return m.rate(m.seconds(now), [dims]float64{dimRequests: 1})
}

// Rate is part of [Law].
func (m *ModelLaw) Rate(time.Time) float64 {
	if g := &m.gauges[dimRequests]; g.source != unknown {
		return g.refill
	}
	return m.unknownRate
}

// Level is part of [Law].
func (m *ModelLaw) Level(now time.Time, d Dimension) float64 {
	k := index(d)
	if k < 0 || m.gauges[k].source == unknown {
		return math.Inf(1)
	}
	g := m.gauges[k]
	g.advance(m.seconds(now))
	return g.level
}

// Errors is part of [Law].
func (m *ModelLaw) Errors(now time.Time) float64 { return m.errors.Rate(now) }

// Escalation is part of [Law].
func (m *ModelLaw) Escalation() int { return m.silentRun }

// Failed is part of [Law].
func (m *ModelLaw) Failed(now time.Time, n News) {
	m.errors.Record(now, true)
	m.gone(now, n.Timeout)
	m.settle(m.seconds(now), n)
	m.see(m.seconds(now), n)
}
