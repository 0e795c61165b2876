package plain

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// Save is part of [limiter.Law]. For the plain law it holds the learned rate, the cooldown and
// the ramp.
func (p *Law) Save(now time.Time) limiter.Memory {
	k := limiter.Memory{
		Version: limiter.MemoryVersion, Law: "plain", At: measure.WallAt(now, 0), Answered: p.answered.PerSecond(p.flowed(now)),
		Plain: &limiter.PlainMemory{Rate: p.rate.limit, Goal: p.rate.goal, Escalation: p.cooldown.escalation},
	}
	if p.mean != nil {
		k.Window = p.mean.Found()
	}
	if until := p.cooldown.until; until.After(now) {
		k.Hold = measure.WallAt(now, until.Sub(now).Seconds())
	}
	if start, _ := p.ramp.Started(); p.ramp.Active(now) {
		s := &p.ramp.shape
		k.Ramp = &limiter.RampMemory{At: measure.WallAt(now, start.Sub(now).Seconds()), Share: s.Initial, Target: s.Target, Time: s.Duration.Seconds()}
	}
	return k
}

// Restore is part of [limiter.Law].
func (p *Law) Restore(now time.Time, k limiter.Memory) error {
	if err := k.ValidFor("plain"); err != nil {
		return err
	}
	p.answered.Preset(now, measure.Sane(k.Answered, 0, limiter.MaxRate))
	if p.mean != nil {
		p.mean.Recall(k.Window)
	}
	if k.Plain != nil {
		p.recallRate(now, k.Plain)
	}
	if wait := min(k.Hold.Sub(now), completeCooldown(p.cooldown.config).MaxDirected); wait > 0 {
		p.cooldown.until = now.Add(wait)
	}
	if k.Ramp != nil {
		p.recallRamp(now, k.Ramp)
	}
	if k.Emptied {
		p.quota.Drain(now)
	}
	return nil
}

func (p *Law) recallRate(now time.Time, k *limiter.PlainMemory) {
	c := completeRate(p.rated)
	if rate := measure.Sane(k.Rate, 1e-6, limiter.MaxRate); rate > 0 {
		p.rate.put(c, rate)
		p.rate.Aim(now, measure.Sane(k.Goal, 1e-6, limiter.MaxRate))
		p.climbed = true
	}
	p.cooldown.escalation = min(64, max(0, k.Escalation))
}

// rampMost is the longest credible ramp of a memory: longer than any useful one, and short
// enough for a slip not to slow a lane for ever.
const rampMost = 7 * 24 * time.Hour

// recallRamp continues a ramp where it would be by now: the time in which no process ran counts
// like any other. The user's present shape wins. If the user shapes the ramp, no learned rate
// limits outside of it.
func (p *Law) recallRamp(now time.Time, k *limiter.RampMemory) {
	shape := limiter.RampConfig{
		Initial: measure.Sane(k.Share, limiter.MinRampRate, limiter.MaxRate), Target: measure.Sane(k.Target, limiter.MinRampRate, limiter.MaxRate),
		Duration: time.Duration(measure.Sane(k.Time, 1e-3, rampMost.Seconds()) * 1e9),
	}
	if shape.Initial == 0 || shape.Target == 0 || shape.Duration == 0 || k.At.IsZero() {
		return
	}
	users := p.ramped != limiter.RampConfig{}
	if users {
		shape = completeRamp(p.ramped)
	}
	ramp := newRamp(shape)
	since := min(measure.Ages, max(0, now.Sub(k.At).Seconds()))
	ramp.Restore(now.Add(-time.Duration(since*1e9)), now)
	if users {
		p.rate = newRate(p.rated)
	}
	if !ramp.Active(now) {
		return
	}
	p.ramp = ramp
	p.rate.Rest(ramp.Ends())
}
