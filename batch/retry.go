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
	err      error               // as judge leaves it, the item's
	lane     *machine.LaneConfig // the lane that the call went out on; nil: nothing is known of it
	record   provider.Record
	begun    time.Time
	gated    time.Duration // before that, at the gate; 0 if nothing measures it
	latency  time.Duration
	sinceOne time.Duration // since the item's first call
	probe    bool          // the call was the lane's test, not the item's try
	left     bool          // the run was abandoned while the call ran
	expired  bool          // the item's own time was up
	unsent   bool          // the call was not made
	doubtful bool          // it was sent, and its answer was cut off
	repeats  bool          // its answer does not fit, and the item is asked again for that
	misfits  int           // if not 0, the number of first answers of the run of which none fits

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
		e.learn(machine.Succeeded)
		return
	}
	var panicked *PanicError
	if errors.As(e.err, &panicked) {
		e.tried = true
		e.learn(machine.Nothing)
		return
	}
	if e.left {
		e.err = fmt.Errorf("%w: %w", ErrNotRun, e.err)
		e.learn(machine.Nothing)
		return
	}
	reported := e.record.Failure(e.err)
	fault, unsent := e.noQuota(reported), provider.Unsent(e.err)
	e.learn(signalOf(fault.Kind))
	o := &e.outcome
	e.tried = o.Signal == machine.Failed || o.Signal == machine.Answered
	switch {
	case fault != reported:
		e.err = fault
	case !errors.Is(e.err, fault.Kind):
		e.err = &failure{fault, e.err}
	}
	o.Cause, o.Way = e.err, uint8(fault.Kind)
	if e.expired {
		e.err = join(ErrItemTimeout, e.err)
		return
	}
	switch { // the wait that the server named, in the error or in a header that the client library dropped
	case fault.HasRetryAfter:
		o.Directed, o.RetryAfter = true, fault.RetryAfter
	case e.record.HasRetryAfter:
		o.Directed, o.RetryAfter = true, e.record.RetryAfter
	}
	o.Slow, o.On, o.Unclear = fault.Slow, dimensions[fault.Quota.On], fault.Unclear
	o.Account = o.Signal == machine.Exhausted && fault.Account
	o.Timeout, o.Unsent = fault.Kind == provider.Timeout, unsent
	if note, ok := noted(fault.Quota); ok {
		o.Sightings = append(o.Sightings, note)
	}
	e.again = e.repeats || e.tryAgain(fault.Kind, refusals, p)
	e.blame(fault, attempts, p)
}

// learn begins the outcome of the call: what its lane learns from any end.
func (e *ending) learn(s machine.Signal) {
	e.outcome = machine.Outcome{Signal: s, Unsent: e.unsent, Latency: e.latency, Sightings: sighted(e.record.Limits, e.lane)}
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

// blame hands the item over if it has no attempt left, or was refused for good, and either
// the item or its lane may be to blame. The machine finds out which. If the lane is to
// blame, the item comes back, to go out on another lane or to be released as not run.
func (e *ending) blame(fault *provider.Error, attempts int, p policy) {
	o := &e.outcome
	first, later := fault.Kind.StopsLaneAfter()
	switch {
	case first > 0:
		if fault.Status == forbidden {
			if first = forbiddenAlike; p.keepGoing {
				first, later = 0, 0
			}
		}
	case o.Signal == machine.Exhausted:
		e.again = true
		return
	case e.misfits > 0:
		first, later = 1, 1 // this run's answers have decided, whatever earlier runs were answered
		o.Cause = &MisfitsError{Answers: e.misfits, Cause: e.err}
	case o.Signal == machine.Failed && !o.Unsent:
		if o.Last = attempts+1 >= p.maxAttempts; !o.Last {
			return
		}
		first = p.alike
	case fault.Kind == provider.Invalid && fault.Status >= badRequest && !fault.TooLong():
		first = p.alike
	default:
		return
	}
	e.again = e.again || o.Last || first > 0
	o.First, o.Later, o.Alike = uint8(first), uint8(later), alikeness(fault)
}

// alikeness returns the same number for failures that say the same, and never 0.
func alikeness(f *provider.Error) uint32 {
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

// tryAgain bounds how often an item comes back that was refused, or whose call never left:
// by number, and overload by time as well. The machine bounds attempts. It also bounds
// probes, which the item did not ask for, by how long an outage may last.
func (e *ending) tryAgain(k provider.Kind, refusals int, p policy) bool {
	switch {
	case !k.Again():
		return false
	case e.probe, k.UsesAttempt() && !e.outcome.Unsent:
		return true
	case k == provider.Overloaded && e.sinceOne >= p.patience:
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

// periods holds the periods that a message names, where a run can follow a limit of them. A
// limit by the day stops the lane instead.
var periods = map[string]time.Duration{"second": time.Second, "min": time.Minute, "hour": time.Hour}

// sighted returns the limits that headers show, with what is known of the headers of their
// lane. It ignores a limit of 0.
func sighted(limits []provider.RateLimit, lane *machine.LaneConfig) []limiter.Sighting {
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
			Dimension: dimensions[l.On], Limit: l.Limit, Window: windowOf(l, lane),
			Remaining: l.Remaining, Reset: l.Reset, HasReset: l.HasReset,
		})
	}
	return seen
}

// windowOf returns the period of a limit: the lane's setting, or that of a family whose
// headers always mean the same. It returns 0 if the law must find the period out.
func windowOf(l *provider.RateLimit, lane *machine.LaneConfig) time.Duration {
	if lane != nil {
		if per := lane.Periods.Of(l.Family, dimensions[l.On]); per > 0 {
			return per
		}
	}
	return windows[l.Family]
}

// windows holds the periods of families that mean the same for every provider. Their names
// say it, except for Together's.
var windows = map[string]time.Duration{"plain": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// noQuota turns a refusal whose headers show a limit of 0 into QuotaExhausted, if the
// lane knows what they mean. No rate was exceeded then: there is no quota. Other failures
// stay as they are.
func (e *ending) noQuota(fault *provider.Error) *provider.Error {
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

// noted returns the limit that the message of a refusal spells out, which is as good as a
// header. Its remainder is the limit less the used units.
func noted(q provider.QuotaNote) (limiter.Sighting, bool) {
	window, known := periods[q.Per]
	if !known || q.Limit <= 0 || q.Used < 0 || q.Used > q.Limit {
		return limiter.Sighting{}, false
	}
	return limiter.Sighting{
		Dimension: dimensions[q.On], Limit: q.Limit, Window: window, Remaining: q.Limit - q.Used, Said: true,
	}, dimensions[q.On] != limiter.None
}
