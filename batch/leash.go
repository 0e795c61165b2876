package batch

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// leashCalls is the maximum number of calls that share a leash. A function may leave
// things hanging on its context: a child that it did not cancel, an answer that it did
// not close. They are released with the leash: at the next failure, when most is left
// behind, or after sixteen calls. Over so many the price of a new leash hardly shows.
const leashCalls = 16

// leash holds the context of a worker's calls, one after the other, and the timer that ends
// it when a call has had its time. Both serve many calls: to make them anew for each call
// costs as much as the rest of a worker's work.
//
// A timer may fire at the moment when its call ends by itself. Then it can no longer be
// stopped, and its function is about to cancel the context. The next call would be cut off
// instead of the last one. So a leash whose timer could not be stopped is thrown away.
type leash struct {
	clock  clockwork.Clock
	parent context.Context
	worker int  // the worker that owns it
	deaf   bool // a measuring function has panicked: this worker calls none any more

	ctx    context.Context // nil: there is none now
	cancel context.CancelCauseFunc
	cause  error // the timer cancels with it
	timer  clockwork.Timer
	calls  int
}

// take returns the context of a call that may take limit, or for ever if limit is 0. When
// the time is up, the context ends with cause.
func (l *leash) take(limit time.Duration, cause error) context.Context {
	if l.ctx == nil || l.calls == leashCalls || l.cause != cause { //nolint:errorlint // identity: the causes are ours, unwrapped
		l.renew(cause)
	}
	l.calls++
	switch {
	case limit <= 0:
	case l.timer == nil:
		cancel := l.cancel
		l.timer = l.clock.AfterFunc(limit, func() { cancel(cause) })
	default:
		l.timer.Reset(limit)
	}
	return l.ctx
}

// put takes the context back when its call has ended.
func (l *leash) put(limit time.Duration, failed bool) {
	if limit > 0 && !l.timer.Stop() || failed {
		l.drop()
	}
}

func (l *leash) renew(cause error) {
	l.drop()
	l.ctx, l.cancel = context.WithCancelCause(l.parent)
	l.cause = cause
}

// drop ends the context and all that derives from it, and stops the timer of a call that
// did not return.
func (l *leash) drop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.ctx != nil {
		l.cancel(nil)
	}
	*l = leash{clock: l.clock, parent: l.parent, worker: l.worker, deaf: l.deaf}
}

// callContext is the context of one call. It lies on its worker's leash and holds the lane,
// the number and the recorder, in one allocation.
type callContext struct {
	provider.Attempt
	lane   string
	number int // among its item's calls, from 1

	leash *leash
	item  *machine.Item
	limit time.Duration // how long the call may take; 0: for ever
	cause error         // the cause with which the call ends then
	begun bool          // its answer has begun: the clock of the attempt is stopped
}

// AnswerBegins stops the clock of the attempt: the answer is on its way, and is not too
// late as long as it comes. The time of the item goes on. A timer runs the function that it
// was made with, so another cause needs another timer.
func (c *callContext) AnswerBegins() {
	if c.cause == ErrItemTimeout || c.leash.timer == nil || !c.leash.timer.Stop() { //nolint:errorlint // identity: the cause is ours, unwrapped
		return // the clock is the item's already, or there is none, or it has fired
	}
	c.begun, c.limit = true, 0
	if c.item.Expires.IsZero() {
		return
	}
	c.cause, c.limit = ErrItemTimeout, c.item.Expires.Sub(c.item.First)
	cancel, left := c.leash.cancel, c.item.Expires.Sub(c.leash.clock.Now())
	c.leash.timer = c.leash.clock.AfterFunc(max(1, left), func() { cancel(ErrItemTimeout) })
}

type laneKey struct{}

type numberKey struct{}

// Value returns the lane and the number, and asks its parent for the rest.
func (c *callContext) Value(key any) any {
	switch key {
	case laneKey{}:
		return &c.lane // a pointer: a string would be copied to the heap
	case numberKey{}:
		return c.number
	}
	return c.Attempt.Value(key)
}

// CallFrom returns the number of the call with this context among its item's calls, from 1.
// It returns 0 for a context that is not a call's.
func CallFrom(ctx context.Context) int {
	n, _ := ctx.Value(numberKey{}).(int)
	return n
}

// LaneFrom returns the lane on which the call with this context was granted. It returns ""
// for a context that is not a call's. A function that serves several keys or endpoints
// chooses by it.
func LaneFrom(ctx context.Context) string {
	if lane, is := ctx.Value(laneKey{}).(*string); is {
		return *lane
	}
	return ""
}
