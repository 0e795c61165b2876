package model

import (
	"math"

	"github.com/headrace/headrace/limiter"
)

// This file is about an alarm: what follows from it, and what proves it or takes it back.
//
//	alarm ─▶ the rate is learned ─▶ trial: go slower and see ─▶ the pace was guilty: it stands
//	                                                         ─▶ chance was: it is taken back

// alarm learns the rate, and has it proved. let counts the calls let in since the refusal
// before.
func (m *Law) alarm(t, s float64, n *limiter.News, let float64) limiter.Refusal {
	x := float64(n.Ticket.Pace)
	bin, excess := paceBin(x), m.chance.excess()
	l := m.learn(t, s, x, excess)
	m.chance.calm()
	if m.estimate.search == nil {
		m.beginTrial(t, x, bin, excess, l)
	}
	if let == 0 || m.estimate.search != nil {
		return m.cool(t, n, l)
	}
	return m.alone(t, n)
}

// beginTrial begins the trial of a pace.
func (m *Law) beginTrial(t, x float64, bin int, excess float64, l *lesson) {
	m.chance.paces.fade(bin, trialFresh)
	calls, refused := m.chance.paces.below(bin)
	m.trial = &trial{
		bin: bin, began: t, excess: excess, calls: calls, refused: refused, before: l.before,
		pace: min(trialShare*m.believed(), trialShare*x*(1-excess), trialBin*paceOf(bin)),
	}
	if excess > 0.5 && m.gauges[dimRequests].source != limiter.Seen {
		m.blamePace()
	} else {
		m.conclude(t)
	}
}

// tried takes a refusal while a trial is under way.
func (m *Law) tried(t, s float64, n *limiter.News, bin int) limiter.Refusal {
	m.chance.run = 0
	f := fate{at: s, ticket: n.Ticket, refused: true}
	if n.Refusals < fewRefusals {
		m.trial.count(&f, bin)
	}
	if s >= m.trial.began && bin < m.trial.bin {
		m.chance.strike(bin, n)
		if m.row >= droughtRow {
			return m.cool(t, n, nil)
		}
	}
	m.conclude(t)
	return m.alone(t, n)
}

// droughtRow is the number of refusals in a row, at the slower pace of a trial, that mean that
// the server lets nothing in.
const droughtRow = 3

// conclude ends a trial that has come to a verdict.
func (m *Law) conclude(t float64) {
	r := m.trial
	switch r.verdict() {
	case byChance:
		m.blameChance(t)
	case byPace:
		if m.gauges[dimRequests].source != limiter.Seen || r.odds() < -headerNats {
			m.blamePace()
		}
	case tooFast:
		if m.gauges[dimRequests].source == limiter.Seen {
			m.blamePace() // the next header would put the pace back
		} else {
			m.slower(r.pace * (1 - r.refused/r.calls))
		}
	}
}

// blamePace lets the alarm's lesson stand. If headers had permitted that pace, they are wrong.
func (m *Law) blamePace() {
	m.trial = nil
	m.chance.calm()
	m.estimate.confirmed = m.estimate.search == nil
	if g := &m.gauges[dimRequests]; g.source == limiter.Seen {
		m.disbelieve(g)
	}
}

// blameChance takes the alarm's lesson back. A rate that no trial ever confirmed is searched
// again, from the pace that was innocent.
func (m *Law) blameChance(t float64) {
	r := m.trial
	m.trial = nil
	m.chance.calm()
	g := &m.gauges[dimRequests]
	t = max(t, g.at) // a call left at t, and the level is already known for a later moment
	level := g.levelAt(t)
	m.estimate = r.before.estimate
	*g = r.before.gauge
	g.level, g.at = min(level, g.capacity), t
	if g.source == limiter.Learned && g.ceiling == 0 {
		if !m.estimate.confirmed {
			m.forgetRate(paceOf(r.bin))
		}
		m.estimate.confirmed = false // a later alarm will not find it confirmed, unless it is again
	}
}

// slower continues the search below a trial that was too fast itself.
func (m *Law) slower(pace float64) {
	m.trial = nil
	m.chance.calm()
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

// endDrought looks back at a time in which nothing was let in. A call that left at t was let in, as is
// known now.
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
		m.remake(d.lesson, t)
	}
}

// recurs reports whether a server that is up again was down not long before. An outage comes
// once; a window closes again and again.
func (m *Law) recurs(t float64, d *drought) bool {
	return m.downUntil > 0 && d.began-m.downUntil < downApart*(t-d.began)
}

// restore puts beliefs back. Their level is the one that has come in since, less what was let
// in. That is at least the probe that left at t and was answered. The outgoing gauge knows the
// calls that left after it, which count too.
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

// count takes the fate of a call, if the call is one of the trial's.
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

func (r *trial) verdict() verdict {
	let := r.calls - r.refused
	switch odds := r.odds(); {
	case r.refused >= trialLost && r.refused > let:
		return tooFast
	case odds > trialNats && let >= trialLeast:
		return byChance
	case odds < -trialNats:
		return byPace
	}
	return open
}
