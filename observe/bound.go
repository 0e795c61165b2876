package observe

import (
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// An account is a run's time by what held it back, with the time at the gate apart.
type account [machine.Bounds + 1]time.Duration

// The places in an account besides those of a [machine.Ledger].
const (
	outputPlace = machine.Bounds
	noPlace     = -1
)

var placeOf = func() map[Bound]int {
	places := map[Bound]int{}
	for k := range len(account{}) {
		places[boundAt(k)] = k
	}
	return places
}()

// boundAt returns the bound that has the place.
func boundAt(place int) Bound {
	if place == outputPlace {
		return Output
	}
	return boundOf(machine.Bound(place))
}

// boundOf returns the machine's word for a bound.
func boundOf(b machine.Bound) Bound {
	if int(b) >= machine.Bounds {
		return NoBound
	}
	return Bound(b.String())
}

func (a *account) sum() (sum time.Duration) {
	for _, d := range a {
		sum += d
	}
	return sum
}

// minus returns what was added since.
func (a *account) minus(since *account) (diff account) {
	for k := range a {
		diff[k] = a[k] - since[k]
	}
	return diff
}

// ledger returns a copy without the places that are zero.
func (a *account) ledger() Ledger {
	l := Ledger{}
	for k, d := range a {
		if d != 0 {
			l[boundAt(k)] = d
		}
	}
	return l
}

// charge adds what a ledger has more than when it was last seen. Of the time in which the
// concurrency was the bound, the output gets the share that calls spent at the gate. That
// neither loses nor adds a nanosecond.
func (a *account) charge(seen, now *batch.Ledger, atGate float64) {
	for k := range now {
		d := now[k] - seen[k]
		if machine.Bound(k) == machine.BoundConcurrency {
			output := min(d, max(0, time.Duration(float64(d)*atGate)))
			a[outputPlace] += output
			d -= output
		}
		a[k] += d
	}
}

// Rules for naming what holds a run back.
const (
	heldLead    = 2 * time.Second        // time for which another bound must have led before it is named
	secondShare = 0.3                    // least share of a second bound that is named
	markGap     = 200 * time.Millisecond // between two marks at least: BottleneckSpan has some twenty
)

// A holder judges what holds a run back.
type holder struct {
	marks []mark // the first is at least BottleneckSpan old, or the beginning

	by         int // place; noPlace: not known
	since      time.Time
	rival      int // that leads instead; noPlace: none
	rivalSince time.Time

	share  account // of the span that is judged
	forced bool    // it is a state of the run, which needs no majority
}

// A mark is the account at one moment.
type mark struct {
	at  time.Time
	sum account
}

func newHolder(began time.Time) *holder {
	return &holder{marks: []mark{{at: began}}, by: noPlace, rival: noPlace}
}

// note judges anew. present is the bound that holds the run back at this very moment, and state
// reports whether that is a state of the run.
func (h *holder) note(at time.Time, sum *account, present machine.Bound, state bool) {
	if last := h.marks[len(h.marks)-1]; at.Sub(last.at) >= markGap {
		h.marks = append(h.marks, mark{at, *sum})
	}
	for len(h.marks) > 1 && at.Sub(h.marks[1].at) >= BottleneckSpan {
		h.marks = append(h.marks[:0], h.marks[1:]...)
	}
	h.share = sum.minus(&h.marks[0].sum)
	if state || h.forced { // a state is named whatever the shares are, and loses that name when it has ended
		if place := int(present); h.by != place {
			h.by, h.since = place, at
		}
		h.rival, h.forced = noPlace, state
		return
	}
	leader, most := h.by, time.Duration(0)
	if h.by != noPlace {
		most = h.share[h.by] // among equal shares, the named one stays
	}
	for k, d := range h.share {
		if d > most {
			leader, most = k, d
		}
	}
	switch {
	case leader == noPlace:
	case h.by == noPlace:
		h.by, h.since = leader, h.marks[0].at
	case leader == h.by:
		h.rival = noPlace
	default:
		if h.rival != leader {
			h.rival, h.rivalSince = leader, at
		}
		if at.Sub(h.rivalSince) >= heldLead {
			h.by, h.since, h.rival = h.rival, h.rivalSince, noPlace
		}
	}
}

// held returns what to report.
func (h *holder) bottleneck() (b Bottleneck) {
	whole := h.share.sum()
	if h.by == noPlace || whole <= 0 {
		return b
	}
	part := func(k int) float64 { return float64(h.share[k]) / float64(whole) }
	b = Bottleneck{By: boundAt(h.by), Share: part(h.by), Since: h.since}
	if h.forced {
		return b
	}
	for k := range h.share {
		if k != h.by && part(k) >= secondShare && part(k) > b.SecondShare {
			b.Second, b.SecondShare = boundAt(k), part(k)
		}
	}
	return b
}

// present returns what holds the run back at this moment, and whether that is a state of the
// run. A state is named at once: in an outage nobody wants to read the former bound for five
// seconds more.
func (r *Recorder) present(s *batch.Status) (by machine.Bound, state bool) {
	switch by = s.Run.Bound; by {
	case machine.BoundPaused, machine.BoundDraining, machine.BoundStopped, machine.BoundBreaker:
		return by, true
	case machine.BoundOverload:
		return by, nothingIn(s)
	case machine.BoundRecovery: // a probe is out, and the state that it tests is not over
		switch named := machine.Bound(r.holder.by); {
		case !r.holder.forced:
		case named == machine.BoundBreaker && s.HalfOpen > 0, named == machine.BoundOverload && nothingIn(s):
			return named, true
		}
	case machine.BoundConcurrency:
		if r.unanswered(s) {
			return machine.BoundUnanswered, true
		}
	}
	return by, false
}

// nothingIn reports whether a server lets nothing in on some lane.
func nothingIn(s *batch.Status) bool {
	for k := range s.Lanes {
		if refusesAll(&s.Lanes[k]) {
			return true
		}
	}
	return false
}

// refusesAll reports whether a server has let in none of the probes: one refusal alone says
// little.
func refusesAll(l *batch.LaneStatus) bool { return l.View.Probed >= 2 && !l.View.Drought.IsZero() }

// overdueTimes says when a call is overdue: once it has been under way for more than that many
// times the slowest answer.
const overdueTimes = 2

// unanswered reports whether all calls in flight are overdue, and none has ended within
// SpeedSpan. More calls at once would only wait with them.
func (r *Recorder) unanswered(s *batch.Status) bool {
	slowest := r.run.total.slowest
	return slowest > 0 && r.run.calls.speed(SpeedSpan) == 0 && !s.Run.Oldest.IsZero() &&
		s.At.Sub(s.Run.Oldest) > max(SpeedSpan, overdueTimes*slowest)
}

// stated reports whether a limit is the provider's word, or the user's.
func stated(l *limiter.LimitView) bool { return l.Source == limiter.Told || l.Source == limiter.Seen }

// runWide lists the bounds that belong to no lane.
var runWide = map[Bound]bool{
	NoBound: true, Output: true, concurrency: true,
	boundOf(machine.BoundBackoff): true, boundOf(machine.BoundInput): true, boundOf(machine.BoundTail): true,
	boundOf(machine.BoundSlept): true, boundOf(machine.BoundPaused): true, boundOf(machine.BoundDraining): true, boundOf(machine.BoundStopped): true,
}

// ownBound returns what holds a lane's next call back: the lane's own bound, or the run's
// bound if it applies to all lanes.
func ownBound(l *batch.LaneStatus, run *machine.RunStatus) Bound {
	if l.Bound != machine.BoundNone {
		return boundOf(l.Bound)
	}
	if b := boundOf(run.Bound); runWide[b] {
		return b
	}
	return NoBound
}

// subject returns the lane that matters, nil if there is none. It names that lane in h if one
// of several lanes holds the run back.
func (r *Recorder) subject(h *Bottleneck, s *batch.Status) *batch.LaneStatus {
	critical := r.critical(s)
	if critical == nil || s.Known == 1 || runWide[h.By] {
		return critical
	}
	var held []*batch.LaneStatus
	for k := range s.Lanes {
		if l := &s.Lanes[k]; r.lane(r.names.slot(l.Name)).heldBy() == h.By {
			if l == critical {
				held = []*batch.LaneStatus{l}
				break
			}
			held = append(held, l)
		}
	}
	if len(held) != 1 {
		return critical
	}
	h.Lane = held[0].Name
	return held[0]
}

// critical returns the lane that ends last, or the busiest one if that is not known.
func (r *Recorder) critical(s *batch.Status) (critical *batch.LaneStatus) {
	longest := -1.0
	for k := range s.Lanes {
		l := &s.Lanes[k]
		if pending := r.lane(r.names.slot(l.Name)).pending(); critical == nil || pending > longest {
			critical, longest = l, pending
		}
	}
	return critical
}
