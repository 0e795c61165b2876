package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// Save is part of [limiter.Law]. For the plain law it holds the learned rate, the cooldown and
// the ramp.
func (p *Law) Save(now time.Time) limiter.Memory {
	memory := limiter.Memory{
		Version: limiter.MemoryVersion, Law: "plain", At: measure.WallAt(now, 0), Answered: p.answered.PerSecond(p.flowTime(now)),
		Plain: &limiter.PlainMemory{Rate: p.rate.limit, Goal: p.rate.goal, Escalation: p.cooldown.escalation},
	}
	if p.mean != nil {
		memory.Window = p.mean.Found()
	}
	if until := p.cooldown.until; until.After(now) {
		memory.Hold = measure.WallAt(now, until.Sub(now).Seconds())
	}
	if start, _ := p.ramp.Started(); p.ramp.Active(now) {
		s := &p.ramp.shape
		memory.Ramp = &limiter.RampMemory{At: measure.WallAt(now, start.Sub(now).Seconds()), Share: s.Initial, Target: s.Target, Time: s.Duration.Seconds()}
	}
	return memory
}

// Restore is part of [limiter.Law].
func (p *Law) Restore(now time.Time, memory limiter.Memory) error {
	if err := memory.ValidFor("plain"); err != nil {
		return err
	}
	p.answered.Preset(now, measure.Sane(memory.Answered, 0, limiter.MaxRate))
	if p.mean != nil {
		p.mean.Recall(memory.Window)
	}
	if memory.Plain != nil {
		p.recallRate(now, memory.Plain)
	}
	if wait := min(memory.Hold.Sub(now), completeCooldown(p.cooldown.config).MaxDirected); wait > 0 {
		p.cooldown.until = now.Add(wait)
	}
	if memory.Ramp != nil {
		p.recallRamp(now, memory.Ramp)
	}
	if memory.Emptied {
		p.quota.Drain(now)
	}
	return nil
}

// recallRate takes over the learned rate, its goal and the escalation of the cooldown, as far as
// they are possible.
func (p *Law) recallRate(now time.Time, memory *limiter.PlainMemory) {
	c := completeRate(p.rateConfig)
	if rate := measure.Sane(memory.Rate, 1e-6, limiter.MaxRate); rate > 0 {
		p.rate.set(c, rate)
		p.rate.Aim(now, measure.Sane(memory.Goal, 1e-6, limiter.MaxRate))
		p.climbed = true
	}
	p.cooldown.escalation = min(64, max(0, memory.Escalation))
}

// rampMost is the longest credible ramp of a memory: longer than any useful one, and short
// enough for a slip not to slow a lane for ever.
const rampMost = 7 * 24 * time.Hour

// recallRamp continues a remembered ramp where it would be by now: the time in which no process ran
// counts too. A shape that the user has set since wins. Then no learned rate limits outside of the
// ramp.
func (p *Law) recallRamp(now time.Time, memory *limiter.RampMemory) {
	shape := limiter.RampConfig{
		Initial: measure.Sane(memory.Share, limiter.MinRampRate, limiter.MaxRate), Target: measure.Sane(memory.Target, limiter.MinRampRate, limiter.MaxRate),
		Duration: time.Duration(measure.Sane(memory.Time, 1e-3, rampMost.Seconds()) * 1e9),
	}
	if shape.Initial == 0 || shape.Target == 0 || shape.Duration == 0 || memory.At.IsZero() {
		return
	}
	users := p.rampConfig != limiter.RampConfig{}
	if users {
		shape = completeRamp(p.rampConfig)
	}
	ramp := newRamp(shape)
	since := min(measure.Ages, max(0, now.Sub(memory.At).Seconds()))
	ramp.Restore(now.Add(-time.Duration(since*1e9)), now)
	if users {
		p.rate = newRate(p.rateConfig)
	}
	if !ramp.Active(now) {
		return
	}
	p.ramp = ramp
	p.rate.Rest(ramp.Ends())
}

// View is part of [limiter.Law].
func (p *Law) View(now time.Time, c limiter.Cost) limiter.View {
	asked, nothing := *p, limiter.PaceBound{Pace: math.Inf(1)}
	v := limiter.View{
		At: now, Binds: nothing, Next: nothing,
		Most: asked.pace(now), Rate: asked.rate.Limit(), Errors: asked.errors.Rate(now), Weight: 1,
	}
	if until := asked.cooldown.Until(); now.Before(until) {
		v.Hold = until
		v.Bind(limiter.BoundCooldown, 0)
	}
	for k := range v.Limits {
		d := limiter.Dimension(k + 1)
		v.Limits[k] = asked.configuredView(now, d)
		if cost := c.In(d); cost > 0 && v.Limits[k].Known() {
			v.Bind(limiter.BoundRequests+limiter.Bound(k), v.Limits[k].Refill/cost)
		}
	}
	if !math.IsInf(v.Rate, 1) {
		asked.learnedView(&v.Limits[0], v.Rate)
		v.Bind(limiter.BoundRequests, v.Rate)
	}
	if asked.ramp.Active(now) {
		v.Ramp = asked.ramp.Ends()
		v.Rate = min(v.Rate, asked.ramp.shape.Target)
		v.Bind(limiter.BoundRecovery, asked.ramp.Rate(now))
	}
	if asked.Slowed(now) > 0 {
		v.Bind(limiter.BoundErrors, v.Most)
	}
	v.Pace = v.Binds.Pace
	if p.mean != nil {
		v.Window = p.mean.Size()
		v.Bind(limiter.BoundLatency, p.mean.Pace())
	}
	return v
}

// configuredView returns the view of the user's limit on d; the zero view if there is none.
func (p *Law) configuredView(now time.Time, d limiter.Dimension) limiter.LimitView {
	perMinute := p.quota.Limits().PerMinute(d)
	if !measure.Positive(perMinute) {
		return limiter.LimitView{}
	}
	return limiter.LimitView{
		Source: limiter.Configured, Refill: perMinute / 60, Ceiling: perMinute / 60,
		Capacity: p.quota.Limits().Capacity(d), Level: p.quota.Level(now, d),
	}
}

// learnedView puts a learned rate in the place of the known limit on requests, if the rate is
// lower.
func (p *Law) learnedView(l *limiter.LimitView, rate float64) {
	if !l.Known() || rate < l.Refill {
		l.Source, l.Refill = limiter.Learned, rate
	}
}
