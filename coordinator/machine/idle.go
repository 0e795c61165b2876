package machine

import (
	"slices"
	"time"
)

// laneList holds every lane in the order of its latest use, so that finding the
// idle ones costs nothing however many there are.
type laneList struct{ first, last *lane }

func (q *laneList) push(l *lane) {
	l.prev, l.next = q.last, nil
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

func (q *laneList) remove(l *lane) {
	if l.prev == nil {
		q.first = l.next
	} else {
		l.prev.next = l.next
	}
	if l.next == nil {
		q.last = l.prev
	} else {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
}

// touch notes a use.
func (q *laneList) touch(l *lane, now time.Time) {
	l.used = now
	if q.last == l {
		return
	}
	q.remove(l)
	q.push(l)
}

// maxEvictions bounds what one pass spends on forgetting: ten thousand lanes that
// were last used together are forgotten over some hundred passes, not in one.
const maxEvictions = 64

// evict forgets lanes that nobody has used for the idle TTL.
func (m *Machine) evict(now time.Time) {
	for range maxEvictions {
		l := m.idle.first
		if l == nil || now.Sub(l.used) < m.cfg.IdleTTL {
			return
		}
		if l.busy() || l.wanted() {
			m.idle.touch(l, now)
			continue
		}
		m.forget(l)
	}
}

// forget forgets a lane, and the pools that draw on it. A pool that is needed
// again is opened again.
func (m *Machine) forget(l *lane) {
	for len(l.pools) > 0 {
		p := l.pools[0]
		m.closePool(p)
		p.run.opened = slices.DeleteFunc(p.run.opened, func(q *pool) bool { return q == p })
	}
	m.alarms.clear(&l.alarm)
	m.idle.remove(l)
	delete(m.lanes, l.name)
}

// busy reports whether the lane has something to end or to remember: a call, a
// wait, a climb, or why it stopped. What it would be probed for is old by now.
func (l *lane) busy() bool {
	return l.inFlight > 0 || l.phase == Cooling || l.phase == Ramping || l.phase == Stopped
}

// wanted reports whether items wait for the lane, or may come back to it, or whose
// latest call was on it wait for another.
func (l *lane) wanted() bool {
	if l.parked > 0 || l.delayed > 0 {
		return true
	}
	for _, p := range l.pools {
		if !p.empty() || p.inFlight > 0 {
			return true
		}
	}
	return false
}
