package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/provider"
)

// Run calls fn once for each item, and again where a call was refused or broke. It returns
// every result, in the order of the input.
//
// # Who runs what
//
// fn runs in the run's workers, goroutines of its own, as many at once as
// [WithConcurrency] says: it must be safe for that. The functions of [WithClassifier] and
// [WithRetryHook] run there, too. One goroutine reads the input, no further ahead than
// [WithReadAhead] says, and asks each item for its Pool, Cost and key. Another goroutine
// calls the observer. A panic in fn, Pool, Cost or ItemKey is that item's error, a
// [PanicError]. A panic in the input or the observer is part of the run's error.
//
// When ctx ends, calls in flight are abandoned; [WithDrain] is the gentle way. Run waits
// for what it started: for fn, which must honour its ctx, and for items. An input that
// blocks for ever keeps an ending run waiting for ever, as only the input's own code can
// end that wait. Once everything that such a run has read is answered, it asks items once
// more: only then is it known whether anything was left.
//
// # What is tried again
//
// A retry depends on the [Kind] of the error. Run finds it in the error by errors.As, or
// else in the status and body of the answer. An error that tells nothing, such as a plain
// error of fn's, is Unknown. [Permanent], [RetryAfter] and [WithClassifier] override the
// kind.
//
//	kind                             tried again                         the lane
//	Unknown, Server, Timeout,        until WithMaxAttempts have          counts the item for its
//	TransportFault, EmptyAnswer      failed, each after a backoff        breaker and error window
//	Throttled                        until MaxRefusals, when the         holds, goes slower, or lets
//	                                 lane, or the server's wait, allows  the item alone wait
//	Overloaded                       likewise, for OverloadPatience      likewise
//	Invalid, Refused, Truncated,     no                                  learns that it works
//	Canceled                                                             (Canceled: nothing)
//	Misfit                           as WithMisfitRetries says           learns that it works
//	QuotaExhausted, Misconfigured    on another lane of its pool; if     stops
//	                                 none is left it is ErrNotRun
//	Unauthorized, ModelNotFound      no, unless the lane stops: then     stops after some items in
//	                                 as QuotaExhausted                   a row, with none answered
//
// A refusal (Throttled, Overloaded) uses no attempt. Neither does a probe, the one call
// that a lane sends to find out whether it is let in again. Neither does a call that never
// left because no connection was made.
//
// # Whose failure it is
//
// An item fails for good only if the failure is its own. The proof is a witness: a call of
// another item, on the same lane, that left after the failure was seen and was answered.
//
// Without a witness, the server may be to blame. Such failures are in doubt. They count
// as attempts, but an opening breaker takes them back, and the first witness turns all of
// them together into one attempt. An item that has no attempt left is held until there is
// a witness, or until nothing else is under way or waiting on its lane. Then it fails.
//
// An item whose key is refused, or whose model is not found, is held likewise. When five in
// a row have ended alike, their lane is to blame: it stops, and the five have not failed.
// Where nothing was ever answered, the first is enough, or three for a 403. A 403 is more
// often about what one item asks for: there must be as many in a row as there are calls
// under way. [WithAlikeFailures] asks for the same where items are Invalid.
//
// # What a breaker does
//
// A lane has a breaker. It opens when calls of ten items in a row break, or of as many
// items as have calls under way if that is more. [BreakerConfig] changes the number. An
// item counts once, so that a few items that always fail do not look like an outage. A
// call that never left counts each time. While the breaker is open, only probes leave on
// the lane, each of another item, until one is answered. A probe leaves every 2.3 s;
// under the plain law after 4 s, then ever less often, up to every 20 s. Items wait
// meanwhile, or go to another lane of their pool; that costs them no attempt. A run waits
// for an outage as long as [WithOutagePatience] says. If the lane was never answered, it
// waits only as long as [WithFirstAnswer] says.
//
// Ten items or more that always fail look like an outage once nothing else is left on their
// lane. They are probed likewise, until that patience ends. [WithKeepGoing] fails them
// instead.
//
// # Errors
//
// A failed item is a result with an Err. errors.Is finds in it the item's [Kind], fn's own
// error, and [ErrNotRun] or [ErrItemTimeout] if that ended the item. errors.As finds a
// *[Error] or a *[PanicError].
//
// The error of Run is the run's own. It is nil if each item ended by a call. Otherwise
// errors.Is finds in it [ErrConfig], [ErrStopped], [ErrTooManyFailures],
// [ErrTooManyLanes], [ErrMaxCost], [ErrDrained], [ErrClosed], [ErrInput], or ctx's cause. It finds more
// than one of them if items were left for more than one reason. [ErrObserver] comes with
// them or alone. Behind ErrStopped may be [ErrNoAnswer], [ErrOutage], [ErrAlike],
// [ErrWaitTooLong] or [ErrLaw]. Run returns the results that there are in any case.
//
// If the provider stops serving one pool, the others are run to the end all the same. The
// error is then ErrStopped, and the items of that pool are ErrNotRun.
func Run[In, Out any](ctx context.Context, items iter.Seq[In], fn Func[In, Out], opts ...Option) ([]Result[In, Out], error) {
	var (
		results []Result[In, Out]
		failure error
	)
	for r, err := range Stream(ctx, items, fn, opts...) {
		if err != nil {
			failure = err
			break
		}
		for len(results) <= r.Index {
			results = append(results, Result[In, Out]{})
		}
		results[r.Index] = r
	}
	return results, failure
}

