package batch

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
)

// When what was learned is saved; see [WithMemorySaver].
const (
	// SaveEvery is for how long at most nothing is saved while a run goes on. What is
	// learned while no lane changes its phase is learned again in about that.
	SaveEvery = 5 * time.Second
	// SaveGap is the least time between two saves. A lane that is refused, probed and
	// refused again changes its phase several times a second.
	SaveGap = 250 * time.Millisecond
)

// saveShare keeps the coordinator free for other things: to tell what is known of
// thousands of lanes takes it milliseconds, and it is not asked again until so many times
// as long has passed.
const saveShare = 50

// WithMemorySaver saves what is learned, for a later run to begin with by [WithMemory]: soon after a lane changes its phase or is told to wait longer, every
// [SaveEvery], and at the end. So whoever is killed a second after a server has said
// "retry after 30 s" waits the other 29 in the next process. Between two saves lies
// [SaveGap] at least. A run on a lane of which nothing is known yet saves nothing.
//
// All calls of save come from one goroutine of its own, one after the other, and no call
// waits for them; only the end of the run waits for the last. save must end by itself.
// The error of the latest save, or its panic, after which it is not called again, is
// [Summary].SaveErr, and no error of the run. With [WithShared] it belongs where that is
// made, by [NewShared]; see [Shared.SaveErr].
func WithMemorySaver(save func(Memory) error) Option {
	return sharedOption(func(c *config) {
		c.save = save
		c.fault(notNil("WithMemorySaver", save == nil))
	}, "WithMemorySaver()")
}

// saver is the goroutine that saves what is learned by one coordinator, until that has
// ended.
type saver struct {
	owner *coordinator.Coordinator
	watch *coordinator.Watch
	clock clockwork.Clock
	save  func(Memory) error

	broken bool          // save panicked, or did not return
	err    error         // of the latest save; its own until over is closed
	over   chan struct{} // closed at the end
}

// newSaver prepares for saving, before the coordinator can end; nil if nothing is to be
// saved.
func (c *config) newSaver(owner *coordinator.Coordinator) *saver {
	if c.save == nil {
		return nil
	}
	return &saver{owner: owner, watch: owner.Watch(), clock: c.clock, save: c.save, over: make(chan struct{})}
}

// wait waits for the last save, and tells how the latest went.
func (s *saver) wait() error {
	if s == nil {
		return nil
	}
	<-s.over
	return s.err
}

func (s *saver) run() {
	defer close(s.over)
	for s.until(s.watch.Changed(), SaveEvery) {
		asked := s.clock.Now()
		m, err := s.owner.Save(context.Background()) // it waits for the owner, and for that one's end
		took := s.clock.Since(asked)
		if err == nil {
			s.put(Memory(m))
		}
		if !s.until(nil, max(SaveGap, min(SaveEvery, saveShare*took))) {
			return
		}
	}
}

// until waits for that long, or for a change. At the end it saves what was known then,
// and answers that there is nothing more to wait for.
func (s *saver) until(changed <-chan struct{}, d time.Duration) bool {
	timer := s.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.Chan():
	case m := <-s.watch.Last():
		s.put(Memory(m))
		return false
	}
	return true
}

// put saves, and notes how that went. It must stand a function that panics or ends its
// goroutine.
func (s *saver) put(m Memory) {
	if s.broken || m.empty() {
		return
	}
	s.broken, s.err = true, fmt.Errorf("batch: save memory: %w", errGone)
	defer func() {
		if v := recover(); v != nil {
			s.err = fmt.Errorf("batch: save memory: %w", &PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	err := s.save(m)
	s.broken, s.err = false, nil
	if err != nil {
		s.err = fmt.Errorf("batch: save memory: %w", err)
	}
}
