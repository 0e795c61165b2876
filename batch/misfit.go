package batch

import (
	"errors"
	"fmt"

	"github.com/headrace/headrace/provider"
)

// Answers that do not have the form that the caller needs. The function of the run looks at its
// answer and returns it with an error of kind Misfit:
//
//	answer ─▶ fits ─────────────────────────────▶ result
//	             └▶ Misfit ┬ tries and room left ▶ asked again
//	                       ├ else ───────────────▶ failed
//	                       └ none of the first n ▶ its lane stops, or the run on a Shared: the mistake is in all of them

// MisfitShare divides the answers of a run: one further call for that many may be made because
// answers do not fit.
const MisfitShare = 10

// MaxMisfitRetries bounds what [WithMisfitRetries] may ask for: an item that was asked so often
// will not be answered otherwise.
const MaxMisfitRetries = 10

// misfits says how often items are asked again because their answers do not fit.
type misfits struct {
	checked     bool // the function of the run checks answers
	each, inAll int
}

// fits counts the answers of a run. Workers pass it around.
type fits struct {
	answers int
	good    int
	repeats int   // answers for which the item was asked again
	unfit   error // why a run on a [Shared] ends; nil: it does not
}

// WithMisfitRetries asks an item again, up to n times, if its function returns an error of kind
// [Misfit]. That uses no attempt, and no wait comes before it. Items have such retries only
// while all of them together are not more than inAll, but one is always allowed. An inAll of 0
// is a tenth of the answers so far. An answer that was cut off at its length limit, or by a
// content filter, is final: the same end would come again.
//
// With [WithAlikeFailures], a lane stops if none of the first n answers of the run fits, repeats
// included. The error is then [ErrAlike], also on a lane that was answered before, and
// errors.As finds a *[MisfitsError]. On a [Shared] the lane goes on for other runs, and only this one ends.
// Without this option a misfit is final and nothing counts them.
//
// A function with bounds of its own, such as one for the items of several users, needs no such
// option. It sets AskAgain of its [Error], and the item is asked again, at most [MaxMisfitRetries]
// times.
func WithMisfitRetries(n, inAll int) Option {
	return runOption(func(c *config) {
		c.misfits = misfits{checked: true, each: n, inAll: inAll}
		if n < 0 || n > MaxMisfitRetries || inAll < 0 {
			c.fault(fmt.Errorf("WithMisfitRetries(%d, %d): want 0 to %d retries of an item, and at least 0 in all", n, inAll, MaxMisfitRetries))
		}
	}, "WithMisfitRetries(%d, %d)", n, inAll)
}

// weigh counts an answer, and decides what follows if it does not fit.
func (r *run[In, Out]) weigh(j *job[In, Out], lane string, e *ending) {
	misfit := errors.Is(e.err, provider.Misfit)
	if e.err != nil && !misfit {
		return
	}
	seen := <-r.fits
	defer func() { r.fits <- seen }()
	seen.answers++
	_, isCut := provider.FinishKind(e.record.Finish)
	switch {
	case !misfit:
		seen.good++
	case seen.good == 0 && r.alike > 0 && seen.answers >= r.alike:
		if r.shared == nil {
			e.misfits = r.alike // not seen.answers: a worker with a later answer may be heard first
			return
		}
		e.repeats = true // the item comes back, and is not run
		if seen.unfit == nil {
			seen.unfit = &AlikeError{Lane: lane, Items: 1, Cause: &MisfitsError{Answers: r.alike, Cause: e.err}}
			r.session.Drain() // before the item is handed over
			r.failures.reach()
		}
	case isCut, e.left, j.misfits() >= r.misfits.each, seen.repeats >= r.misfits.room(&seen):
	default:
		e.repeats = true
		seen.repeats++
	}
}

// noneFits returns the error of a run on a [Shared] of whose first answers none fits. No worker may be at work.
func (r *run[In, Out]) noneFits() error {
	if r.fits == nil {
		return nil
	}
	seen := <-r.fits
	r.fits <- seen
	if seen.unfit == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStopped, seen.unfit)
}

// asksAgain reports whether the function itself has the item asked again because its answer does not
// fit.
func (j *job[In, Out]) asksAgain(e *ending) bool {
	var fault *provider.Error
	if e.err == nil || !errors.As(e.err, &fault) || fault.Kind != provider.Misfit || !fault.AskAgain {
		return false
	}
	_, isCut := provider.FinishKind(e.record.Finish)
	return !isCut && !e.left && j.misfits() < MaxMisfitRetries
}

// room returns how many retries all items together may have.
func (m *misfits) room(seen *fits) int {
	if m.inAll > 0 {
		return m.inAll
	}
	return max(1, (seen.answers-seen.repeats)/MisfitShare)
}

// misfits returns how many earlier answers of the item did not fit. Where more failures came than are
// told apart, it is as many as an item may have.
func (j *job[In, Out]) misfits() (n int) {
	if len(j.result.Failures) == MostFailures {
		return MaxMisfitRetries
	}
	for i := range j.result.Failures {
		if f := &j.result.Failures[i]; f.Kind == provider.Misfit {
			n += f.Calls
		}
	}
	return n
}

// A MisfitsError says that none of the first answers of a run had the form that its caller
// needs.
type MisfitsError struct {
	Answers int   // how many of them were looked at: those of [WithAlikeFailures]
	Cause   error // what is wrong with one of the latest
}

func (e *MisfitsError) Error() string {
	return fmt.Sprintf("batch: none of the first %d answers fits: %v", e.Answers, e.Cause)
}

// Unwrap returns what is wrong with the latest answer.
func (e *MisfitsError) Unwrap() error { return e.Cause }
