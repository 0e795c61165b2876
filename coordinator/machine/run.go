package machine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// run is one client of the machine: a stretch of input with its own pools and its own ceiling
// on calls in flight.
//
// Invariant: held + inFlight + done = offered, where held counts the items that
// wait in any of its pools or among its releases.
type run struct {
	m      *Machine
	turn   link[run] // among those that may be given something
	id     RunID
	cfg    RunConfig
	counts tally

	pools    map[string]*pool
	opened   []*pool // the same pools, in a deterministic order
	recent   *pool   // of the latest item: most runs have one pool, and no look-up
	busy     int     // grants that were not ended yet, releases included
	waiting  int
	parked   int      // of these
	delayed  int      // of these
	given    int      // items of its present turn; less than its priority
	runnable poolRing // pools that may have something to give
	releases fifo     // items that end without a further call
	stopped  error    // why no lane could take the first of them; nil: none ended so
	books    books
	flights  flights
	purse    *purse // its money; nil: it has no budget
	asked    uint64 // the latest asking of a lane that has counted its places

	touched, inputEnded, draining, paused, stranded bool
	resumed                                         time.Time // when it was last paused no more
}

// hasRoom reports whether one more grant fits under the run's ceiling. The driver
// relies on it: a channel of that capacity never blocks its sender.
func (r *run) hasRoom() bool { return r.busy < r.cfg.Concurrency }

// full reports whether all runs together have as many calls in flight as they may.
func (m *Machine) full() bool { return over(m.inFlight, m.cfg.Concurrency) }

// ceiling returns the bound on a run's calls in flight.
func (m *Machine) ceiling(r *run) int {
	if most := m.cfg.Concurrency; most > 0 {
		return min(most, r.cfg.Concurrency)
	}
	return r.cfg.Concurrency
}

// finished reports whether the run will never be granted anything again.
func (r *run) finished() bool { return r.inputEnded && r.waiting == 0 && r.busy == 0 }

// deadRun reports whether all pools of the run have lost their lanes. That includes pools that are
// configured and have no item yet.
func (m *Machine) deadRun(r *run) bool {
	for _, p := range r.opened {
		if !p.dead() {
			return false
		}
	}
	for _, p := range r.cfg.Pools {
		for _, name := range p.Lanes {
			if l := m.lanes[name]; l == nil || l.phase != Stopped {
				return false
			}
		}
	}
	return true
}

// definePool adds a pool to the config of the run; a run that is over has none.
func (r *run) definePool(c PoolConfig) {
	if r == nil || r.pools[c.Name] != nil || slices.ContainsFunc(r.cfg.Pools, func(p PoolConfig) bool { return p.Name == c.Name }) {
		return
	}
	r.cfg.Pools = append(slices.Clip(r.cfg.Pools), c)
}

// drawsOn reports whether some pool of the run uses the lane.
func (r *run) drawsOn(l *lane) bool { return r.poolOn(l) != nil }

// poolOn returns a pool of the run that draws on the lane; nil: none does. It searches the pools of
// the run or of the lane, whichever are fewer.
func (r *run) poolOn(l *lane) *pool {
	all, draws := l.pools, func(p *pool) bool { return p.run == r }
	if len(r.opened) < len(all) {
		all, draws = r.opened, func(p *pool) bool { return slices.Contains(p.lanes, l) }
	}
	if i := slices.IndexFunc(all, draws); i >= 0 {
		return all[i]
	}
	return nil
}

// poolNamed returns the run's pool of that name. If there is none, it makes the pool and the lanes
// that it draws on.
func (m *Machine) poolNamed(now time.Time, r *run, name string) *pool {
	if p := r.recent; p != nil && p.name == name {
		return p
	}
	p := r.pools[name]
	if p == nil {
		p = m.openPool(now, r, name)
	}
	if p.noRoom == nil {
		r.recent = p
	}
	return p
}

// openPool makes a run's pool, with the lanes of its config or one of its own name. If there is no
// room for the lanes, the pool is shut, and the run is given up.
func (m *Machine) openPool(now time.Time, r *run, name string) *pool {
	name = strings.Clone(name) // it may be a piece of an item, which would be kept as long as the pool
	c := PoolConfig{Name: name, Lanes: []string{name}}
	if name == "" {
		c.Lanes = []string{DefaultPool}
	}
	for _, known := range r.cfg.Pools {
		if known.Name == name {
			c = known
		}
	}
	for _, lane := range c.Lanes {
		m.prepareForNewRun(now, lane)
	}
	p := newPool(r, c)
	if p.noRoom = m.roomFor(c.Lanes); p.noRoom != nil {
		m.giveUp(r, p.noRoom)
		return p // which turns its item away, and is no pool of the run's: the next item finds out anew
	}
	for _, laneName := range c.Lanes {
		p.lanes = append(p.lanes, m.laneNamed(now, laneName))
	}
	if len(p.lanes) > 1 {
		p.poolSeatOn(0) // its calls are counted there
	}
	for i := range p.lanes {
		p.drawOn(i)
	}
	p.hasChargeRule = p.lanes[0].hasChargeRule
	r.pools[name] = p
	r.opened = append(r.opened, p)
	m.schedulePoolSays(p)
	if p.dead() {
		m.strandRun(r, p.cause())
	}
	return p
}

