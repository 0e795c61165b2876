package machine

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is how a lane learns from the ends of its calls, and finds its way back:
//
//	Flowing ──refused, or the breaker opens──▶ Cooling ──until──▶ Probing ──passed──▶ Ramping ──▶ Flowing
//	                                             ▲  └──level known──────────────────────▲ │
//	                                             └─────────────refused────────────────────┘
//
// A call is judged by the epoch in which it left. Only a call of the present epoch can start a
// cooldown, raise its escalation, or end it.

// learn takes the lesson of a call.
func (m *Machine) learn(now time.Time, it *Item, o *Outcome) {
	l := it.lane
	present := it.epoch == l.epoch
	l.inFlight--
	if present {
		l.inEpoch--
	}
	l.ended, l.flying, l.hung = now, l.inFlight, false
	it.counted = it.counted || o.Again && !l.led()
	m.idle.touch(l, now)
	switch {
	case l.led():
		m.learnLed(it, o)
		return
	case it.epoch < l.began:
		m.learnLate(now, it, o)
		return
	}
	answered := o.Signal == Succeeded || o.Signal == Answered
	if !answered && len(o.Sightings) > 0 {
		m.stopUsedUp(now, l, o)
	}
	news := newsOf(it, o, present)
	n := &news // it is large, and goes through many hands
	if l.ruled {
		l.settle(n, o)
	}
	switch o.Signal {
	case Succeeded, Answered:
		m.wasAnswered(now, l, n, o.asHoped())
		l.letIn()
		m.heed(now, l)
	case Throttled, Overloaded:
		if l.isDaily(o, present) {
			m.stop(now, l, o.Cause)
		}
		m.wasRefused(now, it, n, o.Cause)
	case Failed:
		m.hasFailed(now, it, n, o)
		l.letIn()
		m.heed(now, l) // after the breaker, which may take care of it
	case Exhausted:
		l.law.Vanished(now, *n)
		m.exhausted(now, it, o)
		if o.Alike != 0 && present && l.phase == Probing {
			m.letProbeIn(now, l)
		}
	case Nothing:
		l.law.Vanished(now, *n)
		if present && l.phase == Probing {
			m.unprobe(now, l)
		}
	}
	if answered && len(o.Sightings) > 0 {
		m.stopUsedUp(now, l, o) // after the answer has spoken for or against other items
	}
}

// stopUsedUp stops a lane whose server says that a day's limit has nothing left.
func (m *Machine) stopUsedUp(now time.Time, l *lane, o *Outcome) {
	if s := l.usedUp(o); s != nil {
		m.stop(now, l, l.waitFor(now, s.Reset, &UsedUpError{Dimension: s.Dimension, Limit: s.Limit, Window: s.Window}))
	}
}

// learnLate takes the news of a call that left under the law before this one. The present law
// did not charge it, does not know in whose company it left, and has nothing to correct. So it
// does not hear of it. The lane still learns what the server has said of itself: that it
// answers, and after what time. It also learns how long a cooling lane must wait, and that the
// server will serve the lane no more.
func (m *Machine) learnLate(now time.Time, it *Item, o *Outcome) {
	l := it.lane
	switch o.Signal {
	case Succeeded, Answered:
		l.answers++
		if l.answered = l.answered || o.asHoped(); l.blame != nil {
			m.witness(now, l, &limiter.News{Sent: it.Sent, Again: it.counted}, o.asHoped())
		}
		if o.Signal == Succeeded && o.Latency > 0 {
			l.latency.Observe(o.Latency)
		}
		l.letIn()
	case Throttled, Overloaded:
		m.refusedLate(now, it, o)
	case Failed:
		l.letIn()
	case Exhausted:
		m.exhausted(now, it, o)
	}
}

func (m *Machine) refusedLate(now time.Time, it *Item, o *Outcome) {
	l := it.lane
	it.due = time.Time{}
	m.count(it.run, l, throttled)
	if l.phase == Stopped {
		return
	}
	m.count(it.run, l, stragglers)
	if o.Directed && o.RetryAfter <= l.cfg.longestWait() && l.phase == Cooling {
		m.coolUntil(l, now.Add(o.RetryAfter))
	}
}

