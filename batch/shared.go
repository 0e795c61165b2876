package batch

import (
	"context"
	"errors"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
)

// Shared is a coordinator that several runs use at once, so that together they
// keep to one account's limits. Lanes of the same name are the same lane. Make one with
// [NewShared]; what the zero value is asked is [ErrConfig].
type Shared struct {
	coordinator *coordinator.Coordinator
	clock       clockwork.Clock
	saver       *saver // nil: nothing is saved
	remembers   bool   // items, for a later run or from an earlier one
}

// NewShared starts one. Options about lanes, the clock and the seed concern it, and
// [WithConcurrency] bounds its runs together; one that is about a single run is [ErrConfig]. Close it when its runs are over.
func NewShared(opts ...Option) (*Shared, error) {
	c := configure(opts)
	if err := c.check(misplaced(opts, oneRun, "NewShared", "Run or Stream")...); err != nil {
		return nil, err
	}
	c.machine.Concurrency = c.together
	s := &Shared{coordinator: c.newCoordinator(0), clock: c.clock, remembers: c.remembers()}
	go s.coordinator.Run()
	if s.saver = c.newSaver(s.coordinator); s.saver != nil {
		go s.saver.run()
	}
	return s, nil
}

// made says whether s came from NewShared.
func (s *Shared) made() error {
	if s == nil || s.coordinator == nil {
		return errors.New("the Shared is nil or the zero value: make it with NewShared")
	}
	return nil
}

// Close ends it: no run begins there any more, and those that are open are drained. It
// waits until they are over, so each must be read to its end, and its input must not
// block for ever; and for the last save of what was learned. The error of such a run,
// where anything was left, is [ErrClosed]. Close may be called more than once.
func (s *Shared) Close() {
	if s.made() != nil {
		return // nothing runs
	}
	s.coordinator.Close()
	<-s.coordinator.Done()
	_ = s.saver.wait() // SaveErr tells
}

// SaveErr is why what was learned is not saved; nil if it is, or if no [WithMemorySaver]
// was to save it. It closes the Shared first: only then is there a last save.
func (s *Shared) SaveErr() error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	s.Close()
	return s.saver.wait()
}

// Status takes a picture of all lanes' n busiest. The error is ctx's, or that
// of a Shared that was closed.
func (s *Shared) Status(ctx context.Context, n int) (Status, error) {
	if err := s.made(); err != nil {
		return Status{}, wrong(err)
	}
	return s.coordinator.Status(ctx, n)
}

// ResetLane lets a lane flow again at once, with nothing held against it; "" is
// [DefaultLane]. A lane that no item has used yet has nothing to reset, and a Shared that
// was closed ignores it.
func (s *Shared) ResetLane(name string) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	s.coordinator.ResetLane(laneName(name))
	return nil
}

// SetLimits says what a lane may draw from now on, in all; "" is [DefaultLane]. The error
// is [ErrConfig], for limits that cannot be meant. A Shared that was closed ignores it.
func (s *Shared) SetLimits(lane string, l Limits) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	return wrong(s.coordinator.SetLimits(laneName(lane), l))
}

// Tell says a word from outside to the law of a lane, if that is a [limiter.Listener]; "" is
// [DefaultLane]. A lane that no item has used yet hears nothing, and a Shared that was
// closed ignores it.
func (s *Shared) Tell(lane string, word any) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	s.coordinator.Tell(laneName(lane), word)
	return nil
}

// Words yields what the lanes' laws say to the outside, where one is a [limiter.Speaker]:
// all that was said since it was last received from, of each lane the latest word. It is
// closed once the Shared is, and what was said last can be received after that. No run
// waits for who does not listen. Of the nil or zero Shared it is nil.
func (s *Shared) Words() <-chan []Word {
	if s.made() != nil {
		return nil
	}
	return s.coordinator.Words()
}

// wrong makes ErrConfig of what is wrong with an argument.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return join(ErrConfig, err)
}

// WithShared runs on the coordinator of s, beside whatever else runs there. Lanes,
// limits, the clock and the seed are those of s: to say anything of them here is
// [ErrConfig].
func WithShared(s *Shared) Option {
	return runOption(func(c *config) {
		if err := s.made(); err != nil {
			c.fault(said("WithShared", err))
			return
		}
		c.shared = s
	}, "WithShared()")
}

func (c *config) newCoordinator(mailbox int) *coordinator.Coordinator {
	return coordinator.New(coordinator.Config{Machine: c.machine, Clock: c.clock, ReadAhead: c.readAhead, Mailbox: mailbox})
}
