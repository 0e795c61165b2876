package batch

import (
	"errors"
	"fmt"
)

// failures counts the items that failed for good, up to a bound, for workers that share
// nothing but channels. Of the places that the bound allows, counted has all but one: who
// finds it full has found the bound. Places of no size take no memory.
type failures struct {
	counted chan struct{} // nil: there is no bound
	reached chan struct{} // holds one token once the bound is reached, for the steward
}

func newFailures(most int) failures {
	if most == 0 {
		return failures{}
	}
	return failures{counted: make(chan struct{}, most-1), reached: make(chan struct{}, 1)}
}

// note counts an item's error if it is a failure, and reports whether it is one too many.
// It never waits.
func (f failures) note(err error) bool {
	if f.counted == nil || !failed(err) {
		return false
	}
	select {
	case f.counted <- struct{}{}:
		return false
	default:
	}
	select {
	case f.reached <- struct{}{}:
	default: // it was said
	}
	return true
}

// failed reports whether an item's error is its failure for good. One that was not run
// has not failed.
func failed(err error) bool { return err != nil && !errors.Is(err, ErrNotRun) }

// tooMany is the run's error if as many items failed as may; else nil.
func (r *run[In, Out]) tooMany() error {
	if r.maxFailures == 0 || r.sum.Failed < r.maxFailures {
		return nil
	}
	return fmt.Errorf("%w: %d items failed, the first: %w", ErrTooManyFailures, r.sum.Failed, r.firstFailure)
}
