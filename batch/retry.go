package batch

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Bounds on how often an item comes back.
const (
	// DefaultMaxAttempts is the number of failed attempts an item may have.
	DefaultMaxAttempts = 5

	// MaxRefusals is the number of refusals (429, 503, 529) an item may meet. They use no
	// attempt, as they are no fault of the item. But an item that is refused fifty times,
	// with cooldowns in between, will not be served.
	MaxRefusals = 50

	// OverloadPatience is the time after its first call for which an item may be tried
	// again because the server is overloaded. It covers the outages that status pages call
	// short.
	OverloadPatience = 30 * time.Minute
)

// policy holds a run's bounds for an item.
type policy struct {
	maxAttempts int
	patience    time.Duration
	alike       int // number of items failing alike that stop a lane that was never answered; 0: none do
	keepGoing   bool
}

// ending describes the end of a call as the worker saw it, and then what follows from it.
type ending struct {
	err          error               // as judge leaves it, the item's
	lane         *machine.LaneConfig // the lane that the call went out on; nil: nothing is known of it
	record       provider.Record
	begun        time.Time
	gated        time.Duration // before that, at the gate; 0 if nothing measures it
	latency      time.Duration
	sinceFirst   time.Duration // since the item's first call
	probe        bool          // the call was the lane's test, not the item's try
	abandoned    bool          // the run was abandoned while the call ran
	expired      bool          // the item's own time was up
	unsent       bool          // the call was not made
	doubtful     bool          // it was sent, and its answer was cut off
	askAgain     bool          // its answer does not fit, and the item is asked again for that
	unfitAnswers int           // if not 0, the number of first answers of the run of which none fits

	// Set by judge:
	again   bool // the item is handed over; else this is its result
	tried   bool // the call used up an attempt: it was neither refused nor cut off by us
	outcome machine.Outcome
}

// judge decides whether the end of a call is the end of its item, and what the lane learns
// from it. Equal endings are judged alike. It judges in place, and so only once.
func (e *ending) judge(attempts, refusals int, p policy) {
	if e.err == nil {
		e.tried = true
		e.startOutcome(machine.Succeeded)
		return
	}
	var panicked *PanicError
	if errors.As(e.err, &panicked) {
		e.tried = true
		e.startOutcome(machine.Nothing)
		return
	}
	if e.abandoned {
		e.err = fmt.Errorf("%w: %w", ErrNotRun, e.err)
		e.startOutcome(machine.Nothing)
		return
	}
	reported := e.record.Failure(e.err)
	fault, unsent := e.asQuotaExhausted(reported), provider.Unsent(e.err)
	e.startOutcome(signalOf(fault.Kind))
	outcome := &e.outcome
	e.tried = outcome.Signal == machine.Failed || outcome.Signal == machine.Answered
	switch {
	case fault != reported:
		e.err = fault
	case !errors.Is(e.err, fault.Kind):
		e.err = &failure{fault, e.err}
	}
	outcome.Cause, outcome.Way = e.err, uint8(fault.Kind)
	if e.expired {
		e.err = join(ErrItemTimeout, e.err)
		return
	}
	switch { // the wait that the server named, in the error or in a header that the client library dropped
	case fault.HasRetryAfter:
		outcome.Directed, outcome.RetryAfter = true, fault.RetryAfter
	case e.record.HasRetryAfter:
		outcome.Directed, outcome.RetryAfter = true, e.record.RetryAfter
	}
	outcome.Slow, outcome.On, outcome.Unclear = fault.Slow, dimensions[fault.Quota.On], fault.Unclear
	outcome.Account = outcome.Signal == machine.Exhausted && fault.Account
	outcome.Timeout, outcome.Unsent = fault.Kind == provider.Timeout, unsent
	if note, ok := limitInMessage(fault.Quota); ok {
		outcome.Sightings = append(outcome.Sightings, note)
	}
	e.again = e.askAgain || e.mayRetry(fault.Kind, refusals, p)
	e.blame(fault, attempts, p)
}

// startOutcome sets the part of the outcome that every end of a call has: signal, latency, limits seen and measured
// usage.
func (e *ending) startOutcome(s machine.Signal) {
	e.outcome = machine.Outcome{Signal: s, Unsent: e.unsent, Latency: e.latency, Sightings: sightingsOf(e.record.Limits, e.lane)}
	if e.record.HasUsage && !e.doubtful {
		e.outcome.Measured = true
		e.outcome.Actual = limiter.Cost{
			Requests: 1,
			Input:    float64(e.record.Usage.InputTokens),
			Output:   float64(e.record.Usage.OutputTokens),
		}
		e.outcome.Cached = float64(e.record.Usage.CachedTokens)
	}
}

// Statuses of HTTP.
const (
	badRequest = 400
	forbidden  = 403
)

// forbiddenAlike is the number of items answered by a 403 that stop a lane that was never
// answered. Unlike a 401, a 403 may be about what one item asks for. A run that keeps going
// takes every 403 for that.
const forbiddenAlike = 3

