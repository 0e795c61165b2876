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
func (q *list[T]) push(k *link[T], x *T) {
	k.of, k.prev, k.next = x, q.last, nil
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
	seats  list[seat]
	alarm  alarm  // when time alone may let the first go
	woken  bool   // the first is to be asked
	listed bool   // in the machine's woken lanes: it may have been asked since
	asked  uint64 // 1 + how many calls had left when one could go and no run had room; 0: that was never so
	health health // of the lane when its first was asked: where it is ill, its pools may use their next tiers

	bound  Bound // what holds the first back, and so all
	since  time.Time
	ledger Ledger // until then, from when the line was first used
}

// seat is a run's place on a lane. A run that never slept there has one only where others
// draw on the lane.
type seat struct {
	link   link[seat]
	run    *run
	lane   *lane
	stands list[stand]      // its pools that sleep on the lane
	given  int              // items of its present turn; less than the run's priority
	items  int              // of the pools that are counted here
	pos    int              // in its run's sleepers; -1: it is not
	seen   [laneWide]uint64 // of what befell the lane, what its run has counted
}

// stand is a pool's place on one of its lanes.
type stand struct {
	link link[stand]
	pool *pool
	seat *seat // nil: no other pool of its run draws on the lane, and nothing had befallen that before
	at   int32 // in the lane's pools
	out  int32 // of a pool with several lanes: its calls in flight on this one
}

// first returns the pool whose turn it is; nil: no pool sleeps.
func (q *line) first() *pool {
	if q == nil || q.seats.first == nil {
		return nil
	}
	return q.seats.first.of.stands.first.of.pool
}

// join puts a pool at the end of the line, and its run too if no other pool of it sleeps
// here. A turn that the run has begun goes on.
func (q *line) join(s *stand) {
	if s.link.of != nil {
		return
	}
	if x := s.seat; x.link.of == nil {
		x.given = x.run.given
		q.seats.push(&x.link, x)
	}
	s.seat.stands.push(&s.link, s)
}

// holds notes what holds the first back.
func (q *line) holds(now time.Time, by Bound) {
	if by != q.bound {
		q.ledger, q.bound, q.since = q.until(now), by, now
	}
}

// until returns the line's ledger up to now.
func (q *line) until(now time.Time) Ledger {
	l := q.ledger
	l[q.bound] += now.Sub(q.since)
	return l
}

// stand returns the pool's place on the i-th of its lanes.
func (p *pool) stand(i int) *stand {
	if p.stands == nil {
		p.stands = make([]stand, len(p.lanes)) // it is first in the pools of each, or it would have them
		for k := range p.stands {
			p.stands[k].pool = p
		}
	}
	return &p.stands[i]
}

// seat returns the place of the pool's run on the i-th of its lanes.
func (p *pool) seat(i int) *seat {
	s := p.stand(i)
	if s.seat == nil {
		s.seat = &seat{run: p.run, lane: p.lanes[i], pos: -1}
	}
	return s.seat
}

// wake asks a pool that has something to give: now, or where it is first in a line.
func (p *pool) wake() {
	switch m := p.run.m; {
	case p.waiting.first == nil && p.returned.len() == 0:
	case p.counted == 0:
		p.run.runnable.push(p)
		m.attend(p.run)
	default:
		for _, l := range p.lanes {
			if l.line.first() == p {
				m.wake(l)
			}
		}
	}
}

// wake has the first in the lane's line asked.
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

// attend puts a run in line for what it can have.
func (m *Machine) attend(r *run) {
	m.touch(r)
	if r.turn.of == nil {
		m.awake.push(&r.turn, r)
	}
}

