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

// A source says who let a call go. It decides which parts of the lane hear of the call's end.
type source uint8

// The sources.
const (
	ownCall     source = iota // the lane's present law
	earlierCall               // the lane's law before that
	remoteCall                // a law that leads the lane: it decides itself, and the lane counts and measures
	elsewhere                 // another machine, whose lane this one has taken over
)

// teaches says which parts of a lane hear of a call's end, by its source. The latency and long waits
// hear of each, and the counts of each but an elsewhere call.
//
//   - law: the law, the latency of refusals, and limits that are used up. A law that did not charge a call of its own lane
//     does not know in whose company that left, and has nothing to correct. An elsewhere call
//     tells the truth about the server all the same.
//   - blame: an answer is a witness, a refusal lengthens a cooldown, and a refusal for good stops
//     the lane.
//   - recovery: the breaker, the phase and the pace.
var teaches = [...]struct{ law, blame, recovery bool }{
	ownCall:     {law: true, blame: true, recovery: true},
	earlierCall: {blame: true},
	remoteCall:  {},
	elsewhere:   {law: true, blame: true},
}

// A lesson is the end of a call, on its way to the parts of its lane. The outcome is no field
// of it: each event would then be allocated.
type lesson struct {
	lane *lane
	from source
	it   *Item        // nil: another machine's
	news limiter.News // what the law hears; Present only of an ownCall
}

// voided reports whether somebody has vouched for the lane since the call left: a refusal for
// good is void then.
func (e *lesson) voided() bool {
	if e.it == nil {
		return !e.news.Sent.After(e.lane.vouchedAt)
	}
	return e.it.epoch < e.lane.vouchedEpoch
}

// learn passes the end of a call of this machine to its lane.
func (m *Machine) learn(now time.Time, it *Item, o *Outcome) {
	l := it.lane
	present := it.epoch == l.epoch
	l.inFlight--
	if present {
		l.inEpoch--
	}
	l.lastEnd, l.inFlightAtEnd, l.hung = now, int32(l.inFlight), false
	it.counted = it.counted || o.Again && !l.remote()
	m.idle.touch(l, now)
	e := lesson{lane: l, it: it}
	switch {
	case l.remote():
		e.from = remoteCall
	case it.epoch < l.lawEpoch:
		e.from = earlierCall
	}
	e.news = newsOf(it, o, present && e.from == ownCall)
	m.applyLesson(now, &e, o)
}

// learnOverheard passes the end of another machine's call to its lane. It does nothing on a remote
// lane, whose leader hears of such calls outside.
func (m *Machine) learnOverheard(now time.Time, name string, d departure, o *Outcome) {
	if m.lanes[name] == nil && m.roomFor([]string{name}) != nil {
		return
	}
	l := m.laneNamed(now, name)
	if l.remote() {
		return
	}
	m.idle.touch(l, now)
	o.dropImplausible()
	e := lesson{lane: l, from: elsewhere, news: newsOf(&Item{Sent: d.sent, Cost: d.cost.Drawn()}, o, false)}
	e.news.Overheard = true
	m.applyLesson(now, &e, o)
	m.scheduleSay(l)
	m.wake(l)
}

// applyLesson passes a lesson to those parts of its lane that hear of calls from its source.
func (m *Machine) applyLesson(now time.Time, e *lesson, o *Outcome) {
	l, hears := e.lane, &teaches[e.from]
	if l.hasChargeRule && hears.law {
		l.chargeNews(&e.news, o)
	}
	answered := o.Signal == Succeeded || o.Signal == Answered
	speaks := answered && e.from == ownCall
	if !speaks {
		m.stopUsedUp(now, e, o)
	}
	switch o.Signal {
	case Succeeded, Answered:
		m.wasAnswered(now, e, o)
	case Throttled, Overloaded:
		m.wasRefused(now, e, o)
	case Failed:
		m.hasFailed(now, e, o)
	case Exhausted:
		m.wasRefusedForGood(now, e, o)
	case Nothing:
		if e.from == ownCall {
			l.law.Vanished(now, e.news)
		}
		if e.news.Present && l.phase == Probing {
			m.abandonProbe(now, l)
		}
	}
	if answered || o.Signal == Failed {
		l.endHealthyWait()
		if hears.recovery {
			m.reportPace(now, l) // after the breaker, which may take care of it
		}
	}
	if speaks {
		m.stopUsedUp(now, e, o) // after the answer has spoken for or against other items
	}
}

