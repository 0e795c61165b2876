package machine

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// How a lane learns from the ends of its calls, and finds its way back:
//
//	Flowing ──refused, or the breaker opens──▶ Cooling ──until──▶ Probing ──passed──▶ Ramping ──▶ Flowing
//	                                             ▲  └──level known──────────────────────▲ │
//	                                             └─────────────refused────────────────────┘
//
// A call is judged by the epoch in which it left. Only a call of the present
// one can start a cooldown, raise its escalation, or end it.

// learn takes the lesson of a call.
func (m *Machine) learn(now time.Time, it *Item, o Outcome) {
	l := it.lane
	present := it.epoch == l.epoch
	l.inFlight--
	if present {
		l.inEpoch--
	}
	m.idle.touch(l, now)
	if o.Measured {
		l.settle(now, it, o.Actual)
	}
	switch o.Signal {
	case Succeeded, Answered, rejected:
		m.wasAnswered(now, l, present, o)
	case Throttled, Overloaded:
		m.wasRefused(now, it, present, o)
	case Failed:
		m.hasFailed(now, l, present)
	case Exhausted:
		if it.epoch >= l.vouched {
			m.stop(now, l, o.Cause)
		}
	case Nothing:
		if present && l.phase == Probing {
			m.unprobe(now, l)
		}
	}
}

// settle puts right what a call was thought to cost. What a call from before the
// quota was emptied did not need cannot come back: it is gone with the rest.
func (l *lane) settle(now time.Time, it *Item, actual limiter.Cost) {
	if it.epoch < l.drained {
		actual.Input, actual.Output = max(actual.Input, it.Cost.Input), max(actual.Output, it.Cost.Output)
	}
	l.quota.Settle(now, it.Cost, actual)
}

// concerning finds out whom a refusal for good concerns, where the server does
// not say.
func (l *lane) concerning(o Outcome) Outcome {
	if o.Signal == Exhausted && o.OnlyIfFirst && l.answers > 0 {
		o.Signal = rejected
	}
	return o
}

func (m *Machine) wasAnswered(now time.Time, l *lane, present bool, o Outcome) {
	l.answers++
	l.errors.Record(now, false)
	if o.Signal == Succeeded {
		observe(&l.latency, o.Latency)
		l.answered.Add(now)
	}
	if !present {
		return
	}
	l.cooldown.Succeeded()
	l.breaker.Success(now)
	if o.Signal == Succeeded {
		l.rate.Success(now, o.Latency)
	}
	if l.phase == Probing && l.breaker.State(now) == limiter.Closed {
		m.climb(now, l, ByProbe)
	}
}

// wasRefused deals with 429, 503 and 529. One of the present epoch starts a
// cooldown; older ones are participants of it, and can at most lengthen it.
//
// The order of events that this is about: calls 1 and 2 leave; 1 is refused and
// the lane cools; 2 is refused, which is the same wave and no second cooldown;
// the lane is probed and climbs; 3, which left before the cooldown and took
// long, is refused: that says nothing about now.
func (m *Machine) wasRefused(now time.Time, it *Item, present bool, o Outcome) {
	l := it.lane
	m.count(it.run, l, throttled)
	observe(&l.refusal, o.Latency)
	if o.Signal == Overloaded {
		l.errors.Record(now, true)
	}
	if l.phase == Stopped {
		return
	}
	if !present {
		m.straggled(now, it, o)
		return
	}
	reason := ByThrottle
	if o.Signal == Overloaded {
		reason = ByOverload
		l.breaker.Failure(now)
	} else if l.phase == Probing {
		l.breaker.Abandon(now) // it is up, and busy: neither a success nor a failure
	}
	m.cool(now, l, reason, o)
}

func (m *Machine) straggled(now time.Time, it *Item, o Outcome) {
	l := it.lane
	m.count(it.run, l, stragglers)
	if it.epoch >= l.drained {
		l.quota.Refund(now, it.Cost)
	}
	if l.phase != Cooling {
		return
	}
	if it.epoch+1 == l.epoch {
		l.wave++
		m.count(nil, l, participants)
	}
	if o.Directed && o.RetryAfter <= MaxDirected {
		l.cooldown.Extend(now, o.RetryAfter)
		m.coolUntil(l, l.cooldown.Until())
	}
}

