package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file decides who is to blame for a refusal. It tries the explanations one after the
// other, and the first that fits decides:
//
//	refusal ─▶ 1 probe, drought?  it was sent to find out, or nothing is let in → the lane cools on
//	          tokens?             it names a limit on them, told  → none are left; hold
//	        ─▶ 2 cap?             too many were in flight         → the item goes first, the lane flows
//	        ─▶ 3 headers?         they say there is no room       → hold; more reserve
//	        ─▶ 4 a cap at once?   a search's first refusal        → a cap is guessed
//	        ─▶ 5 asked for?       more was being tried            → the rate is learned; hold
//	        ─▶ 6 chance?          no thicker than it explains     → the item alone waits
//	        ─▶ 7 alarm            a search goes on from below; else the rate is learned, and the trial begins

// plainShare is the share of chance up to which a single refusal during a try blames the try.
// Where chance strikes more often, refusals must come thicker than that.
const plainShare = 0.02

// Refused is part of [limiter.Law].
func (m *Law) Refused(now time.Time, n limiter.News) limiter.Refusal {
	t, sent := m.seconds(now), m.seconds(n.Sent)
	sighted := m.noteRefusal(t, sent, &n)
	if n.Slow {
		m.slowStart(t, slowDoubling)
	}
	if n.Probe || m.drought != nil && sent >= m.drought.began {
		return m.refusedInDrought(t, &n)
	}
	if m.blameTokenLimit(t, &n) {
		return m.coolLane(t, &n, nil)
	}
	if m.refusedAtOnce(&n) { // calls that leave at one moment overtake each other
		n.Ticket.Beside = uint16(min(m.inFlight, math.MaxUint16))
	}
	m.takeRefusedFate(t, sent, &n)
	return m.judge(t, sent, &n, sighted)
}

// blameTokenLimit reports whether a refusal concerns a limit on tokens that the user told. If so,
// the level of that limit was zero, and neither the rate of requests nor chance is to blame. Where
// the limit is unknown, requests are the only thing to slow down.
func (m *Law) blameTokenLimit(t float64, n *limiter.News) bool {
	k := index(n.On)
	if k <= dimRequests || m.gauges[k].source != limiter.Configured {
		return false
	}
	m.fates.mute(n.Ticket.Number)
	g := &m.gauges[k]
	g.advance(t)
	g.level = min(g.level, 0)
	return true
}

// noteRefusal records what every refusal says, before anything is blamed for it. It reports whether
// headers told of a limit.
func (m *Law) noteRefusal(t, sent float64, n *limiter.News) (sighted bool) {
	m.quoted, m.window = quote{}, 0
	m.bookAlike()
	if m.refusals++; m.refusals == 1 && m.isLocal && m.estimate.search != nil {
		m.estimate.search.pace = max(firstRate, float64(n.Ticket.Pace)) // it does not only queue: find out how fast it takes calls
	}
	if n.Latency > 0 {
		m.refusalDelay += delayWeight * (n.Latency.Seconds() - m.refusalDelay)
	}
	m.sends.bookRefusal(sent, n.Cost.Requests)
	m.countEnded(t, false)
	m.takeKnownFates(t, n.Ticket.Number)
	for k := range m.gauges {
		m.gauges[k].recheck()
	}
	if sighted = m.readHeaders(t, n); !sighted {
		m.refund(t, m.charged(n))
	}
	m.lastRefused = max(m.lastRefused, sent)
	return sighted
}

// judge asks the explanations in turn, and carries out what the first fitting one demands.
func (m *Law) judge(t, sent float64, n *limiter.News, sighted bool) limiter.Refusal {
	ticket := &n.Ticket
	pace := float64(ticket.Pace)
	bin := paceBin(pace)
	switch {
	case m.overCap(ticket, bin):
		return m.letItemGoFirst(t, n)
	case sighted && m.headersSayEmpty(t, n):
		return m.coolLane(t, n, nil)
	case m.mayBeCap(n):
		m.crowd.guessCap(ticket, m.fates.next)
		return limiter.Refusal{Alone: true}
	case m.estimate.try != nil && sent >= m.estimate.try.began && m.chance.share(bin) < plainShare:
		taught := m.learn(t, sent, pace, 0)
		m.chance.resetSums()
		return m.coolLane(t, n, taught)
	case m.trial != nil:
		return m.refusedInTrial(t, sent, n, bin)
	}
	letIn := m.chance.letInRow
	alarm := m.chance.soundsAlarm(bin, pace)
	m.chance.bookRefusal(bin, n)
	if !alarm {
		return m.delayItem(t, n)
	}
	return m.raiseAlarm(t, sent, n, letIn)
}