// stopUsedUp stops a lane whose server says that a day's limit has nothing left.
func (m *Machine) stopUsedUp(now time.Time, e *lesson, o *Outcome) {
	if len(o.Sightings) == 0 || !teaches[e.from].law || e.from == elsewhere && e.voided() {
		return
	}
	if s := e.lane.usedUp(o); s != nil {
		m.stop(now, e.lane, e.lane.waitFor(now, s.Reset, &UsedUpError{Dimension: s.Dimension, Limit: s.Limit, Window: s.Window}))
	}
}

// wasRefusedForGood handles a refusal for good. If it says whom it concerns, it stops the lane,
// unless a person has vouched for the lane since. If it does not, the meaning shows only when more
// items have ended; see endIfFailed.
func (m *Machine) wasRefusedForGood(now time.Time, e *lesson, o *Outcome) {
	l, open := e.lane, o.Alike != 0
	if e.from == ownCall {
		l.law.Vanished(now, e.news)
	}
	if open {
		l.answers++ // the server is there
	}
	switch {
	case e.from == remoteCall:
		e.it.counted = e.it.counted || open
	case !open && !e.voided():
		m.stopLaneOrAccount(now, l, o.Account, e.news.Sent, o.Cause)
	}
	if open && e.news.Present && l.phase == Probing {
		m.letProbeIn(now, l)
	}
}

// wasAnswered passes an answer to the parts of the lane that hear of its source. The breaker and a
// probe hear only answers of the present epoch: an older one does not tell how the server is now.
func (m *Machine) wasAnswered(now time.Time, e *lesson, o *Outcome) {
	l, n, hears, endsRow := e.lane, &e.news, &teaches[e.from], true
	l.answers++
	if hears.blame {
		l.answered = l.answered || o.asHoped()
		endsRow = l.blame == nil || m.absorbAnswer(now, l, n, o.asHoped())
	}
	if hears.law {
		l.unclear, l.broke = 0, false
		l.law.Answered(now, *n)
	}
	if n.Good && n.Latency > 0 {
		l.latency.Observe(n.Latency)
	}
	if n.Present {
		l.breaker.Success(now, endsRow)
		if l.phase == Probing {
			m.passed(now, l)
		}
	}
	if e.from == ownCall {
		l.endIllnessBefore(n.Sent)
	}
}

