package batch

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A Call is one call that has ended.
type Call struct {
	Worker     int    // who made it, 0..concurrency-1: no two calls of a worker overlap, so a receiver may count by it without a lock
	Lane, Pool string // where it went, and where its item waited
	Item       uint64 // its item's place in the input, from 0: a [Result]'s Index
	Attempt    int    // which call of its item's it was, from 1

	Begun     time.Time
	Latency   time.Duration // to the end of the answer
	Gated     time.Duration // before Begun, at the gate of [WithGate]
	Status    int           // HTTP status of the answer; 0 if there was none
	Err       error         // nil: it was answered as hoped
	Kind      Kind          // of Err
	Usage     provider.Usage
	Doubtful  Doubtful // itself, if its answer was cut off; its usage is here then
	Finish    string   // the provider's word for why the answer ended
	RequestID string
	Again     bool // its item is called again, or ends later without a further call
	Probe     bool // it was sent to find out whether calls are let in again
}

// WithCalls calls f after each call, and before its result is given out, in the worker
// that made it: several may run at once, and a slow one holds up its worker. Nothing is
// allocated for it. It is for measuring; what f does to the run is nothing. If it panics,
// or ends its goroutine, it is not called again by that worker, and the run's error says
// [ErrObserver].
func WithCalls(f func(Call)) Option {
	return runOption(func(c *config) {
		c.calls = f
		c.fault(notNil("WithCalls", f == nil))
	}, "WithCalls()")
}

// An End is the end of one item.
type End struct {
	Worker int    // as in [Call]
	Item   uint64 // its place in the input, from 0
	In     any    // a pointer to the item, of type *In; it is not to be kept

	Lane, Pool string
	Err        error // nil: it was answered; errors.Is finds [ErrNotRun] in that of one that was not run
	Attempts   int
	Calls      int
	Usage      provider.Usage // of all its calls that were answered, as far as they said
	Doubtful   Doubtful       // its calls whose answer was cut off
	Finish     string
	Queued     time.Duration // from being offered to its first call
	Waited     time.Duration // from each call that came back to the next
	Latency    time.Duration // of the latest call
}

// WithEnds calls f once for each item that ends, before its result is given out, by
// whichever worker ends it; all else is as with [WithCalls]. An item whose Pool or Cost
// panicked was never taken over, and is not told of.
func WithEnds(f func(End)) Option {
	return runOption(func(c *config) {
		c.ends = f
		c.fault(notNil("WithEnds", f == nil))
	}, "WithEnds()")
}

// gateClock is the time before the gate, if anybody is to know how long that took.
func (c *config) gateClock() (t time.Time) {
	if c.gate != nil && c.calls != nil {
		t = c.clock.Now()
	}
	return t
}

// tellCall tells who measures of a call that has ended.
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

// tellEnd tells who measures of an item that has ended.
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

// measure calls who measures, and never again from this worker if that panics or ends the
// goroutine.
func (r *run[In, Out]) measure(l *leash, f func()) {
	l.deaf = true
	err := errGone // unless it returns
	defer func() {
		if l.deaf = err != nil; !l.deaf {
			return
		}
		select {
		case r.hookErr <- err:
		default: // another worker's stands for it
		}
	}()
	err = guarded(f)
}

// measuringErr is that of the first who measured and panicked; nil: nobody did.
func (r *run[In, Out]) measuringErr() error {
	select {
	case err := <-r.hookErr:
		return fmt.Errorf("%w: %w", ErrObserver, err)
	default:
		return nil
	}
}

// A Bound is what holds a run back at one moment; see [machine.Bound].
type Bound = machine.Bound

// A Ledger is a run's time by what held it back, as in sum.Held[machine.BoundTokens]; it prints
// the word of each bound that did. See [machine.Ledger].
//
//	[Bounds]time.Duration
type Ledger = machine.Ledger