// call asks the pools in the lane's line, one after the other, until one must wait. Pools whose
// run has no room, or is paused, wait for that and not for the lane. If no run has room, a pool
// that could go waits with those that are awake. The next pool is asked when a call has left.
func (m *Machine) call(now time.Time, l *lane) {
	for p := l.line.first(); p != nil; p = l.line.first() {
		switch {
		case !p.run.free() || p.run.paused:
			p.waitsNot()
			m.leaveLines(p)
			p.run.runnable.push(p)
			continue
		case m.full():
			l.line.holds(now, BoundConcurrency) // unless it must wait for the lane
			if l.line.asked == 1+m.totals[calls] {
				return
			}
			if m.laneFor(now, p, p.head()) != nil {
				l.line.asked = 1 + m.totals[calls]
				p.waitsNot()
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

// sleep puts a pool in the lines of the first lanes in its order, as many as it has asked, and takes it out
// of the lines of the others. Its items are counted once, as held back by the lane behind.
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
		l, s := p.lanes[k], p.stand(k)
		if i >= asked {
			m.leaveLine(l, s)
			continue
		}
		x := p.seat(k) // join needs it
		if l.line == nil {
			l.line = &line{since: now, bound: l.bound, alarm: alarm{pos: -1, lane: l}}
		}
		l.line.join(s)
		if l == behind {
			p.countAt(x)
		}
	}
	// In a loop of its own: a pool that leaves its lines now makes this one the first of a line in
	// which it stands already. That line is then woken, and what its lane said last was said to another pool.
	for i := range asked {
		if l := p.lanes[p.index(i)]; l.line.first() == p && !l.line.woken {
			m.wasAsked(now, l, p)
		}
	}
}

// wasAsked notes that the first in the lane's line must wait, and sets the alarm for the next
// time to ask it.
func (m *Machine) wasAsked(now time.Time, l *lane, p *pool) {
	q := l.line
	q.holds(now, l.bound)
	switch {
	case l.delay != forever:
		m.alarms.set(&q.alarm, now.Add(l.delay))
	case l.bound == BoundWindow && q.alarm.pos < 0: // the calls that fill it may hang
		m.alarms.set(&q.alarm, now.Add(overdueLeast))
	}
	m.noteHealth(l, p)
}

// noteHealth notes whether the lane was ill when the first in its line was asked.
func (m *Machine) noteHealth(l *lane, first *pool) {
	q := l.line
	if h := l.health(); h != q.health {
		if q.health = h; l.backed > 0 {
			m.fallBack(q, first)
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

// health returns whether the lane flows, climbs or is unhealthy.
func (l *lane) health() health {
	switch {
	case !l.well():
		return unhealthy
	case l.phase == Ramping:
		return climbs
	}
	return flows
}

// fallBack wakes the pools in line, except the first, that use other tiers while this lane is
// ill: now, or when it has been ill for long enough. Once it is well, it wakes those that have
// waited too long for a lane that is.
func (m *Machine) fallBack(q *line, first *pool) {
	var all []*pool
	for x := q.seats.first; x != nil; x = x.next {
		for s := x.of.stands.first; s != nil; s = s.next {
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

// takeTurn lets others go before a pool that was given something, on each lane where it was
// first: also on lanes that did not serve it.
func (m *Machine) takeTurn(p *pool) {
	for _, l := range p.lanes {
		q := l.line
		if q.first() != p {
			continue
		}
		x := q.seats.first.of
		x.stands.moveBack()
		if x.given++; x.given >= p.run.cfg.Priority {
			x.given = 0
			q.seats.moveBack()
		}
		m.wake(l)
	}
}

// leaveLines takes a pool out of all lines.
func (m *Machine) leaveLines(p *pool) {
	for i := range p.stands {
		m.leaveLine(p.lanes[i], &p.stands[i])
	}
	p.rouse()
}

// leaveLine takes a pool out of the line of one lane, and its run's seat if no other pool sits
// there. If the pool was the first, the next one is to be asked.
func (m *Machine) leaveLine(l *lane, s *stand) {
	if s.link.of == nil {
		return
	}
	first := l.line.first() == s.pool
	x := s.seat
	if x.stands.remove(&s.link); x.stands.first == nil {
		l.line.seats.remove(&x.link)
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

// least returns the fewest calls in flight of the first pools in line, and how many it asked. The
// bound keeps a turn cheap: a run has more awake only if it has very many pools.
func (q *poolRing) least() (asked, inFlight int) {
	for p := q.first; p != nil && asked < 8; p = p.next {
		if asked == 0 || p.inFlight < inFlight {
			inFlight = p.inFlight
		}
		asked++
	}
	return asked, inFlight
}
