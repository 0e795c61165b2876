package machine

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// forever is the wait of a pool that only an event can end, not time.
const forever = time.Duration(1<<63 - 1)

// pool holds the items of a run that wait for one of some lanes.
//
//	offered ──▶ waiting ───────────────────────────┐
//	refused with its lane ──▶ returned (parked) ───┼──▶ head ──▶ grant
//	refused alone, failed ──▶ delayed ──due──▶ returned
//
// Invariant: while an item could go and the run has room, the pool is in its run's runnable
// line. Otherwise it sleeps. Its alarm, an event of one of its lanes, or an ended call of its
// run wakes it.
type pool struct {
	name          string
	run           *run
	lanes         []*lane
	oneLane       [1]*lane // backing array of lanes where there is only one
	waiting       fifo     // offered, never called
	queued        bool     // in run.runnable
	hasChargeRule bool     // the first lane charges by a rule of its own
	waitsForMoney bool     // its head waits for money of its run
	freshGoesNext bool     // the latest to go had failed before: one that was never called goes next
	turn          int      // the lane that is asked first, where they take turns
	counted       int      // its items that count at behind; 0: it is awake, or has none to give
	behind        *runSeat // of a sleeping pool: its seat, at the one of several lanes for which it waits
	next          *pool
	inFlight      int          // its items that are
	undecided     int          // its items that are
	cost          limiter.Cost // of the items that wait here, in any of the three, as the first lane charges them
	returned      heap[*Item]  // parked, or whose backoff is over: they go before waiting ones
	delayed       heap[*Item]  // in backoff, or waiting alone after a refusal
	alarm         alarm        // when the first of its delayed ones is due
	seats         []poolSeat   // its places on its lanes; nil: it is the first of the pools of each, and never slept
	noRoom        error        // why it has no lane: there would be too many; nil: it has
	tiers         *tiers       // nil: its lanes are of one tier
}

// newPool returns an empty pool of the run, which has no lanes yet.
func newPool(r *run, c PoolConfig) *pool {
	p := &pool{name: c.Name, run: r, tiers: newTiers(c)}
	p.lanes = p.oneLane[:0]
	p.returned = heap[*Item]{before: byTurn, moved: itemMoved}
	p.delayed = heap[*Item]{before: byDue, moved: itemMoved}
	p.alarm = alarm{pos: -1, pool: p}
	return p
}

// head returns the item whose turn it is; nil if none can go now.
func (p *pool) head() *Item {
	if p.returned.len() == 0 {
		return p.waiting.first
	}
	return p.inTurn()
}

// inTurn returns the head where items have come back. Items that have failed take turns with
// items that were never called. Otherwise, where a limit paces them, items that always fail
// would have every call. No other item would be answered then, and only such answers tell them
// apart.
func (p *pool) inTurn() *Item {
	it := p.returned.top()
	if p.freshGoesNext && it.Attempts > 0 && it.place != Parked && p.waiting.first != nil {
		return p.waiting.first
	}
	return it
}

// take removes an item from wherever it waits in the pool.
func (p *pool) take(it *Item) {
	switch {
	case it.place == Delayed:
		p.delayed.remove(int(it.pos))
	case it.place == Undecided:
		p.undecided--
	case it.Calls > 0: // items that come back are in the heap, parked or due
		p.returned.remove(int(it.pos))
	default:
		p.waiting.remove(it)
	}
}

// empty reports whether no item of the run waits here.
func (p *pool) empty() bool {
	return p.waiting.n == 0 && p.returned.len() == 0 && p.delayed.len() == 0 && p.undecided == 0
}

// undecidedItems returns the pool's items that are undecided. It searches all lanes of the pool, so
// it serves only ends and pictures.
func (p *pool) undecidedItems() (items []*Item) {
	if p.undecided == 0 {
		return nil
	}
	for _, l := range p.lanes {
		if l.blame == nil {
			continue
		}
		for _, u := range l.blame.waiting() {
			if u.it.pool == p {
				items = append(items, u.it)
			}
		}
	}
	return items
}

// probeOn returns the item to send on the lane in place of the pool's head. While the breaker is
// open and the head has failed before, that is an item that never failed. The head itself may be
// what breaks its calls, and not the server. After such a probe has failed the head is next,
// because a fresh item may fail too.
func (p *pool) probeOn(now time.Time, l *lane, head *Item) *Item {
	probedFresh := l.breaker.Reopened()%2 == 1 && head.Calls > 0
	if !l.down(now) || probedFresh || head.Attempts == 0 && head.probed == 0 {
		return head
	}
	fresh := p.waiting.first
	for fresh != nil && fresh.Attempts > 0 {
		fresh = fresh.next
	}
	if fresh == nil || l.admit(now, p, fresh) > 0 {
		return head
	}
	return fresh
}

// makeDueReady moves the items whose backoff is over to those that may go.
func (p *pool) makeDueReady(now time.Time) {
	for it := p.delayed.top(); it != nil && !it.due.After(now); it = p.delayed.top() {
		p.makeReady(p.delayed.pop())
	}
}

