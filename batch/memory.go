package batch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
)

// A Memory holds what a run has learned that a later run should know. Write it to a file
// and read it back with encoding/json.
//
// Lanes holds by name what is known of lanes: rates, caps, holds, and the share of calls
// that are refused at any pace. A later run need not learn them again, and makes no calls
// where it must wait. Items holds the items that have failed and have not ended, by their
// [Keyed] key. A later run tells an item that always fails from one that met an outage.
type Memory struct {
	Lanes map[string]LaneMemory `json:"lanes,omitempty"`
	Items map[string]ItemMemory `json:"items,omitempty"`
}

// empty reports whether nothing is known.
func (m Memory) empty() bool { return len(m.Lanes) == 0 && len(m.Items) == 0 }

// WithMemory begins with what an earlier run has learned. Limits given now win over those
// of the earlier run, and knowledge that is hours old counts only in part. A lane that is
// not in m begins anew. A memory written by a later version of headrace is an error. With
// [WithShared], give the memory to [NewShared] instead. [WithMemorySaver] saves a memory.
func WithMemory(m Memory) Option {
	return sharedOption(func(c *config) {
		c.hasMemory, c.machine.Memory, c.machine.Items = true, m.Lanes, m.Items
		for _, name := range slices.Sorted(maps.Keys(m.Lanes)) {
			if err := m.Lanes[name].Validate(); err != nil {
				c.faults = append(c.faults, fmt.Errorf("WithMemory: lane %q: %w", name, err))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(m.Items)) {
			if err := m.Items[key].Validate(); err != nil {
				c.faults = append(c.faults, fmt.Errorf("WithMemory: item %q: %w", key, err))
			}
		}
	}, "WithMemory()")
}

// Save returns what has been learned so far. The error is ctx's, or that of a closed
// Shared.
func (s *Shared) Save(ctx context.Context) (Memory, error) {
	if err := s.checkMade(); err != nil {
		return Memory{}, configError(err)
	}
	m, err := s.coordinator.Save(ctx)
	return Memory(m), err
}

// Save returns what the run has learned so far. It waits for the run to begin. The error is
// ctx's, or that of a run that is over. To know what a run has learned in the end, run it
// on a [Shared].
func (c *Control) Save(ctx context.Context) (Memory, error) {
	if err := c.wait(ctx); err != nil {
		return Memory{}, err
	}
	return c.lanes.Save(ctx)
}

// When the memory is saved; see [WithMemorySaver].
const (
	// SaveEvery is the time after which a run saves even if nothing has changed, from the
	// end of the pause after its last save. The next run relearns, in about that time,
	// what this one learned while no lane changed its phase.
	SaveEvery = 5 * time.Second
	// SaveGap is the least time between two saves. A lane that is refused, probed and
	// refused again changes its phase several times a second.
	SaveGap = 250 * time.Millisecond
)

// saveShare keeps the coordinator free for other things. To collect what is known of
// thousands of lanes takes it milliseconds. The saver does not ask again until saveShare
// times as long has passed, or SaveEvery.
const saveShare = 50

// WithMemorySaver saves the memory of a run, for a later run to begin with by [WithMemory].
// It saves soon after a lane changes its phase or must wait longer, every [SaveEvery], and
// at the end. If a process is killed a second after a server has said "retry after 30 s",
// the next process waits the other 29. Two saves are at least [SaveGap] apart. A run on a
// lane of which nothing is known yet saves nothing.
//
// All calls of save come from a goroutine of their own, one after the other. No call of an
// item waits for them; only the end of the run waits for the last. save must end by itself.
// The error of the latest save is [Summary].SaveErr, and not part of the run's error. If
// save panics, that is the error, and save is not called again. With [WithShared], give
// this option to [NewShared] instead; see [Shared.SaveErr].
func WithMemorySaver(save func(Memory) error) Option {
	return sharedOption(func(c *config) {
		c.save = save
		c.addFault(notNil("WithMemorySaver", save == nil))
	}, "WithMemorySaver()")
}

// saver is the goroutine that saves the memory of one coordinator, until the coordinator
// has ended.
type saver struct {
	owner *coordinator.Coordinator
	watch *coordinator.Watch
	clock clockwork.Clock
	save  func(Memory) error

	broken bool          // save panicked, or did not return
	err    error         // of the latest save; the goroutine's own until over is closed
	ended  chan struct{} // closed at the end
}

// newSaver prepares for saving, before the coordinator can end. It returns nil without a
// save function.
func (c *config) newSaver(owner *coordinator.Coordinator) *saver {
	if c.save == nil {
		return nil
	}
	return &saver{owner: owner, watch: owner.Watch(), clock: c.clock, save: c.save, ended: make(chan struct{})}
}

// wait waits for the last save, and returns the error of the latest one.
func (s *saver) wait() error {
	if s == nil {
		return nil
	}
	<-s.ended
	return s.err
}

// run saves soon after each change, and else every SaveEvery, until the coordinator has ended.
// Between two saves it pauses, so that the coordinator spends little time on them.
func (s *saver) run() {
	defer close(s.ended)
	for s.waitOrFinish(s.watch.Changed(), SaveEvery) {
		asked := s.clock.Now()
		m, err := s.owner.Save(context.Background()) // it waits for the owner's answer, or for its end
		took := s.clock.Since(asked)
		if err == nil {
			s.saveNow(Memory(m))
		}
		if !s.waitOrFinish(nil, max(SaveGap, min(SaveEvery, saveShare*took))) {
			return
		}
	}
}

// waitOrFinish waits for d, or for a change. If the coordinator ends meanwhile, it saves the final memory and
// returns false.
func (s *saver) waitOrFinish(changed <-chan struct{}, d time.Duration) bool {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.Chan():
	case m := <-s.watch.Last():
		s.saveNow(Memory(m))
		return false
	}
	return true
}

// saveNow calls the caller's save function, and records its error. It must withstand a function that panics or ends
// its goroutine.
func (s *saver) saveNow(m Memory) {
	if s.broken || m.empty() {
		return
	}
	var err error
	s.broken, s.err = true, fmt.Errorf("batch: save memory: %w", errGone) // unless it returns
	panicked := guarded(func() { err = s.save(m) })
	if s.broken, s.err = panicked != nil, cmp.Or(panicked, err); s.err != nil {
		s.err = fmt.Errorf("batch: save memory: %w", s.err)
	}
}