// blame hands over an item that has no attempt left, or was refused for good, if the item or its lane may be to
// blame. The machine finds out which. If the lane is to blame, the item comes back, to go out on another lane or to
// be released as not run.
func (e *ending) blame(fault *provider.Error, attempts int, p policy) {
	outcome := &e.outcome
	first, later := fault.Kind.StopsLaneAfter()
	switch {
	case first > 0:
		if fault.Status == forbidden {
			if first = forbiddenAlike; p.keepGoing {
				first, later = 0, 0
			}
		}
	case outcome.Signal == machine.Exhausted:
		e.again = true
		return
	case e.unfitAnswers > 0:
		first, later = 1, 1 // this run's answers have decided, whatever earlier runs were answered
		outcome.Cause = &MisfitsError{Answers: e.unfitAnswers, Cause: e.err}
	case outcome.Signal == machine.Failed && !outcome.Unsent:
		if outcome.Last = attempts+1 >= p.maxAttempts; !outcome.Last {
			return
		}
		first = p.alike
	case fault.Kind == provider.Invalid && fault.Status >= badRequest && !fault.TooLong():
		first = p.alike
	default:
		return
	}
	e.again = e.again || outcome.Last || first > 0
	outcome.First, outcome.Later, outcome.Alike = uint8(first), uint8(later), failureHash(fault)
}

// failureHash returns the same number for failures of equal kind, status, code and parameter. It never returns 0.
func failureHash(f *provider.Error) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, f.Kind, f.Status, f.Code, "\x00", f.Param) // it never fails
	return max(1, h.Sum32())
}

// signalOf returns what a lane learns from a failure of that kind.
func signalOf(k provider.Kind) machine.Signal {
	switch first, _ := k.StopsLaneAfter(); {
	case k == provider.Throttled:
		return machine.Throttled
	case k == provider.Overloaded:
		return machine.Overloaded
	case k.StopsLane() || first > 0:
		return machine.Exhausted
	case k.BreakerCounts():
		return machine.Failed
	case k == provider.Canceled:
		return machine.Nothing
	}
	return machine.Answered
}

// mayRetry reports whether an item may come back that was refused, or whose call never left. It bounds refusals by
// number, and overload by time as well. The machine bounds attempts. It also bounds probes, which the item did not
// ask for, by how long an outage may last.
func (e *ending) mayRetry(k provider.Kind, refusals int, p policy) bool {
	switch {
	case !k.Again():
		return false
	case e.probe, k.UsesAttempt() && !e.outcome.Unsent:
		return true
	case k == provider.Overloaded && e.sinceFirst >= p.patience:
		return false
	}
	return refusals+1 < MaxRefusals
}

// failure is an error whose text does not tell its kind: errors.As finds both our reading
// of the error and the original.
type failure struct {
	fault *provider.Error
	err   error
}

func (f *failure) Error() string   { return f.err.Error() }
func (f *failure) Unwrap() []error { return []error{f.fault, f.err} }

// Limits of a provider that headers and error bodies show, in the law's terms.

var dimensions = map[provider.Dimension]limiter.Dimension{
	provider.Requests:     limiter.Requests,
	provider.Tokens:       limiter.Tokens,
	provider.InputTokens:  limiter.InputTokens,
	provider.OutputTokens: limiter.OutputTokens,
}

// messagePeriods holds the periods that a message names, where a run can follow a limit of them. A
// limit by the day stops the lane instead.
var messagePeriods = map[string]time.Duration{"second": time.Second, "min": time.Minute, "hour": time.Hour}

// sightingsOf converts the limits in an answer's headers to the law's terms. It ignores limits of 0, which
// asQuotaExhausted handles.
func sightingsOf(limits []provider.RateLimit, lane *machine.LaneConfig) []limiter.Sighting {
	if len(limits) == 0 {
		return nil
	}
	seen := make([]limiter.Sighting, 0, len(limits))
	for i := range limits {
		l := &limits[i]
		if l.Limit == 0 {
			continue
		}
		seen = append(seen, limiter.Sighting{
			Dimension: dimensions[l.On], Limit: l.Limit, Window: periodOf(l, lane),
			Remaining: l.Remaining, Reset: l.Reset, HasReset: l.HasReset,
		})
	}
	return seen
}

// periodOf returns the period of a limit: from the lane's settings, else from the header's family. It returns 0 if
// the law must find the period out.
func periodOf(l *provider.RateLimit, lane *machine.LaneConfig) time.Duration {
	if lane != nil {
		if per := lane.Periods.Of(l.Family, dimensions[l.On]); per > 0 {
			return per
		}
	}
	return familyPeriods[l.Family]
}

// familyPeriods holds the periods of families that mean the same for every provider. Their names
// say it, except for Together's.
var familyPeriods = map[string]time.Duration{"plain": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// asQuotaExhausted returns a refusal as QuotaExhausted if its headers show a limit of 0 and the lane knows what
// they mean. No rate was exceeded then: there is no quota. It returns other failures unchanged.
func (e *ending) asQuotaExhausted(fault *provider.Error) *provider.Error {
	if fault.Kind != provider.Throttled || e.lane == nil {
		return fault
	}
	for i := range e.record.Limits {
		l := &e.record.Limits[i]
		if l.Limit == 0 && e.lane.Periods.Of(l.Family, dimensions[l.On]) > 0 {
			exhausted := *fault
			exhausted.Kind = provider.QuotaExhausted
			exhausted.Message = strings.TrimPrefix(fmt.Sprintf("%s: no quota for this model, its limit of %s is 0", fault.Message, dimensions[l.On]), ": ")
			return &exhausted
		}
	}
	return fault
}

// limitInMessage returns the limit that a refusal's message spells out. It is as reliable as a header. What remains
// is the limit less the used units.
func limitInMessage(q provider.QuotaNote) (limiter.Sighting, bool) {
	window, known := messagePeriods[q.Per]
	if !known || q.Limit <= 0 || q.Used < 0 || q.Used > q.Limit {
		return limiter.Sighting{}, false
	}
	return limiter.Sighting{
		Dimension: dimensions[q.On], Limit: q.Limit, Window: window, Remaining: q.Limit - q.Used, Said: true,
	}, dimensions[q.On] != limiter.None
}
