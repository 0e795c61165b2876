package machine

import "time"

// The line of a lane. A pool whose head must wait sleeps in the line of each lane that it has
// asked. Only the first of a line is asked again, when something happens on the lane or its
// alarm rings; once it is let go, the next one is. So a call that ends costs the same however
// many pools sleep, and a large item is not overtaken by those behind it.
//
//	lane ─▶ line: seat of run 1 ⇄ seat of run 2 ⇄ …      runs take turns, by their priority
//	                │               │
//	                a ⇄ b           c                      so do the pools of a run
//
// Invariant: the first of a line was asked since anything has happened on its lane, unless the
// lane is among those that the machine has woken. Each pool in a line has a head.

// list is a line without memory of its own: its elements hold the links.
type list[T any] struct{ first, last *link[T] }

// link is an element's place in one list.
type link[T any] struct {
	prev, next *link[T]
	of         *T // the element; nil: it is in no list
}

// push adds an element at the end of the list.
func (q *list[T]) push(k *link[T], element *T) {
	k.of, k.prev, k.next = element, q.last, nil
	if q.last == nil {
		q.first = k
	} else {
		q.last.next = k
	}
	q.last = k
}

// remove takes an element out of the list, wherever it stands. The element must be in it. Its
// link becomes zero, which means that it is in no list.
func (q *list[T]) remove(k *link[T]) {
	if k.prev == nil {
		q.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		q.last = k.prev
	} else {
		k.next.prev = k.prev
	}
	*k = link[T]{}
}

// moveBack puts the first behind all others.
func (q *list[T]) moveBack() {
	if k := q.first; k != q.last {
		x := k.of
		q.remove(k)
		q.push(k, x)
	}
}

// line holds the seats of runs that sleep on a lane, and the bound that holds them back.
type line struct {
	runs          list[runSeat]
	alarm         alarm  // when time alone may let the first go
	woken         bool   // the first is to be asked
	listed        bool   // in the machine's woken lanes: it may have been asked since
	callsWhenFull uint64 // 1 + how many calls had left when one could go and no run had room; 0: that was never so
	health        health // of the lane when its first was asked: where it is ill, its pools may use their next tiers

	bound  Bound // what holds the first back, and so all
	since  time.Time
	ledger Ledger // until then, from when the line was first used
}

// runSeat is a run's place on a lane. A run that never slept there has one only where others
// draw on the lane.
type runSeat struct {
	link       link[runSeat]
	run        *run
	lane       *lane
	pools      list[poolSeat]   // its pools that sleep on the lane
	given      int              // items of its present turn; less than the run's priority
	items      int              // of the pools that are counted here
	pos        int              // in its run's sleepers; -1: it is not
	seenCounts [laneWide]uint64 // of what befell the lane, what its run has counted
}

// poolSeat is a pool's place on one of its lanes.
type poolSeat struct {
	link      link[poolSeat]
	pool      *pool
	seat      *runSeat // nil: no other pool of its run draws on the lane, and nothing had befallen that before
	poolIndex int32    // in the lane's pools
	inFlight  int32    // of a pool with several lanes: its calls in flight on this one
}

// first returns the pool whose turn it is; nil: no pool sleeps.
func (q *line) first() *pool {
	if q == nil || q.runs.first == nil {
		return nil
	}
	return q.runs.first.of.pools.first.of.pool
}

// join puts a pool at the end of the line, and also its run if no other pool of the run sleeps
// here. A turn that the run has begun goes on.
func (q *line) join(s *poolSeat) {
	if s.link.of != nil {
		return
	}
	if seat := s.seat; seat.link.of == nil {
		seat.given = seat.run.given
		q.runs.push(&seat.link, seat)
	}
	s.seat.pools.push(&s.link, s)
}

// setBound notes what holds back the first in the line, and so all.
func (q *line) setBound(now time.Time, by Bound) {
	if by != q.bound {
		q.ledger, q.bound, q.since = q.ledgerAt(now), by, now
	}
}

// ledgerAt returns the line's ledger up to now.
func (q *line) ledgerAt(now time.Time) Ledger {
	l := q.ledger
	l[q.bound] += now.Sub(q.since)
	return l
}