// freeFrom ends the waits of delayed items whose latest call was on the lane, because a person has
// reset it.
func (p *pool) freeFrom(l *lane) {
	for _, it := range slices.Clone(p.delayed.items) { // remove changes the heap under the loop
		if it.lane == l {
			p.delayed.remove(int(it.pos))
			p.makeReady(it)
		}
	}
	p.wake()
}

// makeReady moves a delayed item, which is in no queue, to those that may go.
func (p *pool) makeReady(it *Item) {
	it.due = time.Time{} // or its next refusal would wait for the rest of it
	it.lane.delayed--
	p.run.delayed--
	it.place = Waiting
	p.returned.push(it)
}

// dead reports whether none of the pool's lanes will ever grant again.
func (p *pool) dead() bool {
	for _, l := range p.lanes {
		if l.phase != Stopped {
			return false
		}
	}
	return true
}

// cause returns why a dead pool has no lane: what stopped the first of its lanes that names a
// cause, or else why the pool is shut.
func (p *pool) cause() error {
	for _, l := range p.lanes {
		if l.cause != nil {
			return l.cause
		}
	}
	return p.noRoom
}

// pick returns the lane that takes the item first, and the time until then. 0 is now; forever means
// until something happens. If the item must wait, first is the lane whose bound says for what.
// asked is the number of lanes that were asked.
func (p *pool) pick(now time.Time, it *Item) (first *lane, soonest time.Duration, asked int) {
	if p.tiers != nil {
		return p.pickOfTiers(now, it)
	}
	soonest = forever
	crowded := -1 // the first lane that could go, and has its share of the run's places
	for i := range p.lanes {
		k := p.index(i)
		l := p.lanes[k]
		wait := p.waitOn(now, l, it)
		if wait == 0 && p.hasItsShare(k, len(p.lanes)) {
			if crowded < 0 {
				crowded = k
			}
			continue
		}
		if wait == 0 {
			p.turn = p.index(i + 1)
			return l, 0, i + 1
		}
		if first == nil || wait < soonest || first.phase == Stopped {
			first, soonest = l, min(wait, soonest)
		}
	}
	if crowded >= 0 {
		p.turn = (crowded + 1) % len(p.lanes)
		return p.lanes[crowded], 0, len(p.lanes)
	}
	return first, soonest, len(p.lanes)
}

// hasItsShare reports whether the k-th lane, which takes turns with others, n in all, has its
// share of the run's places. It gives way to a lane that has not: a lane of long calls would
// come to hold all places otherwise.
func (p *pool) hasItsShare(k, n int) bool {
	return n > 1 && int(p.seats[k].inFlight)*n >= p.run.m.ceiling(p.run)
}

// waitOn returns the time until the item may go on the lane; forever while another pool is first in
// the lane's line. It also stores the time in the lane's delay, for the line's alarm.
func (p *pool) waitOn(now time.Time, l *lane, it *Item) time.Duration {
	if next := l.line.first(); next != nil && next != p {
		return forever
	}
	l.delay = l.admit(now, p, it)
	if l.outside != nil && l.remote() { // its law has just said whether it cools
		p.run.m.noteRest(now, l)
	}
	return l.delay
}

// index returns which of its lanes the pool asks as the i-th.
func (p *pool) index(i int) int {
	if p.tiers != nil {
		return p.tiers.index(i)
	}
	return (p.turn + i) % len(p.lanes)
}

