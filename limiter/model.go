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
//
// What every call touches stands together, from the end of answered to the beginning of
// errors: of ten thousand lanes each is cold when its turn comes.
type ModelLaw struct {
	answered Meter
	begin    time.Time
	latest   time.Time // what seconds was asked for last,
	clock    float64   // and its answer: calls that end together end at one moment
	mode     mode
	broken   bool // the breaker has opened since the last climb
	binding  bool // pacing held calls back since step looked last
	serves   bool // the server queues what is too much, and does not refuse it
	used     int  // gauges from here on are unknown

	hold        float64 // nothing leaves before
	stepped     float64 // when step looked last
	unknownRate float64 // calls per second while nothing is known
	remember    float64 // rate that was right before an unasked cut
	paceFrom    float64 // share of the pace at paceAt; it doubles from there
	paceAt      float64
	paceTime    float64 // seconds in which it doubles
	reserve     float64 // seconds of refill kept back
	credit      float64 // calls that may leave at once
	credited    float64 // when the credit was that
	quoted      quote
	factor      float64     // real input tokens per estimated one
	latency     float64     // of answers, smoothed, seconds
	remains     Cost        // what is still to come, if the end is near; zero: unknown
	silentRun   int         // episodes since the latest success
	doublings   int         // of the wait that no server asked for
	window      int         // what Window answered at windowAt; 0: a call was answered since
	local       LocalWindow // of a server that serves all it is asked
	gauges      [dims]gauge
	sends       sends
	errors      ErrorWindow

	windowAt    time.Time
	rng         *rand.Rand
	refusedRate float64 // what unknownRate was when it was last refused
	episode     float64 // when the latest wave of refusals was reacted to
	waveBefore  float64 // when the one before it was
	lastRefuse  float64
	refused     int
	rejects     []float64 // when the latest refused calls were sent

	reserveAt float64
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
}

// NewModelLaw starts a law with the limits that the user told.
func NewModelLaw(c LawConfig, now time.Time, rng *rand.Rand) *ModelLaw {
	m := &ModelLaw{
		begin: now, latest: now, rng: rng, unknownRate: firstRate,
		paceFrom: startShare, paceTime: doubling, reserve: leastReserve, factor: 1,
		errors: NewErrorWindow(c.Errors), credit: 1, lastRefuse: math.Inf(-1), episode: math.Inf(-1), probeEvery: 3, climbTime: 5, provenAt: math.Inf(-1),
		serves: c.Local, local: LocalWindow{Target: c.Target},
	}
	m.SetLimits(now, c.Limits)
	m.guess(c.Rate.Initial)
	return m
}

// guess begins with a rate that the user thinks is right: it is believed like one
// that was learned, and corrected like one.
func (m *ModelLaw) guess(rate float64) {
	if g := &m.gauges[dimRequests]; rate > 0 && g.source == unknown {
		m.use(dimRequests)
		g.source, g.refill, g.capacity = learned, rate, 1.5*rate
		m.mode, m.remember = cruise, rate
	}
}

// SetLimits changes what the user told. A limit that headers have shown stays,
// under the new ceiling.
func (m *ModelLaw) SetLimits(now time.Time, l Limits) {
	m.quoted = quote{}
	t := m.seconds(now)
	for k, perMinute := range [dims]float64{l.RPM, l.TPM, l.InputTPM, l.OutputTPM} {
		m.gauges[k].tell(t, perMinute/60, l.Burst.Seconds(), k != dimRequests)
		if m.gauges[k].source != unknown {
			m.use(k)
		}
	}
	if m.gauges[dimRequests].source != unknown { // a probe was about another limit
		m.mode, m.estimated = cruise, t
	}
}

// leastTokens is what a bucket of tokens holds at least: one call's worth, or
// nothing would ever fit.
const leastTokens = 5000

// toldBurst is how many seconds of a told limit may be saved up where its burst is
// not told. What was saved is sent on top of the limit, and a window, fixed or
// sliding, forgives none of it; a fifth of a second is what timers and schedulers
// need.
const toldBurst = 0.2

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
	capacity := max(burst, toldBurst) * refill
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

// use has calls look at the gauge of dimension k from now on.
func (m *ModelLaw) use(k int) { m.used = max(m.used, k+1) }

func (m *ModelLaw) seconds(now time.Time) float64 {
	if now != m.latest {
		m.latest, m.clock = now, now.Sub(m.begin).Seconds()
	}
	return m.clock
}
