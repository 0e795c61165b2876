package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
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
	return requiredOption("WithRetryHook", f == nil, func(c *config) { c.retryHook = f })
}

// WithGate calls f before each call, and makes the call when f returns. f may wait, for
// example for a disk that has to keep up. f runs in the worker that makes the call, which
// counts as in flight meanwhile. Neither the call's timeout nor its latency includes f, so
// no provider is blamed for it. ctx ends when the run is abandoned: f must then return at
// once, and the call is not made. If f panics, that is the item's error, and the call is
// not made.
func WithGate(f func(ctx context.Context)) Option {
	return requiredOption("WithGate", f == nil, func(c *config) { c.gate = f })
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
	return requiredOption("WithClassifier", f == nil, func(c *config) { c.classifier = f })
}

// classify returns the error of a call with the kind that the caller's classifier gives it. Panics, and errors that
// the classifier leaves Unknown, stay as they are.
func (c *config) classify(err error) error {
	if c.classifier == nil {
		return err
	}
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

// A Call describes one call that has ended.
type Call struct {
	Worker     int    // the worker that made it, 0..concurrency-1: its calls never overlap, so a receiver may count by worker without a lock
	Lane, Pool string // where it went, and where its item waited
	Item       uint64 // its item's place in the input, from 0: a [Result]'s Index
	Attempt    int    // number of the call among its item's calls, from 1

	Begun     time.Time
	Latency   time.Duration // to the end of the answer
	Gated     time.Duration // before Begun, at the gate of [WithGate]
	Status    int           // HTTP status of the answer; 0 if there was none
	Err       error         // nil: the call was answered as hoped
	Kind      Kind          // of Err
	Usage     provider.Usage
	Doubtful  Doubtful // the call itself, if its answer was cut off; its usage is here then
	Finish    string   // the provider's word for why the answer ended
	RequestID string
	Again     bool // the item is called again, or ends later without a further call
	Probe     bool // sent to find out whether calls are let in again
}

// WithCalls calls f after each call, and before its result goes out. f runs in the worker
// that made the call: several may run at once, and a slow f holds up its worker. Nothing is
// allocated for it. f is for measuring and does not affect the run. If f panics, or ends
// its goroutine, that worker does not call it again, and the run's error includes
// [ErrObserver].
func WithCalls(f func(Call)) Option {
	return requiredOption("WithCalls", f == nil, func(c *config) { c.calls = f })
}

// An End describes the end of one item.
type End struct {
	Worker int    // as in [Call]
	Item   uint64 // its place in the input, from 0
	In     any    // a pointer to the item, of type *In; the receiver must not keep it

	Lane, Pool string
	Err        error // nil: it was answered; errors.Is finds [ErrNotRun] if the item was not run
	Attempts   int
	Calls      int
	Usage      provider.Usage // of all answered calls, as far as the answers said
	Doubtful   Doubtful       // the calls whose answer was cut off
	Finish     string
	Queued     time.Duration // from the offer to its first call
	Waited     time.Duration // time between calls: from each return to the next call
	Latency    time.Duration // of the latest call
}

// WithEnds calls f once for each item that ends, before its result goes out, in the
// worker that ends it. All else is as with [WithCalls]. f is not called for an item whose
// Pool, Cost or ItemKey panicked: such an item was never taken over.
func WithEnds(f func(End)) Option {
	return requiredOption("WithEnds", f == nil, func(c *config) { c.ends = f })
}

// measure runs f, which calls a measuring function. If that panics or ends the goroutine,
// this worker never calls one again.
func (r *run[In, Out]) measure(l *leash, f func()) {
	l.muted = true
	err := errGone // unless it returns
	defer func() {
		if l.muted = err != nil; !l.muted {
			return
		}
		select {
		case r.hookErr <- err:
		default: // another worker's error stands for it
		}
	}()
	err = guarded(f)
}

// measuringErr returns the error of the first measuring function that panicked, or nil.
func (r *run[In, Out]) measuringErr() error {
	select {
	case err := <-r.hookErr:
		return fmt.Errorf("%w: %w", ErrObserver, err)
	default:
		return nil
	}
}

// A Bound says what holds a run back at one moment; see [machine.Bound].
type Bound = machine.Bound

// A Ledger divides a run's time by what held the run back, as in
// sum.Held[machine.BoundTokens]. As text it names each bound that did. See
// [machine.Ledger].
//
//	[Bounds]time.Duration
type Ledger = machine.Ledger

// An Event is one thing that a run reports to its observer. Exactly one field is set.
type Event struct {
	Transition *Transition // a lane changed its phase
	LongWait   *LongWait   // a lane or an item waits for longer than [WithLongWait] says
	Status     *Status     // a snapshot, once per period
	Summary    *Summary    // the run is over; the last event
}

// busiestLanes is the number of lanes in a snapshot: as many as package observe keeps
// apart.
const busiestLanes = 32

// WithObserver calls f with the events of the run: transitions and long waits as they come,
// a status each period, the summary at the end. All calls come from one goroutine of the
// run's. A slow f slows nothing: the run drops and counts events that f is too slow for,
// except the last event, for which it waits. An f that panics is not called again. The run
// goes on, and its error includes [ErrObserver] in the end. For a run with [ErrConfig], f
// is not called; for any other run that cannot begin, f gets the summary.
func WithObserver(f func(Event)) Option {
	return requiredOption("WithObserver", f == nil, func(c *config) { c.observer = f })
}

// WithProgressEvery sets the period of the observer's status. Default 1 s.
func WithProgressEvery(d time.Duration) Option {
	return runOption(func(c *config) { c.every = d }, "WithProgressEvery(%v)", d)
}

// DefaultLongWait is the time a lane or an item may wait before the observer hears of it.
const DefaultLongWait = machine.DefaultLongWait

// WithLongWait sets how long a lane or an item may wait before the observer gets an
// [Event].LongWait. It gets one for each wait, and at once if the end of the wait is known
// to be farther away than that. Default 5 minutes; 0 reports no wait.
func WithLongWait(d time.Duration) Option {
	return sharedOption(func(c *config) { c.longWait = d }, "WithLongWait(%v)", d)
}

// observe passes on the coordinator's news until the run is over, and then the summary.
func (r *run[In, Out]) observe(ctx context.Context) {
	ticker := r.clock.NewTicker(r.every)
	defer ticker.Stop()
	for news, heard := r.session.News(), true; news != nil; {
		select {
		case n, ok := <-news:
			if !ok {
				news = nil
				continue
			}
			heard = r.notifyObserver(Event{Transition: n.Transition, LongWait: n.LongWait})
		case <-ticker.Chan():
			if s, err := r.session.Status(ctx, busiestLanes); err == nil {
				heard = r.notifyObserver(Event{Status: &s})
			}
		}
		if !heard {
			return
		}
	}
	r.lastEvent()
}

// lastEvent waits for the summary and passes it on.
func (r *run[In, Out]) lastEvent() {
	s := <-r.finalSummary
	r.notifyObserver(Event{Summary: &s})
}

// notifyObserver calls the observer, and reports whether it may be called again: one that panicked may not.
func (r *run[In, Out]) notifyObserver(e Event) (heard bool) {
	err := errGone // unless it returns
	defer func() {
		if err != nil {
			r.observerErr = fmt.Errorf("%w: %w", ErrObserver, err)
		}
	}()
	err = guarded(func() { r.observer(e) })
	return err == nil
}
