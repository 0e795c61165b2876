package model

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// Bounds of credible values in a memory. Values outside them are left out.
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

// Restore is part of [limiter.Law].
func (m *Law) Restore(now time.Time, k limiter.Memory) error {
	if err := k.ValidFor("model"); err != nil {
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
	m.recallUser(r, k.Limits)
	if k.Estimate != nil {
		m.recallEstimate(r, k.Estimate)
	}
	m.recallTables(r, &k)
	m.recallWaits(r, &k)
	return nil
}

// recallCalls takes up the usual features of calls.
func (m *Law) recallCalls(r *recall, k *limiter.Memory) {
	m.answered.Preset(r.now, measure.Sane(k.Answered, 0, limiter.MaxRate))
	m.latency = measure.OrElse(measure.Sane(k.Latency, 1e-6, secondsMost), m.latency)
	m.inherited = float32(measure.Sane(k.Answered, 0, limiter.MaxRate))
	m.inheritedFor = float32(max(inheritedLeast, inheritedLatencies*m.latency))
	m.delay = measure.OrElse(measure.Sane(k.Refusal, 1e-6, secondsMost), m.delay)
	m.factor = measure.OrElse(measure.Sane(k.Factor, 1/factorMost, factorMost), m.factor)
	m.longer = measure.OrElse(measure.Sane(k.Longer, 0, longerMost), m.longer)
	if pace := measure.Sane(k.Pace, floorRate, limiter.MaxRate); pace > 0 {
		m.lastPace, m.gap = pace, 1/pace
	}
	if reserve := measure.Sane(k.Reserve, leastReserve, reserveMost); reserve > 0 {
		m.setReserve(r.seconds(k.ReserveAt), reserve)
	}
	if !k.Refused.IsZero() {
		m.refusals, m.lastRefused = 1, r.seconds(k.Refused)
	}
	if m.serves {
		m.local.recall(k.Local)
	}
	if m.mean != nil {
		m.mean.Recall(k.Window)
	}
}

// recallLies has the law ignore headers that were found wrong.
func (m *Law) recallLies(k *limiter.Memory) {
	if lied := measure.Sane(k.Lied, 1e-9, refillMost); lied > 0 {
		m.lies, m.lied = true, lied
	}
}

// recallLimit takes up one limit. A limit that the user has told since then wins. A limit that
// the user told only then is a guess for requests; for tokens it is ignored.
func (m *Law) recallLimit(r *recall, k *limiter.LimitMemory) {
	d := dimensionNamed(k.On)
	source := sourceNamed(k.Source)
	if d < 0 || !credible(k, d) || source == limiter.Seen && d == dimRequests && m.lies {
		return
	}
	g := &m.gauges[d]
	ceiling := g.ceiling
	switch {
	case ceiling > 0 && source != limiter.Seen && !sameNumber(ceiling, k.Ceiling):
		return
	case ceiling == 0 && source == limiter.Configured && d != dimRequests, source == limiter.Unknown:
		return
	case ceiling == 0 && source == limiter.Configured:
		source = limiter.Learned
	}
	if source != limiter.Configured { // the user's burst may be another now
		*g = gauge{source: source, refill: k.Refill, capacity: k.Capacity, ceiling: ceiling, burst: g.burst}
	}
	if source == limiter.Learned && d == dimRequests {
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

// recallUser takes up what the buckets of the user's limits lack. Without such a memory they are taken to have been empty.
func (m *Law) recallUser(r *recall, limits []limiter.LimitMemory) {
	for d := range m.users {
		m.users[d] = userBucket{0, r.t - r.age()}
	}
	for i := range limits {
		if d, debt := dimensionNamed(limits[i].On), limits[i].UserDebt; d >= 0 && debt != nil {
			m.users[d].level = m.gauges[d].usersCapacity() - measure.Sane(*debt, 0, 2*unitsMost)
		}
	}
	for d := range m.users {
		if r.emptied {
			m.users[d] = userBucket{min(0, m.userLevel(d, r.t)), r.t}
		}
	}
}

// credible reports whether such a limit can exist.
func credible(k *limiter.LimitMemory, d int) bool {
	least := 1.0
	if d == dimRequests {
		least = 0.01 // of requests, a configured limit holds a fifth of a second
	}
	return measure.Sane(k.Refill, 1e-9, refillMost) > 0 && measure.Sane(k.Capacity, least, unitsMost) > 0 && k.Capacity <= depthMost*k.Refill
}

// recallShown takes up what headers have shown besides. A limit that was seen always has that.
func (m *Law) recallShown(r *recall, g *gauge, k *limiter.LimitMemory) {
	if g.source != limiter.Seen {
		return
	}
	g.shown = &shown{said: k.Said}
	g.period.found = nearest(measure.Sane(k.Period, 0, 1e6))
	w := k.Window
	if w == nil || measure.Sane(w.Period, 1e-3, depthMost) == 0 || measure.Sane(w.Most, 1, unitsMost) == 0 {
		return
	}
	ends := r.t + r.ahead(w.Ends, time.Duration(w.Period*1e9))
	if ends == r.t {
		ends = r.seconds(w.Ends)
	}
	// Nothing corrects a window that is too small for a call: it would never be made.
	g.fixed = &fixedWindow{ends: ends, period: w.Period, most: max(w.Most, g.capacity)}
}

// usualTokens is the draw of an ordinary call.
const usualTokens = 5000

// recallLevel adds the inflow since the memory was saved, but never beyond the capacity. An
// absurd debt holds no call for longer than debtWaits.
func (m *Law) recallLevel(r *recall, d int, k *limiter.LimitMemory) {
	g := &m.gauges[d]
	debt := measure.Sane(k.Debt, 0, 2*unitsMost)
	g.level, g.at = g.capacity-debt, r.t-r.age()
	g.advance(r.t)
	call := 1.0
	if d != dimRequests {
		call = usualTokens
	}
	if !g.isFixed() && g.source != limiter.Configured {
		g.level = max(g.level, min(g.capacity, call)-debtWaits*g.refill)
	}
	if r.emptied {
		g.level = min(g.level, r.inHand(g))
	}
	g.take(0)
	if g.source == limiter.Seen && !g.isFixed() {
		g.others = min(othersMost*g.refill, measure.Sane(k.Others, 0, g.refill))
	}
}

// empties removes the savings of the limits that the user has told this law. They would be
// there from the start if nobody drew before.
func (m *Law) empties() {
	for k := range m.gauges {
		m.gauges[k].fresh, m.gauges[k].level = false, min(0, m.gauges[k].level)
	}
}

// inHand returns the part of a limit that a successor may count on. Its predecessor may have
// let calls go after it saved, so nothing of a limit with a steady inflow counts. Of a window
// the part counts that is left if calls have left as fast as they may ever since.
func (r *recall) inHand(g *gauge) float64 {
	if !g.isFixed() {
		return 0
	}
	fastest := max(burstCap*g.refill, g.fixed.most/longBurst)
	return max(0, g.level-fastest*r.age())
}

// recallEstimate takes up the knowledge of the rate. The evidence of calls that this law did
// not see begins now, or earlier by the time that fills the bucket's level: the level is let in
// besides.
func (m *Law) recallEstimate(r *recall, k *limiter.EstimateMemory) {
	e, g := &m.estimate, &m.gauges[dimRequests]
	e.every = min(tryMost, max(tryEvery, measure.Sane(k.Every, 0, tryMost)))
	e.anchor, e.at = r.t, max(r.seconds(k.At), r.t-e.every/2) // nobody was quiet while nobody called
	if g.known() {
		e.anchor -= max(0, min(g.level/g.refill, historySpan))
		e.confirmed = k.Confirmed
		calls, span := measure.Sane(k.Calls, 0, limiter.MaxRate*evidenceMost), measure.Sane(k.Span, 1e-3, evidenceMost)
		if calls > 0 && span > 0 && calls/span >= floorRate && calls/span <= limiter.MaxRate {
			e.inflow.recall(calls, span)
		}
		return
	}
	// A search that nothing stops, as another limit binds, goes on rising beyond any rate.
	if pace := measure.Sane(min(k.Search, limiter.MaxRate), searchFloor, limiter.MaxRate); pace > 0 && e.search != nil {
		e.search = &search{pace: pace} // what was let in before its first alarm is not known any more
	}
}

// recallTables takes up the evidence for chance and for a cap.
func (m *Law) recallTables(r *recall, k *limiter.Memory) {
	m.chance.paces = tableOf(k.Chance)
	if c := k.Cap; c != nil {
		m.crowd.beside, m.crowd.paces = tableOf(c.Beside), tableOf(c.Paces)
		if most := measure.Sane(c.Most, 1, cappedMost); most > 0 {
			m.crowd.cap = &callCap{most: most, seen: most, clear: measure.Sane(c.Clear, 0, 1e6)}
		}
	}
	if r.age() > chanceFresh {
		m.chance.paces.fade(paceBins, trialFresh)
	}
	if m.refusals > 0 {
		m.byChance = m.chance.share(paceBin(m.lastPace))
	}
}

// recallWaits takes up the reasons that keep calls from leaving, or slow them at first.
func (m *Law) recallWaits(r *recall, k *limiter.Memory) {
	if wait := r.ahead(k.Hold, limiter.DefaultMaxDirected); wait > 0 {
		m.hold = r.t + wait
	}
	if p := k.Ramp; p != nil && measure.Sane(p.Double, 0.1, slowDoubling) > 0 {
		m.slowStart(r.seconds(p.At), p.Double)
	}
	if d := k.Drought; d != nil && r.age() <= droughtKept && d.Refusals > 0 {
		m.drought = &drought{began: r.seconds(d.Began), refusals: min(d.Refusals, 64), busy: d.Busy, pace: m.lastPace}
	}
}

// dimensionNamed returns the index of the dimension with this name; -1 if there is none.
func dimensionNamed(name string) int {
	for k, d := range dimensionOf {
		if d.String() == name {
			return k
		}
	}
	return -1
}

// sourceNamed returns the source with this name; Unknown if there is none.
func sourceNamed(name string) limiter.Source {
	for s := limiter.Configured; s <= limiter.Seen; s++ {
		if s.String() == name {
			return s
		}
	}
	return limiter.Unknown
}

// sameNumber reports whether two numbers are equal, within what writing them loses.
func sameNumber(a, b float64) bool { return a-b < 1e-9*a && b-a < 1e-9*a }

// counts returns the bins of a table that are not empty.
func (t *table) counts() (c limiter.Counts) {
	for bin, e := range t.upTo(tableBins) {
		if e.calls > 0 {
			c = append(c, [3]int{bin, int(e.calls), int(e.refused)})
		}
	}
	return c
}

// tableOf makes a table of counts. Lines that cannot be true are left out.
func tableOf(c limiter.Counts) (t table) {
	for _, line := range c {
		bin, calls, refused := line[0], line[1], line[2]
		if bin >= 0 && bin < tableBins && refused >= 0 && refused <= calls && calls <= tableMost {
			if t.bins == nil {
				t.bins = new([tableBins]counted)
			}
			t.bins[bin] = counted{uint8(calls), uint8(refused)}
		}
	}
	return t
}

// A recall dates what a memory holds by the clock of the law that takes it up.
type recall struct {
	now     time.Time
	t       float64   // now, in seconds since that law began
	at      time.Time // when the memory was saved, not after now
	emptied bool      // nothing is in hand; see [limiter.Memory.Empty]
}

// seconds converts a moment of the past to the law's clock. It is never after now, and a
// missing moment was long ago.
func (r *recall) seconds(at time.Time) float64 {
	if at.IsZero() {
		return r.t - measure.Ages
	}
	return r.t - min(measure.Ages, max(0, r.now.Sub(at).Seconds()))
}

// ahead returns the seconds until a moment, at most so many.
func (r *recall) ahead(at time.Time, most time.Duration) float64 {
	return min(most.Seconds(), max(0, at.Sub(r.now).Seconds()))
}

// age returns the seconds since the memory was saved.
func (r *recall) age() float64 { return min(measure.Ages, max(0, r.now.Sub(r.at).Seconds())) }

// Save is part of [limiter.Law]. A trial and a try are left out. The alarm's lesson stands: it
// is the more careful of the two beliefs between which a trial was to decide.
func (m *Law) Save(now time.Time) limiter.Memory {
	law := *m
	t := law.seconds(now)
	k := limiter.Memory{
		Version: limiter.MemoryVersion, Law: "model", At: measure.WallAt(now, 0),
		Answered: law.answered.PerSecond(now), Latency: law.latency, Refusal: law.delay,
		Pace: law.lastPace, Factor: law.factor, Longer: law.longer, Lied: law.lied,
	}
	at := func(moment float64) time.Time { return measure.WallAt(now, moment-t) }
	for d := range law.used {
		if g := &law.gauges[d]; g.known() {
			k.Limits = append(k.Limits, law.saveLimit(d, t, at))
		}
	}
	if r := law.reserveNow(t); r > leastReserve {
		k.Reserve, k.ReserveAt = r, at(t)
	}
	if t < law.hold {
		k.Hold = at(law.hold)
	}
	if law.refusals > 0 {
		k.Refused = at(law.lastRefused)
	}
	if law.serves {
		k.Local = law.local.size
	}
	if law.mean != nil {
		k.Window = law.mean.Found()
	}
	if law.opened(t) < 1 {
		k.Ramp = &limiter.RampMemory{At: at(law.openAt), Share: openShare, Double: law.openTime}
	}
	law.saveBeliefs(&k, at)
	return k
}

// saveBeliefs adds what the law has found out from the fates of calls to a memory. A cap that is
// only guessed is left out.
func (m *Law) saveBeliefs(k *limiter.Memory, at func(float64) time.Time) {
	k.Estimate = m.estimate.save(at)
	k.Chance = m.chance.paces.counts()
	c := limiter.CapMemory{Beside: m.crowd.beside.counts(), Paces: m.crowd.paces.counts()}
	if b := m.crowd.cap; b != nil && b.guess == nil {
		c.Most, c.Clear = b.most, b.clear
	}
	if len(c.Beside) > 0 {
		k.Cap = &c
	}
	if d := m.drought; d != nil {
		k.Drought = &limiter.DroughtMemory{Began: at(d.began), Refusals: d.refusals, Busy: d.busy}
	}
}

// saveLimit returns the memory of one limit at t. It keeps the debt and not the level, so that
// the limit may change meanwhile. Only a limit that headers have shown has a period or a window.
func (m *Law) saveLimit(d int, t float64, at func(float64) time.Time) limiter.LimitMemory {
	g := &m.gauges[d]
	k := limiter.LimitMemory{
		On: dimensionOf[d].String(), Source: g.source.String(), Refill: g.refill, Capacity: g.capacity,
		Debt: g.capacity - g.levelAt(t), Others: g.others, Ceiling: g.ceiling,
	}
	if g.ceiling > 0 {
		debt := g.usersCapacity() - m.userLevel(d, t)
		k.UserDebt = &debt
	}
	if g.shown == nil {
		return k
	}
	k.Period, k.Said = g.period.found, g.said
	if g.fixed != nil {
		w := *g.fixed
		w.advance(t)
		k.Window = &limiter.WindowMemory{Ends: at(w.ends), Period: w.period, Most: w.most}
	}
	return k
}

// save returns the estimate's memory for a restart. The function at turns the law's seconds into times.
func (e *estimate) save(at func(float64) time.Time) *limiter.EstimateMemory {
	calls, span := e.inflow.evidence()
	k := &limiter.EstimateMemory{Calls: calls, Span: span, At: at(e.at), Every: e.every, Confirmed: e.confirmed}
	if s := e.search; s != nil {
		k.Search = s.pace
	}
	return k
}
