package machine

import (
	"cmp"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is the way back from a cooldown: whether a call must go first to see, when it has
// passed, and at which rate the others follow.

// probe books that a probe leaves. The probe passes when it is answered. It may also pass when
// twice the time of a refusal has gone by without one. A model thinks for seconds, but a refusal
// comes at once. This second way needs a lane that has answered before and is down by refusals
// alone.
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

// abandonProbe gives up a probe whose end says nothing. Its permit goes to the next one, and the
// missing refusal proves nothing.
func (m *Machine) abandonProbe(now time.Time, l *lane) {
	l.breaker.Abandon(now)
	l.passAt = time.Time{}
	m.alarms.clear(&l.alarm)
}

// passed handles a probe that was let in. The lane climbs, unless its breaker wants to see more
// probes.
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

// climb lets calls in again. The lane is Ramping for as long as its law takes to reach the full
// pace.
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

// reportPace reports when a lane slows down because its calls break, and when it is fast again. It
// runs when a call has ended, and before a call leaves a lane that was slowed down. So no call
// leaves at a pace that was not reported.
func (m *Machine) reportPace(now time.Time, l *lane) {
	share := l.law.Slowed(now)
	if float32(share) == l.slowed || l.phase == Stopped {
		return
	}
	l.slowed = float32(share)
	reason := ByErrors
	if share == 0 {
		reason = ByAnswers
	}
	v := l.law.View(now, l.nextCost())
	m.out.Transitions = append(m.out.Transitions, Transition{
		At: now, Lane: l.name, From: l.phase, To: l.phase, Reason: reason, Epoch: l.epoch,
		Until: l.alarmAt(), Wave: int(l.wave), Rate: v.Most, Belief: l.belief(&v),
		Slowed: share, Errors: v.Errors, Span: cmp.Or(max(0, l.cfg.Errors.Window), limiter.DefaultErrorWindow),
	})
}

// cool starts a cooldown, and with it a new epoch. until is the earliest end that the law asks for;
// an open breaker may cool for longer.
func (m *Machine) cool(now time.Time, l *lane, reason Reason, until time.Time) {
	l.nextEpoch()
	l.wave = 1
	m.count(nil, l, cooldowns)
	m.count(nil, l, participants)
	l.until = latest(l.breaker.Until(), until)
	if l.down(now) {
		m.clearFailures(l)
	}
	m.coolUntil(l, l.until)
	m.enter(now, l, Cooling, reason)
	m.beginWait(now, l)
}

// lengthen notes that a server asks for a longer wait than before.
func (m *Machine) lengthen(l *lane, until time.Time) {
	m.out.Lengthened = m.out.Lengthened || until.After(l.until)
	m.coolUntil(l, until)
}

// coolUntil lengthens a cooldown; nothing shortens one.
func (m *Machine) coolUntil(l *lane, until time.Time) {
	l.until = latest(l.until, until)
	m.alarms.set(&l.alarm, l.until)
	m.checkWaitsEarly(l)
}

// advance moves a lane to its next phase once its time in the present one is over.
func (m *Machine) advance(now time.Time, l *lane) {
	switch l.phase {
	case Cooling:
		known := l.law.Resume(now)
		if known && l.reason != ByBreaker && l.breaker.State(now) == limiter.Closed {
			m.climb(now, l, ByKnowledge)
		} else {
			m.enter(now, l, Probing, ByTime)
		}
	case Probing: // it was not refused in time
		l.breaker.Success(now, true)
		m.passed(now, l)
	case Ramping:
		m.enter(now, l, Flowing, ByTime)
	}
	m.wake(l)
}

// stop ends a lane: the machine grants nothing on it until a person resets it. Its items go to
// other lanes, or are released.
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
	m.giveBackUndecided(l)
	m.strand(l, cause)
}

// enter changes the lane's phase, and reports the transition.
func (m *Machine) enter(now time.Time, l *lane, to Phase, reason Reason) {
	if to == Flowing || to == Probing {
		m.alarms.clear(&l.alarm)
	}
	v := l.law.View(now, l.nextCost())
	m.out.Transitions = append(m.out.Transitions, Transition{
		At: now, Lane: l.name, From: l.phase, To: to, Reason: reason, Epoch: l.epoch,
		Until: l.alarmAt(), Wave: int(l.wave), Rate: v.Rate, Cause: l.causeToReport(to, reason),
		Belief: l.belief(&v), Account: l.accountToReport(to),
	})
	wasWell := l.usable()
	if l.phase, l.reason = to, reason; to == Cooling {
		l.cooldownReason = reason
	}
	if isWell := l.usable(); isWell != wasWell {
		l.noteHealthChange(now, isWell)
		m.scheduleTierSays(l)
	}
}

// causeToReport returns the cause that a transition reports: the lane's if its breaker opens or it stops,
// else nil.
func (l *lane) causeToReport(to Phase, reason Reason) error {
	if to == Stopped || reason == ByBreaker {
		return l.cause
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