// exhausted handles a refusal for good that says whom it concerns, unless a person has vouched
// for the lane since the call left. The meaning of a refusal that does not say so shows when
// more items have ended; see endsIt.
func (m *Machine) exhausted(now time.Time, it *Item, o *Outcome) {
	switch {
	case o.Alike != 0:
		it.lane.answers++ // the server is there
	case it.epoch >= it.lane.vouched:
		m.stop(now, it.lane, o.Cause)
	}
}

// asHoped reports whether an answer says that nothing is wrong with the lane: it is the desired
// one, or says what is wrong with the item.
func (o *Outcome) asHoped() bool {
	return o.Signal == Succeeded || o.Signal == Answered && o.Alike == 0
}

// unclearMost is the number of refusals in a row that mean the day, if none says whether it means
// a minute or a day. Two holds of a minute outlast any limit by the minute, so the third refusal
// means the day.
const unclearMost = 3

// isDaily counts a refusal that leaves open which limit it means, and reports whether it is one
// too many in a row.
func (l *lane) isDaily(o *Outcome, present bool) bool {
	if !o.Unclear || !present {
		return false
	}
	l.unclear++
	return l.unclear >= unclearMost
}

func newsOf(it *Item, o *Outcome, present bool) limiter.News {
	return limiter.News{
		Ticket: it.ticket, Sent: it.Sent, Cost: it.Cost, Present: present, Probe: it.Probe,
		Good: o.Signal == Succeeded, Again: it.counted, Timeout: o.Timeout, Unsent: o.Unsent, Overloaded: o.Signal == Overloaded,
		Latency: o.Latency, Detour: o.Detour, Directed: o.Directed, RetryAfter: o.RetryAfter, Slow: o.Slow,
		Measured: o.Measured, Actual: o.Actual, On: o.On, Sightings: o.Sightings,
	}
}

// disbelieve drops a wait that no server can mean, as if the server had named none. Latencies
// over limiter.MaxSpan count as that.
func (o *Outcome) disbelieve() {
	o.Latency, o.Detour = min(o.Latency, limiter.MaxSpan), min(o.Detour, limiter.MaxSpan)
	if o.RetryAfter < 0 || o.RetryAfter > MostDirected {
		o.Directed, o.RetryAfter = false, 0
	}
	if o.Measured {
		o.mendReport()
	}
}

// mendReport removes impossible values from a report.
func (o *Outcome) mendReport() {
	if sum := o.Actual.Requests + o.Actual.Input + o.Actual.Output + o.Cached; !(sum <= math.MaxFloat64) || min(o.Actual.Requests, o.Actual.Input, o.Actual.Output, o.Cached) < 0 {
		o.Actual, o.Cached = o.Actual.Drawn(), limiter.Cost{Input: o.Cached}.Drawn().Input
	}
}

func (m *Machine) wasAnswered(now time.Time, l *lane, n *limiter.News, asHoped bool) {
	l.answers++
	l.answered = l.answered || asHoped
	endsRow := l.blame == nil || m.witness(now, l, n, asHoped)
	l.unclear, l.broke = 0, false
	l.law.Answered(now, *n)
	if n.Good && n.Latency > 0 {
		l.latency.Observe(n.Latency)
	}
	if !n.Present {
		return
	}
	l.breaker.Success(now, endsRow)
	if l.phase == Probing {
		m.passed(now, l)
	}
}

