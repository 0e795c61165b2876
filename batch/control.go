package batch

import (
	"context"
	"errors"

	"github.com/headrace/headrace/coordinator"
)

// A Control steers a run from another goroutine. It pauses, resumes or drains the run,
// looks at it, changes the limits of its lanes or resets them. A control made with
// [NewControl] belongs to the one run that gets it by [WithControl].
type Control struct {
	claim   chan struct{} // holds one token: the run that takes it owns the control
	drain   chan struct{} // holds one token once Drain was called
	ready   chan struct{} // closed when the two below are set
	session *coordinator.Session
	owner   *coordinator.Coordinator
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
		c.fault(said("WithControl", ctl.made()))
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
		c.owner, c.session = owner, s
		close(c.ready)
		return true
	default:
		return false
	}
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

// Pause makes the run start no further call until Resume. Like Resume and Status it waits
// for the run to begin; the error is ctx's. A run that is over ignores it.
func (c *Control) Pause(ctx context.Context) error {
	return c.do(ctx, (*coordinator.Session).Pause)
}

// Resume undoes Pause.
func (c *Control) Resume(ctx context.Context) error {
	return c.do(ctx, (*coordinator.Session).Resume)
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
	if err := c.wait(ctx); err != nil {
		return err
	}
	return wrong(c.owner.SetLimits(laneName(lane), l))
}

// Define replaces the settings of one lane from now on, as [WithLane] gives them at the
// beginning; see [machine.LaneDefined]. "" is [DefaultLane]. It waits for the run to begin.
// The error is ctx's, or [ErrConfig] for invalid settings. Items that are read from the
// input after Define find the new settings. On a [Shared] it applies to all runs there.
func (c *Control) Define(ctx context.Context, lane string, l LaneConfig) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	return wrong(c.owner.Define(laneName(lane), l))
}

// ResetLane lets a lane flow again at once, with nothing held against it; "" is
// [DefaultLane]. Items that wait on their own account after a call on it, as for a backoff,
// go at once, too. It waits for the run to begin; the error is ctx's. A lane that no item
// has used yet has nothing to reset. On a [Shared] it applies to all runs there.
func (c *Control) ResetLane(ctx context.Context, lane string) error {
	return c.do(ctx, func(*coordinator.Session) { c.owner.ResetLane(laneName(lane)) })
}

// Tell passes a word from outside to the law of a lane, if the law is a [limiter.Listener];
// "" is [DefaultLane]. It waits for the run to begin; the error is ctx's. A lane that no
// item has used yet hears nothing. On a [Shared] it applies to all runs there.
func (c *Control) Tell(ctx context.Context, lane string, word any) error {
	return c.do(ctx, func(*coordinator.Session) { c.owner.Tell(laneName(lane), word) })
}

// Words returns the channel of [Shared.Words] for the run's lanes. It waits for the run to
// begin, and the channel is closed when the run is over. On a [Shared] all runs get the
// same channel.
func (c *Control) Words(ctx context.Context) (<-chan []Word, error) {
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	return c.owner.Words(), nil
}

func (c *Control) do(ctx context.Context, f func(*coordinator.Session)) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	f(c.session)
	return nil
}
