package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// LaneMemoryVersion is the version of a [LaneMemory] that this package writes.
const LaneMemoryVersion = 1

// A LaneMemory is the knowledge about a lane that is worth keeping over a restart, in a form
// that encoding/json writes and reads; see [limiter.Memory]. The memory of a stopped lane does
// not say that it was stopped: a user who starts again vouches for it.
type LaneMemory struct {
	Version int                   `json:"version"`
	Law     limiter.Memory        `json:"law"`
	Breaker limiter.BreakerMemory `json:"breaker"`
	Until   time.Time             `json:"until,omitzero"` // the end of a cooldown, or of the one that is being probed

	Answered bool `json:"answered,omitempty"` // a call was answered as hoped, ever
}

// Validate returns an error if this version cannot read the memory. Single values in it that cannot
// be true are no error: they are left out. The error of the law's part is [limiter.ErrMemory].
func (memory LaneMemory) Validate() error {
	if memory.Version < 1 || memory.Version > LaneMemoryVersion {
		return fmt.Errorf("machine: lane memory: version %d is not in 1..%d", memory.Version, LaneMemoryVersion)
	}
	if err := memory.Law.Validate(); err != nil {
		return fmt.Errorf("machine: lane memory: %w", err)
	}
	return nil
}

// Empty returns the memory for a machine that follows one which may still have calls on their
// way; see [limiter.Memory.Empty].
func (memory LaneMemory) Empty() LaneMemory {
	memory.Law = memory.Law.Empty()
	return memory
}

// untilKept is the time after the end of a cooldown for which a lane is still probed first.
const untilKept = time.Minute

// LaneRestored passes on an earlier machine's memory of a lane. It counts only before the
// lane's first use. The machine ignores it for a lane that is in use, and if it does not pass
// [LaneMemory.Validate]. If another law saved it, only its Answered counts.
func LaneRestored(lane string, k LaneMemory) Event {
	return Event{kind: evLaneRestored, name: lane, config: k}
}

// SaveLane returns the memory of a lane. It returns false if there is none, because no call was
// ever made on the lane, or it is forgotten.
func (m *Machine) SaveLane(now time.Time, name string) (LaneMemory, bool) {
	l := m.lanes[name]
	if l == nil {
		return LaneMemory{}, false
	}
	return l.save(m.tick(now))
}

// SaveLanes returns the memories of all lanes that have one. It includes memories that wait for a
// lane's first use, unchanged.
func (m *Machine) SaveLanes(now time.Time) map[string]LaneMemory {
	now = m.tick(now)
	saved := map[string]LaneMemory{}
	for name, memory := range m.memory {
		saved[name] = memory
	}
	for name, l := range m.lanes {
		if memory, known := l.save(now); known {
			saved[name] = memory
		}
	}
	return saved
}

// save returns what a later machine needs to know of the lane. It reports false if there is
// nothing: no call was made and no memory restored, or the law keeps none.
func (l *lane) save(now time.Time) (LaneMemory, bool) {
	if l.counts[calls] == 0 && !l.restored {
		return LaneMemory{}, false
	}
	memory := LaneMemory{Version: LaneMemoryVersion, Law: l.law.Save(now), Breaker: l.breaker.Save(now), Answered: l.answered}
	if memory.Law.Version == 0 { // its law has nothing worth keeping
		return LaneMemory{}, false
	}
	switch l.phase {
	case Cooling:
		memory.Until = now.Round(0).UTC().Add(l.until.Sub(now))
	case Probing:
		memory.Until = now.Round(0).UTC()
	}
	return memory, true
}

// remember keeps a memory for the lane's first use.
func (m *Machine) remember(name string, k LaneMemory) {
	if m.lanes[name] == nil && k.Validate() == nil {
		m.memory[name] = k
	}
}

// recallLane gives a new lane its remembered state. A lane that was cooling, or whose server seemed
// down, cools for the rest of that time, and is then probed. A lane that climbed continues to
// climb.
func (m *Machine) recallLane(now time.Time, l *lane) {
	memory, ok := m.memory[l.name]
	if !ok {
		return
	}
	delete(m.memory, l.name)
	l.answered = l.answered || memory.Answered // by whatever law
	if l.law.Restore(now, memory.Law) != nil {
		return
	}
	l.restored = true
	if l.remote() { // its law decides when it may flow
		return
	}
	l.breaker.Restore(now, memory.Breaker)
	if l.breaker.State(now) != limiter.Closed {
		l.law.Broken(now) // so that it climbs back as after any outage
	}
	view := l.law.View(now, limiter.Cost{Requests: 1})
	until := latest(l.breaker.Until(), view.Hold)
	if now.Sub(memory.Until) < untilKept {
		until = latest(until, now.Add(min(MaxDirected, memory.Until.Sub(now))))
	}
	switch {
	case !until.IsZero():
		m.coolUntil(l, until)
		m.enter(now, l, Cooling, ByMemory)
	case view.Ramp.After(now):
		m.alarms.set(&l.alarm, view.Ramp)
		m.enter(now, l, Ramping, ByMemory)
	}
}