// wasRefused handles 429, 503 and 529. A refusal of the present epoch starts a cooldown, unless
// its law finds that it concerns its item alone. Older refusals are participants of the
// cooldown, and can at most lengthen it.
//
// An example: calls 1 and 2 leave. Call 1 is refused, and the lane cools. Call 2 is refused,
// which is the same wave and no second cooldown. The lane is probed and climbs. Call 3 left
// before the cooldown and took long, and is refused: that says nothing about now.
func (m *Machine) wasRefused(now time.Time, it *Item, n *limiter.News, cause error) {
	l := it.lane
	it.due = time.Time{}
	m.count(it.run, l, throttled)
	if n.Latency > 0 {
		l.refusal.Observe(n.Latency)
	}
	if l.phase == Stopped {
		return
	}
	if !n.Present {
		m.straggled(now, it, n)
		return
	}
	if n.Directed && n.RetryAfter > l.cfg.longestWait() {
		m.stop(now, l, l.waitFor(now, n.RetryAfter, cause))
		return
	}
	n.Refusals = int(it.refused)
	reason := ByThrottle
	if n.Overloaded {
		reason = ByOverload
	}
	if l.phase == Probing {
		m.probeRefused(now, l, n)
	}
	r := l.law.Refused(now, *n)
	switch {
	case r.Alone:
		it.due = r.Until
	case m.outlasts(now, l):
		m.stop(now, l, l.outage(now, cause))
	default:
		m.cool(now, l, reason, r.Until)
	}
}

// probeRefused reports a refused probe to the breaker. If the server says busy, and the lane
// has let nothing in since it cooled, it is a failure: the server may be down. A server that
// says slow down is up: neither a success nor a failure.
func (m *Machine) probeRefused(now time.Time, l *lane, n *limiter.News) {
	if n.Overloaded {
		l.breaker.Failure(now, 0)
	} else {
		l.breaker.Abandon(now)
	}
}

func (m *Machine) straggled(now time.Time, it *Item, n *limiter.News) {
	l := it.lane
	m.count(it.run, l, stragglers)
	n.Directed = n.Directed && n.RetryAfter <= l.cfg.longestWait() && l.phase == Cooling
	until := l.law.Straggled(now, *n)
	if l.phase != Cooling {
		return
	}
	if it.epoch+1 == l.epoch {
		l.wave++
		m.count(nil, l, participants)
	}
	if n.Directed {
		m.lengthen(l, until)
	}
}

// hasFailed handles calls that broke; blame.go finds out whose failure it is. A probe that broke was
// not refused, and so has passed, unless it was the breaker's.
func (m *Machine) hasFailed(now time.Time, it *Item, n *limiter.News, o *Outcome) {
	l := it.lane
	l.law.Failed(now, *n)
	l.broke = true
	if l.phase == Stopped {
		return
	}
	opens := n.Present && l.breaks(now, it, o)
	switch {
	case m.staysSilent(now, it, o):
		m.stop(now, l, l.unheard(now, o.Cause))
	case opens && m.outlasts(now, l):
		m.stop(now, l, l.outage(now, o.Cause))
	case opens:
		l.law.Broken(now)
		l.cause = o.Cause
		m.cool(now, l, ByBreaker, time.Time{})
	case n.Present && l.phase == Probing && l.breaker.State(now) == limiter.Closed:
		m.climb(now, l, ByProbe)
	}
}

// cool starts a cooldown, and with it an epoch.
func (m *Machine) cool(now time.Time, l *lane, reason Reason, until time.Time) {
	l.nextEpoch()
	l.wave = 1
	m.count(nil, l, cooldowns)
	m.count(nil, l, participants)
	l.until = latest(l.breaker.Until(), until)
	if l.down(now) {
		m.absolve(l)
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
	m.foresee(l)
}

// advance moves a lane through the phases that time alone ends.
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

// stop ends a lane: the machine grants nothing on it until a person resets it.
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
	m.reopen(l)
	m.strand(l, cause)
}

// enter changes the phase, and reports that.
func (m *Machine) enter(now time.Time, l *lane, to Phase, reason Reason) {
	if to == Flowing || to == Probing {
		m.alarms.clear(&l.alarm)
	}
	v := l.law.View(now, l.nextCost())
	m.out.Transitions = append(m.out.Transitions, Transition{
		At: now, Lane: l.name, From: l.phase, To: to, Reason: reason, Epoch: l.epoch,
		Until: l.alarmAt(), Wave: l.wave, Rate: v.Rate, Cause: l.told(to, reason),
		Belief: l.belief(&v),
	})
	if l.phase, l.reason = to, reason; to == Cooling {
		l.ill = reason
	}
}

// told returns the cause that a transition reports: the lane's if its breaker opens or it stops,
// else nil.
func (l *lane) told(to Phase, reason Reason) error {
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
