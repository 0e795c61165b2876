package machine

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is how a lane learns from the ends of its calls; recovery.go is its way back:
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

// The last part is about calls that another machine let go, on a lane that is now this one's. A
// machine that takes over from one that has died hears how its last calls end. The present law
// did not charge for them, and was not asked. Their ends tell the truth about the server all
// the same.

// departure records when an overheard call left, and its cost.
type departure struct {
	sent time.Time
	cost limiter.Cost
}

// Overheard reports the end of a call that this machine never granted: an earlier machine did, whose
// lane this one has taken over. sent is when the call left, by this machine's clock. cost is the
// estimate of what it draws, zero if that is not known.
//
// Its answer counts, with its latency, and its headers count for the moment at which it left. Its
// refusal is a straggler: it begins no cooldown, and can only lengthen one by the wait that it
// names. A refusal for good stops the lane if [Outcome].Alike is 0, and so does a used-up daily
// limit. Neither does if a person has reset the lane since the call left. Its charge is not given
// back, and the number of calls in flight stays as it is. A lane that was not in use is in use from
// then on. A lane that is led ignores the call.
func Overheard(lane string, sent time.Time, cost limiter.Cost, o Outcome) Event {
	return Event{kind: evOverheard, name: lane, outcome: o, config: departure{sent: sent, cost: cost}}
}

// overheard takes the lesson of a call of another machine's. On a led lane it does nothing: the
// leader hears of such calls outside.
func (m *Machine) overheard(now time.Time, name string, d departure, o *Outcome) {
	if m.lanes[name] == nil && m.roomFor([]string{name}) != nil {
		return
	}
	l := m.laneNamed(now, name)
	if l.led() {
		return
	}
	m.idle.touch(l, now)
	o.disbelieve()
	n := newsOf(&Item{Sent: d.sent, Cost: d.cost.Drawn()}, o, false)
	n.Overheard = true
	if l.ruled {
		l.settle(&n, o)
	}
	if s := l.usedUp(o); s != nil && d.sent.After(l.vouchedAt) {
		m.stop(now, l, l.waitFor(now, s.Reset, &UsedUpError{Dimension: s.Dimension, Limit: s.Limit, Window: s.Window}))
	}
	switch o.Signal {
	case Succeeded, Answered:
		m.wasAnswered(now, l, &n, o.asHoped())
		l.letIn()
	case Throttled, Overloaded:
		m.refusedElsewhere(now, l, &n)
	case Failed:
		l.law.Failed(now, n)
		l.letIn()
	case Exhausted:
		switch {
		case o.Alike != 0:
			l.answers++ // the server is there
		case d.sent.After(l.vouchedAt):
			m.stop(now, l, o.Cause)
		}
	}
	m.stir(l)
	m.wake(l)
}

// refusedElsewhere takes a refusal of another machine's call.
func (m *Machine) refusedElsewhere(now time.Time, l *lane, n *limiter.News) {
	l.elsewhere = true
	if n.Latency > 0 {
		l.refusal.Observe(n.Latency)
	}
	n.Directed = n.Directed && n.RetryAfter <= l.cfg.longestWait() && l.phase == Cooling
	if until := l.law.Straggled(now, *n); n.Directed {
		m.lengthen(l, until)
	}
}

// learnLed takes the end of a call on a led lane: it counts and measures, and decides nothing.
func (m *Machine) learnLed(it *Item, o *Outcome) {
	l := it.lane
	switch o.Signal {
	case Succeeded, Answered:
		l.answers++
		if o.Signal == Succeeded && o.Latency > 0 {
			l.latency.Observe(o.Latency)
		}
		l.letIn()
	case Throttled, Overloaded:
		m.count(it.run, l, throttled)
	case Failed:
		it.counted = true
		l.letIn()
	case Exhausted:
		it.counted = it.counted || o.Alike != 0
	}
}
