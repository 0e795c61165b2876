package batch

import (
	"context"
	"errors"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator"
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

// made returns an error unless s came from NewShared.
func (s *Shared) made() error {
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
	if s.made() != nil {
		return // nothing runs
	}
	s.coordinator.Close()
	<-s.coordinator.Done()
	_ = s.saver.wait() // SaveErr returns it
}

// SaveErr returns why the memory is not saved. It is nil if the memory is saved, or without
// [WithMemorySaver]. SaveErr closes the Shared first: only then is there a last save.
func (s *Shared) SaveErr() error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	s.Close()
	return s.saver.wait()
}

// Status returns a snapshot with the n busiest of all lanes. The error is ctx's, or that of
// a closed Shared.
func (s *Shared) Status(ctx context.Context, n int) (Status, error) {
	if err := s.made(); err != nil {
		return Status{}, wrong(err)
	}
	return s.coordinator.Status(ctx, n)
}

// DefinePool gives the run one more pool of lanes, which [WithPool] and its like give it at the beginning; see
// [machine.PoolDefined]. It waits for the run to begin. The error is ctx's, or [ErrConfig] for an invalid pool. Items
// that are read from the input after DefinePool find it.
func (c *Control) DefinePool(ctx context.Context, p PoolConfig) error {
	return c.do(ctx, func() error { return wrong(c.session.DefinePool(p)) })
}

// ResetLane lets a lane flow again at once, with nothing held against it; "" is
// [DefaultLane]. It vouches for the lane's account, too: the refusal of a call that another
// lane of it let go before stops that lane alone. A lane that no item has used yet has nothing
// to reset. A closed Shared ignores it.
func (s *Shared) ResetLane(name string) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	s.coordinator.ResetLane(laneName(name))
	return nil
}

// SetLimits replaces all limits of a lane from now on; "" is [DefaultLane]. The error is
// [ErrConfig] for invalid limits. A closed Shared ignores it.
func (s *Shared) SetLimits(lane string, l Limits) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	return wrong(s.coordinator.SetLimits(laneName(lane), l))
}

// Define replaces the settings of one lane from now on, as [WithLane] gives them at the
// beginning; see [machine.LaneDefined]. "" is [DefaultLane]. The error is [ErrConfig] for invalid
// settings. A closed Shared ignores it.
func (s *Shared) Define(lane string, l LaneConfig) error {
	if err := s.made(); err != nil {
		return wrong(err)
	}
	return wrong(s.coordinator.Define(laneName(lane), l))
}