// Stream is Run for inputs that do not fit in memory. It yields each result as soon as it
// is there, or in input order with [WithInputOrder]. It yields the run's error, if there is
// one, last and alone. What [Run] says of goroutines, retries, breakers and errors holds
// here too. The body of the loop runs in the caller's own goroutine. While it does not ask
// for the next result, the run goes on for as many items as the read-ahead allows.
//
// The loop that ranges over the sequence is the scope of the run. Leaving it, by break,
// return or panic, abandons the calls in flight; when it is left, nothing of the run is
// still running. Each range over the sequence is a run of its own.
func Stream[In, Out any](ctx context.Context, items iter.Seq[In], fn Func[In, Out], opts ...Option) iter.Seq2[Result[In, Out], error] {
	return func(yield func(Result[In, Out], error) bool) {
		var none Result[In, Out]
		r, err := start(ctx, items, fn, opts)
		if err != nil {
			yield(none, err)
			return
		}
		if r.yieldResults(yield) {
			if err := r.end(true); err != nil {
				yield(none, err)
			}
		}
	}
}

// run holds the state of one run: its channels, and fields whose comments name the
// goroutine that writes them.
type run[In, Out any] struct {
	*config
	items iter.Seq[In]
	fn    Func[In, Out]
	hints hints[In]
	// measured says that an Out may be Measured.
	measured bool
	began    time.Time
	abort    context.CancelCauseFunc
	parent   context.Context // the caller's: its end is the reason, not ours

	coordinator *coordinator.Coordinator
	session     *coordinator.Session
	group       goroutines // everything that runs
	workers     goroutines
	saver       *saver // nil: nothing is saved

	staff        staff
	credit       chan int           // the reader's leave to take so many more items
	jobs         chan *job[In, Out] // reader to feed
	results      chan *job[In, Out] // finished, to the caller; has room for every credit
	stop         chan struct{}      // closed by the steward: take no more items
	readOn       chan bool          // from the caller to the reader: whether the end of the input decides how the run went
	failures     failures           // of workers and reader to the steward
	finalSummary chan Summary       // the last word, for the observer

	creditBatch  int     // the least number of credits given back at once
	owedCredits  int     // the caller's: credits not given back yet
	sum          Summary // the caller's
	firstFailure error   // the caller's
	overShare    bool    // the caller's: too large a share of the items has failed

	// Written by the reader and the observer, until the run has waited for group.
	exhausted       bool   // the input has ended
	jobsEnded       bool   // jobs is closed
	unpreparedItems uint64 // items whose Pool or Cost panicked
	inputErr        error  // the input panicked
	observerErr     error  // the observer did
	priceErr        error  // the coordinator's, until the session is over: Budget.Reserve panicked

	hookErr chan error // one place: a measuring function panicked

	fits chan fitCounts // one place: how answers have fitted; nil: nobody asks
}

