package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/headrace/headrace/coordinator/machine"
)

// Do makes the call of one item on s, and returns its answer. It is for programs that serve
// requests of their own, one at a time:
//
//	answer, err := batch.Do(r.Context(), shared, prompt, call)
//
// The item waits in one line with the items of all runs and of all other calls of Do on s. It
// is refused, cooled down, retried and counted as an item of [Run]. Do calls fn in the caller's
// goroutine and starts no other, so thousands may wait at once. Items that wait for the same
// lane are called in the order in which they came, if they have the same [WithPriority].
//
// When ctx ends, an item that waits leaves the line at once: it is never called, and it
// costs nothing. A call in flight is abandoned. [Shared.Close] releases the items that wait, and
// waits for the calls in flight.
//
// The error is that of the item, as in a [Result]: errors.Is finds its [Kind], fn's own error,
// [ErrNotRun], [ErrStopped] or [ErrItemTimeout], and errors.As a *[Error] or a *[PanicError]. If
// ctx or Close kept the item from being called, errors.Is also finds ctx's cause or [ErrClosed]
// next to ErrNotRun. It is [ErrConfig] for invalid options.
//
// The options are those of a run of one item. [WithEnds] tells how the item was served, and
// [WithSummary] has the two sums. A [WithMaxCost] bounds this call alone. Options about
// several items, and those of [NewShared], are ErrConfig. Each call checks its options, which
// takes a few microseconds.
func Do[In, Out any](ctx context.Context, s *Shared, in In, fn Func[In, Out], opts ...Option) (Out, error) {
	var none Out
	r, err := startDo(ctx, s, fn, opts)
	if err != nil {
		return none, err
	}
	r.offerItem(in)
	r.serve(ctx)
	result := (<-r.results).take()
	r.note(&result)
	r.count()
	r.sum.At = r.clock.Now()
	r.sum.Elapsed = r.sum.At.Sub(r.began)
	r.summarize(r.sum)
	return result.Value, errors.Join(r.itemError(ctx, result.Err), r.measuringErr())
}

// startDo opens the session of one item.
func startDo[In, Out any](ctx context.Context, s *Shared, fn Func[In, Out], opts []Option) (*run[In, Out], error) {
	c := configure(append(slices.Clip(opts), WithShared(s)))
	hints, err := hintsOf[In](c)
	faults := append(severalItemFaults(opts), err, notNil("fn", fn == nil))
	if err := c.check(faults...); err != nil {
		c.summarize(Summary{})
		return nil, err
	}
	c.limits.Concurrency, c.limits.MostConcurrency = 1, 0
	r := &run[In, Out]{
		config: c, fn: fn, hints: hints, measured: mayBeMeasured[Out](), parent: ctx, began: c.clock.Now(),
		results: make(chan *job[In, Out], 1), hookErr: make(chan error, 1), failures: newFailures(0),
	}
	if hints.budget != nil {
		r.limits.Price = r.price
	}
	if err := r.open(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	return r, nil
}

// offerItem offers the item, and ends the input: a run of Do has one item. It ends the input also if the caller's
// code ends the goroutine.
func (r *run[In, Out]) offerItem(in In) {
	defer r.session.EndInput()
	j := &job[In, Out]{}
	j.result.Item = in
	if r.prepare(j) {
		r.session.Offer([]*machine.Item{&j.Item}) // waits for nothing: it is the first
	}
}

// severalItems names the options that mean nothing to one item.
var severalItems = []string{
	"WithConcurrency", "WithReadAhead", "WithInputOrder", "WithTotal", "WithMaxFailures", "WithMaxFailureShare",
	"WithDrain", "WithControl", "WithObserver", "WithProgressEvery",
}

// severalItemFaults returns a fault for each option that means nothing to one item.
func severalItemFaults(opts []Option) (faults []error) {
	for _, o := range opts {
		if o.apply != nil && slices.Contains(severalItems, o.name()) {
			faults = append(faults, fmt.Errorf("Do: %s cannot be used here: it is about runs of several items", o.name()))
		}
	}
	return faults
}

// serve makes the item's calls until its run is over. A call that was granted at the moment at
// which ctx ended is not made.
func (r *run[In, Out]) serve(ctx context.Context) {
	if r.gate == nil {
		r.gate = func(context.Context) {} // before a call that has a gate, ctx is looked at
	}
	l := &leash{clock: r.clock, parent: ctx}
	over := false
	defer func() {
		if l.drop(); !over {
			r.abandonItem()
		}
	}()
	done := ctx.Done()
	for {
		select {
		case g, open := <-r.session.Work():
			if over = !open; over {
				return
			}
			r.carryOut(l, g)
		case <-done:
			done = nil
			r.session.Drain()
		}
	}
}

// abandonItem ends the item's run if the caller's code ends the goroutine, which then waits here. The item may have
// been handed over, and would otherwise be granted to nobody.
func (r *run[In, Out]) abandonItem() {
	r.session.Drain()
	for g := range r.session.Work() {
		r.session.Settle(g, machine.Outcome{Unsent: true})
	}
}

// itemError returns the error of the item. For an item that was not run it adds the cause: the end of ctx, or
// Close.
func (r *run[In, Out]) itemError(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, ErrNotRun):
		return err
	case ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%w: %w", err, context.Cause(ctx))
	case ctx.Err() == nil && isClosed(r.session.Closed()):
		return fmt.Errorf("%w: %w", err, ErrClosed)
	}
	return err
}
