package limiter

import "time"

// Bounds of what is believed of a memory. What lies outside is left out.
const (
	refillMost         = 1e9       // units per second
	unitsMost          = 1e13      // that may be saved up
	depthMost          = 25 * 3600 // seconds of refill that a limit may save up: a day, and a little
	debtWaits          = 60.0      // seconds that a restored debt makes an ordinary call wait at most: after that the server is asked
	secondsMost        = 3600.0    // of latencies
	evidenceMost       = 1e4       // seconds
	cappedMost         = 1 << 16   // calls in flight
	inheritedLeast     = 60.0      // seconds for which the rate of answers before a restart counts for the in-flight governor, at least,
	inheritedLatencies = 4         // and latencies: by then its own calls have ended, and those that they made room for
	droughtKept        = 60.0      // seconds for which a drought is believed to go on
	chanceFresh        = 600.0     // seconds after which what chance was seen to do counts as little as at a trial
)

// Restore is part of [Law].
func (m *ModelLaw) Restore(now time.Time, k Memory) error {
	if err := k.check("model"); err != nil {
		return err
	}
	m.quoted, m.window = quote{}, 0
	r := &recall{now: now, t: m.seconds(now), at: k.At, emptied: k.Emptied}
	if k.Emptied {
		m.empties()
	}
	m.recallCalls(r, &k)
	m.recallLies(&k)
	for i := range k.Limits {
		m.recallLimit(r, &k.Limits[i])
	}
	if k.Estimate != nil {
		m.recallEstimate(r, k.Estimate)
	}
	m.recallTables(r, &k)
	m.recallWaits(r, &k)
	return nil
}

// recallCalls takes up what calls are like.
func (m *ModelLaw) recallCalls(r *recall, k *Memory) {
	m.answered.preset(r.now, sane(k.Answered, 0, MaxRate))
	m.latency = orElse(sane(k.Latency, 1e-6, secondsMost), m.latency)
	m.inherited = float32(sane(k.Answered, 0, MaxRate))
	m.inheritedFor = float32(max(inheritedLeast, inheritedLatencies*m.latency))
	m.delay = orElse(sane(k.Refusal, 1e-6, secondsMost), m.delay)
	m.factor = orElse(sane(k.Factor, 1/factorMost, factorMost), m.factor)
	m.longer = orElse(sane(k.Longer, 0, longerMost), m.longer)
	if pace := sane(k.Pace, floorRate, MaxRate); pace > 0 {
		m.lastPace, m.gap = pace, 1/pace
	}
	if reserve := sane(k.Reserve, leastReserve, reserveMost); reserve > 0 {
		m.setReserve(r.seconds(k.ReserveAt), reserve)
	}
	if !k.Refused.IsZero() {
		m.refusals, m.lastRefused = 1, r.seconds(k.Refused)
	}
	if size := sane(k.Local, 1, localMost); m.serves && size > 0 {
		m.local.size, m.local.slow = size, true
	}
	if m.mean != nil {
		m.mean.recall(k.Window)
	}
}

// recallLies has headers that were found wrong not be read again.
func (m *ModelLaw) recallLies(k *Memory) {
	if lied := sane(k.Lied, 1e-9, refillMost); lied > 0 {
		m.lies, m.lied = true, lied
	}
}

// recallLimit takes up one limit. What a user has told since then wins; what he told
// then and does not now is a guess for requests, and for tokens nothing.
func (m *ModelLaw) recallLimit(r *recall, k *LimitMemory) {
	d := dimensionNamed(k.On)
	source := sourceNamed(k.Source)
	if d < 0 || !k.credible(d) || source == Seen && d == dimRequests && m.lies {
		return
	}
	g := &m.gauges[d]
	ceiling := g.ceiling
	switch {
	case ceiling > 0 && source != Seen && !sameNumber(ceiling, k.Ceiling):
		return
	case ceiling == 0 && source == Told && d != dimRequests, source == Unknown:
		return
	case ceiling == 0 && source == Told:
		source = Learned
	}
	if source != Told { // his burst may be another now
		*g = gauge{source: source, refill: k.Refill, capacity: k.Capacity, ceiling: ceiling}
	}
	if source == Learned && d == dimRequests {
		m.setRate(g, k.Refill)
	}
	g.refill = g.capped(g.refill)
	m.recallShown(r, g, k)
	m.recallLevel(r, d, k)
	m.use(d)
	if d == dimRequests {
		m.estimate.search = nil
	}
}

// credible reports whether such a limit can be.
func (k *LimitMemory) credible(d int) bool {
	least := 1.0
	if d == dimRequests {
		least = 0.01 // of requests, a told limit holds a fifth of a second
	}
	return sane(k.Refill, 1e-9, refillMost) > 0 && sane(k.Capacity, least, unitsMost) > 0 && k.Capacity <= depthMost*k.Refill
}