// start checks the options and starts the run.
func start[In, Out any](ctx context.Context, items iter.Seq[In], fn Func[In, Out], opts []Option) (*run[In, Out], error) {
	c := configure(opts)
	hints, err := hintsOf[In](c)
	if err := c.check(err, notNil("items", items == nil), notNil("fn", fn == nil)); err != nil {
		c.summarize(Summary{})
		return nil, err
	}
	r := &run[In, Out]{
		config: c, items: items, fn: fn, hints: hints, measured: mayBeMeasured[Out](), parent: ctx, began: c.clock.Now(),
		finalSummary: make(chan Summary, 1), hookErr: make(chan error, 1),
	}
	if hints.budget != nil {
		r.limits.Price = r.price
	}
	if c.misfits.enabled {
		r.fits = make(chan fitCounts, 1)
		r.fits <- fitCounts{}
	}
	ctx, r.abort = context.WithCancelCause(ctx)
	if err := r.open(ctx); err != nil {
		return nil, r.failStart(err)
	}
	r.launch(ctx)
	return r, nil
}

// open finds or starts the coordinator, and opens a session there. A context that is over
// begins nothing. open checks it first; otherwise chance would decide which error is seen.
func (r *run[In, Out]) open(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.shared != nil {
		r.coordinator = r.shared.coordinator
	} else {
		r.coordinator = r.newCoordinator(min(r.limits.Concurrency+spareMessages, coordinator.DefaultMailbox))
		r.group.Go(r.coordinator.Run)
		if r.saver = r.newSaver(r.coordinator); r.saver != nil {
			r.group.Go(r.saver.run)
		}
	}
	open := r.coordinator.Open
	if r.observer == nil {
		open = r.coordinator.OpenMuted
	}
	s, err := open(ctx, r.limits)
	r.staff = newStaff(r.limits.Concurrency, r.mostConcurrency())
	if err == nil && r.control != nil && !r.control.attach(r.coordinator, s, r.staff.raise, &r.limits) {
		s.EndInput()
		err = fmt.Errorf("%w: WithControl: the control has a run already", ErrConfig)
	}
	if r.session = s; err != nil {
		r.release()
	}
	return err
}

// failStart ends a run that could not begin. If its options are valid it is still a run, of no items: it writes a
// summary, and its observer gets it.
func (r *run[In, Out]) failStart(err error) error {
	if errors.Is(err, ErrConfig) {
		r.abort(err)
		r.summarize(Summary{})
		r.group.Wait()
		return err
	}
	if r.observer != nil {
		r.group.Go(r.lastEvent)
	}
	return errors.Join(err, r.conclude())
}

// summarize writes the summary where WithSummary wants it.
func (c *config) summarize(s Summary) {
	if c.summary != nil {
		*c.summary = s
	}
}

// release ends the coordinator, if it is the run's own.
func (r *run[In, Out]) release() {
	if r.shared == nil {
		r.coordinator.Close()
	}
}

// mostConcurrency returns to what a control may raise the ceiling on calls in flight.
func (c *config) mostConcurrency() int { return cmp.Or(c.limits.MostConcurrency, c.limits.Concurrency) }

