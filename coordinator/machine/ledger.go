package machine

import (
	"cmp"
	"strings"
	"time"
)

// A Ledger is a run's time by what held it back. Its sum is the time since the run was
// opened, to the nanosecond.
type Ledger [Bounds]time.Duration

// Sum is all of it.
func (l Ledger) Sum() (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// String is the word of each bound that held the run back, with its time: "requests 1.2s,
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

// books are how a run keeps its ledger. What holds it back changes only where the machine
// decides, so the time between two decisions is that of the bound which the first one left:
// the integral is exact.
//
// A pool whose head must wait sleeps, and its items are counted under what it sleeps for
// until it is asked again or has no head any more. So of a run with many pools that bound is
// known which most items wait behind.
type books struct {
	opened   time.Time
	since    time.Time // when bound began to hold the run back
	bound    Bound
	ledger   Ledger      // until then
	asleep   [Bounds]int // items that wait, by what their pools sleep for
	sleepers int         // pools that do
}

// account sees what holds the run back from now on. What did until now is given its time
// where that is another: what stays goes on.
func (r *run) account(now time.Time, full bool) {
	b := &r.books
	if bound := r.boundNow(full); bound != b.bound {
		b.ledger[b.bound] += now.Sub(b.since)
		b.since, b.bound = now, bound
	}
}

// accounted is the ledger up to now. It changes nothing.
func (r *run) accounted(now time.Time) Ledger {
	l := r.books.ledger
	l[r.books.bound] += now.Sub(r.books.since)
	return l
}

// boundNow is what holds the run back when all was granted that could be. full is whether no
// run has a place for a call: those that were not asked for that are awake.
func (r *run) boundNow(full bool) Bound {
	switch {
	case r.stranded && r.held == 0: // what still waits has a lane
		return BoundStopped
	case r.draining:
		return BoundDraining
	case r.paused:
		return BoundPaused
	case r.held == 0 && r.inputEnded:
		return BoundTail
	case r.held == 0:
		return BoundInput // also where all its places are taken: one more would have nothing to call
	case !r.free(), full && r.runnable.n > 0:
		return BoundConcurrency
	case r.books.sleepers == 0:
		return BoundBackoff // no pool has anything to give
	}
	return r.books.most()
}

// most is the bound that most items wait behind. Of equal ones it is the first.
func (b *books) most() Bound {
	most := BoundNone
	for i, n := range b.asleep {
		if n > b.asleep[most] {
			most = Bound(i)
		}
	}
	return most
}

// sleep counts the items of a pool whose head waits for that.
func (p *pool) sleep(by Bound) {
	p.asleep, p.counted = by, p.waiting.n+p.returned.len()
	p.run.books.asleep[by] += p.counted
	p.run.books.sleepers++
}

// rouse takes back what was counted.
func (p *pool) rouse() {
	if p.counted == 0 {
		return
	}
	p.run.books.asleep[p.asleep] -= p.counted
	p.run.books.sleepers--
	p.counted = 0
}

// flights are when the calls of a run left that are under way, in slots that are used
// again. The owner alone writes to them: the items themselves are with the workers.
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

// oldest is when the first of those under way left, and how many there are; zero: none.
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