// The rest is about the memory of items that have failed and are not over. A later run begins
// with it, so after a restart an item that always fails differs from one that met an outage.

// MostItemMemories bounds the items in the memory: an item takes some 80 bytes there. Items
// beyond the bound have their attempts anew.
const MostItemMemories = 10_000

// Keyed is a payload that names the key under which its item is remembered; "": it is not.
type Keyed interface{ ItemKey() string }

// An ItemMemory is the memory of an item that has failed and is not over, in a form that
// encoding/json writes and reads.
type ItemMemory struct {
	Failures int `json:"failures"`         // attempts that it has used up, 1 or more
	Doubts   int `json:"doubts,omitempty"` // of these: those after which no other item was answered
}

// Validate finds numbers that no item can have.
func (k ItemMemory) Validate() error {
	if k.Failures < 1 || k.Doubts < 0 || k.Doubts > min(k.Failures, maxDoubts) {
		return fmt.Errorf("machine: item memory: %d failures, %d of them in doubt, cannot be", k.Failures, k.Doubts)
	}
	return nil
}

// SaveItems returns the memory of items that have failed and are not over, by key. Such items wait
// or are in flight, were let go without a further call, or come from an earlier machine and were
// not offered yet. Beyond [MostItemMemories] it leaves out any of the last kind.
func (m *Machine) SaveItems() map[string]ItemMemory {
	all := map[string]ItemMemory{}
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		r := m.runs[id]
		for _, p := range r.opened {
			for it := p.waiting.first; it != nil; it = it.next {
				it.save(all)
			}
			saveAll(all, p.returned.items)
			saveAll(all, p.delayed.items)
			saveAll(all, p.undecidedItems())
		}
		for i := range r.flights.slots {
			if it := r.flights.slots[i].of; it != nil {
				it.save(all)
			}
		}
	}
	for key, memory := range m.items {
		if len(all) >= MostItemMemories {
			break
		}
		all[key] = memory
	}
	return all
}

func saveAll(into map[string]ItemMemory, items []*Item) {
	for _, it := range items {
		it.save(into)
	}
}

// save adds the item's failures to the memories, if it has failed and there is room.
func (it *Item) save(into map[string]ItemMemory) {
	attempts, doubts := it.settled()
	if attempts == 0 || len(into) >= MostItemMemories {
		return
	}
	if keyed, isKeyed := it.Payload.(Keyed); isKeyed && keyed.ItemKey() != "" {
		into[keyed.ItemKey()] = ItemMemory{Failures: attempts, Doubts: int(doubts)}
	}
}

// recallItem gives an offered item the failures that are remembered under its key.
func (m *Machine) recallItem(now time.Time, it *Item) {
	keyed, isKeyed := it.Payload.(Keyed)
	if !isKeyed {
		return
	}
	if memory, known := m.items[keyed.ItemKey()]; known {
		delete(m.items, keyed.ItemKey())
		it.Attempts, it.doubts, it.handedOverAt = memory.Failures, uint8(memory.Doubts), now
		it.counted = it.suspect()
	}
}

// rememberItem keeps the failures of an item that is let go without a further call, for a later
// run.
func (m *Machine) rememberItem(it *Item, v Verdict) {
	if v != EndDrained && v != EndStopped && v != EndUnpaid {
		return
	}
	if m.items == nil {
		m.items = map[string]ItemMemory{}
	}
	it.save(m.items)
}

// laneList holds every lane in the order of its latest use, so that it costs nothing to find
// the idle ones, however many there are.
type laneList struct{ first, last *lane }

// push adds a lane at the end of the list.
func (q *laneList) push(l *lane) {
	l.prev, l.next = q.last, nil
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

// remove takes a lane out of the list, wherever it stands. The lane must be in it.
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

// touch notes that a lane was used: it becomes the last in the list.
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

// evict forgets lanes that nobody has used for the idle TTL. It looks at no more than most lanes,
// so that one pass stays short.
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

// forget forgets a lane, and closes the pools that draw on it. A pool that is needed again is
// opened again.
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
	m.cancelSays(l)
	m.leaveAccount(l)
	m.idle.remove(l)
	delete(m.lanes, l.name)
}

// busy reports whether the lane has something to end: a call, a wait or a climb. A reason to
// probe it is old by now.
func (l *lane) busy() bool {
	return l.inFlight > 0 || l.phase == Cooling || l.phase == Ramping
}

// wanted reports whether a pool that draws on the lane has items that wait or are in flight. A
// stopped lane is wanted by every run that draws on it: a lane made anew would try the run's items
// again.
func (l *lane) wanted() bool {
	for _, p := range l.pools {
		if l.phase == Stopped || !p.empty() || p.inFlight > 0 {
			return true
		}
	}
	return false
}

// owes reports whether the lane's law still holds back something that a new law would let leave at
// once. A law that leads its lane keeps its knowledge elsewhere, and never owes.
func (l *lane) owes(now time.Time) bool {
	if l.remote() {
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

// roomFor returns an error if the lanes of a pool do not all fit under MaxLanes. The error names
// the first that does not fit.
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
