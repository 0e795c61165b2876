package machine

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// LaneMemoryVersion is the version of a [LaneMemory] that this package writes.
const LaneMemoryVersion = 1

// A LaneMemory is what is known of a lane that is worth knowing after a restart, in a
// form that encoding/json writes and reads; see [limiter.Memory]. A lane that was
// stopped is remembered as if it had not been: whoever starts again vouches for it.
type LaneMemory struct {
	Version int                   `json:"version"`
	Law     limiter.Memory        `json:"law"`
	Breaker limiter.BreakerMemory `json:"breaker"`
	Until   time.Time             `json:"until,omitzero"` // the end of a cooldown, or of the one that is being probed

	Answered bool `json:"answered,omitempty"` // a call was answered as hoped, ever
}

// Validate says whether the memory is one that this version reads. Single values in it
// that cannot be true are no error: they are left out. The error of the law's part is
// [limiter.ErrMemory].
func (k LaneMemory) Validate() error {
	if k.Version < 1 || k.Version > LaneMemoryVersion {
		return fmt.Errorf("machine: lane memory: version %d is not in 1..%d", k.Version, LaneMemoryVersion)
	}
	if err := k.Law.Validate(); err != nil {
		return fmt.Errorf("machine: lane memory: %w", err)
	}
	return nil
}

// Empty is the memory as a machine takes it up that follows one which may still have calls
// on their way; see [limiter.Memory.Empty].
func (k LaneMemory) Empty() LaneMemory {
	k.Law = k.Law.Empty()
	return k
}

// untilKept is for how long after a cooldown has ended a lane is still probed first.
const untilKept = time.Minute

// LaneRestored says what an earlier machine knew of a lane. It is heard before the
// lane's first use; of one that is in use, of another law, or of a memory that does not
// pass [LaneMemory.Validate] nothing is taken.
func LaneRestored(lane string, k LaneMemory) Event {
	return Event{kind: evLaneRestored, name: lane, config: k}
}

// SaveLane is what is known of a lane; false if nothing is, because no call was ever
// made on it, or it is forgotten.
func (m *Machine) SaveLane(now time.Time, name string) (LaneMemory, bool) {
	l := m.lanes[name]
	if l == nil {
		return LaneMemory{}, false
	}
	return l.save(m.tick(now))
}

// SaveLanes is what is known of every lane of which anything is. What was to be restored
// and was not used is in it as it came.
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
	if k.Law.Version == 0 { // its law has nothing worth knowing
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

// recall has a new lane take up what is remembered of it. One that was cooling, or
// whose server was taken to be down, cools for the rest of that, and is probed; one that
// climbed climbs on.
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
	if l.led() { // when it may flow is for its law to say
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
