package limiter

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// Shape of the plain law's ramp where the rate is known: from a quarter of it to
// the whole in ten seconds. That costs 3.75 s of traffic, and a provider's minute
// bucket gives it back.
const (
	RampTime  = 10 * time.Second
	RampShare = 0.25
)

// PlainLaw is the law that needs no model: told limits, a rate found by additive
// increase and multiplicative decrease, a cooldown after each wave of refusals,
// and a ramp after each cooldown.
//
// A call may leave when its quota, the ramp and the pacer all let it.
//
// What every call touches stands first and together.
type PlainLaw struct {
	count    uint64
	pacer    Pacer
	sent     Meter
	answered Meter
	rate     Rate
	errors   ErrorWindow
	cooldown Cooldown
	ramp     Ramp
	quota    Quota
	ramped   RampConfig // the user's; zero: to the rate that is known
	rated    RateConfig
	drained  time.Time   // when the quota was emptied: older draws are wiped out
	short    bool        // the latest wave was about the rate
	mean     *MeanWindow // nil: latency is not watched
	rng      *rand.Rand
}

// NewPlainLaw starts one.
func NewPlainLaw(c LawConfig, now time.Time, rng *rand.Rand) *PlainLaw {
	target := cmp.Or(c.Target, c.Rate.LatencyTarget)
	c.Rate.LatencyTarget = 0 // the window watches it: a rate that comes down leaves the queue as long as it is
	return &PlainLaw{
		ramped: c.Ramp, rated: c.Rate, rng: rng, mean: watchMean(target),
		quota: NewQuota(c.Limits, now), ramp: NewRamp(c.Ramp), rate: NewRate(c.Rate),
		errors: NewErrorWindow(c.Errors), cooldown: NewCooldown(c.Cooldown),
	}
}

// Wait is part of [Law].
func (p *PlainLaw) Wait(now time.Time, c Cost) (time.Duration, string) {
	wait, on := p.quota.Wait(now, c)
	why := on.String()
	if w := p.ramp.Wait(now); w > wait {
		wait, why = w, "ramp"
	}
	if w := p.pacer.Wait(now, p.Rate(now)); w > wait {
		wait, why = w, "rate"
	}
	return wait, why
}

// ProbeWait is part of [Law].
func (p *PlainLaw) ProbeWait(now time.Time, c Cost) time.Duration {
	wait, _ := p.quota.Wait(now, c)
	return wait
}

// Rate is part of [Law]: what was learned, less what the error window takes off it.
func (p *PlainLaw) Rate(now time.Time) float64 { return p.rate.Limit() * p.errors.Factor(now) }

// Pace is part of [Law].
func (p *PlainLaw) Pace(now time.Time) float64 {
	pace := min(p.Rate(now), p.ramp.Rate(now))
	if told := p.quota.Limits().RPM / 60; told > 0 {
		pace = min(pace, told)
	}
	return pace
}

// Tick is part of [Law]. Time alone teaches the plain law nothing.
func (p *PlainLaw) Tick(time.Time, bool) {}

// Sent is part of [Law].
func (p *PlainLaw) Sent(now time.Time, c Cost, beside int) Ticket {
	p.quota.Take(now, c)
	p.ramp.Take(now)
	p.pacer.Take(now, p.Rate(now))
	p.sent.Add(now)
	p.count++
	return Ticket{Number: p.count, Beside: uint16(min(beside, math.MaxUint16))}
}

// Answered is part of [Law].
func (p *PlainLaw) Answered(now time.Time, n News) {
	p.settle(now, n)
	p.errors.Record(now, false)
	if n.Good {
		p.answered.Add(now)
		if p.mean != nil {
			p.mean.Answered(now, n.Latency, int(n.Ticket.Beside))
		}
	}
	if !n.Present {
		return
	}
	p.cooldown.Succeeded()
	if n.Good {
		p.rate.Success(now, n.Latency)
	}
}

// settle puts right what a call was thought to cost. What a call from before the
// quota was emptied did not need cannot come back: it is gone with the rest.
func (p *PlainLaw) settle(now time.Time, n News) {
	if !n.Measured {
		return
	}
	actual := n.Actual
	if p.wipedOut(n) {
		actual.Input, actual.Output = max(actual.Input, n.Cost.Input), max(actual.Output, n.Cost.Output)
	}
	p.quota.Settle(now, n.Cost, actual)
}

func (p *PlainLaw) wipedOut(n News) bool { return !n.Sent.After(p.drained) && !p.drained.IsZero() }

// Failed is part of [Law].
func (p *PlainLaw) Failed(now time.Time, n News) {
	p.settle(now, n)
	p.neverLeft(now, n)
	p.errors.Record(now, true)
	if p.mean != nil && n.Timeout {
		p.mean.Faulted(now)
	}
	if n.Present && !n.Probe && p.errors.Factor(now) < 1 {
		p.rate.Anchor(p.observed(now)) // half of unlimited would be unlimited; a probe's is no rate
	}
}