// recallShown takes up what headers have told besides. A limit that was seen always
// has it.
func (m *ModelLaw) recallShown(r *recall, g *gauge, k *LimitMemory) {
	if g.source != Seen {
		return
	}
	g.shown = &shown{said: k.Said}
	g.period.found = nearest(sane(k.Period, 0, 1e6))
	w := k.Window
	if w == nil || sane(w.Period, 1e-3, depthMost) == 0 || sane(w.Most, 1, unitsMost) == 0 {
		return
	}
	ends := r.t + r.ahead(w.Ends, time.Duration(w.Period*1e9))
	if ends == r.t {
		ends = r.seconds(w.Ends)
	}
	// Nothing corrects a window that is too small for a call: it would never be made.
	g.fixed = &fixedWindow{ends: ends, period: w.Period, most: max(w.Most, g.capacity)}
}

// usualTokens is what an ordinary call draws.
const usualTokens = 5000

// recallLevel lets flow in what has since the memory was saved, but never above what may
// be saved up. A debt that is absurd holds no call for longer than debtWaits.
func (m *ModelLaw) recallLevel(r *recall, d int, k *LimitMemory) {
	g := &m.gauges[d]
	debt := sane(k.Debt, 0, 2*unitsMost)
	g.level, g.at = g.capacity-debt, r.t-r.age()
	g.advance(r.t)
	call := 1.0
	if d != dimRequests {
		call = usualTokens
	}
	if !g.isFixed() && g.source != Told {
		g.level = max(g.level, min(g.capacity, call)-debtWaits*g.refill)
	}
	if r.emptied {
		g.level = min(g.level, r.inHand(g))
	}
	g.take(0)
	if g.source == Seen && !g.isFixed() {
		g.others = min(othersMost*g.refill, sane(k.Others, 0, g.refill))
	}
}

// empties takes from what the user has told this law what may be saved up of it, which is
// there from the start where nobody drew before.
func (m *ModelLaw) empties() {
	for k := range m.gauges {
		m.gauges[k].fresh, m.gauges[k].level = false, min(0, m.gauges[k].level)
	}
}

// inHand is how much of a limit a successor takes to be there, whose predecessor may have
// let calls go after it saved: nothing of what flows in all the time. Of a window as much as
// is left if calls left as fast as they may ever since.
func (r *recall) inHand(g *gauge) float64 {
	if !g.isFixed() {
		return 0
	}
	fastest := max(burstCap*g.refill, g.fixed.most/longBurst)
	return max(0, g.level-fastest*r.age())
}

// recallEstimate takes up how the rate is known. The evidence of calls that this law did
// not see begins now, earlier by what the bucket holds: that is let in besides.
func (m *ModelLaw) recallEstimate(r *recall, k *EstimateMemory) {
	e, g := &m.estimate, &m.gauges[dimRequests]
	e.every = min(tryMost, max(tryEvery, sane(k.Every, 0, tryMost)))
	e.anchor, e.at = r.t, max(r.seconds(k.At), r.t-e.every/2) // nobody was quiet while nobody called
	if g.known() {
		e.anchor -= max(0, min(g.level/g.refill, lookBack))
		e.confirmed = k.Confirmed
		calls, span := sane(k.Calls, 0, MaxRate*evidenceMost), sane(k.Span, 1e-3, evidenceMost)
		if calls > 0 && span > 0 && calls/span >= floorRate && calls/span <= MaxRate {
			e.inflow.recall(calls, span)
		}
		return
	}
	// A search that nothing stops, as another limit binds, goes on rising beyond any rate.
	if pace := sane(min(k.Search, MaxRate), searchFloor, MaxRate); pace > 0 && e.search != nil {
		e.search = &search{pace: pace} // what was let in before its first alarm is not known any more
	}
}

// recallTables takes up what speaks for chance and for a cap.
func (m *ModelLaw) recallTables(r *recall, k *Memory) {
	m.chance.paces = tableOf(k.Chance)
	if c := k.Cap; c != nil {
		m.crowd.beside, m.crowd.paces = tableOf(c.Beside), tableOf(c.Paces)
		if most := sane(c.Most, 1, cappedMost); most > 0 {
			m.crowd.cap = &callCap{most: most, seen: most, clear: sane(c.Clear, 0, 1e6)}
		}
	}
	if r.age() > chanceFresh {
		m.chance.paces.fade(paceBins, trialFresh)
	}
	if m.refusals > 0 {
		m.luckless = m.chance.share(paceBin(m.lastPace))
	}
}

// recallWaits takes up what keeps calls from leaving, or slows them at first.
func (m *ModelLaw) recallWaits(r *recall, k *Memory) {
	if wait := r.ahead(k.Hold, DefaultMaxDirected); wait > 0 {
		m.hold = r.t + wait
	}
	if p := k.Ramp; p != nil && sane(p.Double, 0.1, slowDoubling) > 0 {
		m.slowStart(r.seconds(p.At), p.Double)
	}
	if d := k.Drought; d != nil && r.age() <= droughtKept && d.Refusals > 0 {
		m.drought = &drought{began: r.seconds(d.Began), refusals: min(d.Refusals, 64), busy: d.Busy}
	}
}

func dimensionNamed(name string) int {
	for k, d := range dimensionOf {
		if d.String() == name {
			return k
		}
	}
	return -1
}

func sourceNamed(name string) Source {
	for s, word := range sourceWords {
		if word == name {
			return Source(s)
		}
	}
	return Unknown
}

// sameNumber reports whether two numbers are the same but for what is lost in writing
// them.
func sameNumber(a, b float64) bool { return a-b < 1e-9*a && b-a < 1e-9*a }
