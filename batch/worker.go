package batch

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// work makes calls until the run is over. A worker waits for nothing but its
// own call: what it delivers has room, and whoever must wait is handed over.
func (r *run[In, Out]) work(ctx context.Context) {
	for g := range r.session.Work() {
		j := g.Item.Payload.(*job[In])
		if g.Verdict == machine.Call {
			r.attempt(ctx, j, g)
			continue
		}
		result := r.result(j, g)
		result.Err = unrun(g, j.last)
		r.results <- result
		r.session.Settle(g, machine.Outcome{})
	}
}

// attempt makes one call and settles its item, or hands it over.
//
// The result goes out before the coordinator is told: once it knows that the
// last item is settled it ends the run, and a result after that would be lost.
func (r *run[In, Out]) attempt(ctx context.Context, j *job[In], g machine.Grant) {
	value, e := r.call(ctx, j.in, g.Lane)
	e.sinceOne = g.Item.Sent.Sub(g.Item.First)
	v := judge(e, g.Item.Attempts, g.Item.Throttled, r.policy)
	if v.again {
		j.last = v.err
		r.session.HandOver(g, v.outcome) // the item is the coordinator's from here on
		return
	}
	result := r.result(j, g)
	result.Value, result.Err = value, v.err
	result.fill(e)
	if m, ok := any(value).(Measured); ok && !e.record.HasUsage {
		result.Usage = m.Usage()
	}
	if v.outcome.Signal == machine.Failed {
		result.Attempts++ // the one that has just failed
	}
	r.results <- result
	r.session.Settle(g, v.outcome)
}

// call runs the function, bounded in time, with a recorder in its context.
func (r *run[In, Out]) call(ctx context.Context, in In, lane string) (value Out, e ending) {
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.attemptTimeout > 0 {
		timer := r.clock.AfterFunc(r.attemptTimeout, func() { cancel(errAttemptTimeout) })
		defer timer.Stop()
	}
	attempt, recorder := provider.WithRecorder(onLane{attempt, lane})
	begun := r.clock.Now()
	value, e.err = protect(r.fn, attempt, in)
	e.latency = r.clock.Now().Sub(begun)
	e.record = recorder.Snapshot()
	e.left = ctx.Err() != nil
	if e.err != nil && context.Cause(attempt) == errAttemptTimeout { //nolint:errorlint // identity: the cause is ours, unwrapped
		e.err = &provider.Error{Kind: provider.Timeout, Message: fmt.Sprintf("no answer within %v", r.attemptTimeout), Err: e.err}
	}
	return value, e
}

// protect makes an error of a panic, with the stack of where it happened.
func protect[In, Out any](fn Func[In, Out], ctx context.Context, in In) (value Out, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn(ctx, in)
}

// result is what is known of an item whatever its end.
func (r *run[In, Out]) result(j *job[In], g machine.Grant) Result[In, Out] {
	it := g.Item
	return Result[In, Out]{
		Index: int(it.Seq), Item: j.in, Pool: it.Pool, Lane: g.Lane,
		Attempts: it.Attempts, Calls: it.Calls, Queued: it.Queued(), Waited: it.Waited,
	}
}

// fill adds what the latest call told.
func (res *Result[In, Out]) fill(e ending) {
	res.Usage, res.Finish = e.record.Usage, e.record.Finish
	res.Status, res.RequestID = e.record.Status, e.record.RequestID
	res.Latency = e.latency
}

// unrun is the error of an item that ended without a further call. last is the
// error of the latest one, if it had any.
func unrun(g machine.Grant, last error) error {
	switch g.Verdict {
	case machine.EndExpired:
		return join(ErrItemTimeout, last)
	case machine.EndFailed:
		return g.Cause
	case machine.EndStopped:
		return join(ErrNotRun, g.Cause)
	}
	return join(ErrNotRun, last)
}

func join(kind, cause error) error {
	if cause == nil {
		return kind
	}
	return fmt.Errorf("%w: %w", kind, cause)
}

// onLane is a context that knows its lane: one allocation where
// context.WithValue would box the name as well.
type onLane struct {
	context.Context
	lane string
}

type laneKey struct{}

// Value answers for the lane, and asks further for the rest.
func (c onLane) Value(key any) any {
	if key == (laneKey{}) {
		return c.lane
	}
	return c.Context.Value(key)
}

// LaneFrom is the lane on which the call with that context was granted; "" for
// a context that is not a call's. A function that serves several keys or
// endpoints chooses by it.
func LaneFrom(ctx context.Context) string {
	lane, _ := ctx.Value(laneKey{}).(string)
	return lane
}
