package batch

import (
	"cmp"
	"context"
	"errors"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A Control steers a run from another goroutine. It pauses, resumes or drains the run,
// looks at it, changes what it may use, changes the limits of its lanes or resets them. A control
// made with [NewControl] belongs to the one run that gets it by [WithControl].
type Control struct {
	claim          chan struct{} // holds one token: the run that takes it owns the control
	drain          chan struct{} // holds one token once Drain was called
	ready          chan struct{} // closed when those below are set
	session        *coordinator.Session
	addPlaces      func(n int) // makes places for n workers
	lanes          *Shared     // those of the run's coordinator; only its coordinator is set
	maxConcurrency int         // calls that may be in flight
	hasBudget      bool        // the run has one
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
		c.addFault(inOption("WithControl", ctl.checkMade()))
	}, "WithControl()")
}

// checkMade returns an error unless the control came from NewControl.
func (c *Control) checkMade() error {
	if c == nil || c.claim == nil {
		return errors.New("the Control is nil or the zero value: make it with NewControl")
	}
	return nil
}

// attach gives the control its run, and reports whether the control had none yet.
func (c *Control) attach(owner *coordinator.Coordinator, s *coordinator.Session, raise func(n int), limits *machine.RunConfig) bool {
	select {
	case <-c.claim:
		c.lanes, c.session, c.addPlaces = &Shared{coordinator: owner}, s, raise
		c.maxConcurrency, c.hasBudget = cmp.Or(limits.MostConcurrency, limits.Concurrency), limits.Budget > 0
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
	if c.checkMade() != nil {
		return // no run can have it
	}
	select {
	case c.drain <- struct{}{}:
	default: // it was called before
	}
}

// drainSignal returns the channel that gets a token when Drain is called; nil without a control.
func (c *Control) drainSignal() <-chan struct{} {
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

// SetConcurrency sets how many calls of the run may be in flight from now on: from 1 to what
// [WithMostConcurrency] says, or else [WithConcurrency]. Calls beyond a lower number end as they do. It
// waits for the run to begin. The error is ctx's, or [ErrConfig] for a number out of bounds. A run
// that is over ignores it.
func (c *Control) SetConcurrency(ctx context.Context, n int) error {
	return c.do(ctx, func() error {
		if err := within("SetConcurrency", n, 1, c.maxConcurrency); err != nil {
			return configError(err)
		}
		c.addPlaces(n)
		c.session.SetConcurrency(n)
		return nil
	})
}

// SetMaxCost sets what the run may cost in all from now on, in USD: more than 0, and at most
// [MostBudget]. If that is spent already, the run ends with [ErrMaxCost] as soon as no call in flight
// has anything reserved. It waits for the run to begin. The error is ctx's, or [ErrConfig] for such a
// sum, and for a run without [WithMaxCost]. A run that is over, or has stopped by ErrMaxCost, ignores
// it.
func (c *Control) SetMaxCost(ctx context.Context, usd float64) error {
	return c.do(ctx, func() error {
		if err := checkBudget(usd); err != nil {
			return configError(inOption("SetMaxCost", err))
		}
		if !c.hasBudget {
			return configError(errors.New("SetMaxCost: the run has no budget: begin it with WithMaxCost"))
		}
		c.session.SetBudget(max(1, limiter.USD(usd))) // 0 would be no budget
		return nil
	})
}

// SetLimits replaces all limits of a lane from now on; "" is [DefaultLane]. It waits for
// the run to begin. The error is ctx's, or [ErrConfig] for invalid limits. A run that is
// over ignores it. On a [Shared] it applies to all runs there.
func (c *Control) SetLimits(ctx context.Context, lane string, l Limits) error {
	return c.do(ctx, func() error { return c.lanes.SetLimits(lane, l) })
}

// SetLimitsOfAll is SetLimits for every lane, also for those that items will open.
func (c *Control) SetLimitsOfAll(ctx context.Context, l Limits) error {
	return c.do(ctx, func() error { return c.lanes.SetLimitsOfAll(l) })
}

// Define replaces the settings of one lane from now on, as [WithLane] gives them at the
// beginning; see [machine.LaneDefined]. "" is [DefaultLane]. It waits for the run to begin.
// The error is ctx's, or [ErrConfig] for invalid settings. Items that are read from the
// input after Define find the new settings. On a [Shared] it applies to all runs there.
func (c *Control) Define(ctx context.Context, lane string, l LaneConfig) error {
	return c.do(ctx, func() error { return configError(c.lanes.coordinator.Define(laneName(lane), l)) })
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

// DefinePool gives the run one more pool of lanes, which [WithPool] and its like give it at the beginning; see
// [machine.PoolDefined]. It waits for the run to begin. The error is ctx's, or [ErrConfig] for an invalid pool. Items
// that are read from the input after DefinePool find it.
func (c *Control) DefinePool(ctx context.Context, p PoolConfig) error {
	return c.do(ctx, func() error { return configError(c.session.DefinePool(p)) })
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
	if err := c.checkMade(); err != nil {
		return configError(err)
	}
	select {
	case <-c.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
