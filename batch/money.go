package batch

import (
	"errors"
	"fmt"
	"math"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A Budget bounds what the calls of a run may cost, and says what each of them costs. All sums
// are in USD.
type Budget[In any] struct {
	Max    float64 // more than 0, at most [MostBudget]
	Before float64 // the part of Max that earlier runs have spent: 0 or more, and it may be more than Max
	Broken float64 // what calls of earlier runs that broke may cost in addition: 0 or more

	// Reserve returns the most that a call of the item is expected to cost on the lane: its
	// prompt, and the bound on its answer. False means that no price is known; the run then
	// makes no further call. usual is the length to assume for an answer that nothing bounds,
	// in tokens: half as much again as the longest of a thousand such answers on that lane. It
	// is 0 until a hundred have ended. The goroutine that admits calls waits for Reserve each time
	// a call may leave: it must be fast, and must not wait.
	Reserve func(in In, lane string, usual float64) (usd float64, known bool)
	// Cost returns the cost of a call that has ended, by what it used. False means unknown:
	// what was reserved then counts as doubtful. Workers ask Cost, many at once.
	Cost func(in In, lane string, used provider.Usage) (usd float64, known bool)
}

// MostBudget is the largest budget, in USD. Sums of money reach a little further, so that a sum
// that passes the largest budget is still exact.
const MostBudget = 9e6

// WithMaxCost bounds what the calls of the run cost. A call reserves what it may cost when it
// leaves, and settles that when it ends. The next item waits while its reservation does not
// fit, and may fit once calls in flight have ended. Items of other pools wait behind it. If none of them has anything reserved, the
// run ends with [ErrMaxCost]: the rest is given back as not run. A dearer lane is not passed
// over for a cheaper one.
//
// A call that was refused, or never left, costs nothing. A call that broke may be billed: its
// reservation stays, as [Spending].Doubtful, and counts. So the run costs at most Max and
// what calls have cost beyond their reservations, which is [Spending].Over.
func WithMaxCost[In any](b Budget[In]) Option {
	return runOption(func(c *config) {
		c.addFault(inOption("WithMaxCost", b.check()))
		c.limits.Budget, c.limits.Spent, c.budget = max(1, limiter.USD(b.Max)), limiter.USD(b.Before), &b // a Budget of 0 would be no budget
		c.limits.Doubtful = limiter.USD(b.Broken)
	}, "WithMaxCost(%v)", b.Max)
}

// check returns what is wrong with a budget; nil if nothing is.
func (b *Budget[In]) check() error {
	if err := checkBudget(b.Max); err != nil {
		return err
	}
	switch {
	case !(b.Before >= 0 && b.Before < math.Inf(1)):
		return fmt.Errorf("%v USD were spent before: want 0 or more", b.Before)
	case !(b.Broken >= 0 && b.Broken < math.Inf(1)):
		return fmt.Errorf("broken calls of earlier runs may cost %v USD: want 0 or more", b.Broken)
	}
	return errors.Join(notNil("Reserve", b.Reserve == nil), notNil("Cost", b.Cost == nil))
}

// checkBudget returns an error for a sum that cannot be a budget.
func checkBudget(usd float64) error {
	if !(usd > 0 && usd <= MostBudget) {
		return fmt.Errorf("a budget of %v USD: want more than 0, and at most %.0f", usd, MostBudget)
	}
	return nil
}

// price tells the machine what to reserve for a call. If the caller's function panics, or ends its
// goroutine, that is an unknown price, and part of the run's error. It has a goroutine of its own for
// that: the coordinator's would take all runs with it.
func (r *run[In, Out]) price(it *machine.Item, lane string, usual float64) (price limiter.Money, known bool) {
	j := it.Payload.(*job[In, Out])
	var (
		usd    float64
		worker goroutines
	)
	err := errGone // unless it returns
	worker.Go(func() {
		err = guarded(func() { usd, known = r.hints.budget.Reserve(j.result.Item, lane, usual) })
	})
	if worker.Wait(); err != nil {
		r.priceErr = fmt.Errorf("batch: Budget.Reserve: %w", err)
		return 0, false
	}
	return limiter.USD(usd), known && usd >= 0
}

// bill adds to the outcome of a call what it cost. A call that failed and used nothing has
// cost nothing, unless it was answered: an answer that does not fit costs what any other does.
func (r *run[In, Out]) bill(j *job[In, Out], lane string, e *ending) {
	outcome := &e.outcome
	used, doubt := e.used()
	var panicked *PanicError
	switch {
	case e.unsent || outcome.Unsent:
		return
	case doubt.Calls > 0 || !e.record.HasUsage && errors.As(e.err, &panicked):
		outcome.Doubtful, used = true, doubt.Usage
	case e.err != nil && used == (provider.Usage{}) && Kind(outcome.Way) != Misfit:
		return
	}
	var (
		usd   float64
		known bool
	)
	if used != (provider.Usage{}) || !outcome.Doubtful {
		if guarded(func() { usd, known = r.hints.budget.Cost(j.result.Item, lane, used) }) != nil {
			known = false // a panic is not the item's failure: its reservation stays
		}
	}
	if known && usd >= 0 {
		outcome.Spent = limiter.USD(usd)
	} else {
		outcome.Doubtful = true
	}
}
