package observe

import (
	"slices"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// A Ledger is a run's time by what held it back. Its sum is the time since the run was opened. It
// is that of the machine, with [limiter.BoundOutput] apart from the concurrency.
type Ledger [limiter.Bounds + 1]time.Duration

// Sum returns the time of all bounds.
func (l *Ledger) Sum() (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// plus returns the sum of both.
func (l Ledger) plus(m *Ledger) Ledger {
	for k, d := range m {
		l[k] += d
	}
	return l
}

// minus returns what was added since.
func (l Ledger) minus(since *Ledger) Ledger {
	for k, d := range since {
		l[k] -= d
	}
	return l
}

// Longest returns the bound that took most of the time.
func (l *Ledger) Longest() (by limiter.Bound) {
	for k, d := range l {
		if b := limiter.Bound(k); d > l[by] || d == l[by] && b.String() < by.String() {
			by = b
		}
	}
	return by
}

// addGrowth adds the growth of a batch ledger since it was last seen. atGate is the share of call
// time that was spent at the gate. Of the time in which the concurrency was the bound, the output
// gets that share. Not a nanosecond is lost or added.
func (l *Ledger) addGrowth(seen, now *batch.Ledger, atGate float64) {
	for k := range now {
		growth := now[k] - seen[k]
		if limiter.Bound(k) == limiter.BoundConcurrency {
			output := min(growth, max(0, time.Duration(float64(growth)*atGate)))
			l[limiter.BoundOutput] += output
			growth -= output
		}
		l[k] += growth
	}
}

// Rules for naming what holds a run back.
const (
	boundLead   = 2 * time.Second        // time for which another bound must have led before it is named
	secondShare = 0.3                    // least share of a second bound that is named
	markGap     = 200 * time.Millisecond // between two marks at least: BottleneckSpan has some twenty
)

// A holder judges what holds a run back.
type holder struct {
	history []mark // the first is at least BottleneckSpan old, or the beginning

	named           limiter.Bound // BoundNone: not known
	since           time.Time
	challenger      limiter.Bound // that leads instead; BoundNone: none
	challengerSince time.Time

	share   Ledger // of the span that is judged
	isState bool   // it is a state of the run, which needs no majority
}

// A mark is the ledger at one moment.
type mark struct {
	at  time.Time
	sum Ledger
}

func newHolder(began time.Time) *holder {
	return &holder{history: []mark{{at: began}}}
}

// judge decides what to name as the bound of the run. current is the bound at this moment; state
// says that it is a state of the run, which needs no majority. Another bound is named only after it
// has led for a while, so that the name does not flicker.
func (h *holder) judge(at time.Time, sum *Ledger, current limiter.Bound, state bool) {
	if last := h.history[len(h.history)-1]; at.Sub(last.at) >= markGap {
		h.history = append(h.history, mark{at, *sum})
	}
	for len(h.history) > 1 && at.Sub(h.history[1].at) >= BottleneckSpan {
		h.history = append(h.history[:0], h.history[1:]...)
	}
	h.share = sum.minus(&h.history[0].sum)
	if state || h.isState { // a state is named whatever the shares are, and loses that name when it has ended
		if h.named != current {
			h.named, h.since = current, at
		}
		h.challenger, h.isState = limiter.BoundNone, state
		return
	}
	leader := h.named // among equal shares, the named one stays
	for k, d := range h.share {
		if d > h.share[leader] {
			leader = limiter.Bound(k)
		}
	}
	switch {
	case leader == limiter.BoundNone:
	case h.named == limiter.BoundNone:
		h.named, h.since = leader, h.history[0].at
	case leader == h.named:
		h.challenger = limiter.BoundNone
	default:
		if h.challenger != leader {
			h.challenger, h.challengerSince = leader, at
		}
		if at.Sub(h.challengerSince) >= boundLead {
			h.named, h.since, h.challenger = h.challenger, h.challengerSince, limiter.BoundNone
		}
	}
}

// bottleneck returns the named bound with its share of the time, and the next largest one.
func (h *holder) bottleneck() (b Bottleneck) {
	whole := h.share.Sum()
	if h.named == limiter.BoundNone || whole <= 0 {
		return b
	}
	part := func(k limiter.Bound) float64 { return float64(h.share[k]) / float64(whole) }
	b = Bottleneck{By: h.named, Share: part(h.named), Since: h.since}
	if h.isState {
		return b
	}
	for k := range limiter.Bound(len(h.share)) {
		if k != h.named && part(k) >= secondShare && part(k) > b.SecondShare {
			b.Second, b.SecondShare = k, part(k)
		}
	}
	return b
}

// currentBound returns what holds the run back at this moment, and whether that is a state of the
// run. A state is named at once: in an outage nobody wants to read the former bound for five
// seconds more.
func (r *Recorder) currentBound(s *batch.Status) (by limiter.Bound, state bool) {
	switch by = s.Run.Bound; by {
	case limiter.BoundPaused, limiter.BoundDraining, limiter.BoundStopped, limiter.BoundBreaker:
		return by, true
	case limiter.BoundOverload:
		return by, nothingLetIn(s)
	case limiter.BoundRecovery: // a probe is out, and the state that it tests is not over
		switch named := r.holder.named; {
		case !r.holder.isState:
		case named == limiter.BoundBreaker && s.HalfOpen > 0, named == limiter.BoundOverload && nothingLetIn(s):
			return named, true
		}
	case limiter.BoundConcurrency: // where all calls in flight are overdue, and none has ended lately, more would only wait with them
		slowest := r.run.total.slowest
		if slowest > 0 && r.run.calls.speed(SpeedSpan) == 0 && !s.Run.Oldest.IsZero() &&
			s.At.Sub(s.Run.Oldest) > max(SpeedSpan, overdueTimes*slowest) {
			return limiter.BoundUnanswered, true
		}
	}
	return by, false
}

// nothingLetIn reports whether there is a lane whose server lets nothing in.
func nothingLetIn(s *batch.Status) bool {
	return slices.ContainsFunc(s.Lanes, func(l batch.LaneStatus) bool { return refusesAll(&l) })
}

// refusesAll reports whether a server has let in none of the probes: one refusal alone says
// little.
func refusesAll(l *batch.LaneStatus) bool { return l.View.Probed >= 2 && !l.View.Drought.IsZero() }

// overdueTimes says when a call is overdue: once it has been under way for more than that many
// times the slowest answer.
const overdueTimes = 2

// isRunWide reports whether a bound holds the whole run back, and not a lane.
func isRunWide(b limiter.Bound) bool {
	switch b {
	case limiter.BoundNone, limiter.BoundOutput, limiter.BoundConcurrency, limiter.BoundBackoff, limiter.BoundInput, limiter.BoundTail,
		limiter.BoundSlept, limiter.BoundPaused, limiter.BoundDraining, limiter.BoundStopped, limiter.BoundBudget:
		return true
	}
	return false
}

// laneToShow returns the lane by which to judge the bottleneck; nil: there is none. If exactly one
// of several lanes holds the run back, it names that lane in h.
func (r *Recorder) laneToShow(h *Bottleneck, s *batch.Status) *batch.LaneStatus {
	critical := r.lastToEnd(s)
	if critical == nil || s.Known == 1 || isRunWide(h.By) {
		return critical
	}
	var atLimit []*batch.LaneStatus
	for k := range s.Lanes {
		if l := &s.Lanes[k]; r.lane(r.names.slot(l.Name)).usualBound() == h.By {
			if l == critical {
				atLimit = []*batch.LaneStatus{l}
				break
			}
			atLimit = append(atLimit, l)
		}
	}
	if len(atLimit) != 1 {
		return critical
	}
	h.Lane = atLimit[0].Name
	return atLimit[0]
}

// lastToEnd returns the lane that will end last, or the busiest one if that is unknown; nil: there
// is no lane.
func (r *Recorder) lastToEnd(s *batch.Status) (critical *batch.LaneStatus) {
	longest := -1.0
	for k := range s.Lanes {
		l := &s.Lanes[k]
		if pending := r.lane(r.names.slot(l.Name)).secondsLeft(); critical == nil || pending > longest {
			critical, longest = l, pending
		}
	}
	return critical
}