// Tell passes a word from outside to the law of a lane, if the law is a [limiter.Listener];
// "" is [DefaultLane]. A lane that no item has used yet hears nothing. A closed Shared
// ignores it.
func (s *Shared) Tell(lane string, word any) error {
	if err := s.made(); err != nil {
		return wrong(err)
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
	if s.made() != nil {
		return nil
	}
	return s.coordinator.Words()
}

// wrong wraps what is wrong with an argument in ErrConfig.
func wrong(err error) error {
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
		if err := s.made(); err != nil {
			c.fault(inOption("WithShared", err))
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

// A Control steers a run from another goroutine. It pauses, resumes or drains the run,
// looks at it, changes the limits of its lanes or resets them. A control made with
// [NewControl] belongs to the one run that gets it by [WithControl].
type Control struct {
	claim   chan struct{} // holds one token: the run that takes it owns the control
	drain   chan struct{} // holds one token once Drain was called
	ready   chan struct{} // closed when the two below are set
	session *coordinator.Session
	lanes   *Shared // those of the run's coordinator; only its coordinator is set
}

// NewControl returns a control for one run.
func NewControl() *Control {
	c := &Control{claim: make(chan struct{}, 1), drain: make(chan struct{}, 1), ready: make(chan struct{})}
	c.claim <- struct{}{}
	return c
}

// WithControl lets ctl steer the run.
func WithControl(ctl *Control) Option {
	return runOption(func(c *config) {
		c.control = ctl
		c.fault(inOption("WithControl", ctl.made()))
	}, "WithControl()")
}

// made returns an error unless the control came from NewControl.
func (c *Control) made() error {
	if c == nil || c.claim == nil {
		return errors.New("the Control is nil or the zero value: make it with NewControl")
	}
	return nil
}

// attach gives the control its run, and reports whether the control had none yet.
func (c *Control) attach(owner *coordinator.Coordinator, s *coordinator.Session) bool {
	select {
	case <-c.claim:
		c.lanes, c.session = &Shared{coordinator: owner}, s
		close(c.ready)
		return true
	default:
		return false
	}
}

// Pause makes the run start no further call until Resume. Like Resume and Status it waits
// for the run to begin; the error is ctx's. A run that is over ignores it.
func (c *Control) Pause(ctx context.Context) error {
	return c.do(ctx, func() error { c.session.Pause(); return nil })
}

// Resume undoes Pause.
func (c *Control) Resume(ctx context.Context) error {
	return c.do(ctx, func() error { c.session.Resume(); return nil })
}

// Drain lets the calls in flight finish and starts nothing more. It does not wait, and may
// be called before the run begins.
func (c *Control) Drain() {
	if c.made() != nil {
		return // no run can have it
	}
	select {
	case c.drain <- struct{}{}:
	default: // it was called before
	}
}

// drains returns the channel by which the run hears of Drain, nil without a control.
func (c *Control) drains() <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.drain
}

// Status returns a snapshot with the n busiest lanes and the run's own progress. For a run
// that is over, the error is that of its coordinator.
func (c *Control) Status(ctx context.Context, n int) (Status, error) {
	if err := c.wait(ctx); err != nil {
		return Status{}, err
	}
	return c.session.Status(ctx, n)
}

// SetLimits replaces all limits of a lane from now on; "" is [DefaultLane]. It waits for
// the run to begin. The error is ctx's, or [ErrConfig] for invalid limits. A run that is
// over ignores it. On a [Shared] it applies to all runs there.
func (c *Control) SetLimits(ctx context.Context, lane string, l Limits) error {
	return c.do(ctx, func() error { return c.lanes.SetLimits(lane, l) })
}

// Define replaces the settings of one lane from now on, as [WithLane] gives them at the
// beginning; see [machine.LaneDefined]. "" is [DefaultLane]. It waits for the run to begin.
// The error is ctx's, or [ErrConfig] for invalid settings. Items that are read from the
// input after Define find the new settings. On a [Shared] it applies to all runs there.
func (c *Control) Define(ctx context.Context, lane string, l LaneConfig) error {
	return c.do(ctx, func() error { return wrong(c.lanes.coordinator.Define(laneName(lane), l)) })
}

// ResetLane lets a lane flow again at once, with nothing held against it; "" is
// [DefaultLane]. Items that wait on their own account after a call on it, as for a backoff,
// go at once, too. It waits for the run to begin; the error is ctx's. A lane that no item
// has used yet has nothing to reset. On a [Shared] it applies to all runs there.
func (c *Control) ResetLane(ctx context.Context, lane string) error {
	return c.do(ctx, func() error { return c.lanes.ResetLane(lane) })
}

// Tell passes a word from outside to the law of a lane, if the law is a [limiter.Listener];
// "" is [DefaultLane]. It waits for the run to begin; the error is ctx's. A lane that no
// item has used yet hears nothing. On a [Shared] it applies to all runs there.
func (c *Control) Tell(ctx context.Context, lane string, word any) error {
	return c.do(ctx, func() error { return c.lanes.Tell(lane, word) })
}

// Words returns the channel of [Shared.Words] for the run's lanes. It waits for the run to
// begin, and the channel is closed when the run is over. On a [Shared] all runs get the
// same channel.
func (c *Control) Words(ctx context.Context) (<-chan []Word, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.lanes.Words(), nil
}

// do waits for the run to begin, and then calls f.
func (c *Control) do(ctx context.Context, f func() error) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	return f()
}

// wait waits for the run to begin.
func (c *Control) wait(ctx context.Context) error {
	if err := c.made(); err != nil {
		return wrong(err)
	}
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