// setAlarm sets when to wake the pool: when the first of its delayed items is due, or when it may
// use its next tier.
func (m *Machine) setAlarm(p *pool) {
	var at time.Time
	if it := p.delayed.top(); it != nil {
		at = it.due
	}
	if p.tiers != nil && p.counted > 0 {
		if next := p.tiers.nextAt(p.run.m.now); !next.IsZero() && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	if !at.IsZero() {
		m.alarms.set(&p.alarm, at)
	}
}

// Next comes what items draw on lanes. An item carries estimates, and each lane turns
// them into a cost by the rule of its provider. So the same item may cost more on one lane than
// on another. A lane keeps its rule for as long as its law. So the charge of a call that left
// is the same when it ends and is settled.
//
// Most lanes take the estimates as they are. They are marked, so their items cost only a look
// at the mark.

// recharge changes the rule by which the lane charges, and computes the sums anew that depend on
// it.
func (l *lane) recharge(c limiter.Charge) {
	if l.charge == c {
		return
	}
	l.charge, l.hasChargeRule = c, c != limiter.Charge{}
	for _, p := range l.pools {
		if p.lanes[0] == l {
			p.hasChargeRule, p.cost = l.hasChargeRule, p.sumCosts(l)
		}
	}
}

// chargeNews replaces the costs in the news of a call by those that the lane's rule makes of them.
func (l *lane) chargeNews(n *limiter.News, o *Outcome) {
	n.Cost = l.charge.Of(n.Cost)
	if o.Measured {
		n.Actual = l.charge.Settled(o.Actual, o.Cached)
		if free := o.Actual.Input - n.Actual.Input; free > 0 {
			n.Cached = free
		}
	}
}

// addCost adds an item's draw to the sum of those that wait in the pool.
func (p *pool) addCost(it *Item) {
	if p.hasChargeRule {
		p.cost = p.cost.Plus(p.lanes[0].charge.Of(it.Cost))
		return
	}
	p.cost = p.cost.Plus(it.Cost)
}

// subtractCost takes an item's draw away from the sum of those that wait in the pool.
func (p *pool) subtractCost(it *Item) {
	if p.hasChargeRule {
		p.cost = p.cost.Minus(p.lanes[0].charge.Of(it.Cost))
		return
	}
	p.cost = p.cost.Minus(it.Cost)
}

// costOn returns the cost, on one of its lanes, of the items that wait in the pool.
func (p *pool) costOn(l *lane) limiter.Cost {
	if p.lanes[0].charge == l.charge {
		return p.cost
	}
	return p.sumCosts(l)
}

// sumCosts returns the cost of all items that wait in the pool, as the lane charges them. It visits
// each item, so it serves only pictures and a change of the rule.
func (p *pool) sumCosts(l *lane) (c limiter.Cost) {
	for it := p.waiting.first; it != nil; it = it.next {
		c = c.Plus(l.charge.Of(it.Cost))
	}
	for _, items := range [][]*Item{p.returned.items, p.delayed.items, p.undecidedItems()} {
		for _, it := range items {
			c = c.Plus(l.charge.Of(it.Cost))
		}
	}
	return c
}

// heap is a binary heap: the first element is on top. If the elements know their position, one
// in the middle can leave in O(log n).
//
// It exists because container/heap boxes each element in an interface, and these heaps are on
// the path of every refused call.
type heap[T any] struct {
	items  []T
	before func(a, b T) bool
	moved  func(x T, pos int) // told each new position, -1 when out; may be nil
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) top() (x T) {
	if len(h.items) > 0 {
		x = h.items[0]
	}
	return x
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

func (h *heap[T]) pop() T {
	x := h.top()
	h.remove(0)
	return x
}

// firsts returns the n elements that come first, in order. It takes n·log n steps, whatever the
// size of the heap.
func (h *heap[T]) firsts(n int) []T {
	var first []T
	next := heap[int]{before: func(a, b int) bool { return h.before(h.items[a], h.items[b]) }}
	if len(h.items) > 0 {
		next.push(0)
	}
	for next.len() > 0 && len(first) < n {
		at := next.pop()
		first = append(first, h.items[at])
		for child := 2*at + 1; child <= 2*at+2 && child < len(h.items); child++ {
			next.push(child)
		}
	}
	return first
}

// remove takes out the element at pos, and restores the order of the heap.
func (h *heap[T]) remove(pos int) {
	var none T
	last := len(h.items) - 1
	out, moved := h.items[pos], h.items[last]
	h.items[last] = none // or the array would keep it alive
	h.items = h.items[:last]
	h.notifyMoved(out, -1)
	if pos < last {
		h.items[pos] = moved
		h.down(pos)
		h.up(pos)
	}
}

// up moves the element at i towards the top until the one above it comes first.
func (h *heap[T]) up(i int) {
	x := h.items[i]
	for i > 0 && h.before(x, h.items[(i-1)/2]) {
		h.set(i, h.items[(i-1)/2])
		i = (i - 1) / 2
	}
	h.set(i, x)
}

// down moves the element at i away from the top until none below it comes before it.
func (h *heap[T]) down(i int) {
	x, n := h.items[i], len(h.items)
	for child := 2*i + 1; child < n; child = 2*i + 1 {
		if child+1 < n && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, x)
}

func (h *heap[T]) set(i int, x T) {
	h.items[i] = x
	h.notifyMoved(x, i)
}

func (h *heap[T]) notifyMoved(x T, pos int) {
	if h.moved != nil {
		h.moved(x, pos)
	}
}

// An alarm is a moment at which a lane or a pool wants to be looked at again.
// Each has one, so that the driver needs one timer however many wait.
type alarm struct {
	at   time.Time
	seq  uint64 // of its setting: of two for one moment the older rings first
	pos  int    // in the machine's alarms; -1: not set
	lane *lane
	pool *pool
}

// alarms holds those that are set, the earliest on top.
type alarms struct {
	heap[*alarm]
	settings uint64
}

func newAlarms() alarms {
	return alarms{heap: heap[*alarm]{
		before: byMoment,
		moved:  func(a *alarm, pos int) { a.pos = pos },
	}}
}

func byMoment(a, b *alarm) bool {
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	return a.seq < b.seq
}

// set sets an alarm to ring at that moment, whether or not it was set before.
func (h *alarms) set(a *alarm, at time.Time) {
	h.settings++
	a.at, a.seq = at, h.settings
	if a.pos < 0 {
		h.push(a)
		return
	}
	h.down(a.pos)
	h.up(a.pos)
}

// clear unsets an alarm; one that is not set may be cleared.
func (h *alarms) clear(a *alarm) {
	if a.pos >= 0 {
		h.remove(a.pos)
	}
}

// due removes and returns an alarm whose moment has come; nil if there is none.
func (h *alarms) due(now time.Time) *alarm {
	if a := h.top(); a != nil && !a.at.After(now) {
		return h.pop()
	}
	return nil
}
