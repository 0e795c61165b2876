package observe

import (
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
)

// An account is a run's time by what held it back, with what was spent at the gate apart.
type account [machine.Bounds + 1]time.Duration

// The places in an account beside those of a [machine.Ledger].
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

// boundAt is whose place it is.
func boundAt(place int) Bound {
	if place == outputPlace {
		return Output
	}
	return boundOf(machine.Bound(place))
}

// boundOf is the machine's word.
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

// minus is what was added since.
func (a *account) minus(since *account) (diff account) {
	for k := range a {
		diff[k] = a[k] - since[k]
	}
	return diff
}

// ledger is a copy, without what there was none of.
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
// concurrency was the bound, the share that calls spent at the gate is the output's. No
// nanosecond is lost or made by that.
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

// What is said to hold a run back.
const (
	heldLead    = 2 * time.Second        // for which another must have led before it is named
	secondShare = 0.3                    // from which on a second one is named
	markGap     = 200 * time.Millisecond // between two marks at least: HeldSpan has some twenty
)

// A holder judges what holds a run back.
type holder struct {
	marks []mark // the first is at least HeldSpan old, or the beginning

	by         int // place; noPlace: not known
	since      time.Time
	rival      int // that leads instead; noPlace: none
	rivalSince time.Time

	share  account // of the span that is judged
	forced bool    // it is a state of the run, which needs no majority
}

// A mark is what the account was at a moment.
type mark struct {
	at  time.Time
	sum account
}

func newHolder(began time.Time) *holder {
	return &holder{marks: []mark{{at: began}}, by: noPlace, rival: noPlace}
}

// note judges anew. Present is what holds the run back at this very moment, and state is
// whether that is a state of the run.
func (h *holder) note(at time.Time, sum *account, present machine.Bound, state bool) {
	h.share = h.span(at, sum)
	if h.force(at, present, state) {
		return
	}
	leader := h.leader()
	switch {
	case leader == noPlace:
	case h.by == noPlace:
		h.by, h.since = leader, h.marks[0].at
	case leader == h.by:
		h.rival = noPlace
	default:
		h.challenge(at, leader)
	}
}

// span is what was added over the last HeldSpan.
func (h *holder) span(at time.Time, sum *account) account {
	if last := h.marks[len(h.marks)-1]; at.Sub(last.at) >= markGap {
		h.marks = append(h.marks, mark{at, *sum})
	}
	for len(h.marks) > 1 && at.Sub(h.marks[1].at) >= HeldSpan {
		h.marks = append(h.marks[:0], h.marks[1:]...)
	}
	return sum.minus(&h.marks[0].sum)
}

// force names a state of the run, which is no matter of shares, and takes that name back
// when the state has ended.
func (h *holder) force(at time.Time, present machine.Bound, state bool) bool {
	if state || h.forced {
		if place := int(present); h.by != place {
			h.by, h.since = place, at
		}
		h.rival = noPlace
		h.forced = state
		return true
	}
	return false
}

// leader has the largest share; of equal ones, the one that is named stays.
func (h *holder) leader() int {
	leader, most := h.by, time.Duration(0)
	if h.by != noPlace {
		most = h.share[h.by]
	}
	for k, d := range h.share {
		if d > most {
			leader, most = k, d
		}
	}
	return leader
}

// challenge counts for how long another one leads.
func (h *holder) challenge(at time.Time, leader int) {
	if h.rival != leader {
		h.rival, h.rivalSince = leader, at
	}
	if at.Sub(h.rivalSince) >= heldLead {
		h.by, h.since, h.rival = h.rival, h.rivalSince, noPlace
	}
}

// held is what is to be said.
func (h *holder) held() (said Held) {
	whole := h.share.sum()
	if h.by == noPlace || whole <= 0 {
		return said
	}
	part := func(k int) float64 { return float64(h.share[k]) / float64(whole) }
	said = Held{By: boundAt(h.by), Share: part(h.by), Since: h.since}
	if h.forced {
		return said
	}
	for k := range h.share {
		if k != h.by && part(k) >= secondShare && part(k) > said.SecondShare {
			said.Second, said.SecondShare = boundAt(k), part(k)
		}
	}
	return said
}
