package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// staff holds the places of a run's workers. raise takes the number out of places, and puts it back.
type staff struct {
	vacant      chan int      // the numbers of workers that may still be started; has room for all
	places      chan int      // how many have had a place so far
	placesAdded chan struct{} // one token: places were added, for the steward
	workEnded   chan struct{} // one token: the first worker has found the work ended, for the steward
}

// newStaff returns places for the given number of workers, which raise may later increase up to maxWorkers.
func newStaff(workers, maxWorkers int) staff {
	s := staff{vacant: make(chan int, maxWorkers), places: make(chan int, 1), placesAdded: make(chan struct{}, 1), workEnded: make(chan struct{}, 1)}
	s.places <- 0
	s.raise(workers)
	<-s.placesAdded // the first worker is started anyway
	return s
}

// raise makes places for n workers in all, and signals the steward to start them. Each running worker may be busy
// with a long call.
func (s *staff) raise(n int) {
	have := <-s.places
	for ; have < n; have++ {
		s.vacant <- have
	}
	s.places <- have
	putToken(s.placesAdded)
}

// putToken puts a token into a channel that has room for one. It does nothing if the token is there already.
func putToken(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// work makes calls until the run is over. A worker waits only for its own call: results
// have room, and items that must wait are handed over. If a function of the caller's ends
// the goroutine, which nothing can stop, another worker takes the place of this one.
func (r *run[In, Out]) work(l *leash) {
	over := false
	defer func() {
		if l.drop(); !over {
			r.workers.Go(func() { r.work(l) })
		}
	}()
	for g := range r.session.Work() {
		r.hire(l.parent)
		r.carryOut(l, g)
	}
	over = true
	putToken(r.staff.workEnded)
}

// carryOut makes the call of a grant, or delivers the item that has ended without one.
func (r *run[In, Out]) carryOut(l *leash, g machine.Grant) {
	j := g.Item.Payload.(*job[In, Out])
	if g.Verdict == machine.Call {
		r.attempt(l, j, g)
		return
	}
	j.finish(notRunError(g, j.result.Err), false) // the machine has counted the attempt of a failed item
	r.deliver(l, j, g, machine.Outcome{})
}

// hire starts one more worker if there is a place. A worker that takes a grant hires before
// anything else, so that some worker listens for the next grant. A run of three items has four
// workers, and not as many as its concurrency.
//
// There are as many places as calls may be in flight, and more only once a control raises that number.
// Workers take grants in turn: each one more would be one more stack to keep and to scan.
func (r *run[In, Out]) hire(ctx context.Context) {
	select {
	case n := <-r.staff.vacant:
		l := &leash{clock: r.clock, parent: ctx, worker: n}
		r.workers.Go(func() { r.work(l) })
	default:
	}
}

// attempt makes one call, judges its end and reports it. Then it hands the item over if it
// is called again, and else delivers it. It does so also if a function of the caller's ends
// the goroutine.
func (r *run[In, Out]) attempt(l *leash, j *job[In, Out], g machine.Grant) {
	var (
		value    Out
		end      ending
		returned bool
	)
	defer func() {
		if !returned {
			end = ending{err: errGone, tried: true}
			end.outcome.Doubtful = true
		}
		if j.note(g.Lane, &end); end.again {
			r.session.HandOver(g, end.outcome) // the item is the coordinator's from here on
			return
		}
		j.result.Value = value
		j.finish(end.err, end.tried)
		r.deliver(l, j, g, end.outcome)
	}()
	value = r.call(l, j, g, &end)
	p := r.policy
	if end.lane != nil {
		p.maxAttempts = cmp.Or(end.lane.MaxAttempts, p.maxAttempts)
	}
	if err := guarded(func() {
		if r.fits != nil {
			r.judgeFit(j, g.Lane, &end)
		} else {
			end.askAgain = j.asksAgain(&end)
		}
		end.judge(g.Item.Attempts, g.Item.Throttled, p)
	}); err != nil { // the error's methods panic
		end.err, end.again, end.tried = err, false, true
		end.startOutcome(machine.Nothing)
	}
	if r.hints.budget != nil {
		r.bill(j, g.Lane, &end)
	}
	if returned = true; r.calls == nil || l.muted || end.unsent {
		return
	}
	used, doubt := end.used()
	report := Call{
		Worker: l.worker, Lane: g.Lane, Pool: j.pool(), Item: j.Seq, Attempt: j.Calls,
		Begun: end.begun, Latency: end.latency, Gated: end.gated, Status: end.record.Status, Err: end.err, Kind: Kind(end.outcome.Way),
		Usage: used, Doubtful: doubt, Finish: end.record.Finish, RequestID: end.record.RequestID, Again: end.again, Probe: end.probe,
	}
	r.measure(l, func() { r.calls(report) })
}

// deliver reports an item's end and settles it, even if a measuring function ends the
// goroutine. It lets the result go out before it notifies the coordinator: each item that
// counts as settled has been delivered, at any moment. The coordinator hears of the run's
// end before that of this call. In the other order the next call could leave, or items could
// fail that this call was the last to speak for.
func (r *run[In, Out]) deliver(l *leash, j *job[In, Out], g machine.Grant, o machine.Outcome) {
	defer func() {
		err := j.result.Err
		r.results <- j // from here on its result is the caller's
		if r.failures.note(err) || err != nil && l.parent.Err() != nil {
			r.session.Drain()
		}
		r.session.Settle(g, o)
	}()
	if r.ends == nil || l.muted {
		return
	}
	result := &j.result
	e := End{
		Worker: l.worker, Item: j.Seq, In: &result.Item, Lane: result.Lane, Pool: result.Pool, Err: result.Err, Attempts: result.Attempts, Calls: result.Calls,
		Usage: result.Usage, Doubtful: result.Doubtful(), Finish: result.Finish, Queued: result.Queued, Waited: result.Waited, Latency: result.Latency,
	}
	r.measure(l, func() { r.ends(e) })
}

// call runs the function, bounded in time, with a recorder in its context. The hooks come
// first: a call that the retry hook or the gate does not let through is not made.
func (r *run[In, Out]) call(l *leash, j *job[In, Out], g machine.Grant, e *ending) (value Out) {
	if r.retryHook != nil && j.Calls > 1 {
		retry := Retry{
			Index: int(j.Seq), Item: j.result.Item, Pool: j.pool(), Lane: g.Lane,
			Calls: j.Calls - 1, Attempts: j.Attempts, Err: j.result.Err, Waited: j.Waited,
		}
		if e.err = guarded(func() { r.retryHook(retry) }); e.err != nil {
			e.unsent = true
			return value
		}
	}
	var gateReached time.Time // before the gate, if it is measured
	if r.gate != nil {
		if r.calls != nil {
			gateReached = r.clock.Now()
		}
		if e.err = cmp.Or(guarded(func() { r.gate(l.parent) }), l.parent.Err()); e.err != nil {
			e.unsent, e.abandoned = true, l.parent.Err() != nil
			return value
		}
	}
	begun := r.clock.Now()
	e.begun, e.sinceFirst, e.probe, e.lane = begun, begun.Sub(j.First), j.Probe, g.Config
	if !gateReached.IsZero() {
		e.gated = begun.Sub(gateReached)
	}
	ctx := &callContext{lane: g.Lane, number: j.Calls, leash: l, item: g.Item}
	ctx.limit, ctx.cause = timeLimit(begun, j.Expires, cmp.Or(g.Config.AttemptTimeout, r.attemptTimeout))
	ctx.Context = l.acquire(ctx.limit, ctx.cause)
	if ctx.limit > 0 {
		ctx.Recorder.SetClock(ctx)
	}
	value, e.err = callGuarded(ctx, r.fn, j.result.Item, r.measured)
	e.latency = r.clock.Now().Sub(begun)
	e.record = ctx.Recorder.Snapshot()
	if e.err == nil && r.filteredFails && provider.IsFiltered(e.record.Finish) {
		e.err = provider.Filtered(e.record.Finish, e.record.Status, e.record.RequestID)
	}
	e.abandoned = l.parent.Err() != nil
	if e.err != nil {
		r.explain(e, ctx)
	}
	l.release(ctx.limit, e.err != nil || ctx.begun) // once begun, its timer is another's or stopped
	return value
}

// explain replaces the error of a call that we cut off by a timeout error, and asks the classifier about any other.
// If the error's methods panic, as those of a nil pointer do, that panic becomes the error.
func (r *run[In, Out]) explain(e *ending, ctx *callContext) {
	err := guarded(func() {
		switch {
		case context.Cause(ctx) == ctx.cause: //nolint:errorlint // identity: the cause is ours, unwrapped
			// If the function says that it was cancelled, that is our own doing, and would be taken for
			// the caller's.
			if errors.Is(e.err, context.Canceled) || errors.Is(e.err, provider.Canceled) {
				e.err = context.DeadlineExceeded
			}
			e.err = &provider.Error{Kind: provider.Timeout, Message: fmt.Sprintf("no answer within %v", ctx.limit), Err: e.err}
			e.expired = ctx.cause == ErrItemTimeout //nolint:errorlint // likewise
		case !e.abandoned:
			e.err = r.classify(e.err)
		}
		e.doubtful = e.record.Doubtful(e.err).Calls > 0
	})
	if err != nil {
		e.err = err
	}
}

// timeLimit returns how long a call that begins now may take, and the cause that ends it then. The limit is 0 if
// the call may take for ever. attempt is the limit of any call, 0 if there is none.
func timeLimit(now, expires time.Time, attempt time.Duration) (time.Duration, error) {
	if !expires.IsZero() {
		remaining := max(1, expires.Sub(now))
		if attempt == 0 || remaining < attempt {
			return remaining, ErrItemTimeout
		}
	}
	return attempt, errAttemptTimeout
}

// callGuarded calls the caller's function, and returns its panic as an error. If answers may be [Measured], it also
// asks the answer for its usage here, as that is the caller's code too. To ask every answer would copy each one to
// the heap.
func callGuarded[In, Out any](ctx *callContext, fn Func[In, Out], in In, measured bool) (value Out, err error) {
	defer ctx.Recorder.Close() // also where the function does not return
	panicked := guarded(func() {
		if value, err = fn(ctx, in); measured && err == nil {
			recordUsage(&ctx.Recorder, value)
		}
	})
	if panicked != nil {
		return value, panicked
	}
	if measured && err != nil {
		_ = guarded(func() {
			if errors.Is(err, provider.Misfit) {
				recordUsage(&ctx.Recorder, value) // it was answered; there may be no value, though
			}
		})
	}
	return value, err
}

// recordUsage records the usage that the answer reports, unless the transport has recorded one.
func recordUsage[Out any](recorder *provider.Recorder, value Out) {
	if m, ok := any(value).(Measured); ok && !recorder.Snapshot().HasUsage {
		recorder.Usage(m.Usage())
	}
}

// notRunError returns the error of an item that ended without a further call. last is the error of its latest call,
// if it had any.
func notRunError(g machine.Grant, last error) error {
	switch g.Verdict {
	case machine.EndExpired:
		return join(ErrItemTimeout, last)
	case machine.EndFailed:
		return g.Cause
	case machine.EndUnpaid:
		return join(ErrNotRun, g.Cause)
	case machine.EndStopped:
		if errors.Is(g.Cause, ErrTooManyLanes) {
			return join(ErrNotRun, g.Cause)
		}
		return &unserved{g.Cause}
	}
	return join(ErrNotRun, last)
}

// unserved is the error of an item with no lane left. errors.Is finds ErrNotRun and
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
	muted  bool // a measuring function has panicked: this worker calls none any more

	ctx    context.Context // nil: there is none now
	cancel context.CancelCauseFunc
	cause  error // the timer cancels with it
	timer  clockwork.Timer
	calls  int
}

// acquire returns the context of a call that may take limit, or for ever if limit is 0. When the time is up, the
// context ends with cause.
func (l *leash) acquire(limit time.Duration, cause error) context.Context {
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

// release takes the context back when its call has ended. It drops a context that a failed call, or a timer that
// has fired, may have left unusable.
func (l *leash) release(limit time.Duration, failed bool) {
	if limit > 0 && !l.timer.Stop() || failed {
		l.drop()
	}
}

// renew replaces the context by a new one, whose timer will cancel it with cause.
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
	*l = leash{clock: l.clock, parent: l.parent, worker: l.worker, muted: l.muted}
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
