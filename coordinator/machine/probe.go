package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is the way back from a cooldown: whether a call must go first to see, when it has
// passed, and at which rate the others follow.

// probe notes that a probe leaves. It passes when it is answered. It may also pass when it was
// not refused within twice the time that a refusal takes. That holds if the lane has answered
// before and only refusals say that it is down. A model thinks for seconds, a refusal comes at
// once.
func (m *Machine) probe(now time.Time, l *lane) {
	m.count(nil, l, probes)
	l.passAt = time.Time{}
	if l.breaker.State(now) != limiter.Closed {
		l.breaker.Allow(now)
		if l.broke {
			return
		}
	}
	if l.answers > 0 {
		l.passAt = now.Add(l.probeWait())
		m.alarms.set(&l.alarm, l.passAt)
	}
}

// unprobe takes a probe back that says nothing. Its permit goes to the next one, and the
// missing refusal proves nothing.
func (m *Machine) unprobe(now time.Time, l *lane) {
	l.breaker.Abandon(now)
	l.passAt = time.Time{}
	m.alarms.clear(&l.alarm)
}

// passed takes a probe that was let in. A breaker may want to see more than one.
func (m *Machine) passed(now time.Time, l *lane) {
	if l.breaker.State(now) == limiter.Closed {
		m.climb(now, l, ByProbe)
		return
	}
	l.passAt = time.Time{}
	m.alarms.clear(&l.alarm)
}

// letProbeIn takes a probe that met a failure for good which may be its item's. It was let in,
// but does not say whether the server is well: an open breaker tries another item.
func (m *Machine) letProbeIn(now time.Time, l *lane) {
	l.breaker.Abandon(now)
	m.passed(now, l)
}

func (l *lane) probeWait() time.Duration {
	if l.refusal.Count() == 0 {
		return ProbeWait
	}
	return max(2*l.refusal.Mean(), MinProbeWait)
}

// climb lets calls in again. If the law has a way to climb, the lane is Ramping for as long as
// that takes.
func (m *Machine) climb(now time.Time, l *lane, reason Reason) {
	l.passAt, l.cause = time.Time{}, nil
	to, until := Flowing, l.law.Climb(now)
	if until.After(now) {
		to = Ramping
		m.alarms.set(&l.alarm, until)
	}
	m.enter(now, l, to, reason)
	m.wake(l)
}
