package machine

import (
	"cmp"
	"strings"
	"time"
)

// A Ledger divides a run's time by what held it back. Its sum is the time since the run was
// opened, to the nanosecond.
type Ledger [Bounds]time.Duration

// Sum returns the whole time.
func (l Ledger) Sum() (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// String returns the word of each bound that held the run back, with its time: "requests 1.2s,
// tail 30ms".
func (l Ledger) String() string {
	var parts []string
	for b, d := range l {
		if d != 0 {
			parts = append(parts, cmp.Or(Bound(b).String(), "none")+" "+d.String())
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// books keep a run's ledger. The bound of a run changes only where the machine decides, so the
// time between two decisions belongs to the bound that the first one left: the integral is
// exact.
//
// If a lane holds the run back, the line of that lane keeps the ledger, for all runs that sleep
// there. The run's share is the growth of that ledger. If the pools of a run sleep on several
// lanes, it is the lane for which most items wait.
type books struct {
	opened   time.Time
	since    time.Time // when bound began to hold the run back
	bound    Bound     // of the run's own
	behind   *line     // what holds the run back instead; nil: bound does
	from     Ledger    // of that line, when it began to
	ledger   Ledger    // until then
	sleepers heap[*seat]
}

func newBooks(now time.Time) books {
	return books{opened: now, since: now, bound: BoundInput, sleepers: heap[*seat]{before: byItems, moved: seatMoved}}
}

func byItems(a, b *seat) bool { return a.items > b.items }

func seatMoved(x *seat, pos int) { x.pos = pos }

// account notes what holds the run back from now on. If that is another bound, the old one gets
// the time until now; if it is the same, its time goes on.
func (r *run) account(now time.Time, full bool) {
	b := &r.books
	bound, behind := r.heldBy(full)
	if bound == b.bound && behind == b.behind {
		return
	}
	b.ledger = r.accounted(now)
	if b.since, b.bound, b.behind = now, bound, behind; behind != nil {
		b.from = behind.until(now)
	}
}

// accounted returns the ledger up to now. It changes nothing.
func (r *run) accounted(now time.Time) Ledger {
	b := &r.books
	l := b.ledger
	if b.behind == nil {
		l[b.bound] += now.Sub(b.since)
		return l
	}
	for by, d := range b.behind.until(now) {
		l[by] += d - b.from[by]
	}
	return l
}

// bound returns the bound that holds the run back.
func (r *run) bound() Bound {
	if q := r.books.behind; q != nil {
		return q.bound
	}
	return r.books.bound
}

// heldBy returns what holds the run back once all possible calls were granted: a bound of its
// own, or the line of a lane. full reports that no run has a place for a call: pools that are
// awake wait for one.
func (r *run) heldBy(full bool) (Bound, *line) {
	switch {
	case r.stranded && r.held == 0: // what still waits has a lane
		return BoundStopped, nil
	case r.draining:
		return BoundDraining, nil
	case r.paused:
		return BoundPaused, nil
	case r.held == 0 && r.inputEnded:
		return BoundTail, nil
	case r.held == 0:
		return BoundInput, nil // also where all its places are taken: one more would have nothing to call
	case !r.free(), full && r.runnable.n > 0:
		return BoundConcurrency, nil
	case r.books.sleepers.len() == 0:
		return BoundBackoff, nil // no pool has anything to give
	}
	return BoundNone, r.books.sleepers.top().lane.line
}

// countAt counts the items of a sleeping pool at its seat.
func (p *pool) countAt(x *seat) {
	n := p.waiting.n + p.returned.len()
	if x == p.behind && n == p.counted {
		return
	}
	p.rouse()
	p.behind, p.counted = x, n
	x.items += n
	p.run.recount(x)
}

// rouse takes that count back.
func (p *pool) rouse() {
	if x := p.behind; x != nil {
		x.items -= p.counted
		p.behind, p.counted = nil, 0
		p.run.recount(x)
	}
}

// recount finds a seat its place among the sleepers.
func (r *run) recount(x *seat) {
	r.m.touch(r)
	sleepers := &r.books.sleepers
	if x.pos >= 0 {
		sleepers.remove(x.pos)
	}
	if x.items > 0 {
		sleepers.push(x)
	}
}

// flights hold when the calls of a run left that are under way, in slots that are used again.
// Only the owner writes to them: the items themselves are with the workers.
type flights struct {
	slots []flight
	free  int // 1 + the first slot that is free; 0: none is
}

type flight struct {
	left time.Time // zero: the slot is free
	of   *Item     // whose call it is
	next int       // of a free one: 1 + the next that is; 0: there is none
}

// depart takes a slot.
func (f *flights) depart(now time.Time, it *Item) (slot int) {
	if f.free == 0 {
		f.slots = append(f.slots, flight{left: now, of: it})
		return len(f.slots) - 1
	}
	slot = f.free - 1
	taken := &f.slots[slot]
	f.free, taken.left, taken.of = taken.next, now, it
	return slot
}

func (f *flights) arrive(slot int) {
	f.slots[slot] = flight{next: f.free}
	f.free = slot + 1
}

// oldest returns when the first of the calls under way left, and their number; zero: there are
// none.
func (f *flights) oldest() (first time.Time, n int) {
	for k := range f.slots {
		at := f.slots[k].left
		if at.IsZero() {
			continue
		}
		if n++; n == 1 || at.Before(first) {
			first = at
		}
	}
	return first, n
}