// poolRing is a line of pools without links of its own: a pool can be in the
// runnable line only once, which its queued flag guards.
type poolRing struct {
	first, last *pool
	n           int
}

// push puts a pool at the end of the line, unless it is in there already.
func (q *poolRing) push(p *pool) {
	if p.queued {
		return
	}
	p.queued, p.next = true, nil
	if q.last == nil {
		q.first = p
	} else {
		q.last.next = p
	}
	q.last = p
	q.n++
}

// pop takes the first pool out of the line, and returns it; nil: there is none. The pool may be put
// in again.
func (q *poolRing) pop() *pool {
	p := q.first
	if p == nil {
		return nil
	}
	q.first = p.next
	if q.first == nil {
		q.last = nil
	}
	p.queued, p.next = false, nil
	q.n--
	return p
}

// open adds a run. It panics if the run is there already, which only a fault of the caller can
// cause.
func (m *Machine) open(id RunID, c RunConfig) {
	if m.runs[id] != nil {
		panic("machine: a run was opened twice")
	}
	r := &run{m: m, id: id, cfg: c.withDefaults(), pools: map[string]*pool{}}
	r.books, r.purse = newBooks(m.now), newPurse(&r.cfg)
	m.runs[id] = r
	m.touch(r)
}

// close forgets a run that is over, and closes its pools.
func (m *Machine) close(r *run) {
	for _, p := range r.opened {
		m.closePool(p)
	}
	if r.turn.of != nil { // as many calls are in flight as may be, so nobody has asked it yet
		m.awake.remove(&r.turn)
	}
	delete(m.runs, r.id)
}

// closePool ends a pool's draw on its lanes, and forgets the pool. It first counts for the run what
// befell the lanes.
func (m *Machine) closePool(p *pool) {
	m.alarms.clear(&p.alarm)
	m.leaveLines(p)
	p.settleCounts()
	for i, l := range p.lanes {
		if p.stopDrawingOn(i); len(l.pools) == 0 {
			l.wait.end() // the next run to use it waits anew
		}
		m.scheduleSay(l)
	}
	delete(p.run.pools, p.name)
	if p.run.recent == p {
		p.run.recent = nil
	}
}

// steer applies an order to a run: to end its input, pause, resume or drain. An order for a run
// that is over does nothing, as it may have crossed the end.
func (m *Machine) steer(r *run, kind eventKind) {
	if r == nil {
		return
	}
	m.touch(r)
	switch kind {
	case evInputEnded:
		r.inputEnded = true
	case evPaused:
		m.pause(r)
	case evResumed:
		m.resume(r)
	case evDrained:
		m.drain(r)
	}
}

// pause holds a run back, and gives its places in the lines to other runs.
func (m *Machine) pause(r *run) {
	r.paused = true
	for _, p := range r.opened {
		p.clearWaits()
		m.leaveLines(p)
		p.wake()
		m.schedulePoolSays(p)
	}
}

// resume ends a pause. The run's lanes wait anew from now on, as nobody has tried them meanwhile.
func (m *Machine) resume(r *run) {
	r.paused, r.resumed = false, m.now
	m.queueRun(r)
	for _, p := range r.opened {
		m.schedulePoolSays(p)
		for _, l := range p.lanes {
			if l.phase != Stopped {
				l.waitsAnew()
			}
		}
	}
}

// setConcurrency changes how many calls a run may have in flight; run 0 stands for all runs
// together. The shares of pools and lanes change with that, so each pool is asked again. A run that
// is over is left alone.
func (m *Machine) setConcurrency(id RunID, n int) {
	var concerned []*run
	if r := m.runs[id]; r != nil {
		r.cfg.Concurrency = min(max(1, n), r.cfg.MostConcurrency)
		concerned = append(concerned, r)
	} else if id == 0 {
		m.cfg.Concurrency = min(max(1, n), MaxConcurrency)
		for _, runID := range slices.Sorted(maps.Keys(m.runs)) {
			concerned = append(concerned, m.runs[runID])
		}
	}
	for _, r := range concerned {
		m.queueRun(r)
		for _, p := range r.opened {
			p.wake()
			m.schedulePoolSays(p)
		}
	}
}

func (m *Machine) drain(r *run) {
	r.draining = true
	for _, p := range r.opened {
		m.releaseAll(p, EndDrained, nil)
		m.schedulePoolSays(p)
	}
}

