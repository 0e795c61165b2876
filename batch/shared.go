package batch

import (
	"context"
	"errors"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
)

// Shared is a coordinator that several runs use at once, so that together they keep to one
// account's limits. Lanes of the same name are the same lane. Make one with [NewShared];
// methods of the zero Shared return [ErrConfig].
type Shared struct {
	coordinator *coordinator.Coordinator
	clock       clockwork.Clock
	saver       *saver // nil: nothing is saved
	remembers   bool   // items, for a later run or from an earlier one
}

// NewShared starts a Shared. Options about lanes, the clock and the seed belong here, and
// [WithConcurrency] bounds its runs together. An option about a single run is [ErrConfig].
// Close the Shared when its runs are over.
func NewShared(opts ...Option) (*Shared, error) {
	c := configure(opts)
	if err := c.check(wrongPlaceFaults(opts, oneRun, "NewShared", "Run or Stream")...); err != nil {
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

// checkMade returns an error unless s came from NewShared.
func (s *Shared) checkMade() error {
	if s == nil || s.coordinator == nil {
		return errors.New("the Shared is nil or the zero value: make it with NewShared")
	}
	return nil
}

// Close ends the Shared: no run begins there any more, and open runs are drained. Close
// waits until they are over, so each must be read to its end, and its input must not block
// for ever. It also waits for the last save of the memory. The error of such a run is
// [ErrClosed] if anything was left. Close may be called more than once.
func (s *Shared) Close() {
	if s.checkMade() != nil {
		return // nothing runs
	}
	s.coordinator.Close()
	<-s.coordinator.Done()
	_ = s.saver.wait() // SaveErr returns it
}

// SaveErr returns why the memory is not saved. It is nil if the memory is saved, or without
// [WithMemorySaver]. SaveErr closes the Shared first: only then is there a last save.
func (s *Shared) SaveErr() error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	s.Close()
	return s.saver.wait()
}

// Status returns a snapshot with the n busiest of all lanes. The error is ctx's, or that of
// a closed Shared.
func (s *Shared) Status(ctx context.Context, n int) (Status, error) {
	if err := s.checkMade(); err != nil {
		return Status{}, configError(err)
	}
	return s.coordinator.Status(ctx, n)
}

// ResetLane lets a lane flow again at once, with nothing held against it; "" is
// [DefaultLane]. It vouches for the lane's account, too: the refusal of a call that another
// lane of it let go before stops that lane alone. A lane that no item has used yet has nothing
// to reset. A closed Shared ignores it.
func (s *Shared) ResetLane(name string) error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	s.coordinator.ResetLane(laneName(name))
	return nil
}

// SetLimits replaces all limits of a lane from now on; "" is [DefaultLane]. The error is
// [ErrConfig] for invalid limits. A closed Shared ignores it.
func (s *Shared) SetLimits(lane string, l Limits) error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	return configError(s.coordinator.SetLimits(laneName(lane), l))
}

// SetLimitsOfAll is SetLimits for every lane, also for those that items will open.
func (s *Shared) SetLimitsOfAll(l Limits) error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	return configError(s.coordinator.SetLimits("", l))
}

// SetConcurrency sets how many calls of all runs together may be in flight from now on, as
// [WithConcurrency] does at the beginning: 1..65,536. Calls beyond a lower number end as they do. The
// error is [ErrConfig] for a number out of bounds. A closed Shared ignores it.
func (s *Shared) SetConcurrency(n int) error {
	if err := errors.Join(s.checkMade(), within("SetConcurrency", n, 1, machine.MaxConcurrency)); err != nil {
		return configError(err)
	}
	s.coordinator.SetConcurrency(n)
	return nil
}

// Define replaces the settings of one lane from now on, as [WithLane] gives them at the
// beginning; see [machine.LaneDefined]. "" is [DefaultLane]. The error is [ErrConfig] for invalid
// settings. A closed Shared ignores it.
func (s *Shared) Define(lane string, l LaneConfig) error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	return configError(s.coordinator.Define(laneName(lane), l))
}

// Tell passes a word from outside to the law of a lane, if the law is a [limiter.Listener];
// "" is [DefaultLane]. A lane that no item has used yet hears nothing. A closed Shared
// ignores it.
func (s *Shared) Tell(lane string, word any) error {
	if err := s.checkMade(); err != nil {
		return configError(err)
	}
	s.coordinator.Tell(laneName(lane), word)
	return nil
}

// Words yields what the laws of lanes say to the outside, where a law is a
// [limiter.Speaker]. Each receive yields all that was said since the one before: the latest
// word of each lane. The channel is closed once the Shared is; the last words can still be
// received then. Runs never block on a slow receiver. For a nil or zero Shared, Words
// returns nil.
func (s *Shared) Words() <-chan []Word {
	if s.checkMade() != nil {
		return nil
	}
	return s.coordinator.Words()
}

// configError wraps an error about an argument in ErrConfig; nil stays nil.
func configError(err error) error {
	if err == nil {
		return nil
	}
	return join(ErrConfig, err)
}

// WithShared runs on the coordinator of s, together with the other runs there. Lanes,
// limits, the clock and the seed are those of s: an option here that sets any of them is
// [ErrConfig].
func WithShared(s *Shared) Option {
	return runOption(func(c *config) {
		if err := s.checkMade(); err != nil {
			c.addFault(inOption("WithShared", err))
			return
		}
		c.shared = s
	}, "WithShared()")
}

// SharesLanes reports whether the options, taken together, run on a [Shared]. Then options about lanes
// belong to [NewShared].
func SharesLanes(opts ...Option) bool { return configure(opts).shared != nil }

func (c *config) newCoordinator(mailbox int) *coordinator.Coordinator {
	return coordinator.New(coordinator.Config{Machine: c.machine, Clock: c.clock, ReadAhead: c.readAhead, Mailbox: mailbox})
}
