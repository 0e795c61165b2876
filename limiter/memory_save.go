package limiter

import "time"

// Save is part of [Law]. A trial and a try are left out: what the alarm taught stands,
// which is the more careful of the two beliefs between which a trial was to decide.
func (m *ModelLaw) Save(now time.Time) Memory {
	law := *m
	t := law.seconds(now)
	k := Memory{
		Version: MemoryVersion, Law: "model", At: wallAt(now, 0),
		Answered: law.answered.PerSecond(now), Latency: law.latency, Refusal: law.delay,
		Pace: law.lastPace, Factor: law.factor, Longer: law.longer, Lied: law.lied,
	}
	at := func(moment float64) time.Time { return wallAt(now, moment-t) }
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
		k.Window = law.mean.size
	}
	if law.opened(t) < 1 {
		k.Ramp = &RampMemory{At: at(law.openAt), Share: openShare, Double: law.openTime}
	}
	law.saveBeliefs(&k, at)
	return k
}

func (m *ModelLaw) saveBeliefs(k *Memory, at func(float64) time.Time) {
	k.Estimate = m.estimate.save(at)
	k.Chance = m.chance.paces.counts()
	c := CapMemory{Beside: m.crowd.beside.counts(), Paces: m.crowd.paces.counts()}
	if b := m.crowd.cap; b != nil && b.guess == nil {
		c.Most, c.Clear = b.most, b.clear
	}
	if len(c.Beside) > 0 {
		k.Cap = &c
	}
	if d := m.drought; d != nil {
		k.Drought = &DroughtMemory{Began: at(d.began), Refusals: d.refusals, Busy: d.busy}
	}
}

func (m *ModelLaw) saveLimit(d int, t float64, at func(float64) time.Time) LimitMemory {
	g := &m.gauges[d]
	k := LimitMemory{
		On: dimensionOf[d].String(), Source: g.source.String(), Refill: g.refill, Capacity: g.capacity,
		Debt: g.capacity - g.levelAt(t), Others: g.others, Ceiling: g.ceiling,
	}
	if g.shown == nil {
		return k
	}
	k.Period, k.Said = g.period.found, g.said
	if g.fixed != nil {
		w := *g.fixed
		w.advance(t)
		k.Window = &WindowMemory{Ends: at(w.ends), Period: w.period, Most: w.most}
	}
	return k
}

func (e *estimate) save(at func(float64) time.Time) *EstimateMemory {
	calls, span := e.inflow.evidence()
	k := &EstimateMemory{Calls: calls, Span: span, At: at(e.at), Every: e.every, Confirmed: e.confirmed}
	if s := e.search; s != nil {
		k.Search = s.pace
	}
	return k
}
