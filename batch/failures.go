package batch

import (
	"errors"
	"fmt"
)

// failures counts the items that failed for good, up to a bound, for workers that share
// nothing but channels. The capacity of counted is one less than the bound: a worker that
// finds it full has reached the bound. Elements of zero size take no memory.
type failures struct {
	counted chan struct{} // nil: there is no bound
	reached chan struct{} // holds one token once a bound is reached, for the steward
}

func newFailures(most int) failures {
	f := failures{reached: make(chan struct{}, 1)}
	if most > 0 {
		f.counted = make(chan struct{}, most-1)
	}
	return f
}

// note counts an item's error if it is a failure, and reports whether that reaches the
// bound. It never waits.
func (f failures) note(err error) bool {
	if f.counted == nil || !failed(err) {
		return false
	}
	select {
	case f.counted <- struct{}{}:
		return false
	default:
	}
	f.reach()
	return true
}

// reach tells the steward that a bound is reached.
func (f failures) reach() {
	select {
	case f.reached <- struct{}{}:
	default: // already told
	}
}

// failed reports whether an item failed for good. An item that was not run has not failed.
func failed(err error) bool { return err != nil && !errors.Is(err, ErrNotRun) }

// leastForShare is the number of items that must have ended before their share of failures
// decides. Among fewer, one failure is more than a percent.
const leastForShare = 100

// noteShare checks, as a result is taken, whether too large a share of the items failed.
func (r *run[In, Out]) noteShare() {
	ended := r.sum.Succeeded + r.sum.Failed
	if r.maxFailureShare == 0 || r.overShare || ended < leastForShare || float64(r.sum.Failed) <= r.maxFailureShare*float64(ended) {
		return
	}
	r.overShare = true
	r.failures.reach()
}

// tooMany returns the run's error if as many items failed as [WithMaxFailures] allows, or
// too large a share; else nil.
func (r *run[In, Out]) tooMany() error {
	switch {
	case r.overShare:
		return fmt.Errorf("%w: %d of %d items failed, more than %.6g %%, the first: %w",
			ErrTooManyFailures, r.sum.Failed, r.sum.Succeeded+r.sum.Failed, 100*r.maxFailureShare, r.firstFailure)
	case r.maxFailures == 0 || r.sum.Failed < r.maxFailures:
		return nil
	}
	return fmt.Errorf("%w: %d items failed, the first: %w", ErrTooManyFailures, r.sum.Failed, r.firstFailure)
}
