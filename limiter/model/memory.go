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
func (m *Law) Restore(now time.Time, memory limiter.Memory) error {
	if err := memory.ValidFor("model"); err != nil {
		return err
	}
	m.quoted, m.window = quote{}, 0
	r := &recall{now: now, t: m.seconds(now), at: memory.At, emptied: memory.Emptied}
	if memory.Emptied {
		m.emptyLevels()
	}
	m.recallCalls(r, &memory)
	m.recallLies(&memory)
	for i := range memory.Limits {
		m.recallLimit(r, &memory.Limits[i])
	}
	m.recallUser(r, memory.Limits)
	if memory.Estimate != nil {
		m.recallEstimate(r, memory.Estimate)
	}
	m.recallTables(r, &memory)
	m.recallWaits(r, &memory)
	return nil
}

// recallCalls takes over what is remembered of ordinary calls: their rate, latencies and estimates.
func (m *Law) recallCalls(r *recall, memory *limiter.Memory) {
	m.answered.Preset(r.now, measure.Sane(memory.Answered, 0, limiter.MaxRate))
	m.latency = measure.OrElse(measure.Sane(memory.Latency, 1e-6, secondsMost), m.latency)
	m.inherited = float32(measure.Sane(memory.Answered, 0, limiter.MaxRate))
	m.inheritedFor = float32(max(inheritedLeast, inheritedLatencies*m.latency))
	m.refusalDelay = measure.OrElse(measure.Sane(memory.Refusal, 1e-6, secondsMost), m.refusalDelay)
	m.factor = measure.OrElse(measure.Sane(memory.Factor, 1/factorMost, factorMost), m.factor)
	m.longer = measure.OrElse(measure.Sane(memory.Longer, 0, longerMost), m.longer)
	if pace := measure.Sane(memory.Pace, floorRate, limiter.MaxRate); pace > 0 {
		m.lastPace, m.gap = pace, 1/pace
	}
	if reserve := measure.Sane(memory.Reserve, leastReserve, reserveMost); reserve > 0 {
		m.setReserve(r.seconds(memory.ReserveAt), reserve)
	}
	if !memory.Refused.IsZero() {
		m.refusals, m.lastRefused = 1, r.seconds(memory.Refused)
	}
	if m.isLocal {
		m.local.recall(memory.Local)
	}
	if m.mean != nil {
		m.mean.Recall(memory.Window)
	}
}

// recallLies has the law ignore headers that were found wrong.
func (m *Law) recallLies(k *limiter.Memory) {
	if lied := measure.Sane(k.Lied, 1e-9, refillMost); lied > 0 {
		m.headersLie, m.liedRate = true, lied
	}
}

// recallLimit takes over one limit. A limit that the user has told since wins. A limit that the
// user told only then becomes a guess for requests, and is ignored for tokens.
func (m *Law) recallLimit(r *recall, memory *limiter.LimitMemory) {
	d := dimensionNamed(memory.On)
	source := sourceNamed(memory.Source)
	if d < 0 || !credible(memory, d) || source == limiter.Seen && d == dimRequests && m.headersLie {
		return
	}
	g := &m.gauges[d]
	ceiling := g.ceiling
	switch {
	case ceiling > 0 && source != limiter.Seen && !sameNumber(ceiling, memory.Ceiling):
		return
	case ceiling == 0 && source == limiter.Configured && d != dimRequests, source == limiter.Unknown:
		return
	case ceiling == 0 && source == limiter.Configured:
		source = limiter.Learned
	}
	if source != limiter.Configured { // the user's burst may be another now
		*g = gauge{source: source, refill: memory.Refill, capacity: memory.Capacity, ceiling: ceiling, burst: g.burst}
	}
	if source == limiter.Learned && d == dimRequests {
		m.setRate(g, memory.Refill)
	}
	g.refill = g.capped(g.refill)
	m.recallShown(r, g, memory)
	m.recallLevel(r, d, memory)
	m.markUsed(d)
	if d == dimRequests {
		m.estimate.search = nil
	}
}