// overCap reports whether a cap on calls in flight explains a refusal. A guessed cap that does not
// explain it is proved wrong, and dropped. From then on only evidence makes a cap explain it. While
// a trial is under way nothing counts for a cap, since the trial would miss it.
func (m *Law) overCap(ticket *limiter.Ticket, bin int) bool {
	if c := m.crowd.cap; c != nil && c.guess != nil {
		if c.holds(ticket, m.fates.next) {
			return true
		}
		m.dropGuessedCap()
	}
	return m.trial == nil && m.crowd.explains(ticket, m.fates.next, int(m.refusalRow), m.refusedShare(), m.chance.share(bin))
}

// mayBeCap reports whether to guess a cap from a refusal. It must be the first refusal of all,
// in a search, come at once, name no wait and strike a call that was not alone.
func (m *Law) mayBeCap(n *limiter.News) bool {
	return m.refusals == 1 && m.estimate.search != nil && n.Ticket.Beside > 0 && m.refusedAtOnce(n) && !n.NamesWait()
}

// atOnceShare is the largest part of the gap between two calls that a refusal may take to be at once.
const atOnceShare = 0.25

// refusedAtOnce reports whether a refusal came long before another call was to leave: as many are
// in flight now as there were when the server refused.
func (m *Law) refusedAtOnce(n *limiter.News) bool {
	return n.Latency.Seconds()*float64(n.Ticket.Pace) < atOnceShare
}

// dropGuessedCap drops a guessed cap, and books the refusal that suggested it as one by chance or
// pace.
func (m *Law) dropGuessedCap() {
	m.chance.paces.book(paceBin(m.crowd.cap.guess.pace), true)
	m.crowd.cap = nil
}

// letItemGoFirst lets a refused item go as soon as a place is free, or when the server said. The
// lane flows on.
func (m *Law) letItemGoFirst(t float64, n *limiter.News) limiter.Refusal {
	if n.NamesWait() {
		return m.delayItem(t, n)
	}
	return limiter.Refusal{Alone: true}
}

// delayItem lets only the refused item wait. The lane flows on.
func (m *Law) delayItem(t float64, n *limiter.News) limiter.Refusal {
	wait := (0.5 + m.rng.Float64()) * max(droughtLeast, 2*m.refusalDelay)
	if n.NamesWait() {
		wait = m.directed(n)
	}
	return limiter.Refusal{Until: m.time(t + wait), Alone: true}
}

// directed returns the wait that the server named, in seconds, and a little more.
func (m *Law) directed(n *limiter.News) float64 {
	return n.RetryAfter.Seconds() * (1 + directedSpread*m.rng.Float64())
}

// coolLane lets the whole lane hold after a refusal. l is what the refusal taught; nil: nothing.
func (m *Law) coolLane(t float64, n *limiter.News, taught *lesson) limiter.Refusal {
	m.drought = &drought{began: t, refusals: 1, busy: n.Overloaded, lesson: taught, pace: m.lastPace}
	return m.holdLane(t, n)
}

// refusedInDrought handles a refusal while nothing is let in: it lengthens the hold, and teaches
// nothing else.
func (m *Law) refusedInDrought(t float64, n *limiter.News) limiter.Refusal {
	m.fates.mute(n.Ticket.Number)
	if m.drought == nil {
		m.drought = &drought{began: t, busy: true, pace: m.lastPace}
	}
	m.drought.refusals++
	m.drought.busy = m.drought.busy && n.Overloaded
	return m.holdLane(t, n)
}

// holdLane lets the lane hold for as long as the server asked, or else for as long as the drought
// demands. It never shortens a hold that is under way.
func (m *Law) holdLane(t float64, n *limiter.News) limiter.Refusal {
	spacing := 1 / max(m.believed(), floorRate)
	wait := m.drought.hold(m.refusalDelay, spacing, n.Overloaded) * (1 + holdSpread*m.rng.Float64())
	if n.NamesWait() {
		wait = m.directed(n)
	}
	m.hold = max(m.hold, t+wait)
	return limiter.Refusal{Until: m.time(m.hold)}
}

// headersSayEmpty reports whether the headers of a refusal say that there is no room. If so, it
// also keeps more in reserve.
func (m *Law) headersSayEmpty(t float64, n *limiter.News) bool {
	cost := m.charged(n)
	for _, s := range n.Sightings {
		k := index(s.Dimension)
		if k < 0 || m.gauges[k].source != limiter.Seen || s.Remaining >= max(1, cost[k]) {
			continue
		}
		m.setReserve(t, min(reserveMost, reserveGrowth*max(m.reserveNow(t), 1)))
		return true
	}
	return false
}