// hasFailed deals with calls that broke. A probe that broke was not refused,
// and so has passed, unless it was the breaker's.
func (m *Machine) hasFailed(now time.Time, l *lane, present bool) {
	l.errors.Record(now, true)
	if l.errors.Factor(now) < 1 {
		l.rate.Anchor(l.observed(now)) // half of unlimited would be unlimited
	}
	if !present || l.phase == Stopped {
		return
	}
	switch {
	case l.breaker.Failure(now):
		m.cool(now, l, ByBreaker, Outcome{})
	case l.phase == Probing && l.breaker.State(now) == limiter.Closed:
		m.climb(now, l, ByProbe)
	}
}

// observed is the rate that the server was seen to serve; before it served
// anything, the rate at which it was asked.
func (l *lane) observed(now time.Time) float64 {
	if served := l.answered.PerSecond(now); served > 0 {
		return served
	}
	return l.sent.PerSecond(now)
}

// cool starts a cooldown, and with it an epoch.
func (m *Machine) cool(now time.Time, l *lane, reason Reason, o Outcome) {
	if o.Directed && o.RetryAfter > MaxDirected {
		m.stop(now, l, fmt.Errorf("%w: %v, at most %v is waited", ErrWaitTooLong, o.RetryAfter, MaxDirected))
		return
	}
	l.nextEpoch()
	l.wave = 1
	m.count(nil, l, cooldowns)
	m.count(nil, l, participants)
	l.ramp.Stop()
	l.until = time.Time{}
	if reason != ByBreaker {
		l.slowDown(now, o)
		l.cooldown.Start(now, o.RetryAfter, o.Directed, m.rng)
	}
	if reason == ByThrottle {
		l.quota.Drain(now) // the model said that there was room, the server that there is none
		l.drained = l.epoch
	}
	m.coolUntil(l, latest(l.cooldown.Until(), l.breaker.Until()))
	m.enter(now, l, Cooling, reason)
}

// slowDown lets the learned rate learn from a refusal. A ramp that a user shaped is
// a policy of its own: it climbs to what the user said, whatever was learned.
func (l *lane) slowDown(now time.Time, o Outcome) {
	if l.cfg.Ramp == (limiter.RampConfig{}) {
		l.rate.Refused(now, l.observed(now), o.Directed)
	}
}

// coolUntil lengthens a cooldown; nothing shortens one.
func (m *Machine) coolUntil(l *lane, until time.Time) {
	l.until = latest(l.until, until)
	m.alarms.set(&l.alarm, l.until)
}

// advance moves a lane through the phases that time alone ends.
func (m *Machine) advance(now time.Time, l *lane) {
	switch l.phase {
	case Cooling:
		l.pacer.Reset(now) // a hold earns no credit, or its end would be a burst
		if l.levelKnown(now) {
			m.climb(now, l, ByKnowledge)
		} else {
			m.enter(now, l, Probing, ByTime)
		}
	case Probing:
		m.climb(now, l, ByProbe) // it was not refused in time
	case Ramping:
		m.enter(now, l, Flowing, ByTime)
	}
	l.wake()
}

// stop ends a lane: nothing will be granted on it until a person resets it.
func (m *Machine) stop(now time.Time, l *lane, cause error) {
	if l.phase == Stopped {
		return
	}
	if cause == nil {
		cause = ErrLaneStopped
	}
	l.cause = cause
	l.nextEpoch()
	m.alarms.clear(&l.alarm)
	m.enter(now, l, Stopped, ByRefusal)
	m.strand(l, cause)
}

// enter changes the phase and tells so.
func (m *Machine) enter(now time.Time, l *lane, to Phase, reason Reason) {
	if to == Flowing || to == Probing {
		m.alarms.clear(&l.alarm)
	}
	m.out.Transitions = append(m.out.Transitions, Transition{
		At: now, Lane: l.name, From: l.phase, To: to, Reason: reason, Epoch: l.epoch,
		Until: l.alarmAt(), Wave: l.wave, Rate: l.pace(now), Cause: l.cause,
	})
	l.phase, l.reason = to, reason
}

// observe notes a latency that was measured.
func observe(l *limiter.Latency, d time.Duration) {
	if d > 0 {
		l.Observe(d)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
