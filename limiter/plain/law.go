package plain

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/internal/window"
)

// The time for which the plain law climbs.
const (
	// rampFor is the number of half seconds of ramp for each second without flow. A hold of a
	// second says that the server takes a little less than it was asked for, so a ramp of 2.5 s
	// follows. A hold of four, like an outage, leads to the longest ramp.
	rampFor   = 5
	rampLeast = time.Second
)

// Law is the law that needs no model: configured limits, a rate found by additive
// increase and multiplicative decrease, a cooldown after each wave of refusals,
// and a ramp after each cooldown.
//
// A call may leave when its quota, the ramp and the pacer all let it. While too many calls
// break, the pacer halves that pace; see [window.Errors].
//
// The fields that every call touches come first and together.
type Law struct {
	count        uint64
	pacer        pacer
	sent         measure.Meter
	answered     measure.Meter
	rate         rate
	errors       window.Errors
	cooldown     cooldown
	ramp         ramp
	quota        quota
	rampConfig   limiter.RampConfig // the user's; zero: to the rate that is known
	rateConfig   limiter.RateConfig
	drainedAt    time.Time     // when the quota was emptied: older draws are wiped out
	aboutRate    bool          // the latest wave was about the rate
	climbed      bool          // once at least: before that, the rate is only that of a first burst
	heldBack     bool          // calls are held back,
	lastHeldBack bool          // and were when the latest one left
	slowPace     float64       // calls per second at most while too many break
	stoppedAt    time.Time     // the clock of the flow stands since; zero: it goes
	pausedFor    time.Duration // so far, in all
	mean         *window.Mean  // nil: latency is not watched
	rng          *rand.Rand
}

// New returns a new law.
func New(c limiter.LawConfig, now time.Time, rng *rand.Rand) *Law {
	return &Law{
		rampConfig: c.Ramp, rateConfig: c.Rate, rng: rng, mean: window.Watch(c.Target),
		quota: newQuota(c.Limits, now), ramp: newRamp(c.Ramp), rate: newRate(c.Rate),
		errors: window.NewErrors(c.Errors), cooldown: newCooldown(c.Cooldown),
	}
}

// Wait is part of [limiter.Law].
func (p *Law) Wait(now time.Time, c limiter.Cost) (wait time.Duration, by limiter.Bound) {
	wait, on := p.quota.Wait(now, c)
	if wait > 0 {
		by = limiter.Bound(on) | limiter.BoundShort
	}
	if w := p.ramp.Wait(now); w > wait {
		wait, by = w, limiter.BoundRecovery
	}
	rate, limits := p.pacedRate(now)
	if w := p.pacer.Wait(now, rate); w > wait {
		wait, by = w, limits
	}
	return wait, by
}

// pacedRate returns the rate at which calls are spaced, and the bound that gives it. The quota and
// the ramp hold calls to their own rates. But while too many calls break, it is half of the least
// of all rates.
func (p *Law) pacedRate(now time.Time) (rate float64, by limiter.Bound) {
	if p.errors.Slows() && p.Slowed(now) > 0 {
		return p.pace(now), limiter.BoundErrors
	}
	return p.rate.Limit(), limiter.BoundRequests
}

// ProbeWait is part of [limiter.Law].
func (p *Law) ProbeWait(now time.Time, c limiter.Cost) time.Duration {
	wait, _ := p.quota.Wait(now, c)
	return wait
}

// pace returns the calls per second that may leave, if tokens do not hold them back.
func (p *Law) pace(now time.Time) float64 {
	pace := min(p.rate.Limit(), p.ramp.Rate(now))
	if configured := p.quota.Limits().RPM / 60; configured > 0 {
		pace = min(pace, configured)
	}
	if share := p.Slowed(now); share > 0 {
		pace = min(share*pace, p.slowPace)
	}
	return pace
}

// Slowed is part of [limiter.Law].
func (p *Law) Slowed(now time.Time) float64 { return p.errors.Slowed(now) }

// Tick is part of [limiter.Law]. Time alone teaches the plain law nothing.
func (p *Law) Tick(_ time.Time, blocked bool) { p.heldBack = blocked }

// Sent is part of [limiter.Law]. Calls that a ramp holds back earn no credit at the pacer, or the
// end of the ramp would be a burst.
func (p *Law) Sent(now time.Time, c limiter.Cost, inFlight int) limiter.Ticket {
	p.quota.Take(now, c)
	p.lastHeldBack = p.heldBack
	rate, _ := p.pacedRate(now)
	p.pacer.Take(now, rate)
	if p.ramp.Active(now) {
		p.ramp.Take(now)
		p.pacer.Reset(now)
	}
	p.sent.Add(p.flowTime(now))
	p.count++
	return limiter.Ticket{Number: p.count, Beside: uint16(min(inFlight, math.MaxUint16))}
}

