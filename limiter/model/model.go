package model

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/internal/window"
)

// Numbers of the law that are choices. They come from simulations of the law against the bank
// of worlds (tests/lab). Halving or doubling one of them costs a few percent.
const (
	longBurst     = 60.0 // seconds over which a limit by the hour or day may be spent at the fastest
	margin        = 0.98 // of the refill is asked for: clocks and roundings differ
	horizon       = 10.0 // seconds over which a surplus or debt of level is spread
	burstCap      = 4.0  // times the refill is the fastest that a surplus is spent
	openShare     = 0.5  // of the full pace is what a slow start begins with
	openDoublings = 3    // from openShare to burstCap
	backDoubling  = 1.0  // seconds, after an outage: it was full before, so only other clients that come back may need room
	slowDoubling  = 60.0 // seconds, where a server minds the growth
	doubling      = 2.5  // seconds in which a pace doubles at most, that of a search too
	firstRate     = 2.0  // calls per second to begin with where nothing is known
	floorRate     = 0.05 // calls per second, the least
	headerSpare   = 5.0  // seconds of refill kept in reserve where headers tell the level
	guessDepth    = 60.0 // seconds of refill that a limit may hold of which only a guess is known

	directedSpread = 0.05 // of a wait that the server named is added, so that not all come back at once
	holdSpread     = 0.2  // likewise of one that it did not
)

// AskAgain is the longest wait that a [Law] returns, except for a hold: its rate changes with
// time, so the caller must ask again by then.
const AskAgain = 250 * time.Millisecond

// Law decides when calls may leave, by a model of the provider's own buckets, one for each
// dimension. Three kinds of evidence correct it. Headers are exact, for the moment when their
// call was sent. A refusal says that the level was zero, if the pace is to blame. Silence while
// the model is in debt says that the limit is higher than believed.
//
//	rate = 0.98·refill − others + (level − reserve)/10 s
//
// So a surplus is spent and a debt paid back within ten seconds or so. blame.go decides whether
// the pace is to blame for a refusal. The caller passes the time. The zero value is not ready;
// [New] makes a law.
//
// Invariant: estimate.search is nil exactly while a limit of requests is known. A trial and a
// try exclude each other.
//
// The fields that every call touches are next to each other, from the end of answered to the
// beginning of errors. With ten thousand lanes, each is cold when its turn comes.
type Law struct {
	answered   measure.Meter
	begin      time.Time
	latest     time.Time // what seconds was asked for last,
	clock      float64   // and its answer: calls that end at the same time share it
	broken     bool      // the breaker has opened since the last climb
	isLocal    bool      // the server queues what is too much, and does not refuse it
	headersLie bool      // its headers on requests were found wrong
	alike      alike     // calls let in that are not booked yet
	heldBack   bool      // the pace held calls back since the latest one left
	atCap      bool      // the latest call took the last place under a cap
	used       int       // gauges from here on are unknown

	hold         float64 // nothing leaves before
	ticked       float64 // when time taught last
	openAt       float64 // when a slow start began
	openTime     float64 // seconds in which it doubles
	reserve      float64 // seconds of refill kept back
	credit       float64 // calls that may leave at once
	credited     float64 // when the credit was that: the latest call left
	gap          float64 // between calls, smoothed, seconds
	bunch        float64 // calls that are not in it yet
	bunched      float64 // when the calls before them left
	quoted       quote
	factor       float64      // real input tokens per estimated one
	longer       float64      // output tokens per estimated one
	output       float64      // the mean of their estimates
	latency      float64      // of answers, smoothed, seconds
	chanceShare  float64      // share of calls that chance refuses at the present pace
	lastPace     float64      // at which the latest call left that was let in
	refusalDelay float64      // smoothed time that refusals take, seconds
	remains      limiter.Cost // calls still to come, if the end is near; zero: unknown
	recent       uint64       // the latest fates, a bit each: let in
	sent         uint64       // calls
	refusals     int          // ever
	inherited    float32      // answers per second before a restart,
	inheritedFor float32      // until so many seconds after
	refusalRow   int32        // refusals one after the other
	slowPace     float32      // calls per second at most while too many break
	inFlight     int32        // calls
	window       int32        // what Window answered at windowAt; 0: something has happened since
	estimate     estimate
	trial        *trial       // nil: none is under way
	drought      *drought     // nil: calls are let in
	local        *localWindow // of a server that serves all it is asked; nil: it is none
	mean         *window.Mean // nil: latency is not watched
	gauges       [dims]gauge
	users        [dims]userBucket // buckets of the user's limits
	sends        sends
	fates        fates
	errors       window.Errors

	windowAt    float64
	rng         *rand.Rand
	downUntil   float64 // when the server was up again after an outage; 0: there was none
	lastRefused float64 // when the latest refused call left
	liedRate    float64 // calls per second that headers showed and that were found wrong; 0: none
	reserveAt   float64
	chance      chance
	crowd       crowd
}

