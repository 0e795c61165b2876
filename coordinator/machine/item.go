package machine

import (
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Place is where an item is. It is in exactly one at any time.
type Place uint8

// The places, in the order in which an item may pass through them.
const (
	Nowhere   Place = iota // not offered yet, or of another machine
	Waiting                // in its pool, for a grant
	InFlight               // granted: its call is running
	Parked                 // in its pool, after a refusal, ahead of those that wait
	Delayed                // in its pool, until its own backoff is over, or its own wait after a refusal
	Undecided              // in its pool, its call failed for good: it is not known yet whether the lane is to blame
	Releasing              // on its way out without a further call
	Over                   // settled or released
)

var placeWords = [...]string{"nowhere", "waiting", "in flight", "parked", "delayed", "undecided", "releasing", "over"}

func (p Place) String() string { return placeWords[p] }

// An Item is one element of a run's input, while the machine knows it.
//
// Ownership moves with the pointer. A caller who offers an item must not touch it afterwards.
// The machine owns the item while it waits. A grant lends it to one worker, until that worker
// reports the end of the call. The machine writes the exported fields below Payload only while
// it owns the item, so a worker may read them without asking.
type Item struct {
	Seq     uint64       // its number in its run; also its place in the line
	Pool    string       // the pool that it waits in; "" is the default pool
	Cost    limiter.Cost // expected draw of its call, or the estimate from which the Charge of its lane makes it: prompt, and bound on output; no requests mean one
	Payload any          // the caller's own; never looked at here

	Attempts  int           // attempts that failed and used one up, those in doubt among them
	Throttled int           // calls that were refused for now (429, 503, 529), or never left
	Waited    time.Duration // from each hand-over to the grant that answered it
	Expires   time.Time     // when it may not be tried again; zero: never
	Calls     int           // calls granted
	Probe     bool          // its latest call was a probe: the lane's test, and not the item's try
	place     Place
	verdict   Verdict   // why it is Releasing
	unwanted  bool      // it was withdrawn in flight, or before it was offered
	expiryPos int32     // its position in the machine's expiry, from 1; 0: not in it. Here it takes no room
	Offered   time.Time // when the machine took it over
	First     time.Time // when its first call was granted; zero: never
	Sent      time.Time // when its latest call was granted

	run        *run
	pool       *pool
	lane       *lane          // of the latest call
	epoch      uint64         // of the lane, when that call left
	ticket     limiter.Ticket // of the latest call, from its law
	serial     uint64         // of the latest grant: older news of this item is dropped
	prev, next *Item          // in the list that holds it

	// Only items that come back use these, so they are not next to the fields that each item
	// touches.
	cause        error     // what is behind the verdict
	due          time.Time // when Delayed is over; of a refusal until when the item alone waits
	handedOverAt time.Time // when it was handed over
	pos          int32     // in the heap that holds it; of InFlight, in its run's flights

	refused uint8 // of Throttled: calls that a server refused
	doubts  uint8 // of Attempts: those that may yet prove to be another's failure
	probed  uint8 // probes of a breaker that it failed
	counted bool  // it has counted against a lane, once and for all
}

// Queued returns the wait of the item for its first call; zero before that call.
func (it *Item) Queued() time.Duration {
	if it.First.IsZero() {
		return 0
	}
	return it.First.Sub(it.Offered)
}

// expired reports whether the item's time is up.
func (it *Item) expired(now time.Time) bool {
	return !it.Expires.IsZero() && !now.Before(it.Expires)
}

// fifo is a line of items, linked through the items themselves, so that one in
// the middle can leave (a withdrawal) without a search and without a hole.
//
//	first ⇄ item ⇄ item ⇄ last
//
// Invariant: an item is in at most one fifo or heap at a time; its place says
// which kind.
type fifo struct {
	first, last *Item
	n           int
}

// push adds an item at the end of the queue.
func (q *fifo) push(it *Item) {
	it.prev, it.next = q.last, nil
	if q.last == nil {
		q.first = it
	} else {
		q.last.next = it
	}
	q.last = it
	q.n++
}

func (q *fifo) pop() *Item {
	it := q.first
	if it != nil {
		q.remove(it)
	}
	return it
}

// remove takes an item out of the queue, wherever it stands. The item must be in it.
func (q *fifo) remove(it *Item) {
	if it.prev == nil {
		q.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		q.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
	q.n--
}

// byTurn orders items that come back. Refused ones go first, and those that failed while others
// were answered go last. Items with fewer failed probes go before the others. Within each group the
// order of the input holds.
func byTurn(a, b *Item) bool {
	if (a.place == Parked) != (b.place == Parked) {
		return a.place == Parked
	}
	if a.suspect() != b.suspect() {
		return b.suspect()
	}
	if a.probed != b.probed {
		return a.probed < b.probed
	}
	return a.Seq < b.Seq
}

// byDue orders items in backoff.
func byDue(a, b *Item) bool {
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return a.Seq < b.Seq
}

func byExpiry(a, b *Item) bool { return a.Expires.Before(b.Expires) }

func itemMoved(it *Item, pos int) { it.pos = int32(pos) }

func expiryMoved(it *Item, pos int) { it.expiryPos = int32(pos) + 1 }

// The life of an item, with one function for each way from place to place:
//
//	offered ─▶ Waiting ─send─▶ InFlight ─settled──────────▶ Over
//	              ▲               │ handed over
//	              │               ├─refused, and its lane cools──▶ Parked ──send──▶ InFlight
//	              │               ├─refused for a place──────────▶ Parked ──send──▶ InFlight
//	              ├──────due──────├─refused by itself, or failed─▶ Delayed
//	              │               └─failed for good──────────────▶ Undecided
//	              └──nobody's, or the lane's──────────────────────┘
//
//	whatever waits ─release─▶ Releasing ─lent and settled─▶ Over

// absorbOffer takes in a run's items. Each item gets its pool, and the failures that an earlier run
// remembered of it. Then it waits in the pool, or is released at once if it can never be called.
func (m *Machine) absorbOffer(now time.Time, r *run, items []*Item) {
	if r == nil {
		panic("machine: items offered to a run that is not open")
	}
	m.makeRoom(now)
	for _, it := range items { // in a loop of its own, so that a processor looks for many pools at once
		it.pool = m.poolNamed(now, r, it.Pool)
	}
	for _, it := range items {
		it.run, it.Offered, it.place = r, now, Waiting
		if c := &it.Cost; !(c.Requests > 0 && c.Input >= 0 && c.Output >= 0 && c.Requests+c.Input+c.Output <= math.MaxFloat64) {
			it.mendCost()
		}
		if len(m.items) > 0 {
			m.recallItem(now, it)
		}
		m.countWaiting(it)
		m.count(r, nil, offered)
		if m.releaseIfHopeless(it) {
			continue
		}
		it.pool.waiting.push(it)
		it.pool.wake()
	}
}

// mendCost removes impossible values from a cost. A call is one request at least.
func (it *Item) mendCost() {
	if it.Cost = it.Cost.Drawn(); it.Cost.Requests == 0 {
		it.Cost.Requests = 1
	}
}

// countWaiting adds an item to the counts of those that wait.
func (m *Machine) countWaiting(it *Item) {
	m.waiting++
	it.run.waiting++
	m.touch(it.run)
	it.pool.addCost(it)
}

// releaseIfHopeless releases an item that can never be called in its pool, and reports whether it
// did.
func (m *Machine) releaseIfHopeless(it *Item) bool {
	switch {
	case it.run.draining:
		m.release(it, EndDrained, nil)
	case it.run.purse != nil && it.run.purse.overrun != nil:
		m.release(it, EndUnpaid, it.run.purse.overrun)
	case it.pool.dead():
		m.release(it, EndStopped, it.pool.cause())
	case it.unwanted:
		m.release(it, EndWithdrawn, nil)
	default:
		return false
	}
	return true
}

// release puts an item that is in no queue among the items that end without a further call.
func (m *Machine) release(it *Item, v Verdict, cause error) {
	m.unexpire(it)
	it.pool.subtractCost(it)
	if (v == EndStopped || v == EndUnpaid) && it.run.stopped == nil {
		it.run.stopped = cause
	}
	m.rememberItem(it, v)
	it.place, it.verdict, it.cause = Releasing, v, cause
	it.run.releases.push(it)
	m.touch(it.run)
}

// absorbEnd takes in the end of a grant. It drops news of an older grant: the serial rises with
// each grant and with each end, so nothing can end twice.
func (m *Machine) absorbEnd(now time.Time, e *Event) {
	it := e.item
	if it.serial != e.serial || (it.place != InFlight && it.place != Releasing) {
		m.totals[dropped]++
		return
	}
	it.serial++
	it.run.busy--
	if m.touch(it.run); it.run.runnable.n > 0 {
		m.queueRun(it.run)
	}
	if it.place == Releasing {
		it.place, it.cause = Over, nil // its grant has passed the cause on
		m.count(it.run, it.lane, released)
		if it.verdict == EndFailed {
			m.count(it.run, it.lane, failedLater)
		}
		return
	}
	l := it.lane
	if it.pool.inFlight--; len(it.pool.lanes) > 1 {
		it.pool.seats[slices.Index(it.pool.lanes, l)].inFlight--
	}
	m.inFlight--
	it.run.flights.arrive(int(it.pos))
	o := &e.outcome
	if l.outside != nil {
		m.reportEnd(now, it, o)
	}
	o.dropImplausible()
	if it.run.purse != nil {
		it.run.purse.settle(it, o)
	}
	if before := it.Attempts; it.doubts > 0 { // before the lane learns of this end, which may open the breaker
		it.settleDoubts()
		o.Last = o.Last && it.Attempts == before // fewer are used up than its worker knew of
	}
	m.learn(now, it, o)
	if e.kind == evSettled {
		m.unexpire(it)
		it.place = Over
		m.count(it.run, l, settled)
	} else {
		m.count(it.run, l, handedOver)
		m.placeHandedOver(now, it, o)
	}
	m.wake(l)
}

// placeHandedOver decides what becomes of an item that was handed over: it is released, fails, or
// waits again.
func (m *Machine) placeHandedOver(now time.Time, it *Item, o *Outcome) {
	it.handedOverAt, it.place = now, Waiting
	m.countWaiting(it)
	used := m.countAgainstItem(now, it, o)
	if it.lane.itemAtFault(it, o) { // also in a run that drains: nothing is left to find out
		m.failItem(it, false, o.Cause)
		return
	}
	if m.releaseIfHopeless(it) {
		return
	}
	if !it.Expires.IsZero() && it.expiryPos == 0 { // it stays in that heap however often it comes back
		m.expiry.push(it)
	}
	if !m.endIfFailed(now, it, o, used) {
		m.requeue(now, it, o)
	}
}

// endIfFailed takes an item that was handed over if it has failed for good, and reports whether it
// did. Usually the item becomes undecided, as its lane may be to blame. On a remote lane the leader
// decides that, so the item fails at once. A stopped lane is to blame already, so its items are not
// taken.
func (m *Machine) endIfFailed(now time.Time, it *Item, o *Outcome, used bool) bool {
	l, last := it.lane, o.Last && used
	open := o.Alike != 0 && (o.Signal == Exhausted || o.Signal == Answered)
	switch {
	case !last && !open, l.phase == Stopped:
		return false
	case l.remote():
		if o.Signal == Exhausted && !o.Again {
			return false
		}
		m.failItem(it, last, o.Cause)
	case o.Signal == Exhausted && it.epoch < l.vouchedEpoch:
		return false
	case it.Probe && last && it.run.cfg.KeepGoing:
		m.failItem(it, last, o.Cause)
	default:
		m.holdUndecided(now, it, o)
	}
	return true
}

// requeue puts an item that was handed over back in its pool, to wait as the end of its call
// demands.
func (m *Machine) requeue(now time.Time, it *Item, o *Outcome) {
	switch l := it.lane; o.Signal {
	case Exhausted:
		if o.Alike != 0 && l.remote() && l.phase != Stopped {
			m.delayUntil(it, now.Add(HeardWithin))
			return
		}
		m.park(now, it)
	case Throttled, Overloaded:
		m.park(now, it)
	case Failed:
		m.delay(now, it, o)
	default:
		it.pool.returned.push(it)
		it.pool.wake()
	}
}

// park keeps a refused item until its lane lets calls in again. An item whose refusal concerns it
// alone is delayed instead, while its lane flows on. If its lane only had no place for it, it goes
// first, ahead of the line.
func (m *Machine) park(now time.Time, it *Item) {
	if it.due.After(now) {
		m.delayUntil(it, it.due)
		m.reportOwnWait(it, ByThrottle, "refused")
		return
	}
	it.place = Parked
	it.lane.parked++
	it.run.parked++
	m.count(it.run, it.lane, parked)
	it.pool.returned.push(it)
	it.pool.wake()
}

// delay keeps a failed item back until its backoff is over.
func (m *Machine) delay(now time.Time, it *Item, o *Outcome) {
	due := m.backoffEnd(now, it, o)
	if it.Probe { // the next probe is another's: this item may be what breaks its call
		due = latest(due, it.lane.until.Add(due.Sub(now)))
	}
	m.delayUntil(it, due)
	m.reportOwnWait(it, NoReason, "backoff")
}

// backoffEnd returns when the backoff of a failed item is over. Doubts and a wait that the server
// named can only lengthen it. An item in doubt waits for as long as an answer takes. Meanwhile
// another item may be answered, or the breaker may open, and either settles the doubt. If all of
// its attempts are in doubt, the wait doubles with each, from the second one on.
func (m *Machine) backoffEnd(now time.Time, it *Item, o *Outcome) time.Time {
	wait := m.backoff.Delay(max(1, it.Attempts), m.rng)
	if doubts := int(it.doubts); doubts > 0 {
		wait = max(wait, min(it.lane.latency.Mean(), maxDoubtWait))
		if doubts > 1 && doubts == it.Attempts {
			wait = max(wait, min(doubtBase<<min(doubts-2, maxDoublings), maxDoubtWait))
		}
	}
	if o.Directed {
		wait = max(wait, min(o.RetryAfter, MaxDirected))
	}
	return now.Add(wait)
}

// delayUntil keeps an item in its pool until it is due.
func (m *Machine) delayUntil(it *Item, due time.Time) {
	it.place, it.due = Delayed, due
	it.lane.delayed++
	it.run.delayed++
	m.count(it.run, it.lane, delayed)
	it.pool.delayed.push(it)
	if a := &it.pool.alarm; a.pos < 0 || it.due.Before(a.at) {
		m.alarms.set(a, it.due)
	}
}

// removeFromPool takes a waiting item out of its pool, wherever it is there. If it was the head,
// the pool is asked again: the next item may be smaller, and need not wait as long.
func (m *Machine) removeFromPool(it *Item) {
	switch it.place {
	case Parked:
		it.lane.parked--
		it.run.parked--
	case Delayed, Undecided:
		it.lane.delayed--
		it.run.delayed--
	}
	it.pool.take(it)
	if it.pool.wake(); it.pool.head() == nil {
		it.pool.clearWaits()
		m.leaveLines(it.pool)
		if it.pool.waitsForMoney {
			it.run.purse.setWaiting(it.pool, false)
		}
	}
}

// withdraw releases an item that its owner no longer wants. An item that is in flight, or not
// offered yet, is only marked, and released when it comes. An item of another machine is left
// alone.
func (m *Machine) withdraw(it *Item) {
	if it.run != nil && m.runs[it.run.id] != it.run {
		return
	}
	switch it.place {
	case Waiting, Parked, Delayed, Undecided:
		m.removeFromPool(it)
		m.release(it, EndWithdrawn, nil)
	case InFlight, Nowhere:
		it.unwanted = true
	}
}

// expire releases the items whose time is up while they wait. An item in flight only loses its
// deadline here: that is noted and judged again when the item comes back.
func (m *Machine) expire(now time.Time) {
	for it := m.expiry.top(); it != nil && it.expired(now); it = m.expiry.top() {
		m.expiry.pop()
		switch it.place {
		case Waiting, Parked, Delayed, Undecided:
			m.removeFromPool(it)
			m.release(it, EndExpired, nil)
		}
	}
}

// unexpire removes the deadline of an item that is over, or on its way out, so that the
// deadline does not keep the item alive. Only items that were handed over pay for this.
func (m *Machine) unexpire(it *Item) {
	if it.expiryPos > 0 {
		m.expiry.remove(int(it.expiryPos) - 1)
	}
}

// releaseAll releases all items that wait in a pool, with the given verdict.
func (m *Machine) releaseAll(p *pool, v Verdict, cause error) {
	for _, it := range p.undecidedItems() {
		m.removeFromPool(it)
		m.release(it, v, cause)
	}
	for !p.empty() {
		it := p.head()
		if it == nil {
			it = p.delayed.top()
		}
		m.removeFromPool(it)
		m.release(it, v, cause)
	}
}
