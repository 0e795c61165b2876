package machine

import (
	"fmt"
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

// Validate checks that this version reads the memory. Single values in it that cannot be true
// are no error: they are left out. The error of the law's part is [limiter.ErrMemory].
func (k LaneMemory) Validate() error {
	if k.Version < 1 || k.Version > LaneMemoryVersion {
		return fmt.Errorf("machine: lane memory: version %d is not in 1..%d", k.Version, LaneMemoryVersion)
	}
	if err := k.Law.Validate(); err != nil {
		return fmt.Errorf("machine: lane memory: %w", err)
	}
	return nil
}

// Empty returns the memory for a machine that follows one which may still have calls on their
// way; see [limiter.Memory.Empty].
func (k LaneMemory) Empty() LaneMemory {
	k.Law = k.Law.Empty()
	return k
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

// SaveLanes returns the memories of all lanes that have one. It includes memories that were to
// be restored and were not used, as they came.
func (m *Machine) SaveLanes(now time.Time) map[string]LaneMemory {
	now = m.tick(now)
	saved := map[string]LaneMemory{}
	for name, k := range m.memory {
		saved[name] = k
	}
	for name, l := range m.lanes {
		if k, known := l.save(now); known {
			saved[name] = k
		}
	}
	return saved
}

func (l *lane) save(now time.Time) (LaneMemory, bool) {
	if l.counts[calls] == 0 && !l.revived {
		return LaneMemory{}, false
	}
	k := LaneMemory{Version: LaneMemoryVersion, Law: l.law.Save(now), Breaker: l.breaker.Save(now), Answered: l.answered}
	if k.Law.Version == 0 { // its law has nothing worth keeping
		return LaneMemory{}, false
	}
	switch l.phase {
	case Cooling:
		k.Until = now.Round(0).UTC().Add(l.until.Sub(now))
	case Probing:
		k.Until = now.Round(0).UTC()
	}
	return k, true
}

// remember keeps a memory for the lane's first use.
func (m *Machine) remember(name string, k LaneMemory) {
	if m.lanes[name] == nil && k.Validate() == nil {
		m.memory[name] = k
	}
}

// recall gives a new lane its remembered state. A lane that was cooling, or whose server seemed
// down, cools for the rest of that, and is probed. A lane that climbed continues to climb.
func (m *Machine) recall(now time.Time, l *lane) {
	k, ok := m.memory[l.name]
	if !ok {
		return
	}
	delete(m.memory, l.name)
	l.answered = l.answered || k.Answered // by whatever law
	if l.law.Restore(now, k.Law) != nil {
		return
	}
	l.revived = true
	if l.led() { // its law decides when it may flow
		return
	}
	l.breaker.Restore(now, k.Breaker)
	if l.breaker.State(now) != limiter.Closed {
		l.law.Broken(now) // so that it climbs back as after any outage
	}
	view := l.law.View(now, limiter.Cost{Requests: 1})
	until := latest(l.breaker.Until(), view.Hold)
	if now.Sub(k.Until) < untilKept {
		until = latest(until, now.Add(min(MaxDirected, k.Until.Sub(now))))
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
