package limiter

import (
	"math"
	"time"
)

// Save is part of [Law]. Of the plain law these are the rate that it learned, the
// cooldown and the ramp.
func (p *PlainLaw) Save(now time.Time) Memory {
	k := Memory{
		Version: MemoryVersion, Law: "plain", At: wallAt(now, 0), Answered: p.answered.PerSecond(p.flowed(now)),
		Plain: &PlainMemory{Rate: p.rate.limit, Goal: p.rate.goal, Escalation: p.cooldown.escalation},
	}
	if p.mean != nil {
		k.Window = p.mean.size
	}
	if until := p.cooldown.until; until.After(now) {
		k.Hold = wallAt(now, until.Sub(now).Seconds())
	}
	if start, _ := p.ramp.Started(); p.ramp.Active(now) {
		s := &p.ramp.shape
		k.Ramp = &RampMemory{At: wallAt(now, start.Sub(now).Seconds()), Share: s.Initial, Target: s.Target, Time: s.Duration.Seconds()}
	}
	return k
}

// Restore is part of [Law].
func (p *PlainLaw) Restore(now time.Time, k Memory) error {
	if err := k.check("plain"); err != nil {
		return err
	}
	r := &recall{now: now, at: k.At}
	p.answered.preset(now, sane(k.Answered, 0, MaxRate))
	if p.mean != nil {
		p.mean.recall(k.Window)
	}
	if k.Plain != nil {
		p.recallRate(now, k.Plain)
	}
	if wait := r.ahead(k.Hold, p.cooldown.config.withDefaults().MaxDirected); wait > 0 {
		p.cooldown.until = now.Add(time.Duration(wait * 1e9))
	}
	if k.Ramp != nil {
		p.recallRamp(r, k.Ramp)
	}
	if k.Emptied {
		p.quota.Drain(now)
	}
	return nil
}

func (p *PlainLaw) recallRate(now time.Time, k *PlainMemory) {
	c := p.rated.withDefaults()
	if rate := sane(k.Rate, 1e-6, MaxRate); rate > 0 {
		p.rate.put(c, rate)
		p.rate.Aim(now, sane(k.Goal, 1e-6, MaxRate))
		p.climbed = true
	}
	p.cooldown.escalation = min(64, max(0, k.Escalation))
}

// rampMost is the longest ramp that is believed of a memory: longer than any that is
// meant, and short enough for a slip not to slow a lane for ever.
const rampMost = 7 * 24 * time.Hour

// recallRamp goes on with a ramp where it would be by now: the time in which no process
// ran counts like any other. The shape that the user tells now wins. Where he shapes it,
// nothing that was learned limits outside of it.
func (p *PlainLaw) recallRamp(r *recall, k *RampMemory) {
	shape := RampConfig{
		Initial: sane(k.Share, MinRampRate, MaxRate), Target: sane(k.Target, MinRampRate, MaxRate),
		Duration: time.Duration(sane(k.Time, 1e-3, rampMost.Seconds()) * 1e9),
	}
	if shape.Initial == 0 || shape.Target == 0 || shape.Duration == 0 || k.At.IsZero() {
		return
	}
	users := p.ramped != RampConfig{}
	if users {
		shape = p.ramped.withDefaults()
	}
	ramp := NewRamp(shape)
	since := min(ages, max(0, r.now.Sub(k.At).Seconds()))
	ramp.Restore(r.now.Add(-time.Duration(since*1e9)), r.now)
	if users {
		p.rate = NewRate(p.rated)
	}
	if !ramp.Active(r.now) {
		return
	}
	p.ramp = ramp
	p.rate.Rest(ramp.Ends())
}

// preset is as if there had been so many events per second for the whole window.
func (m *Meter) preset(now time.Time, perSecond float64) {
	n := uint32(math.Round(perSecond))
	if n == 0 {
		return
	}
	*m = Meter{begun: true, origin: now.Add(-MeterWindow), head: meterBuckets - 1, filling: n, total: meterBuckets * n}
	for i := range m.ring[:meterBuckets-1] {
		m.ring[i] = n
	}
}