// Answered is part of [limiter.Law].
func (p *Law) Answered(now time.Time, n limiter.News) {
	if n.Overheard {
		if n.Good {
			p.answered.Add(p.flowTime(now))
		}
		return
	}
	p.correctCost(now, n)
	if !n.Again {
		p.noteEnd(now, n.Sent, false)
	}
	if n.Good {
		p.answered.Add(p.flowTime(now))
		if p.mean != nil {
			p.mean.Answered(now, n.Latency, int(n.Ticket.Beside))
		}
	}
	if !n.Present {
		return
	}
	p.cooldown.Succeeded()
	if !p.stoppedAt.IsZero() || p.errors.Slows() && p.Slowed(now) > 0 {
		p.rate.Rest(now) // a rate that is not used is not tested
	}
	if n.Good {
		p.rate.Success(now)
	}
}

// correctCost replaces the estimated cost of a call by the real one. If the call left before the
// quota was emptied, its unused part does not come back: it is gone with the rest.
func (p *Law) correctCost(now time.Time, n limiter.News) {
	if !n.Measured {
		return
	}
	actual := n.Actual
	if p.drainedSince(n) {
		actual.Input, actual.Output = max(actual.Input, n.Cost.Input), max(actual.Output, n.Cost.Output)
	}
	p.quota.Settle(now, n.Cost, actual)
}

func (p *Law) drainedSince(n limiter.News) bool {
	return !n.Sent.After(p.drainedAt) && !p.drainedAt.IsZero()
}

// Failed is part of [limiter.Law].
func (p *Law) Failed(now time.Time, n limiter.News) {
	if n.Overheard {
		return
	}
	p.correctCost(now, n)
	p.neverLeft(now, n)
	if p.mean != nil && n.Timeout {
		p.mean.Faulted(now)
	}
	if !n.Again {
		p.noteEnd(now, n.Sent, true)
	}
}

// noteEnd adds a call to the error window, and slows down if too many calls break. The new pace is
// half of the one at which calls left recently, as half of an unused rate would be no slower. A
// ramp runs at half while it lasts. After it, the pace is at most half of its end.
func (p *Law) noteEnd(now, sent time.Time, failed bool) {
	if !p.errors.Concerns(sent) || !p.errors.Watch(now, failed) {
		return
	}
	pace := min(p.rate.Limit(), p.sent.PerSecond(p.flowTime(now)))
	if p.ramp.Active(now) {
		pace = fastest(p.ramp.shape)
	}
	p.slowPace = max(completeRate(p.rateConfig).Floor, p.Slowed(now)*pace)
}

// observed returns the rate that the server was seen to serve. Before it served anything, it is
// the rate at which it was asked.
func (p *Law) observed(now time.Time) float64 {
	return cmp.Or(p.answered.PerSecond(p.flowTime(now)), p.sent.PerSecond(p.flowTime(now)))
}

// usedRate returns the pace that was refused. That is the pace that held calls back, if they came
// near it, and else the observed rate.
func (p *Law) usedRate(now time.Time, pace float64) float64 {
	x := p.observed(now)
	if p.lastHeldBack && pace < 2*x {
		x = max(x, pace)
	}
	return min(x, p.rate.Limit())
}

// Refused is part of [limiter.Law].
func (p *Law) Refused(now time.Time, n limiter.News) limiter.Refusal {
	p.correctCost(now, n)
	p.aboutRate = !n.Overloaded
	pace, free := p.pace(now), p.climbed && !p.ramp.Active(now)
	p.ramp.Stop()
	// A refused probe says that the wait was too short: the rate was not used, and the recent
	// ones are those of probes. A ramp that a user shaped is a policy of its own: it climbs to
	// the user's target, whatever was learned.
	if !n.Probe && p.rampConfig == (limiter.RampConfig{}) {
		used := p.usedRate(now, pace)
		if free {
			p.rate.Aim(now, used)
		}
		p.rate.Refused(now, used, false)
	}
	p.stopFlow(now)
	if p.aboutRate {
		p.quota.Drain(now) // the model said that there was room, the server says that there is not
		p.drainedAt = now
	}
	return limiter.Refusal{Until: p.cooldown.Start(now, n.RetryAfter, n.Directed, p.rng)}
}

// Straggled is part of [limiter.Law].
func (p *Law) Straggled(now time.Time, n limiter.News) time.Time {
	if !n.Overheard {
		p.refund(now, n)
	}
	if !n.Directed {
		return time.Time{}
	}
	p.cooldown.Extend(now, n.RetryAfter)
	return p.cooldown.Until()
}

