package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// laneList holds every lane in the order of its latest use, so that it costs nothing to find
// the idle ones, however many there are.
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

// evict forgets lanes that nobody has used for the idle TTL. It looks at no more than
// most.
func (m *Machine) evict(now time.Time, most int) {
	for range most {
		l := m.idle.first
		if l == nil || now.Sub(l.used) < m.cfg.IdleTTL {
			return
		}
		if l.busy() || l.wanted() || l.owes(now) {
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
	if l.line != nil {
		m.alarms.clear(&l.line.alarm)
	}
	m.quiet(l)
	m.idle.remove(l)
	delete(m.lanes, l.name)
}

// busy reports whether the lane has something to end: a call, a wait or a climb. A reason to
// probe it is old by now.
func (l *lane) busy() bool {
	return l.inFlight > 0 || l.phase == Cooling || l.phase == Ramping
}

// wanted reports whether a pool that draws on the lane has items that wait or are in flight.
// Every run that draws on a stopped lane wants it: a lane made anew would try the run's items
// again.
func (l *lane) wanted() bool {
	for _, p := range l.pools {
		if l.phase == Stopped || !p.empty() || p.inFlight > 0 {
			return true
		}
	}
	return false
}

// owes reports whether the lane's law still holds something back that a new law would let leave
// once more. A law that leads its lane keeps its knowledge elsewhere.
func (l *lane) owes(now time.Time) bool {
	if l.led() {
		return false
	}
	v := l.law.View(now, limiter.Cost{Requests: 1})
	return v.Hold.After(now) || slices.ContainsFunc(v.Limits[:], func(limit limiter.LimitView) bool {
		return limit.Known() && limit.Level < limit.Capacity
	})
}

// makeRoom forgets idle lanes when half of the lanes that may be known are. It runs before
// items find their pools: a pool that an item has found must not close before the item is in
// it.
func (m *Machine) makeRoom(now time.Time) {
	if n := len(m.lanes); 2*n >= m.cfg.MaxLanes {
		m.evict(now, n)
	}
}

// roomFor reports whether the lanes of a pool may all be known. The error names the first that
// may not.
func (m *Machine) roomFor(names []string) error {
	n := len(m.lanes)
	for _, name := range names {
		if m.lanes[name] != nil {
			continue
		}
		if n++; n > m.cfg.MaxLanes {
			return fmt.Errorf("%w: lane %q would be one more than %d: is a field that differs from item to item taken for the name of a pool?", ErrTooManyLanes, name, m.cfg.MaxLanes)
		}
	}
	return nil
}
