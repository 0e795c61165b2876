package batch

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// A Retry describes an item that is about to be called again.
type Retry struct {
	Index      int    // the item's place in the input, from 0
	Item       any    // the item, of the run's type In
	Pool, Lane string // where it waited, and where the call goes
	Calls      int    // calls made for it so far, at least 1
	Attempts   int    // failed attempts among these calls; the others were refused
	Err        error  // of the latest call; errors.Is finds its [Kind]

	Waited time.Duration // time between calls: from each return to the next call
}

// WithRetryHook calls f before each call of an item except its first: after a failure or a
// refusal, when the wait is over. f runs in the worker that makes the call, so several may
// run at once. A slow f holds up its worker and nothing else; neither the call's timeout
// nor its latency includes it. If f panics, that is the item's error, and the call is not
// made.
func WithRetryHook(f func(Retry)) Option {
	return runOption(func(c *config) {
		c.retryHook = f
		c.fault(notNil("WithRetryHook", f == nil))
	}, "WithRetryHook()")
}

// WithGate calls f before each call, and makes the call when f returns. f may wait, for
// example for a disk that has to keep up. f runs in the worker that makes the call, which
// counts as in flight meanwhile. Neither the call's timeout nor its latency includes f, so
// no provider is blamed for it. ctx ends when the run is abandoned: f must then return at
// once, and the call is not made. If f panics, that is the item's error, and the call is
// not made.
func WithGate(f func(ctx context.Context)) Option {
	return runOption(func(c *config) {
		c.gate = f
		c.fault(notNil("WithGate", f == nil))
	}, "WithGate()")
}

// WithClassifier sets a function that says what the errors of the caller's function mean. f
// runs once for each error, in the worker, so several may run at once. The [Kind] that f
// returns decides alone: whether the item is tried again, whether that uses an attempt, and
// what its lane learns. [Unknown] leaves the decision to headrace, which looks at the
// error, the status and the body. A wait that the server named counts all the same.
//
// f is not called for panics, nor for calls that were cut off by a timeout of the run's or
// by its end. If f panics, that is the item's error.
func WithClassifier(f func(error) Kind) Option {
	return runOption(func(c *config) {
		c.classifier = f
		c.fault(notNil("WithClassifier", f == nil))
	}, "WithClassifier()")
}

// announce calls the hook before a further call. The error is that of a hook that panicked.
func (r *run[In, Out]) announce(j *job[In, Out], g machine.Grant) error {
	if r.retryHook == nil || j.Calls < 2 {
		return nil
	}
	retry := Retry{
		Index: int(j.Seq), Item: j.result.Item, Pool: j.Pool, Lane: g.Lane,
		Calls: j.Calls - 1, Attempts: j.Attempts, Err: j.result.Err, Waited: j.Waited,
	}
	return guarded(func() { r.retryHook(retry) })
}

// pass waits at the gate. The error is that of a gate that panicked, or of a run that was
// abandoned meanwhile.
func (c *config) pass(ctx context.Context) error {
	if c.gate == nil {
		return nil
	}
	if err := guarded(func() { c.gate(ctx) }); err != nil {
		return err
	}
	return ctx.Err()
}

// classified returns the error of a call with the kind that the classifier gives it.
func (c *config) classified(err error) error {
	if c.classifier == nil || err == nil {
		return err
	}
	return c.classify(err)
}

func (c *config) classify(err error) error {
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		return err
	}
	kind := Unknown
	if err := guarded(func() { kind = c.classifier(err) }); err != nil {
		return err
	}
	if kind == Unknown {
		return err
	}
	var fault Error // keeps what the error says besides its kind: a wait, a limit
	if known := (*Error)(nil); errors.As(err, &known) && known != nil {
		fault = *known
	}
	fault.Kind, fault.Err = kind, err
	return &failure{&fault, err}
}

// guarded runs a function of the caller's, and returns its panic as an error with the stack
// of where it happened. All callbacks run in guarded, except the loop over the results,
// which is the caller's own. A function that ends its goroutine ends guarded as well: the
// callers of guarded handle that in a deferred function.
func guarded(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