// The rest is about an alarm: what follows from it, and what proves it or takes it back.
//
//	alarm ─▶ the rate is learned ─▶ trial: go slower and see ─▶ the pace was guilty: it stands
//	                                                         ─▶ chance was: it is taken back

// raiseAlarm learns a rate from a refusal that chance does not explain, and begins a trial to prove
// it. letIn counts the calls let in since the refusal before.
func (m *Law) raiseAlarm(t, sent float64, n *limiter.News, letIn float64) limiter.Refusal {
	pace := float64(n.Ticket.Pace)
	bin, excess := paceBin(pace), m.chance.excess()
	taught := m.learn(t, sent, pace, excess)
	m.chance.resetSums()
	if m.estimate.search == nil {
		m.beginTrial(t, pace, bin, excess, taught)
	}
	if letIn == 0 || m.estimate.search != nil {
		return m.coolLane(t, n, taught)
	}
	return m.delayItem(t, n)
}

// beginTrial begins a trial: calls leave slower, to see whether the pace is to blame for the
// refusals.
func (m *Law) beginTrial(t, pace float64, bin int, excess float64, taught *lesson) {
	m.chance.paces.fade(bin, trialFresh)
	calls, refused := m.chance.paces.below(bin)
	m.trial = &trial{
		bin: bin, began: t, excess: excess, calls: calls, refused: refused, before: taught.before,
		pace: min(trialShare*m.believed(), trialShare*pace*(1-excess), trialBin*paceOfBin(bin)),
	}
	if excess > 0.5 && m.gauges[dimRequests].source != limiter.Seen {
		m.blamePace()
	} else {
		m.concludeTrial(t)
	}
}

// refusedInTrial handles a refusal while a trial is under way.
func (m *Law) refusedInTrial(t, sent float64, n *limiter.News, bin int) limiter.Refusal {
	m.chance.letInRow = 0
	f := fate{at: sent, ticket: n.Ticket, refused: true}
	if n.Refusals < fewRefusals {
		m.trial.count(&f, bin)
	}
	if sent >= m.trial.began && bin < m.trial.bin {
		m.chance.bookRefusal(bin, n)
		if m.refusalRow >= droughtRow {
			return m.coolLane(t, n, nil)
		}
	}
	m.concludeTrial(t)
	return m.delayItem(t, n)
}

// droughtRow is the number of refusals in a row, at the slower pace of a trial, that mean that
// the server lets nothing in.
const droughtRow = 3

// concludeTrial ends the trial if it has come to a verdict, and carries that out.
func (m *Law) concludeTrial(t float64) {
	ended := m.trial
	switch ended.verdict() {
	case byChance:
		m.blameChance(t)
	case byPace:
		if m.gauges[dimRequests].source != limiter.Seen || ended.odds() < -headerNats {
			m.blamePace()
		}
	case tooFast:
		if m.gauges[dimRequests].source == limiter.Seen {
			m.blamePace() // the next header would put the pace back
		} else {
			m.searchBelow(ended.pace * (1 - ended.refused/ended.calls))
		}
	}
}

// endLongTrial ends a trial that has lasted for too long, by what is more likely. A trial of
// headers goes on: a few calls do not convict them.
func (m *Law) endLongTrial(t float64) {
	ended := m.trial
	if t-ended.began < trialMost || m.gauges[dimRequests].source == limiter.Seen {
		return
	}
	if ended.odds() < 0 {
		m.blamePace()
	} else {
		m.blameChance(t)
	}
}

// blamePace ends the trial and keeps the rate that the alarm taught. If headers had permitted that
// pace, they are wrong.
func (m *Law) blamePace() {
	m.trial = nil
	m.chance.resetSums()
	m.estimate.confirmed = m.estimate.search == nil
	if g := &m.gauges[dimRequests]; g.source == limiter.Seen {
		m.distrustHeaders(g)
	}
}

// blameChance ends the trial and takes back the rate that the alarm taught. A rate that no trial
// ever confirmed is searched anew, from the pace that proved innocent.
func (m *Law) blameChance(t float64) {
	ended := m.trial
	m.trial = nil
	m.chance.resetSums()
	g := &m.gauges[dimRequests]
	t = max(t, g.at) // a call left at t, and the level is already known for a later moment
	level := g.levelAt(t)
	m.estimate = ended.before.estimate
	*g = ended.before.gauge
	g.level, g.at = min(level, g.capacity), t
	if g.source == limiter.Learned && g.ceiling == 0 {
		if !m.estimate.confirmed {
			m.forgetRate(paceOfBin(ended.bin))
		}
		m.estimate.confirmed = false // a later alarm will not find it confirmed, unless it is again
	}
}