// launch starts every goroutine of the run. [run.end] waits for them.
//
// There are as many credits as results has room for. So an item that was taken from the
// input always has room there until the caller reads its result. Those that the caller withholds,
// less than a payment, leave enough for every call that may be in flight.
func (r *run[In, Out]) launch(ctx context.Context) {
	r.creditBatch = min(max(r.readAhead/4, 1), feedChunk)
	credits := max(r.readAhead+r.limits.Concurrency, r.creditBatch+r.mostConcurrency())
	r.credit = make(chan int, 1)
	r.credit <- credits
	r.jobs = make(chan *job[In, Out], feedChunk-1) // and the feed has one more in hand
	r.results = make(chan *job[In, Out], credits)
	r.stop = make(chan struct{})
	r.readOn = make(chan bool, 1)
	r.failures = newFailures(r.maxFailures)
	if isClosed(r.drain) || len(r.control.drainSignal()) > 0 {
		r.session.Drain() // takes effect before the first offer, which comes by the same way: nothing is called
	}

	r.hire(ctx)
	r.workers.Go(func() { r.steward(ctx) })
	r.group.Go(r.read)
	r.group.Go(r.feed)
	if r.observer != nil {
		r.group.Go(func() { r.observe(ctx) })
	}
	r.group.Go(func() {
		defer r.release()
		defer close(r.results)
		r.workers.Wait()
	})
}

// steward stops the input when the run must end before it, and hires when a control has made places. It counts as a
// worker, so that it hires none after the last has gone.
//
// A stranded run may still be drained. An item that was read before may open a pool with a lane of its own, and
// wait there.
func (r *run[In, Out]) steward(ctx context.Context) {
	stranded := r.session.Stranded()
	defer func() {
		if stranded != nil {
			close(r.stop)
		}
	}()
	for {
		select {
		case <-r.staff.workEnded:
			return
		case <-r.staff.placesAdded:
			r.hire(ctx)
			continue
		case <-stranded: // the machine releases the waiting items, with the reason
			close(r.stop)
			stranded = nil
			continue
		case <-ctx.Done():
		case <-r.drain:
		case <-r.control.drainSignal():
		case <-r.failures.reached:
		case <-r.session.Closed():
		}
		r.session.Drain()
		return
	}
}

// yieldResults yields the results until there are no more or the caller leaves. It reports whether the caller
// stayed. If the caller left, by whatever way, yieldResults has ended the run.
func (r *run[In, Out]) yieldResults(yield func(Result[In, Out], error) bool) (stayed bool) {
	defer func() {
		if !stayed {
			r.abort(errLeft)
			_ = r.end(false) // a caller that has left gets no error; the summary is written
		}
	}()
	line := order[In, Out]{cap: cap(r.results)}
	for j := range r.results {
		result := j.take()
		r.note(&result)
		if !r.inOrder { // the order would copy it twice more
			r.returnCredits()
			if !yield(result, nil) {
				return false
			}
			continue
		}
		for ready, ok := line.push(result); ok; ready, ok = line.pop() {
			r.returnCredits()
			if !yield(ready, nil) {
				return false
			}
		}
	}
	return true
}

// spareMessages is the room in the mailbox of a run's own coordinator for the feed, the
// steward, and a few queries. It comes on top of the room for each worker's news.
const spareMessages = 16

// errLeft is the cause with which a run's context ends when its caller leaves the loop.
var errLeft = errors.New("batch: the loop over the results was left")

// returnCredits gives credits back for results that the caller has taken. It gives some at a time: the reader is
// woken for a good many items, not for each.
//
// To withhold less than creditBatch starves nobody: as many items as there may be workers can be in the run without
// them. returnCredits never waits. It takes out the credits that the reader has not fetched, and puts them back
// with those that are owed. Otherwise their places would stay empty while no result comes.
func (r *run[In, Out]) returnCredits() {
	if r.owedCredits++; r.owedCredits < r.creditBatch {
		return
	}
	select {
	case n := <-r.credit: // the reader has not come for them yet
		r.owedCredits += n
	default:
	}
	r.credit <- r.owedCredits // nobody else puts any there
	r.owedCredits = 0
}

