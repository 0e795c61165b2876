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

// work makes calls until the run is over. A worker waits for nothing but its
// own call: what it delivers has room, and whoever must wait is handed over.
func (r *run[In, Out]) work(ctx context.Context) {
	l := &leash{clock: r.clock, parent: ctx}
	defer l.drop()
	for g := range r.session.Work() {
		j := g.Item.Payload.(*job[In])
		if g.Verdict == machine.Call {
			r.attempt(l, j, g)
			continue
		}
		result := r.result(j)
		result.Err = unrun(g, j.past.err)
		if g.Verdict == machine.EndFailed {
			result.Attempts++ // it was answered, if only when it had come back
		}
		r.settle(result, g, machine.Outcome{})
	}
}

// attempt makes one call and settles its item, or hands it over.
func (r *run[In, Out]) attempt(l *leash, j *job[In], g machine.Grant) {
	returned := false
	defer func() {
		if !returned {
			r.gone(l.parent, j, g)
		}
	}()
	value, e := r.call(l, j, g)
	returned = true
	v := judge(e, g.Item.Attempts, g.Item.Throttled, r.policy)
	j.past.note(g.Lane, e, v.err)
	if v.again {
		r.session.HandOver(g, v.outcome) // the item is the coordinator's from here on
		return
	}
	result := r.result(j)
	result.Value, result.Err = value, v.err
	if v.tried {
		result.Attempts++
	}
	r.settle(result, g, v.outcome)
}

// settle lets a result go out before the coordinator is told: what it counts as
// settled has been delivered, at whatever moment one looks.
func (r *run[In, Out]) settle(result Result[In, Out], g machine.Grant, o machine.Outcome) {
	r.results <- result
	if r.failures.note(result.Err) {
		r.session.Drain() // heard before the end of this call, which would let the next leave
	}
	r.session.Settle(g, o)
}

// gone settles the item of a function that ended the worker's goroutine, which
// nothing can stop, and starts another worker in its place.
func (r *run[In, Out]) gone(ctx context.Context, j *job[In], g machine.Grant) {
	j.past.note(g.Lane, ending{}, errGone)
	result := r.result(j)
	result.Err = errGone
	result.Attempts++
	r.settle(result, g, machine.Outcome{})
	r.workers.Go(func() error { r.work(ctx); return nil })
}

// call runs the function, bounded in time, with a recorder in its context.
func (r *run[In, Out]) call(l *leash, j *job[In], g machine.Grant) (value Out, e ending) {
	if err := r.announce(j, g); err != nil {
		return value, ending{err: err, unsent: true}
	}
	begun := r.clock.Now()
	e.sinceOne, e.probe = begun.Sub(j.First), j.Probe
	limit, cause := r.bound(begun, j.Expires)
	ctx := &callContext{lane: g.Lane}
	ctx.Context = l.take(limit, cause)
	value, e.err = protect(ctx, r.fn, j.in)
	e.latency = r.clock.Now().Sub(begun)
	e.record = ctx.Recorder.Snapshot()
	e.left = l.parent.Err() != nil
	if e.err != nil && context.Cause(ctx) == cause { //nolint:errorlint // identity: the cause is ours, unwrapped
		e.err = timedOut(e.err, limit)
		e.expired = cause == ErrItemTimeout //nolint:errorlint // likewise
	} else if !e.left {
		e.err = r.classified(e.err)
	}
	l.put(limit, e.err != nil)
	return value, e
}

// bound is how long a call that begins now may take, 0 if for ever, and the cause
// with which it is ended then.
func (r *run[In, Out]) bound(now, expires time.Time) (time.Duration, error) {
	if !expires.IsZero() {
		left := max(1, expires.Sub(now))
		if r.attemptTimeout == 0 || left < r.attemptTimeout {
			return left, ErrItemTimeout
		}
	}
	return r.attemptTimeout, errAttemptTimeout
}

// timedOut is the error of a call that was ended when its time was up. That the
// function says it was cancelled is our own doing, and would be taken for the
// caller's.
func timedOut(err error, limit time.Duration) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, provider.Canceled) {
		err = context.DeadlineExceeded
	}
	return &provider.Error{Kind: provider.Timeout, Message: fmt.Sprintf("no answer within %v", limit), Err: err}
}

// protect makes an error of a panic, with the stack of where it happened. The
// answer's own word on its usage is asked for in here, as it is the caller's code
// too.
func protect[In, Out any](ctx context.Context, fn Func[In, Out], in In) (value Out, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	value, err = fn(ctx, in)
	if m, ok := any(value).(Measured); ok && err == nil {
		if recorder := provider.RecorderFrom(ctx); !recorder.Snapshot().HasUsage {
			recorder.Usage(m.Usage())
		}
	}
	return value, err
}

// note adds what the latest call told.
func (p *past) note(lane string, e ending, err error) {
	p.err, p.lane, p.latency = err, lane, e.latency
	p.status, p.requestID, p.finish = e.record.Status, e.record.RequestID, e.record.Finish
	p.usage = p.usage.Add(e.record.Usage)
}

// result is what is known of an item whatever its end.
func (r *run[In, Out]) result(j *job[In]) Result[In, Out] {
	p := &j.past
	return Result[In, Out]{
		Index: int(j.Seq), Item: j.in, Pool: j.Pool, Lane: p.lane,
		Attempts: j.Attempts, Calls: j.Calls,
		Usage: p.usage, Finish: p.finish, Status: p.status, RequestID: p.requestID,
		Queued: j.Queued(), Waited: j.Waited, Latency: p.latency,
	}
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
