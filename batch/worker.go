package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// work makes calls until the run is over. A worker waits for nothing but its
// own call: what it delivers has room, and whoever must wait is handed over.
func (r *run[In, Out]) work(l *leash) {
	defer l.drop()
	hiring := true
	for g := range r.session.Work() {
		hiring = hiring && r.hire(l.parent)
		j := g.Item.Payload.(*job[In, Out])
		if g.Verdict == machine.Call {
			r.attempt(l, j, g)
			continue
		}
		j.finish(unrun(g, j.result.Err), false) // of one that has failed the machine has counted the attempt
		r.deliver(l, j, g, machine.Outcome{})
	}
}

// hire starts one more worker, and reports false when there are as many as there may be.
// Whoever takes a grant does so before anything else, so that somebody listens for the
// next one: a worker that finds the number of vacancies gone has left it in the hands of
// another, who is hiring. A run of three items has four workers, and not as many as its
// concurrency.
func (r *run[In, Out]) hire(ctx context.Context) bool {
	select {
	case n := <-r.vacant:
		switch n {
		case 0: // it is closed
			return false
		case 1:
			close(r.vacant)
		default:
			r.vacant <- n - 1
		}
		l := &leash{clock: r.clock, parent: ctx, worker: r.limits.Concurrency - n}
		r.workers.Go(func() { r.work(l) })
	default:
	}
	return true
}

// attempt makes one call and settles its item, or hands it over.
func (r *run[In, Out]) attempt(l *leash, j *job[In, Out], g machine.Grant) {
	returned := false
	defer func() {
		if !returned {
			r.gone(l, j, g)
		}
	}()
	value, e := r.call(l, j, g)
	v := r.judge(e, g.Item)
	j.note(g.Lane, e, v.err)
	returned = true
	r.report(l, j, g, &e, &v, value)
}

// report tells of a call's end and passes its item on, whatever becomes of who is told.
func (r *run[In, Out]) report(l *leash, j *job[In, Out], g machine.Grant, e *ending, v *judgement, value Out) {
	told := false
	defer func() {
		if !told {
			r.passOn(l, j, g, v, value)
			r.replace(l)
		}
	}()
	r.tellCall(l, j, e, v)
	told = true
	r.passOn(l, j, g, v, value)
}

// passOn hands over an item that is called again, and delivers any other.
func (r *run[In, Out]) passOn(l *leash, j *job[In, Out], g machine.Grant, v *judgement, value Out) {
	if v.again {
		r.session.HandOver(g, v.outcome) // the item is the coordinator's from here on
		return
	}
	j.result.Value = value
	j.finish(v.err, v.tried)
	r.deliver(l, j, g, v.outcome)
}

// judge judges the end of a call. An error that panics when it is asked what it is fails
// its item.
func (r *run[In, Out]) judge(e ending, it *machine.Item) (v judgement) {
	if e.err == nil {
		return judge(e, it.Attempts, it.Throttled, r.policy)
	}
	p := r.policy
	if e.lane != nil {
		p.maxAttempts = cmp.Or(e.lane.MaxAttempts, p.maxAttempts)
	}
	if err := guarded(func() { v = judge(e, it.Attempts, it.Throttled, p) }); err != nil {
		return judgement{tried: true, err: err, outcome: e.outcome(machine.Nothing)}
	}
	return v
}

// deliver tells of an item's end and settles it, whatever becomes of who is told.
func (r *run[In, Out]) deliver(l *leash, j *job[In, Out], g machine.Grant, o machine.Outcome) {
	told := false
	defer func() {
		r.settle(l, j, g, o)
		if !told {
			r.replace(l)
		}
	}()
	r.tellEnd(l, j)
	told = true
}

// settle lets a result go out before the coordinator is told: what it counts as
// settled has been delivered, at whatever moment one looks. The coordinator hears of
// the run's end before that of this call. The other order would let the next call leave, or
// fail items that this call was the last to speak for.
func (r *run[In, Out]) settle(l *leash, j *job[In, Out], g machine.Grant, o machine.Outcome) {
	err := j.result.Err
	r.results <- j // from here on its result is the caller's
	if r.failures.note(err) || err != nil && l.parent.Err() != nil {
		r.session.Drain()
	}
	r.session.Settle(g, o)
}

// gone settles the item of a function that ended the worker's goroutine, which
// nothing can stop, and starts another worker in its place.
func (r *run[In, Out]) gone(l *leash, j *job[In, Out], g machine.Grant) {
	j.note(g.Lane, ending{}, errGone)
	j.finish(errGone, true)
	r.deliver(l, j, g, machine.Outcome{})
	r.replace(l)
}