// poolSeatOn returns the pool's seat on the i-th of its lanes. It makes the seats at the first
// request, as most pools never sleep.
func (p *pool) poolSeatOn(i int) *poolSeat {
	if p.seats == nil {
		p.seats = make([]poolSeat, len(p.lanes)) // it is first in the pools of each, or it would have them
		for k := range p.seats {
			p.seats[k].pool = p
		}
	}
	return &p.seats[i]
}

// runSeatOn returns the seat of the pool's run on the i-th of its lanes, and makes it if there is
// none.
func (p *pool) runSeatOn(i int) *runSeat {
	s := p.poolSeatOn(i)
	if s.seat == nil {
		s.seat = &runSeat{run: p.run, lane: p.lanes[i], pos: -1}
	}
	return s.seat
}

// wake has a pool asked for its next item. The pool may be asked now, or where it is first in a
// lane's line.
func (p *pool) wake() {
	switch m := p.run.m; {
	case p.waiting.first == nil && p.returned.len() == 0:
	case p.counted == 0:
		p.run.runnable.push(p)
		m.queueRun(p.run)
	default:
		for _, l := range p.lanes {
			if l.line.first() == p {
				m.wake(l)
			}
		}
	}
}

// wake has the first pool in the lane's line asked at the next decision.
func (m *Machine) wake(l *lane) {
	q := l.line
	if q.first() == nil {
		return
	}
	if q.woken = true; !q.listed {
		q.listed = true
		m.woken = append(m.woken, l)
	}
}

// queueRun puts a run in line for its next items, unless it is there already.
func (m *Machine) queueRun(r *run) {
	m.touch(r)
	if r.turn.of == nil {
		m.awake.push(&r.turn, r)
	}
}

// askLine asks the pools in the lane's line, one after the other, until one must wait. A pool whose
// run has no room, or is paused, leaves the line: it waits for that and not for the lane. If all
// calls that may be in flight are, a pool that could go waits with those that are awake. The next
// pool is asked when a call has left.
func (m *Machine) askLine(now time.Time, l *lane) {
	for p := l.line.first(); p != nil; p = l.line.first() {
		switch {
		case !p.run.hasRoom() || p.run.paused:
			p.clearWaits()
			m.leaveLines(p)
			p.run.runnable.push(p)
			continue
		case m.full():
			l.line.setBound(now, BoundConcurrency) // unless it must wait for the lane
			if l.line.callsWhenFull == 1+m.totals[calls] {
				return
			}
			if m.laneFor(now, p, p.head()) != nil {
				l.line.callsWhenFull = 1 + m.totals[calls]
				p.clearWaits()
				m.noteHealth(l, p)
				m.leaveLines(p)
				p.wake()
				return // the lane stays woken
			}
		case m.grantFrom(now, p):
			continue
		}
		if l.line.first() == p {
			break
		}
	}
	l.line.woken = false
}

// sleep puts a pool in the lines of the lanes that it has asked, and takes it out of the lines of
// the others. asked is the number of those lanes, which are the first in the pool's order. The lane
// behind is the one for which its items are counted as waiting.
func (m *Machine) sleep(now time.Time, p *pool, behind *lane, asked int) {
	// Those that were woken for this pool have been asked: of a hundred lanes that are woken at one
	// moment, the first has them all asked. What leaves a line below may wake them anew.
	for i := range asked {
		if l := p.lanes[p.index(i)]; l.line.first() == p {
			l.line.woken = false
		}
	}
	for i := range p.lanes {
		k := p.index(i)
		l, place := p.lanes[k], p.poolSeatOn(k)
		if i >= asked {
			m.leaveLine(l, place)
			continue
		}
		seat := p.runSeatOn(k) // join needs it
		if l.line == nil {
			l.line = &line{since: now, bound: l.bound, alarm: alarm{pos: -1, lane: l}}
		}
		l.line.join(place)
		if l == behind {
			p.countItemsAt(seat)
		}
	}
	// In a loop of its own: a pool that leaves its lines now makes this one the first of a line in
	// which it stands already. That line is then woken, and what its lane said last was said to another pool.
	for i := range asked {
		if l := p.lanes[p.index(i)]; l.line.first() == p && !l.line.woken {
			m.noteWait(now, l, p)
		}
	}
}