// searchBelow ends a trial that was too fast itself, and searches for the rate below its pace.
func (m *Law) searchBelow(pace float64) {
	m.trial = nil
	m.chance.resetSums()
	pace = max(pace, floorRate)
	if s := m.estimate.search; s != nil {
		s.pace = min(s.pace, pace)
		return
	}
	g := &m.gauges[dimRequests]
	m.setRate(g, min(g.refill, pace))
}

// forgetRate forgets the rate, except that a pace is innocent.
func (m *Law) forgetRate(pace float64) {
	g := &m.gauges[dimRequests]
	ceiling := g.ceiling
	*g = gauge{ceiling: ceiling}
	m.estimate = estimate{search: &search{pace: max(pace, searchFloor), refused: true}, anchor: m.estimate.anchor, every: tryEvery}
}

// endDrought ends a time in which nothing was let in, and decides what it meant. t is when a call
// left that is now known to have been let in.
func (m *Law) endDrought(t, now float64) {
	d := m.drought
	m.drought = nil
	switch {
	case d.wasDown(t) && !m.recurs(t, d):
		m.downUntil = t
		if d.lesson != nil {
			m.restore(d.lesson.before, t)
		}
		m.trial, m.lastPace = nil, d.pace
		m.slowStart(now, backDoubling)
	case d.lesson != nil && d.wasFixed(t, m.believed()):
		m.redoEstimate(d.lesson, t)
	}
}

// recurs reports whether a server that is up again was down not long before. An outage comes once;
// a window closes again and again.
func (m *Law) recurs(t float64, d *drought) bool {
	return m.downUntil > 0 && d.began-m.downUntil < downApart*(t-d.began)
}

// restore puts earlier beliefs back. The level becomes what has flowed in since, less what was let
// in. At least the probe that left at t was let in. The present gauge knows the calls that left
// after it, which count too.
func (m *Law) restore(b beliefs, t float64) {
	m.estimate = b.estimate
	g := &m.gauges[dimRequests]
	to := max(t, g.at)
	*g = b.gauge
	from := g.at
	g.advance(to)
	g.take(m.sends.accepted(from, to))
}

// A trial means: go slower and see. Where not enough is known about slower paces, going slower
// is the cheap experiment: it costs the time of 4 to 40 calls and asks nothing of the server.
// Going faster costs refusals, and cannot tell a hundredth of overload from a hundredth of
// chance.
const (
	trialShare = 0.85 // of the pace that would explain the refusals: just under it
	trialBin   = 0.7  // of the pace of the refused call's bin: two bins lower
	trialNats  = 3.5  // twelve to one
	headerNats = 7.5  // to convict headers, which are right nearly always: three times as much
	trialFresh = 40   // calls of older evidence that count: as many as one trial can overrule
	trialDrop  = 4    // if the pace is guilty, going slower cuts the share of refusals by so much
	trialLeast = 3    // calls let in before chance is found guilty
	trialLost  = 8    // refusals of a trial that is still too fast

	// trialMost is the seconds after which the odds so far decide. The slowest pace of a trial is
	// a call in many seconds, and forty calls take a quarter of an hour then. Tries would find the
	// rate within a minute or two from there.
	trialMost = 120
)

// A verdict is the outcome of a trial.
type verdict uint8

const (
	open     verdict = iota
	byChance         // as many are refused at the slower pace
	byPace           // hardly any is
	tooFast          // most are: the trial itself is over the limit
)

// A trial follows an alarm. It measures the share of calls that is refused at a slower pace.
type trial struct {
	pace    float64 // calls per second at most
	bin     int     // of the refused call: only slower ones count
	began   float64 // what left before does not count
	excess  float64 // the share that was refused at the pace in question
	calls   float64 // at slower paces, older evidence included,
	refused float64
	before  beliefs // that the alarm replaced
}

// count adds the fate of a call to the trial, if the call left at a slower pace since it began.
func (r *trial) count(f *fate, bin int) {
	if f.at < r.began || bin >= r.bin {
		return
	}
	r.calls++
	if f.refused {
		r.refused++
	}
}

// odds returns how far the refusals of the trial speak for chance and against the pace, in
// nats.
func (r *trial) odds() float64 {
	less := r.excess / trialDrop
	return r.refused*math.Log(r.excess/less) + (r.calls-r.refused)*lessLikely(less, r.excess)
}

// verdict returns what the trial has shown; open: not enough yet. If most calls of a trial are
// refused, it was too fast itself, whatever the odds say.
func (r *trial) verdict() verdict {
	letIn := r.calls - r.refused // the calls that were let in
	switch odds := r.odds(); {
	case r.refused >= trialLost && r.refused > letIn:
		return tooFast
	case odds > trialNats && letIn >= trialLeast:
		return byChance
	case odds < -trialNats:
		return byPace
	}
	return open
}