// refund gives back the charge of a call that was refused.
func (p *Law) refund(now time.Time, n limiter.News) {
	p.correctCost(now, n)
	if !p.drainedSince(n) {
		p.quota.Refund(now, n.Cost)
	}
}

// Vanished is part of [limiter.Law].
func (p *Law) Vanished(now time.Time, n limiter.News) {
	if !n.Overheard {
		p.neverLeft(now, n)
	}
}

// neverLeft gives back the charge of a call of which nothing reached the wire.
func (p *Law) neverLeft(now time.Time, n limiter.News) {
	if n.Unsent && !p.drainedSince(n) {
		p.quota.Refund(now, n.Cost)
	}
}

// Remaining is part of [limiter.Law]. The plain law keeps no reserve.
func (p *Law) Remaining(limiter.Cost) {}

// Broken is part of [limiter.Law].
func (p *Law) Broken(now time.Time) {
	p.ramp.Stop()
	p.aboutRate = false
	p.errors.Broken()
	p.stopFlow(now)
}

// stopFlow stops the clock of the flow. While the lane is held, or only a probe is under way,
// nothing flows. That time says nothing of the rate that the server takes.
func (p *Law) stopFlow(now time.Time) {
	if p.stoppedAt.IsZero() {
		p.stoppedAt = now
	}
}

// flowTime returns now by the clock of the flow, which stands still while no call may leave.
func (p *Law) flowTime(now time.Time) time.Time {
	if !p.stoppedAt.IsZero() {
		now = p.stoppedAt
	}
	if p.pausedFor == 0 {
		return now // for nearly all lanes, and spares each call two sums
	}
	return now.Add(-p.pausedFor)
}

// resumeFlow starts the clock of the flow again, and returns for how long it stood; RampTime if
// that is unknown.
func (p *Law) resumeFlow(now time.Time) time.Duration {
	if p.stoppedAt.IsZero() {
		return limiter.RampTime
	}
	stood := max(0, now.Sub(p.stoppedAt))
	p.stoppedAt = time.Time{}
	p.pausedFor += stood
	return stood
}

// Resume is part of [limiter.Law]. A hold earns no credit, or its end would be a burst.
func (p *Law) Resume(now time.Time) bool {
	p.pacer.Reset(now)
	if !p.quota.Known() || !p.aboutRate {
		return false
	}
	wait, _ := p.quota.Wait(now, limiter.Cost{Requests: 1})
	return wait == 0
}

// Climb is part of [limiter.Law].
func (p *Law) Climb(now time.Time) time.Time {
	stood := p.resumeFlow(now)
	p.errors.Closed(now)
	p.climbed = true
	p.ramp.StartAs(now, p.rampShape(now, stood))
	p.rate.Rest(p.ramp.Ends())
	return p.ramp.Ends()
}

// SetRamp is part of [limiter.Law].
func (p *Law) SetRamp(now time.Time, c limiter.RampConfig) time.Time {
	p.rampConfig = c
	if !p.ramp.Active(now) {
		return time.Time{}
	}
	start, _ := p.ramp.Started()
	p.ramp = newRamp(p.rampShape(now, limiter.RampTime))
	p.ramp.Restore(start, now)
	p.rate.Rest(p.ramp.Ends())
	return p.ramp.Ends()
}

// rampShape returns the shape of the ramp that begins now: the user's, or else one to the known
// rate. stood is the time for which nothing flowed.
func (p *Law) rampShape(now time.Time, stood time.Duration) limiter.RampConfig {
	c := p.rampConfig
	if c == (limiter.RampConfig{}) {
		c.Target = p.rampTarget(now)
		c.Initial, c.Duration = limiter.RampShare*c.Target, min(limiter.RampTime, max(rampLeast, rampFor*stood/2))
		return c
	}
	// The user's ramp is all there is of recovery: outside it nothing that was learned limits.
	p.rate = newRate(p.rateConfig)
	p.slowPace = p.Slowed(now) * fastest(completeRamp(c))
	return c
}

// rampTarget returns the rate to climb to. It is the one that was learned or configured, or else
// the one that was seen, and at least the default.
func (p *Law) rampTarget(now time.Time) float64 {
	rate := p.rate.Limit()
	if configured := p.quota.Limits().RPM / 60; configured > 0 {
		rate = min(rate, configured)
	}
	if !math.IsInf(rate, 1) {
		return rate
	}
	return max(p.observed(now), limiter.DefaultRampTarget)
}

// Window is part of [limiter.Law]. Without a target of latency, the run alone bounds it.
func (p *Law) Window(time.Time) int {
	if p.mean == nil {
		return 0
	}
	return p.mean.Size()
}

// SetLimits is part of [limiter.Law].
func (p *Law) SetLimits(now time.Time, l limiter.Limits) { p.quota.SetLimits(now, l) }