// New returns a law with the user's limits, which searches for what it does not know.
func New(c limiter.LawConfig, now time.Time, rng *rand.Rand) *Law {
	m := &Law{
		begin: now, latest: now, rng: rng, openAt: -slowDoubling, openTime: backDoubling, reserve: leastReserve,
		factor: 1, longer: 1, credit: 1, gap: 1 / firstRate, lastPace: firstRate, refusalDelay: firstDelay, recent: ^uint64(0),
		errors: window.NewErrors(c.Errors), isLocal: c.Local,
	}
	m.watchLatency(c)
	m.estimate = estimate{search: &search{pace: firstRate}, every: tryEvery}
	m.SetLimits(now, c.Limits)
	m.startFromGuess(c.Rate.Initial)
	m.lastPace = m.believed() // a known rate is no reason to start slower
	return m
}

// watchLatency sets the window that watches latency, if there is one.
func (m *Law) watchLatency(c limiter.LawConfig) {
	if c.Local {
		m.local = &localWindow{Target: c.Target}
	} else {
		m.mean = window.Watch(c.Target)
	}
}

// startFromGuess begins with a rate that the user thinks is right. The law believes and corrects it
// like a learned one.
func (m *Law) startFromGuess(rate float64) {
	if g := &m.gauges[dimRequests]; rate > 0 && !g.known() {
		m.markUsed(dimRequests)
		g.source, g.refill, g.capacity = limiter.Learned, rate, guessDepth*rate
		m.estimate.search = nil
	}
}

// SetLimits changes the user's limits. A limit that headers have shown stays, under the new
// ceiling.
func (m *Law) SetLimits(now time.Time, l limiter.Limits) {
	m.quoted, m.window = quote{}, 0
	t := m.seconds(now)
	for k, perMinute := range [dims]float64{l.RPM, l.TPM, l.InputTPM, l.OutputTPM} {
		level, was := m.userLevel(k, t), m.gauges[k].ceiling
		m.gauges[k].setUserLimit(t, perMinute/60, l.Burst.Seconds(), k != dimRequests)
		if was <= 0 {
			level = m.gauges[k].usersCapacity()
		}
		m.users[k] = userBucket{level, t}
		if m.gauges[k].known() {
			m.markUsed(k)
		}
	}
	if m.gauges[dimRequests].known() {
		m.forgetOtherLimit()
		m.estimate.at = t
	}
}

// forgetOtherLimit ends what was believed of another limit, because the user told or headers showed
// one.
func (m *Law) forgetOtherLimit() {
	m.estimate.search, m.estimate.try, m.trial = nil, nil, nil
	if m.drought != nil {
		m.drought.lesson = nil
	}
}

// markUsed has calls look at the gauge of dimension k from now on.
func (m *Law) markUsed(k int) { m.used = max(m.used, k+1) }

func (m *Law) seconds(now time.Time) float64 {
	if now != m.latest {
		m.latest, m.clock = now, now.Sub(m.begin).Seconds()
	}
	return m.clock
}

// View is part of [limiter.Law].
func (m *Law) View(now time.Time, c limiter.Cost) limiter.View {
	asked := *m // the code below may use the law's own methods, and change nothing of the law
	t := asked.seconds(now)
	v := limiter.View{
		At: now, Binds: nothing, Next: nothing,
		Most: asked.pace(t), Rate: asked.believed(), Errors: asked.errors.Rate(now), Weight: asked.factor,
	}
	for k := range asked.used {
		v.Limits[k] = asked.limitView(k, t)
	}
	asked.viewBounds(&v, t, perDimension(asked.weigh(c)))
	asked.viewBeliefs(&v)
	asked.viewUnderWay(&v, t)
	return v
}

// foreseeable bounds how far anybody looks ahead of now: a limit of one call a day is the
// slowest that is usual.
const foreseeable = 24 * time.Hour

// WaitInAll is part of [limiter.Foreseer]. It asks [Law.Wait] at moments that lie apart by a
// sixteenth of the wait so far, as the rate changes on the way. Then it searches between the last
// two of them.
func (m *Law) WaitInAll(now time.Time, c limiter.Cost) time.Duration {
	asked := *m
	asked.errors.Part()
	wait := func(after time.Duration) time.Duration {
		w, _ := asked.Wait(now.Add(after), c)
		return w
	}
	var tooEarly, lateEnough time.Duration
	for w := wait(0); w > 0 && lateEnough < foreseeable; w = wait(lateEnough) {
		tooEarly, lateEnough = lateEnough, lateEnough+max(w, lateEnough/16)
	}
	for lateEnough-tooEarly > max(time.Millisecond, lateEnough/1000) {
		if middle := tooEarly + (lateEnough-tooEarly)/2; wait(middle) > 0 {
			tooEarly = middle
		} else {
			lateEnough = middle
		}
	}
	return lateEnough
}