// note adds a result to the summary.
func (r *run[In, Out]) note(result *Result[In, Out]) {
	switch {
	case result.Err == nil:
		r.sum.Succeeded++
		if provider.IsFiltered(result.Finish) {
			r.sum.Filtered++
		}
	case failed(result.Err):
		r.sum.Failed++
		if r.firstFailure == nil {
			r.firstFailure = result.Err
		}
	default:
		r.sum.NotRun++
	}
	r.sum.Usage, r.sum.Doubtful = r.sum.Usage.Add(result.Usage), r.sum.Doubtful.Add(result.Doubtful())
	r.checkShare()
}

// end waits for everything that was started and writes the summary. It returns the run's
// error, for a caller that stayed.
func (r *run[In, Out]) end(stayed bool) error {
	for j := range r.results { // results that nobody took count all the same
		result := j.take()
		r.note(&result)
	}
	r.readOn <- stayed && r.sum.NotRun == 0 && r.tooManyErr() == nil // has room
	r.count()
	err := r.conclude()
	return errors.Join(r.runError(), err)
}

// count adds the coordinator's counts to the summary of a run whose session is over.
func (r *run[In, Out]) count() {
	r.sum.Counters, r.sum.Dropped = r.session.Final()
	r.sum.Held, r.sum.Ran = r.session.Held()
	r.sum.Money = r.session.Money()
	r.sum.Counters.Offered += r.unpreparedItems  // the reader's count, final by now: these items were taken over,
	r.sum.Counters.Released += r.unpreparedItems // and they ended without a call
}

// conclude passes the summary to the observer and to WithSummary, and waits for everything
// that was started. The error is that of the observer or a measuring function.
func (r *run[In, Out]) conclude() error {
	r.sum.At, r.sum.Total = r.clock.Now(), r.limits.Total
	r.sum.Elapsed = r.sum.At.Sub(r.began)
	r.sum.SaveErr = r.saver.wait()
	r.finalSummary <- r.sum
	r.group.Wait()
	r.abort(nil)
	r.summarize(r.sum)
	return errors.Join(r.observerErr, r.measuringErr())
}

// runError returns the run's error: why something of the input was not run.
func (r *run[In, Out]) runError() error {
	stranded, stopped := isClosed(r.session.Stranded()), r.stopCause()
	switch {
	case r.inputErr != nil:
		return r.inputErr
	case r.noneFitErr() != nil:
		return errors.Join(r.noneFitErr(), stopped)
	case r.tooManyErr() != nil:
		return errors.Join(r.tooManyErr(), stopped)
	case r.exhausted && r.sum.NotRun == 0:
		return nil
	case stranded:
		return stopped
	case r.parent.Err() != nil:
		return errors.Join(context.Cause(r.parent), stopped)
	case r.exhausted && stopped != nil:
		return stopped
	case isClosed(r.session.Closed()):
		return errors.Join(fmt.Errorf("%w: %w", ErrDrained, ErrClosed), stopped)
	}
	return errors.Join(ErrDrained, stopped)
}

// stopCause returns why no lane could take some item, or would take any more; nil if that did not happen.
func (r *run[In, Out]) stopCause() error {
	cause := r.session.Stopped()
	if isClosed(r.session.Stranded()) {
		cause = r.session.Cause()
	}
	switch {
	case errors.Is(cause, ErrMaxCost):
		return errors.Join(cause, r.priceErr)
	case cause == nil || errors.Is(cause, ErrTooManyLanes):
		return cause
	}
	return fmt.Errorf("%w: %w", ErrStopped, cause)
}

// isClosed reports whether ch is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// goroutines starts goroutines in one place, and waits for them there. They return no
// error: a fault goes into a result or into the verdict. It is an errgroup because package
// sync, with its locks, stays out of here.
type goroutines struct{ group errgroup.Group }

// Go starts f in a goroutine.
func (g *goroutines) Go(f func()) {
	g.group.Go(func() error {
		f()
		return nil
	})
}

// Wait waits until all goroutines have ended.
func (g *goroutines) Wait() { _ = g.group.Wait() } // nil: see Go
