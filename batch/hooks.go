package batch

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// A Retry is an item on its way into a further call.
type Retry struct {
	Index      int    // the item's place in the input, from 0
	Item       any    // the item, of the run's type In
	Pool, Lane string // where it waited, and where the call goes
	Calls      int    // calls made for it until now, at least 1
	Attempts   int    // of these, failed attempts; the others were refused
	Err        error  // of the latest call; errors.Is finds its [Kind]

	Waited time.Duration // from each call that came back to the next
}

// WithRetryHook calls f before each call of an item but its first: after a failure or a
// refusal, when the wait is over. It runs in the worker that makes the call, so several
// may run at once, and a slow one holds up its worker and nothing else; neither the call's
// timeout nor its latency counts it. If it panics, that is the item's error, and the call
// is not made.
func WithRetryHook(f func(Retry)) Option {
	return runOption(func(c *config) {
		c.retryHook = f
		c.fault(notNil("WithRetryHook", f == nil))
	}, "WithRetryHook()")
}

// WithGate calls f before each call, behind which the call is made: f may wait for a
// place, as at a disk that has to keep up. It runs in the worker that makes the call, which
// counts as in flight meanwhile; neither the call's timeout nor its latency counts it, so
// that no provider is blamed for it. ctx ends when the run is abandoned: then f returns at
// once, and the call is not made. If f panics, that is the item's error, likewise.
func WithGate(f func(ctx context.Context)) Option {
	return runOption(func(c *config) {
		c.gate = f
		c.fault(notNil("WithGate", f == nil))
	}, "WithGate()")
}

// WithClassifier says what the errors of one's own function mean. f is asked once for
// each, in the worker, so several may be asked at once; the [Kind] that it answers decides
// alone: whether the item is tried again, whether that uses an attempt, and what its lane
// learns. [Unknown] leaves it to headrace, which looks at the error, the status and the
// body. A wait that the server named is heard all the same.
//
// It is not asked about panics, nor about calls that were cut off by a timeout of the
// run's or by its end. If it panics, that is the item's error.
func WithClassifier(f func(error) Kind) Option {
	return runOption(func(c *config) {
		c.classifier = f
		c.fault(notNil("WithClassifier", f == nil))
	}, "WithClassifier()")
}

// announce tells the hook of a further call. The error is that of a hook that panicked.
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

// classified is the error of a call with the kind that the classifier gives it.
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
	var fault Error // with what the error says beside its kind: a wait, a limit
	if known := (*Error)(nil); errors.As(err, &known) && known != nil {
		fault = *known
	}
	fault.Kind, fault.Err = kind, err
	return &failure{&fault, err}
}

// guarded runs what the caller has written, and makes an error of its panic, with the
// stack of where it happened. Whatever is called back runs in one, but for the loop over
// the results, which is the caller's own. What ends its goroutine instead ends that of
// guarded too: who calls it has a deferred function to see to that.
func guarded(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}