// observed is the rate that the server was seen to serve; before it served
// anything, the rate at which it was asked.
func (p *PlainLaw) observed(now time.Time) float64 {
	return cmp.Or(p.answered.PerSecond(now), p.sent.PerSecond(now))
}

// Refused is part of [Law].
func (p *PlainLaw) Refused(now time.Time, n News) Refusal {
	p.settle(now, n)
	p.short = !n.Overloaded
	if n.Overloaded {
		p.errors.Record(now, true)
	}
	p.ramp.Stop()
	// A refused probe says that the wait was too short: the rate was not used, and
	// what was observed of late is that of probes. A ramp that a user shaped is a
	// policy of its own: it climbs to what the user said, whatever was learned.
	if !n.Probe && p.ramped == (RampConfig{}) {
		p.rate.Refused(now, p.observed(now), false)
	}
	if p.short {
		p.quota.Drain(now) // the model said that there was room, the server that there is none
		p.drained = now
	}
	return Refusal{Until: p.cooldown.Start(now, n.RetryAfter, n.Directed, p.rng)}
}

// Straggled is part of [Law].
func (p *PlainLaw) Straggled(now time.Time, n News) time.Time {
	p.settle(now, n)
	if n.Overloaded {
		p.errors.Record(now, true)
	}
	if !p.wipedOut(n) {
		p.quota.Refund(now, n.Cost)
	}
	if !n.Directed {
		return time.Time{}
	}
	p.cooldown.Extend(now, n.RetryAfter)
	return p.cooldown.Until()
}

// Vanished is part of [Law].
func (p *PlainLaw) Vanished(now time.Time, n News) { p.neverLeft(now, n) }

// neverLeft gives back the charge of a call of which nothing reached the wire.
func (p *PlainLaw) neverLeft(now time.Time, n News) {
	if n.Unsent && !p.wipedOut(n) {
		p.quota.Refund(now, n.Cost)
	}
}

// Remaining is part of [Law]. The plain law keeps no reserve.
func (p *PlainLaw) Remaining(Cost) {}

// Broken is part of [Law].
func (p *PlainLaw) Broken(time.Time) {
	p.ramp.Stop()
	p.short = false
}

// Resume is part of [Law]. A hold earns no credit, or its end would be a burst.
func (p *PlainLaw) Resume(now time.Time) bool {
	p.pacer.Reset(now)
	if !p.quota.Known() || !p.short {
		return false
	}
	wait, _ := p.quota.Wait(now, Cost{Requests: 1})
	return wait == 0
}

// Climb is part of [Law].
func (p *PlainLaw) Climb(now time.Time) time.Time {
	p.ramp.StartAs(now, p.shape(now))
	return p.ramp.Ends()
}

// SetRamp is part of [Law].
func (p *PlainLaw) SetRamp(now time.Time, c RampConfig) time.Time {
	p.ramped = c
	if !p.ramp.Active(now) {
		return time.Time{}
	}
	start, _ := p.ramp.Started()
	p.ramp = NewRamp(p.shape(now))
	p.ramp.Restore(start, now)
	return p.ramp.Ends()
}

// shape is that of a ramp which limits at now: the user's, or else to the rate that is
// known.
func (p *PlainLaw) shape(now time.Time) RampConfig {
	c := p.ramped
	if c == (RampConfig{}) {
		c.Target = p.target(now)
		c.Initial, c.Duration = RampShare*c.Target, RampTime
		return c
	}
	// The rate goes on from where the user's ramp ends, and grows with each success: a
	// ramp that ended in no limit at all would end in a burst.
	p.rate = NewRate(p.rated)
	p.rate.Anchor(cmp.Or(c.Target, DefaultRampTarget))
	return c
}

// target is the rate to climb to: learned, told, or at least once seen.
func (p *PlainLaw) target(now time.Time) float64 {
	rate := p.rate.Limit()
	if told := p.quota.Limits().RPM / 60; told > 0 {
		rate = min(rate, told)
	}
	if !math.IsInf(rate, 1) {
		return rate
	}
	return max(p.observed(now), DefaultRampTarget)
}

// Window is part of [Law]. Without a latency to keep, the plain law leaves it to the run.
func (p *PlainLaw) Window(time.Time) int {
	if p.mean == nil {
		return 0
	}
	return p.mean.Size()
}

// SetLimits is part of [Law].
func (p *PlainLaw) SetLimits(now time.Time, l Limits) { p.quota.SetLimits(now, l) }

// Level is part of [Law].
func (p *PlainLaw) Level(now time.Time, d Dimension) float64 { return p.quota.Level(now, d) }

// Errors is part of [Law].
func (p *PlainLaw) Errors(now time.Time) float64 { return p.errors.Rate(now) }

// Warm is part of [Law].
func (p *PlainLaw) Warm() uint64 {
	n := p.count + p.sent.warm() + p.answered.warm() + p.rate.answered.warm() + p.errors.calls.warm()
	return n + uint64(p.rate.since+p.cooldown.escalation+int(p.ramp.credit+p.quota.free.cost.Requests+p.pacer.credit))
}

// Escalation is part of [Law].
func (p *PlainLaw) Escalation() int { return p.cooldown.Escalation() }
