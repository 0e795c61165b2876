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

// misfitBounds says how often items are asked again because their answers do not fit.
type misfitBounds struct {
	enabled         bool // the function of the run checks answers
	perItem, perRun int
}

// fitCounts counts the answers of a run by whether they fit. Workers pass it around in a channel.
type fitCounts struct {
	answers    int
	good       int
	askedAgain int   // answers for which the item was asked again
	stopErr    error // why a run on a [Shared] ends; nil: it does not
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
		c.misfits = misfitBounds{enabled: true, perItem: n, perRun: inAll}
		if n < 0 || n > MaxMisfitRetries || inAll < 0 {
			c.addFault(fmt.Errorf("WithMisfitRetries(%d, %d): want 0 to %d retries of an item, and at least 0 in all", n, inAll, MaxMisfitRetries))
		}
	}, "WithMisfitRetries(%d, %d)", n, inAll)
}

// judgeFit counts an answer, and decides what happens to the item if it does not fit: asked again, failed, or the
// run ends.
func (r *run[In, Out]) judgeFit(j *job[In, Out], lane string, e *ending) {
	misfit := errors.Is(e.err, provider.Misfit)
	if e.err != nil && !misfit {
		return
	}
	counts := <-r.fits
	defer func() { r.fits <- counts }()
	counts.answers++
	_, isCut := provider.FinishKind(e.record.Finish)
	switch {
	case !misfit:
		counts.good++
	case counts.good == 0 && r.alike > 0 && counts.answers >= r.alike:
		if r.shared == nil {
			e.unfitAnswers = r.alike // not counts.answers: a worker with a later answer may be heard first
			return
		}
		e.askAgain = true // the item comes back, and is not run
		if counts.stopErr == nil {
			counts.stopErr = &AlikeError{Lane: lane, Items: 1, Cause: &MisfitsError{Answers: r.alike, Cause: e.err}}
			r.session.Drain() // before the item is handed over
			r.failures.signalReached()
		}
	case isCut, e.abandoned, j.misfitCount() >= r.misfits.perItem, counts.askedAgain >= r.misfits.retriesAllowed(&counts):
	default:
		e.askAgain = true
		counts.askedAgain++
	}
}

// noneFitErr returns the error of a run on a [Shared] if none of its first answers fitted; else nil. No worker may
// be at work.
func (r *run[In, Out]) noneFitErr() error {
	if r.fits == nil {
		return nil
	}
	counts := <-r.fits
	r.fits <- counts
	if counts.stopErr == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStopped, counts.stopErr)
}

// asksAgain reports whether the item is to be asked again because the function marked its answer with AskAgain.
func (j *job[In, Out]) asksAgain(e *ending) bool {
	var fault *provider.Error
	if e.err == nil || !errors.As(e.err, &fault) || fault.Kind != provider.Misfit || !fault.AskAgain {
		return false
	}
	_, isCut := provider.FinishKind(e.record.Finish)
	return !isCut && !e.abandoned && j.misfitCount() < MaxMisfitRetries
}

// retriesAllowed returns the number of retries that all items together may have so far.
func (m *misfitBounds) retriesAllowed(counts *fitCounts) int {
	if m.perRun > 0 {
		return m.perRun
	}
	return max(1, (counts.answers-counts.askedAgain)/MisfitShare)
}

// misfitCount returns how many earlier answers of the item did not fit. Beyond MostFailures nothing tells them
// apart, so it then returns the maximum.
func (j *job[In, Out]) misfitCount() (n int) {
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