// noteWait notes that the first pool in the lane's line must wait, and sets the alarm for when to
// ask it again.
func (m *Machine) noteWait(now time.Time, l *lane, p *pool) {
	q := l.line
	q.setBound(now, l.bound)
	switch {
	case l.delay != forever:
		m.alarms.set(&q.alarm, now.Add(l.delay))
	case l.bound == BoundWindow && q.alarm.pos < 0: // the calls that fill it may hang
		m.alarms.set(&q.alarm, now.Add(minOverdue))
	}
	m.noteHealth(l, p)
}

// noteHealth notes how the lane was when the first in its line was asked. If that has changed,
// other pools in line may use other tiers.
func (m *Machine) noteHealth(l *lane, first *pool) {
	q := l.line
	if h := l.health(); h != q.health {
		if q.health = h; l.poolsWithNextTier > 0 {
			m.wakeForTiers(q, first)
		}
	}
}

// health says how a lane is, as far as tiers are concerned. One that climbs after a long illness
// does not keep a pool from the next tier by itself. Once it flows it is well, and spilling is for
// lanes that are well.
type health uint8

const (
	flows health = iota
	climbs
	unhealthy
)

// health returns how the lane is, as far as the tiers of its pools are concerned.
func (l *lane) health() health {
	switch {
	case !l.well():
		return unhealthy
	case l.phase == Ramping:
		return climbs
	}
	return flows
}

// wakeForTiers wakes the pools in line, except the first, that may use other tiers because the
// lane's health has changed. While the lane is ill, that is each pool with tiers. Once it is well,
// it is each that may spill, as it may have waited too long for a lane that is.
func (m *Machine) wakeForTiers(q *line, first *pool) {
	var all []*pool
	for run := q.runs.first; run != nil; run = run.next {
		for s := run.of.pools.first; s != nil; s = s.next {
			if p := s.of.pool; p != first && p.tiers != nil && (q.health == unhealthy || p.tiers.spill > 0) {
				all = append(all, p)
			}
		}
	}
	for _, p := range all {
		m.leaveLines(p)
		p.wake()
	}
}

// endTurn lets others go before a pool that was given something, on each lane where it was first.
// That includes lanes that did not serve it.
func (m *Machine) endTurn(p *pool) {
	for _, l := range p.lanes {
		q := l.line
		if q.first() != p {
			continue
		}
		seat := q.runs.first.of
		seat.pools.moveBack()
		if seat.given++; seat.given >= p.run.cfg.Priority {
			seat.given = 0
			q.runs.moveBack()
		}
		m.wake(l)
	}
}

// leaveLines takes a pool out of all lines.
func (m *Machine) leaveLines(p *pool) {
	for i := range p.seats {
		m.leaveLine(p.lanes[i], &p.seats[i])
	}
	p.uncountItems()
}

// leaveLine takes a pool out of the line of one lane, and its run's seat if no other pool sits
// there. If the pool was the first, the next one is to be asked.
func (m *Machine) leaveLine(l *lane, s *poolSeat) {
	if s.link.of == nil {
		return
	}
	first := l.line.first() == s.pool
	seat := s.seat
	if seat.pools.remove(&s.link); seat.pools.first == nil {
		l.line.runs.remove(&seat.link)
	}
	if first {
		m.wake(l)
	}
}

// hasItsPlaces reports whether the pool has its share of the run's places. It gives way to
// another that is awake and has fewer: one of long calls would come to hold all places otherwise.
func (m *Machine) hasItsPlaces(p *pool) bool {
	n := len(p.run.opened)
	return n > 1 && p.inFlight*n >= m.ceiling(p.run)
}

// fewestInFlight returns how many of the first pools in line it looked at, and the fewest calls in
// flight of any of them. It looks at eight at most, which keeps a turn cheap: few runs have more
// pools awake.
func (q *poolRing) fewestInFlight() (asked, inFlight int) {
	for p := q.first; p != nil && asked < 8; p = p.next {
		if asked == 0 || p.inFlight < inFlight {
			inFlight = p.inFlight
		}
		asked++
	}
	return asked, inFlight
}