// replace starts another worker in the place of one whose goroutine ends.
func (r *run[In, Out]) replace(l *leash) {
	next := &leash{clock: l.clock, parent: l.parent, worker: l.worker, deaf: l.deaf}
	r.workers.Go(func() { r.work(next) })
}

// call runs the function, bounded in time, with a recorder in its context.
func (r *run[In, Out]) call(l *leash, j *job[In, Out], g machine.Grant) (value Out, e ending) {
	if err := r.announce(j, g); err != nil {
		return value, ending{err: err, unsent: true}
	}
	came := r.gateClock()
	if err := r.pass(l.parent); err != nil {
		return value, ending{err: err, unsent: true, left: l.parent.Err() != nil}
	}
	begun := r.clock.Now()
	e.begun, e.sinceOne, e.probe, e.lane = begun, begun.Sub(j.First), j.Probe, g.Config
	if !came.IsZero() {
		e.gated = begun.Sub(came)
	}
	ctx := &callContext{lane: g.Lane, number: j.Calls, leash: l, item: g.Item}
	ctx.limit, ctx.cause = bound(begun, j.Expires, cmp.Or(g.Config.AttemptTimeout, r.attemptTimeout))
	ctx.Context = l.take(ctx.limit, ctx.cause)
	if ctx.limit > 0 {
		ctx.Recorder.SetClock(ctx)
	}
	value, e.err = protect(ctx, r.fn, j.result.Item, r.measured)
	e.latency = r.clock.Now().Sub(begun)
	e.record = ctx.Recorder.Snapshot()
	if e.err == nil && r.filteredFails && provider.IsFiltered(e.record.Finish) {
		e.err = provider.Filtered(e.record.Finish, e.record.Status, e.record.RequestID)
	}
	e.left = l.parent.Err() != nil
	if e.err != nil {
		cut := context.Cause(ctx) == ctx.cause //nolint:errorlint // identity: the cause is ours, unwrapped
		r.explain(&e, cut, ctx.limit, ctx.cause)
	}
	l.put(ctx.limit, e.err != nil || ctx.begun) // its timer is another's, or stopped
	return value, e
}

// explain says of an error whether it is our own cut, and else asks the classifier. An
// error that panics when it is asked what it is, as a nil pointer in an error does, is
// that panic.
func (r *run[In, Out]) explain(e *ending, cut bool, limit time.Duration, cause error) {
	err := guarded(func() {
		switch {
		case cut:
			e.err = timedOut(e.err, limit)
			e.expired = cause == ErrItemTimeout //nolint:errorlint // likewise
		case !e.left:
			e.err = r.classified(e.err)
		}
		e.doubtful = e.record.Doubtful(e.err).Calls > 0
	})
	if err != nil {
		e.err = err
	}
}

// bound is how long a call that begins now may take, 0 if for ever, and the cause
// with which it is ended then. attempt is the bound of any call, 0 if there is none.
func bound(now, expires time.Time, attempt time.Duration) (time.Duration, error) {
	if !expires.IsZero() {
		left := max(1, expires.Sub(now))
		if attempt == 0 || left < attempt {
			return left, ErrItemTimeout
		}
	}
	return attempt, errAttemptTimeout
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

// protect calls the function, and makes an error of its panic. The answer's own word on
// its usage is asked for in here, as it is the caller's code too, if answers may be [Measured]:
// to ask each one would copy it to the heap.
func protect[In, Out any](ctx *callContext, fn Func[In, Out], in In, measured bool) (value Out, err error) {
	defer ctx.Recorder.Close() // also where the function does not return
	panicked := guarded(func() {
		value, err = fn(ctx, in)
		if !measured {
			return
		}
		if m, ok := any(value).(Measured); ok && err == nil {
			if recorder := &ctx.Recorder; !recorder.Snapshot().HasUsage {
				recorder.Usage(m.Usage())
			}
		}
	})
	if panicked != nil {
		err = panicked
	}
	return value, err
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
		if errors.Is(g.Cause, ErrTooManyLanes) {
			return join(ErrNotRun, g.Cause)
		}
		return &unserved{g.Cause}
	}
	return join(ErrNotRun, last)
}

// unserved is the error of an item that no lane is left for. errors.Is finds ErrNotRun and
// ErrStopped in it, and why its lane has stopped.
type unserved struct{ cause error }

func (e *unserved) Error() string   { return join(ErrNotRun, e.cause).Error() }
func (e *unserved) Unwrap() []error { return []error{ErrNotRun, ErrStopped, e.cause} }

func join(kind, cause error) error {
	if cause == nil {
		return kind
	}
	return fmt.Errorf("%w: %w", kind, cause)
}