// wasRefused handles a refusal for now (429, 503, 529). In the present epoch it starts a cooldown,
// unless the law finds that it concerns its item alone. An older refusal belongs to a cooldown that
// has begun, and can only lengthen it.
//
// An example: calls 1 and 2 leave. Call 1 is refused, and the lane cools. Call 2 is refused,
// which is the same wave and no second cooldown. The lane is probed and climbs. Call 3 left
// before the cooldown and took long, and is refused: that says nothing about now.
func (m *Machine) wasRefused(now time.Time, e *lesson, o *Outcome) {
	l, it, n, hears := e.lane, e.it, &e.news, &teaches[e.from]
	if e.from == ownCall && l.countUnclear(o, n.Present) {
		m.stop(now, l, o.Cause)
	}
	if it == nil {
		l.refusedElsewhere = true
	} else {
		m.count(it.run, l, throttled)
	}
	if !hears.blame {
		return
	}
	if hears.law && n.Latency > 0 {
		l.refusal.Observe(n.Latency)
	}
	if it != nil {
		if it.due = (time.Time{}); l.phase == Stopped {
			return
		}
	}
	if !n.Present {
		m.handleStraggler(now, e)
		return
	}
	if n.Directed && n.RetryAfter > l.cfg.longestWait() {
		m.stop(now, l, l.waitFor(now, n.RetryAfter, o.Cause))
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
	case m.exceedsPatience(now, l):
		m.stop(now, l, l.outage(now, o.Cause))
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

// handleStraggler handles a refusal that belongs to a wave to which this lane, or another
// machine's, has already reacted.
func (m *Machine) handleStraggler(now time.Time, e *lesson) {
	l, n, own := e.lane, &e.news, e.from == ownCall
	if e.it != nil {
		m.count(e.it.run, l, stragglers)
	}
	n.Directed = n.Directed && n.RetryAfter <= l.cfg.longestWait() && l.phase == Cooling
	until := now.Add(n.RetryAfter)
	if teaches[e.from].law {
		until = l.law.Straggled(now, *n)
	}
	if own && l.phase == Cooling && e.it.epoch+1 == l.epoch {
		l.wave++
		m.count(nil, l, participants)
	}
	if n.Directed {
		m.lengthen(l, until)
	}
}

// hasFailed handles a call that broke; blame.go finds out whose failure it is. A probe that broke
// has passed, as it was not refused, unless it was the breaker's.
func (m *Machine) hasFailed(now time.Time, e *lesson, o *Outcome) {
	l, it, n, hears := e.lane, e.it, &e.news, &teaches[e.from]
	if hears.law {
		l.law.Failed(now, *n)
	}
	if e.from == remoteCall {
		it.counted = true
	}
	if !hears.recovery {
		return
	}
	l.broke = true
	if l.phase == Stopped {
		return
	}
	opens := n.Present && l.tripsBreaker(now, it, o)
	switch {
	case m.staysSilent(now, it, o):
		m.stop(now, l, l.unheard(now, o.Cause))
	case opens && m.exceedsPatience(now, l):
		m.stop(now, l, l.outage(now, o.Cause))
	case opens:
		l.law.Broken(now)
		l.cause = o.Cause
		m.cool(now, l, ByBreaker, time.Time{})
	case n.Present && l.phase == Probing && l.breaker.State(now) == limiter.Closed:
		m.climb(now, l, ByProbe)
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

// countUnclear counts a refusal that does not say which limit it means. It reports whether there
// were so many in a row that it means the day's.
func (l *lane) countUnclear(o *Outcome, present bool) bool {
	if !o.Unclear || !present {
		return false
	}
	l.unclear = min(l.unclear+1, unclearMost)
	return l.unclear >= unclearMost
}

// newsOf returns what the law hears of a call's end. present says that the call belongs to the
// lane's epoch.
func newsOf(it *Item, o *Outcome, present bool) limiter.News {
	return limiter.News{
		Ticket: it.ticket, Sent: it.Sent, Cost: it.Cost, Present: present, Probe: it.Probe,
		Good: o.Signal == Succeeded, Again: it.counted, Timeout: o.Timeout, Unsent: o.Unsent, Overloaded: o.Signal == Overloaded,
		Latency: o.Latency, Detour: o.Detour, Directed: o.Directed, RetryAfter: o.RetryAfter, Slow: o.Slow,
		Measured: o.Measured, Actual: o.Actual, On: o.On, Sightings: o.Sightings,
	}
}

// dropImplausible removes values that no server can mean: a named wait that is negative or too
// long. It shortens latencies to limiter.MaxSpan.
func (o *Outcome) dropImplausible() {
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

// Calls that another machine let go end on a lane that is now this one's. A machine that takes over
// from one that has died hears how its last calls end. The present law did not charge for them, and
// was not asked.

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
// then on. A remote lane ignores the call.
func Overheard(lane string, sent time.Time, cost limiter.Cost, o Outcome) Event {
	return Event{kind: evOverheard, name: lane, outcome: o, config: departure{sent: sent, cost: cost}}
}