// recallUser takes over what the buckets of the user's limits lack. Without such a memory they are
// taken to have been empty.
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

// recallShown takes over what headers have shown of a limit. Only a limit that headers showed has
// that.
func (m *Law) recallShown(r *recall, g *gauge, memory *limiter.LimitMemory) {
	if g.source != limiter.Seen {
		return
	}
	g.shown = &shown{said: memory.Said}
	g.period.found = nearest(measure.Sane(memory.Period, 0, 1e6))
	w := memory.Window
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

// recallLevel sets the level to the remembered one and the inflow since, at most the capacity. An
// absurd debt holds no call for longer than debtWaits.
func (m *Law) recallLevel(r *recall, d int, memory *limiter.LimitMemory) {
	g := &m.gauges[d]
	debt := measure.Sane(memory.Debt, 0, 2*unitsMost)
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
		g.others = min(othersMost*g.refill, measure.Sane(memory.Others, 0, g.refill))
	}
}

// emptyLevels removes the savings of the limits that the user has told this law. They would be
// there from the start if nobody drew before.
func (m *Law) emptyLevels() {
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

// recallEstimate takes over what is remembered of the rate. New evidence begins now, as this law
// did not see earlier calls. If the bucket holds a level, it begins earlier by the time that fills
// it: that level is let in besides.
func (m *Law) recallEstimate(r *recall, memory *limiter.EstimateMemory) {
	e, g := &m.estimate, &m.gauges[dimRequests]
	e.every = min(tryMost, max(tryEvery, measure.Sane(memory.Every, 0, tryMost)))
	e.anchor, e.at = r.t, max(r.seconds(memory.At), r.t-e.every/2) // nobody was quiet while nobody called
	if g.known() {
		e.anchor -= max(0, min(g.level/g.refill, historySpan))
		e.confirmed = memory.Confirmed
		calls, span := measure.Sane(memory.Calls, 0, limiter.MaxRate*evidenceMost), measure.Sane(memory.Span, 1e-3, evidenceMost)
		if calls > 0 && span > 0 && calls/span >= floorRate && calls/span <= limiter.MaxRate {
			e.inflow.recall(calls, span)
		}
		return
	}
	// A search that nothing stops, as another limit binds, goes on rising beyond any rate.
	if pace := measure.Sane(min(memory.Search, limiter.MaxRate), searchFloor, limiter.MaxRate); pace > 0 && e.search != nil {
		e.search = &search{pace: pace} // what was let in before its first alarm is not known any more
	}
}

// recallTables takes over the evidence for chance and for a cap.
func (m *Law) recallTables(r *recall, memory *limiter.Memory) {
	m.chance.paces = tableOf(memory.Chance)
	if c := memory.Cap; c != nil {
		m.crowd.byInFlight, m.crowd.byPace = tableOf(c.Beside), tableOf(c.Paces)
		if most := measure.Sane(c.Most, 1, cappedMost); most > 0 {
			m.crowd.cap = &callCap{most: most, mostSeen: most, letInAtEdge: measure.Sane(c.Clear, 0, 1e6)}
		}
	}
	if r.age() > chanceFresh {
		m.chance.paces.fade(paceBins, trialFresh)
	}
	if m.refusals > 0 {
		m.chanceShare = m.chance.share(paceBin(m.lastPace))
	}
}

// recallWaits takes over what keeps calls from leaving, or slows them at first.
func (m *Law) recallWaits(r *recall, memory *limiter.Memory) {
	if wait := r.ahead(memory.Hold, limiter.DefaultMaxDirected); wait > 0 {
		m.hold = r.t + wait
	}
	if p := memory.Ramp; p != nil && measure.Sane(p.Double, 0.1, slowDoubling) > 0 {
		m.slowStart(r.seconds(p.At), p.Double)
	}
	if d := memory.Drought; d != nil && r.age() <= droughtKept && d.Refusals > 0 {
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

// tableOf returns the table with these counts. It leaves out lines that cannot be true.
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

// Save is part of [limiter.Law]. It leaves out a trial and a try. What the alarm taught stands: it
// is the more careful of the two beliefs between which a trial was to decide.
func (m *Law) Save(now time.Time) limiter.Memory {
	law := *m
	t := law.seconds(now)
	memory := limiter.Memory{
		Version: limiter.MemoryVersion, Law: "model", At: measure.WallAt(now, 0),
		Answered: law.answered.PerSecond(now), Latency: law.latency, Refusal: law.refusalDelay,
		Pace: law.lastPace, Factor: law.factor, Longer: law.longer, Lied: law.liedRate,
	}
	at := func(moment float64) time.Time { return measure.WallAt(now, moment-t) }
	for d := range law.used {
		if g := &law.gauges[d]; g.known() {
			memory.Limits = append(memory.Limits, law.saveLimit(d, t, at))
		}
	}
	if r := law.reserveNow(t); r > leastReserve {
		memory.Reserve, memory.ReserveAt = r, at(t)
	}
	if t < law.hold {
		memory.Hold = at(law.hold)
	}
	if law.refusals > 0 {
		memory.Refused = at(law.lastRefused)
	}
	if law.isLocal {
		memory.Local = law.local.size
	}
	if law.mean != nil {
		memory.Window = law.mean.Found()
	}
	if law.opened(t) < 1 {
		memory.Ramp = &limiter.RampMemory{At: at(law.openAt), Share: openShare, Double: law.openTime}
	}
	law.saveBeliefs(&memory, at)
	return memory
}

// saveBeliefs adds to a memory what the law has learned from the fates of calls. It leaves out a
// cap that is only guessed.
func (m *Law) saveBeliefs(memory *limiter.Memory, at func(float64) time.Time) {
	memory.Estimate = m.estimate.save(at)
	memory.Chance = m.chance.paces.counts()
	c := limiter.CapMemory{Beside: m.crowd.byInFlight.counts(), Paces: m.crowd.byPace.counts()}
	if b := m.crowd.cap; b != nil && b.guess == nil {
		c.Most, c.Clear = b.most, b.letInAtEdge
	}
	if len(c.Beside) > 0 {
		memory.Cap = &c
	}
	if d := m.drought; d != nil {
		memory.Drought = &limiter.DroughtMemory{Began: at(d.began), Refusals: d.refusals, Busy: d.busy}
	}
}

// saveLimit returns the memory of one limit at t. It keeps the debt and not the level, so that
// the limit may change meanwhile. Only a limit that headers have shown has a period or a window.
func (m *Law) saveLimit(d int, t float64, at func(float64) time.Time) limiter.LimitMemory {
	g := &m.gauges[d]
	memory := limiter.LimitMemory{
		On: dimensionOf[d].String(), Source: g.source.String(), Refill: g.refill, Capacity: g.capacity,
		Debt: g.capacity - g.levelAt(t), Others: g.others, Ceiling: g.ceiling,
	}
	if g.ceiling > 0 {
		debt := g.usersCapacity() - m.userLevel(d, t)
		memory.UserDebt = &debt
	}
	if g.shown == nil {
		return memory
	}
	memory.Period, memory.Said = g.period.found, g.said
	if g.fixed != nil {
		w := *g.fixed
		w.advance(t)
		memory.Window = &limiter.WindowMemory{Ends: at(w.ends), Period: w.period, Most: w.most}
	}
	return memory
}

// save returns the estimate's memory for a restart. The function at turns the law's seconds into times.
func (e *estimate) save(at func(float64) time.Time) *limiter.EstimateMemory {
	calls, span := e.inflow.evidence()
	memory := &limiter.EstimateMemory{Calls: calls, Span: span, At: at(e.at), Every: e.every, Confirmed: e.confirmed}
	if s := e.search; s != nil {
		memory.Search = s.pace
	}
	return memory
}
