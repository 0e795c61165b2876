package limiter

import (
	"math"
	"time"
)

// Save is part of [Law]. Of the plain law these are the rate that it learned, the
// cooldown and the ramp.
func (p *PlainLaw) Save(now time.Time) Memory {
	k := Memory{
		Version: MemoryVersion, Law: "plain", At: wallAt(now, 0), Answered: p.answered.PerSecond(now),
		Plain: &PlainMemory{Rate: p.rate.limit, Anchor: p.rate.anchor, Escalation: p.cooldown.escalation},
	}
	if p.mean != nil {
		k.Window = p.mean.size
	}
	if until := p.cooldown.until; until.After(now) {
		k.Hold = wallAt(now, until.Sub(now).Seconds())
	}
	if p.ramp.Active(now) {
		s := &p.ramp.shape
		k.Ramp = &RampMemory{At: wallAt(now, p.ramp.start.Sub(now).Seconds()), Share: s.Initial, Target: s.Target, Time: s.Duration.Seconds()}
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
		p.recallRate(k.Plain)
	}
	if wait := r.ahead(k.Hold, p.cooldown.config.withDefaults().MaxDirected); wait > 0 {
		p.cooldown.until = now.Add(time.Duration(wait * 1e9))
	}
	if k.Ramp != nil {
		p.recallRamp(r, k.Ramp)
	}
	return nil
}

func (p *PlainLaw) recallRate(k *PlainMemory) {
	c := p.rated.withDefaults()
	if rate := sane(k.Rate, 1e-6, MaxRate); rate > 0 {
		p.rate.settle(c, rate)
		p.rate.anchor = min(p.rate.limit, orElse(sane(k.Anchor, 1e-6, MaxRate), rate))
		p.rate.cut = true
	}
	p.cooldown.escalation = min(64, max(0, k.Escalation))
}

// recallRamp goes on with a ramp where it would be by now.
func (p *PlainLaw) recallRamp(r *recall, k *RampMemory) {
	c := RampConfig{
		Initial: sane(k.Share, MinRampRate, MaxRate), Target: sane(k.Target, MinRampRate, MaxRate),
		Duration: time.Duration(sane(k.Time, 1e-3, secondsMost) * 1e9),
	}
	if c.Initial == 0 || c.Target == 0 || c.Duration == 0 || k.At.IsZero() {
		return
	}
	since := min(ages, math.Max(0, r.now.Sub(k.At).Seconds()))
	if since >= c.Duration.Seconds() {
		return
	}
	p.ramp.StartAs(r.now.Add(-time.Duration(since*1e9)), c)
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
