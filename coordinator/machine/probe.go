package machine

import (
	"cmp"
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The way back from a cooldown: whether a call must go first to see, when it has
// passed, and at what rate the others follow.

// levelKnown reports whether a probe would teach nothing: the limit was told,
// its model has room, and the server is not taken to be down.
func (l *lane) levelKnown(now time.Time) bool {
	if !l.quota.Known() || l.reason != ByThrottle || l.breaker.State(now) != limiter.Closed {
		return false
	}
	wait, _ := l.quota.Wait(now, limiter.Cost{Requests: 1})
	return wait == 0
}

// probe notes that a probe leaves. It passes when it is answered or, where the
// lane has answered before and is not taken to be down, when it was not refused
// within twice the time that a refusal takes: a model thinks for seconds, a
// refusal comes at once.
func (m *Machine) probe(now time.Time, l *lane) {
	m.count(nil, l, probes)
	l.passAt = time.Time{}
	if l.breaker.State(now) != limiter.Closed {
		l.breaker.Allow(now)
		return
	}
	if l.answers > 0 {
		l.passAt = now.Add(l.probeWait())
		m.alarms.set(&l.alarm, l.passAt)
	}
}

// unprobe takes a probe back that says nothing: its permit goes to the next one,
// and its not being refused proves nothing.
func (m *Machine) unprobe(now time.Time, l *lane) {
	l.breaker.Abandon(now)
	l.passAt = time.Time{}
	m.alarms.clear(&l.alarm)
}

func (l *lane) probeWait() time.Duration {
	if l.refusal.Count() == 0 {
		return ProbeWait
	}
	return max(2*l.refusal.Mean(), MinProbeWait)
}

// climb starts the ramp.
func (m *Machine) climb(now time.Time, l *lane, reason Reason) {
	l.passAt = time.Time{}
	l.rateAfterRamp()
	l.ramp.StartAs(now, l.rampConfig(now))
	m.alarms.set(&l.alarm, l.ramp.Ends())
	m.enter(now, l, Ramping, reason)
	l.wake()
}

// rateAfterRamp lets the rate go on from where a user's ramp ends, and grow with
// each success. A ramp that ended in no limit at all would end in a burst.
func (l *lane) rateAfterRamp() {
	if l.cfg.Ramp != (limiter.RampConfig{}) {
		l.rate = limiter.NewRate(l.cfg.Rate)
		l.rate.Anchor(cmp.Or(l.cfg.Ramp.Target, limiter.DefaultRampTarget))
	}
}

// rampConfig is the user's ramp, or one to the rate that is known.
func (l *lane) rampConfig(now time.Time) limiter.RampConfig {
	c := l.cfg.Ramp
	if c != (limiter.RampConfig{}) {
		return c
	}
	c.Target = l.target(now)
	c.Initial, c.Duration = RampShare*c.Target, RampDuration
	return c
}

// target is the rate to climb to: learned, told, or at least once seen.
func (l *lane) target(now time.Time) float64 {
	rate := l.rate.Limit()
	if told := l.quota.Limits().RPM / 60; told > 0 {
		rate = min(rate, told)
	}
	if !math.IsInf(rate, 1) {
		return rate
	}
	return max(l.observed(now), limiter.DefaultRampTarget)
}