// limitView describes limit k at t. Of a limit that is not known, it shows only the ceiling. It
// advances a copy of a fixed window, as a view changes nothing.
func (m *Law) limitView(k int, t float64) limiter.LimitView {
	g := &m.gauges[k]
	if !g.known() {
		return limiter.LimitView{Ceiling: g.ceiling}
	}
	v := limiter.LimitView{
		Source: g.source, Refill: g.refill, Capacity: g.capacity, Level: g.levelAt(t),
		Others: max(0, g.othersDraw()), Ceiling: g.ceiling,
		Said: g.source == limiter.Seen && g.said,
	}
	if g.isFixed() {
		w := *g.fixed
		w.advance(t)
		v.Period, v.Ends = w.periodName(), m.time(w.ends)
	}
	return v
}

// periodName returns the usual period to which the longest reset comes near, or else that reset.
func (w *fixedWindow) periodName() time.Duration {
	for _, p := range periods {
		if w.period <= p*(1+periodNear) && w.period >= p*(1-periodNear) {
			return time.Duration(p * 1e9)
		}
	}
	return measure.Span(max(w.period, 1e-3)).Round(time.Millisecond)
}

// viewBounds adds the bounds on a call of that cost to the view. [Law.Wait] takes the least of
// them.
func (m *Law) viewBounds(v *limiter.View, t float64, cost [dims]float64) {
	if t < m.hold {
		v.Bind(limiter.BoundCooldown, 0)
	}
	if m.trial != nil {
		v.Bind(limiter.BoundTrial, m.leavingRate(m.trial.pace))
	}
	if s := m.estimate.search; s != nil && !m.onlyQueues() {
		v.Bind(limiter.BoundSearch, m.leavingRate(s.pace))
	}
	for k := range m.used {
		if m.gauges[k].known() && cost[k] > 0 {
			by, rate := m.gaugeBound(k, t, cost[k])
			v.Bind(by, m.leavingRate(rate/cost[k]))
		}
	}
	if n := m.places(); n > 0 && m.latency > 0 {
		v.Bind(limiter.BoundWindow, float64(n)/m.latency)
	}
	if m.mean != nil {
		v.Bind(limiter.BoundLatency, m.mean.Pace())
	}
	if m.slowed(t) {
		v.Bind(limiter.BoundErrors, float64(m.slowPace))
	}
	if v.Pace, _ = m.paceOf(t, cost); t < m.hold {
		v.Pace = 0
	}
}

// gaugeBound returns the rate that one limit allows, in units per second, and its reason. That is
// the limit itself, a ramp or the draw of other clients.
func (m *Law) gaugeBound(k int, t, cost float64) (limiter.Bound, float64) {
	fastest, ending := m.opened(t), m.ending(t)
	rate := m.gaugePace(k, t, cost, fastest, ending)
	if fastest < burstCap && m.gaugePace(k, t, cost, burstCap, ending) > rate {
		return limiter.BoundRecovery, rate
	}
	if g := &m.gauges[k]; g.othersDraw() > 0 {
		alone := *m
		alone.gauges[k].others = 0
		if alone.gaugePace(k, t, cost, fastest, ending) > rate {
			return limiter.BoundOthers, rate
		}
	}
	return limiter.BoundRequests + limiter.Bound(k), rate
}

// places returns how many calls the server is believed to take at once; 0: any number.
func (m *Law) places() int {
	n := 0
	if m.isLocal {
		n = m.local.Size()
	}
	if c := m.crowd.cap; c != nil && c.guess == nil && !m.onlyQueues() && (n == 0 || c.places() < n) {
		n = c.places()
	}
	return n
}

// viewBeliefs adds the beliefs that are not about limits: calls at once, refusals by chance, a
// search, wrong headers. What the law does not believe stays zero.
func (m *Law) viewBeliefs(v *limiter.View) {
	v.Cap, v.Lied = m.places(), m.liedRate
	if m.mean != nil {
		v.Window = m.mean.Size()
	}
	if m.refusals > 0 {
		bin := paceBin(min(m.lastPace, v.Most)) // the latest may have left faster than is believed now
		v.Chance = m.chance.share(bin)
		_, v.ChanceSeen = m.chance.paces.below(bin)
	}
	if s := m.estimate.search; s != nil && !m.onlyQueues() {
		v.Search = s.pace
		if s.refused {
			v.Over = s.over
		}
	}
}

// viewUnderWay adds the waits, with the time at which each ends, and the experiments and
// droughts, with the time at which each began. Those that are not under way at t stay zero.
func (m *Law) viewUnderWay(v *limiter.View, t float64) {
	if t < m.hold {
		v.Hold = m.time(m.hold)
	}
	if m.opened(t) < 1 {
		v.Ramp = m.time(m.fullAt())
	}
	if m.trial != nil {
		v.Trial = m.time(m.trial.began)
	}
	if r := m.estimate.try; r != nil {
		v.Try, v.Tried = m.time(r.began), r.rate
	}
	if d := m.drought; d != nil {
		v.Drought, v.Probed = m.time(d.began), d.refusals
	}
}
