package batch

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

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
	return runOption(func(c *config) {
		c.calls = f
		c.fault(notNil("WithCalls", f == nil))
	}, "WithCalls()")
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
	return runOption(func(c *config) {
		c.ends = f
		c.fault(notNil("WithEnds", f == nil))
	}, "WithEnds()")
}

// gateClock returns the time before the gate, or the zero time if nothing measures the
// gate.
func (c *config) gateClock() (t time.Time) {
	if c.gate != nil && c.calls != nil {
		t = c.clock.Now()
	}
	return t
}

// tellCall reports a call that has ended to the function of WithCalls.
func (r *run[In, Out]) tellCall(l *leash, j *job[In, Out], e *ending, v *judgement) {
	if r.calls == nil || l.deaf || e.unsent {
		return
	}
	used, doubt := e.used()
	c := Call{
		Worker: l.worker, Lane: j.result.Lane, Pool: j.Pool, Item: j.Seq, Attempt: j.Calls,
		Begun: e.begun, Latency: e.latency, Gated: e.gated, Status: e.record.Status, Err: v.err, Kind: Kind(v.outcome.Way),
		Usage: used, Doubtful: doubt, Finish: e.record.Finish, RequestID: e.record.RequestID, Again: v.again, Probe: e.probe,
	}
	r.measure(l, func() { r.calls(c) })
}

// tellEnd reports an item that has ended to the function of WithEnds.
func (r *run[In, Out]) tellEnd(l *leash, j *job[In, Out]) {
	if r.ends == nil || l.deaf {
		return
	}
	of := &j.result
	e := End{
		Worker: l.worker, Item: j.Seq, In: &of.Item, Lane: of.Lane, Pool: of.Pool, Err: of.Err, Attempts: of.Attempts, Calls: of.Calls,
		Usage: of.Usage, Doubtful: of.Doubtful(), Finish: of.Finish, Queued: of.Queued, Waited: of.Waited, Latency: of.Latency,
	}
	r.measure(l, func() { r.ends(e) })
}

// measure runs f, which calls a measuring function. If that panics or ends the goroutine,
// this worker never calls one again.
func (r *run[In, Out]) measure(l *leash, f func()) {
	l.deaf = true
	err := errGone // unless it returns
	defer func() {
		if l.deaf = err != nil; !l.deaf {
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