// strand releases the items of pools that have lost their last lane, and reports the runs that
// have. Other pools of the stopped lane wait for their other lanes.
func (m *Machine) strand(l *lane, cause error) {
	for _, p := range l.pools {
		if !p.dead() { // it waits for another lane from now on
			m.leaveLines(p)
			p.wake()
			continue
		}
		m.releaseAll(p, EndStopped, cause)
		m.strandRun(p.run, cause)
	}
}

func (m *Machine) strandRun(r *run, cause error) {
	if !r.stranded && m.deadRun(r) {
		m.giveUp(r, cause)
	}
}

// giveUp reports a run, once, that need not be fed any more.
func (m *Machine) giveUp(r *run, cause error) {
	if !r.stranded {
		r.stranded = true
		m.touch(r)
		m.out.Stranded = append(m.out.Stranded, Stranding{Run: r.id, Cause: cause})
	}
}

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

// String returns each bound that held the run back, with its time: "requests 1.2s, tail 30ms".
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
	opened     time.Time
	since      time.Time // when bound began to hold the run back
	bound      Bound     // of the run's own
	behind     *line     // what holds the run back instead; nil: bound does
	lineLedger Ledger    // of that line, when it began to
	ledger     Ledger    // until then
	sleepers   heap[*runSeat]
}

func newBooks(now time.Time) books {
	return books{opened: now, since: now, bound: BoundInput, sleepers: heap[*runSeat]{before: byItems, moved: seatMoved}}
}

func byItems(a, b *runSeat) bool { return a.items > b.items }

func seatMoved(x *runSeat, pos int) { x.pos = pos }

// updateBooks notes what holds the run back from now on. If that has changed, the former bound is
// charged with the time until now.
func (r *run) updateBooks(now time.Time, full bool) {
	b := &r.books
	bound, behind := r.currentBound(full)
	if bound == b.bound && behind == b.behind {
		return
	}
	b.ledger = r.ledgerAt(now)
	if b.since, b.bound, b.behind = now, bound, behind; behind != nil {
		b.lineLedger = behind.ledgerAt(now)
	}
}

// ledgerAt returns the run's ledger up to now. It changes nothing.
func (r *run) ledgerAt(now time.Time) Ledger {
	b := &r.books
	l := b.ledger
	if b.behind == nil {
		l[b.bound] += now.Sub(b.since)
		return l
	}
	for by, d := range b.behind.ledgerAt(now) {
		l[by] += d - b.lineLedger[by]
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

// currentBound returns what holds the run back once all possible calls are granted: a bound of its
// own, or the line of a lane. full says that as many calls are in flight as all runs may have, so
// that pools which are awake wait for a place.
func (r *run) currentBound(full bool) (Bound, *line) {
	switch {
	case r.purse != nil && r.purse.overrun != nil && r.waiting == 0:
		return BoundBudget, nil
	case r.stranded && r.waiting == 0: // what still waits has a lane
		return BoundStopped, nil
	case r.draining:
		return BoundDraining, nil
	case r.paused:
		return BoundPaused, nil
	case r.waiting == 0 && r.inputEnded:
		return BoundTail, nil
	case r.waiting == 0:
		return BoundInput, nil // also where all its places are taken: one more would have nothing to call
	case !r.hasRoom(), full && r.runnable.n > 0:
		return BoundConcurrency, nil
	case r.purse != nil && len(r.purse.waiting) > 0:
		return BoundBudget, nil
	case r.books.sleepers.len() == 0:
		return BoundBackoff, nil // no pool has anything to give
	}
	return BoundNone, r.books.sleepers.top().lane.line
}

// countItemsAt counts the items of a sleeping pool at its run's seat on the lane for which it
// waits.
func (p *pool) countItemsAt(seat *runSeat) {
	n := p.waiting.n + p.returned.len()
	if seat == p.behind && n == p.counted {
		return
	}
	p.uncountItems()
	p.behind, p.counted = seat, n
	seat.items += n
	p.run.reorderSeat(seat)
}

// uncountItems takes back the count that countItemsAt made, as the pool does not sleep any more.
func (p *pool) uncountItems() {
	if seat := p.behind; seat != nil {
		seat.items -= p.counted
		p.behind, p.counted = nil, 0
		p.run.reorderSeat(seat)
		if p.tiers != nil {
			p.tiers.wokenAt = p.run.m.now
		}
	}
}

// reorderSeat moves a seat to its place among the run's sleepers, after its number of items has
// changed.
func (r *run) reorderSeat(seat *runSeat) {
	r.m.touch(r)
	sleepers := &r.books.sleepers
	if seat.pos >= 0 {
		sleepers.remove(seat.pos)
	}
	if seat.items > 0 {
		sleepers.push(seat)
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

// depart books that a call leaves, and returns the slot that it takes.
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

// oldest returns when the first of the calls under way left, and the number of these calls; zero:
// there are none.
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
