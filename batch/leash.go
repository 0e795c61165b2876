package batch

import (
	"context"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// leashCalls is how many calls share a leash at most. What a function leaves
// hanging on its context (a child that it did not cancel, an answer that it did not
// close) is let go with the leash: at the next failure, which is when most is left,
// or after sixteen calls, among which the price of a new one hardly shows.
const leashCalls = 16

// leash is the context of a worker's calls, one after the other, and the timer that
// ends it when a call has had its time. Both serve many calls: to make them anew for
// each costs as much as the rest of what a worker does.
//
// A timer may fire at the moment when its call ends by itself. Then it can no
// longer be stopped, its function is about to cancel the context, and the next call
// would be cut off for the one before: so a leash whose timer could not be stopped
// is thrown away.
type leash struct {
	clock  clockwork.Clock
	parent context.Context
	worker int  // whose it is
	deaf   bool // who measures has panicked, and is told no more by this worker

	ctx    context.Context // nil: there is none now
	cancel context.CancelCauseFunc
	cause  error // with which the timer cancels
	timer  clockwork.Timer
	calls  int
}

// take gives the context of a call that may take limit, for ever if that is 0, and
// is then ended with cause.
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

// drop ends the context and whatever hangs on it, and the timer of a call that did not
// return.
func (l *leash) drop() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.ctx != nil {
		l.cancel(nil)
	}
	*l = leash{clock: l.clock, parent: l.parent, worker: l.worker, deaf: l.deaf}
}

// callContext is the context of one call: on its worker's leash, with the lane, the
// number and the recorder in it, in one allocation.
type callContext struct {
	provider.Attempt
	lane   string
	number int // of its item's calls, from 1

	leash *leash
	item  *machine.Item
	limit time.Duration // how long it may take; 0: for ever
	cause error         // with which it ends then
	begun bool          // its answer has begun: the clock of the attempt is stopped
}

// AnswerBegins stops the clock of the attempt: its answer is on the way, and as long as it
// comes it is not too late. The time of the item goes on. The timer runs the function that it
// was made with, so another cause needs another timer.
func (c *callContext) AnswerBegins() {
	if c.cause == ErrItemTimeout || c.leash.timer == nil || !c.leash.timer.Stop() { //nolint:errorlint // identity: the cause is ours, unwrapped
		return // of the item already, or none, or it has fired
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

// Value answers for the lane and the number, and asks further for the rest.
func (c *callContext) Value(key any) any {
	switch key {
	case laneKey{}:
		return &c.lane // a pointer: a string would be copied to the heap
	case numberKey{}:
		return c.number
	}
	return c.Attempt.Value(key)
}

// CallFrom is which call of its item's the call with that context is, from 1; 0 for a
// context that is not a call's.
func CallFrom(ctx context.Context) int {
	n, _ := ctx.Value(numberKey{}).(int)
	return n
}

// LaneFrom is the lane on which the call with that context was granted; "" for
// a context that is not a call's. A function that serves several keys or
// endpoints chooses by it.
func LaneFrom(ctx context.Context) string {
	if lane, is := ctx.Value(laneKey{}).(*string); is {
		return *lane
	}
	return ""
}
