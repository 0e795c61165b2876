package batch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A Func makes one call for one item. It must honour ctx, which ends when the attempt's
// time is up or the run is abandoned. It must not retry by itself; headrace does. A
// worker's calls share a context, so ctx may outlive the call by a few others. A Func must
// therefore end what it starts with ctx, and close what it opens.
type Func[In, Out any] func(ctx context.Context, in In) (Out, error)

// A Result is the outcome of one item.
type Result[In, Out any] struct {
	Index int   // the item's place in the input, from 0
	Item  In    // the item
	Value Out   // the answer, if Err is nil
	Err   error // why there is no answer

	Pool, Lane string         // where it waited, and where its latest call went
	Attempts   int            // calls that were answered or broke; breaks of an outage and refusals (429, 503, 529) do not count
	Calls      int            // calls made for it
	Usage      provider.Usage // of all calls that were answered, as far as the answers said
	Finish     string         // the provider's word for why the answer ended; "" if unknown
	Status     int            // HTTP status of the latest answer; 0 if there was none
	RequestID  string         // of the latest answer, as the provider knows it
	Failures   []Failure      // how its calls ended that were not answered as hoped, in order; at most MostFailures

	Queued  time.Duration // from the offer to its first call
	Waited  time.Duration // time between calls: from each return to the next call
	Latency time.Duration // of the latest call
}

// Doubtful counts the item's calls that were sent and whose answer did not come whole: they
// may be billed in addition to Usage.
func (r *Result[In, Out]) Doubtful() (d Doubtful) {
	for i := range r.Failures {
		d = d.Add(r.Failures[i].Doubtful)
	}
	return d
}

// MostFailures is the maximum number of entries in an item's Failures.
const MostFailures = 20

// A Failure says how one call of an item ended, or several in a row that ended alike.
type Failure struct {
	Kind    Kind
	Status  int    // HTTP status; 0 if there was no answer
	Message string // the server's message, or else the error's, at most 200 bytes
	Calls   int    // in a row
	// Doubtful counts the calls among them that the provider may bill though they failed.
	Doubtful Doubtful
}

// Counters counts items and calls by what became of them; see [machine.Counters].
//
//	struct {
//		Offered       uint64 // items taken over
//		Settled       uint64 // items ended by a call
//		Released      uint64 // items ended without one: drained, expired, withdrawn, no lane left, or failed by a later decision
//		FailedLater   uint64 // of these, the failed ones: by a call that was handed over
//		Calls         uint64 // calls granted
//		HandedOver    uint64 // calls whose item came back
//		Throttled     uint64 // calls refused for now (429, 503, 529)
//		Stragglers    uint64 // of these, calls that had left before the cooldown
//		Parked        uint64 // times an item was parked
//		Redistributed uint64 // times a parked item was given out again
//		Delayed       uint64 // times an item was kept back for its backoff
//		Cooldowns     uint64 // cooldowns begun
//		Participants  uint64 // calls that met the refusals of some cooldown
//		Probes        uint64 // probes sent
//		Dropped       uint64 // ends of calls that were not the item's current one
//	}
type Counters = machine.Counters

// Status is a snapshot of a run's lanes; see [machine.Status].
//
//	struct {
//		At     time.Time
//		Totals Counters
//		Run    RunStatus    // of the run that asked; zero if none did
//		Held   int          // items that wait, of all runs
//		Lanes  []LaneStatus // the busiest, busiest first
//		Known  int          // lanes in all
//
//		Open     int       // lanes whose breaker is open: their server is taken to be down
//		HalfOpen int       // lanes whose breaker lets one call through, to see
//		WakeAt   time.Time // zero: only when something happens
//	}
type Status = machine.Status

// Transition is a lane's step from one phase to the next; see
// [machine.Transition].
//
//	struct {
//		At       time.Time
//		Lane     string
//		From, To Phase
//		Reason   Reason
//		Epoch    uint64
//		Until    time.Time // when time alone ends To; zero: it does not
//		Wave     int       // calls that met the refusals of the latest cooldown so far
//		Rate     float64   // calls per second that were learned; +Inf: unlimited
//		Cause    error     // of Stopped, and of Cooling by ByBreaker: the error that broke the calls; nil: nobody said
//		Belief   string    // the law's belief, in words; "": there was none
//		Account  string    // of Stopped: the account that is of no use; "": the lane stopped by itself
//
//		Slowed float64       // of ByErrors: the part of the pace that is left, 0..1
//		Errors float64       // of ByErrors and ByAnswers: the share of calls that broke, 0..1,
//		Span   time.Duration // in so long
//	}
type Transition = machine.Transition

// LongWait reports that a lane, or an item on its own account, waits for long; see
// [machine.LongWait]. Its Item is a [Result]'s Index.
//
//	struct {
//		At    time.Time
//		Lane  string
//		Phase Phase     // of the lane
//		Cause Reason    // of the lane's latest cooldown; of an item: ByThrottle, or NoReason after a failure
//		Why   string    // the reason to wait, in the words of [LaneStatus].Why; of an item: "backoff", or "refused"
//		Since time.Time // when the wait began
//		Until time.Time // when time ends it, or lets the lane try again; zero: unknown
//		Items int       // that wait for the lane; of an item: that wait for themselves there
//		Own   bool      // an item waits for itself, and not the lane
//		Item  uint64    // of Own: its number in its run
//		Run   RunID     // of Own: that run
//	}
type LongWait = machine.LongWait

// A Summary sums up a run.
type Summary struct {
	Succeeded int // items with an answer
	Filtered  int // of these, answers that a content filter has cut short or emptied
	Failed    int // items that failed for good: they were tried, or their Pool or Cost panicked
	NotRun    int // items that were taken from the input and not answered
	Usage     provider.Usage
	Doubtful  Doubtful // calls that may be billed in addition to Usage
	Elapsed   time.Duration
	At        time.Time // when it was over
	Total     int       // items in the input, as [WithTotal] says; 0: unknown
	Counters  Counters
	Held      Ledger        // its time by what held it back: the sum is Ran, to the nanosecond
	Money     Spending      // against the budget of [WithMaxCost]; zero without one
	Ran       time.Duration // from its start at the coordinator to the end of its last item
	Dropped   uint64        // events that the observer was too slow for
	SaveErr   error         // why the memory is not saved, if [WithMemorySaver] is given
}

// Items returns the number of results that the run gave.
func (s Summary) Items() int { return s.Succeeded + s.Failed + s.NotRun }

// Proves reports whether every item taken from the input gave exactly one result and every
// call is accounted for:
//
//	offered = settled + released = results
//	calls   = settled + handed over
//
// An item whose Pool or Cost panicked counts as offered and released: it was taken, and
// ended without a call.
func (s Summary) Proves() bool {
	return s.Counters.Proves() && s.Counters.Offered == uint64(s.Items())
}

// A job is an item of the caller's on its way. It has two halves, and each has one owner at
// any time. The machine's half moves as its type says. The result belongs to the reader,
// then to the worker of the current grant, and once it is finished to the caller's loop.
// Meanwhile the machine still hears that the item has ended.
type job[In, Out any] struct {
	machine.Item
	result Result[In, Out] // what its calls have reported so far; Err is that of the latest
	key    string          // identifies a remembered item; never written to once it is offered
}

// ItemKey returns the key under which the item is remembered.
func (j *job[In, Out]) ItemKey() string { return j.key }

// jobBytes is the size of one allocation of jobs: room for some fifteen, so that the
// allocation hardly shows. A slow job keeps its neighbours in memory, but not what was in
// them. So jobBytes also bounds what an item in the run holds besides itself.
const jobBytes = 8192

// newJobs allocates as many jobs as fit, and at least one.
func newJobs[In, Out any]() []job[In, Out] {
	return make([]job[In, Out], max(1, jobBytes/int(reflect.TypeFor[job[In, Out]]().Size())))
}

// note adds what the latest call reported, and its error as it was judged.
func (j *job[In, Out]) note(lane string, e *ending) {
	r := &j.result
	r.Err, r.Lane, r.Latency = e.err, lane, e.latency
	r.Status, r.RequestID, r.Finish = e.record.Status, e.record.RequestID, e.record.Finish
	used, doubt := e.used()
	r.Usage = r.Usage.Add(used)
	if e.err != nil {
		f := failureOf(e.err)
		f.Doubtful = doubt
		r.Failures = addFailure(r.Failures, f)
	}
}

// used returns the usage of a call, or the doubtful usage if its answer was cut off.
func (e *ending) used() (sure provider.Usage, doubt provider.Doubtful) {
	if e.doubtful {
		return sure, provider.Doubtful{Calls: 1, Usage: e.record.Usage}
	}
	return e.record.Usage, doubt
}

// failureOf returns what a result keeps of a call's error.
func failureOf(err error) Failure {
	f := Failure{Calls: 1}
	var fault *provider.Error
	if errors.As(err, &fault) {
		f.Kind, f.Status, f.Message = fault.Kind, fault.Status, fault.Message
	}
	if f.Message == "" {
		f.Message = provider.Plain(err).Error()
	}
	f.Message = clipMessage(f.Message)
	return f
}

// mostMessage bounds the part of a message that is kept, in bytes.
const mostMessage = 200

// clipMessage returns the first line of a text, cut to mostMessage bytes. It is a copy, so that
// a long answer is not kept in memory for it.
func clipMessage(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > mostMessage {
		s = strings.ToValidUTF8(s[:mostMessage-len("…")], "") + "…"
	}
	return strings.Clone(s)
}

// addFailure adds a failure to those before it. A failure like the last one is counted with
// it, and so is one beyond MostFailures.
func addFailure(failures []Failure, f Failure) []Failure {
	if n := len(failures); n > 0 {
		last := &failures[n-1]
		if last.Kind == f.Kind && last.Status == f.Status && last.Message == f.Message || n == MostFailures {
			last.Calls, last.Doubtful = last.Calls+1, last.Doubtful.Add(f.Doubtful)
			return failures
		}
	}
	return append(failures, f)
}

// finish fills in the end, and what the machine has counted. Only the worker that the item
// is lent to may call it, or the reader before the offer.
func (j *job[In, Out]) finish(err error, tried bool) {
	r := &j.result
	r.Err, r.Pool, r.Attempts, r.Calls = err, j.pool(), j.Attempts, j.Calls
	r.Queued, r.Waited = j.Queued(), j.Waited
	if tried {
		r.Attempts++
	}
	j.Pool = "" // it may be a piece of the item's text
}

// take returns the result and keeps nothing of it.
func (j *job[In, Out]) take() Result[In, Out] {
	result := j.result
	j.result = Result[In, Out]{}
	return result
}

// order gives results back in the order of the input.
//
//	ring:  [ 8 · 10 · · ]     next = 7: 8 and 10 are early, 7 is waited for
//
// Invariant: an index in the ring is within cap of next. It holds because each result that
// was not given back keeps a credit, and there are cap credits.
type order[In, Out any] struct {
	cap  int
	ring []earlyResult[In, Out] // as long as needed so far, at most cap
	next int
}

type earlyResult[In, Out any] struct {
	result Result[In, Out]
	there  bool
}

// push takes a result in, and returns one if one is due.
func (o *order[In, Out]) push(r Result[In, Out]) (Result[In, Out], bool) {
	if r.Index-o.next >= len(o.ring) {
		o.grow(r.Index - o.next + 1)
	}
	o.ring[r.Index%len(o.ring)] = earlyResult[In, Out]{r, true}
	return o.pop()
}

// grow makes the ring at least as long as needed, twice as long as before if cap allows it.
func (o *order[In, Out]) grow(needed int) {
	ring := make([]earlyResult[In, Out], min(o.cap, max(needed, 2*len(o.ring))))
	for _, e := range o.ring {
		if e.there {
			ring[e.result.Index%len(ring)] = e
		}
	}
	o.ring = ring
}

// pop returns the next result in order, if it is there.
func (o *order[In, Out]) pop() (r Result[In, Out], ok bool) {
	slot := &o.ring[o.next%len(o.ring)]
	if !slot.there {
		return r, false
	}
	r = slot.result
	*slot = earlyResult[In, Out]{}
	o.next++
	return r, true
}

// failures counts the items that failed for good, up to a bound, for workers that share
// nothing but channels. The capacity of counted is one less than the bound: a worker that
// finds it full has reached the bound. Elements of zero size take no memory.
type failures struct {
	counted chan struct{} // nil: there is no bound
	reached chan struct{} // holds one token once a bound is reached, for the steward
}

// newFailures returns a count of failed items that may reach most; 0 is no bound.
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
	f.signalReached()
	return true
}

// signalReached notifies the steward that a bound is reached.
func (f failures) signalReached() {
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

// checkShare signals the steward if too large a share of the items has failed. It is called as a result is taken.
func (r *run[In, Out]) checkShare() {
	ended := r.sum.Succeeded + r.sum.Failed
	if r.maxFailureShare == 0 || r.overShare || ended < leastForShare || float64(r.sum.Failed) <= r.maxFailureShare*float64(ended) {
		return
	}
	r.overShare = true
	r.failures.signalReached()
}

// tooManyErr returns the run's error if more items failed than [WithMaxFailures] or [WithMaxFailureShare] allows;
// else nil.
func (r *run[In, Out]) tooManyErr() error {
	switch {
	case r.overShare:
		return fmt.Errorf("%w: %d of %d items failed, more than %.6g %%, the first: %w",
			ErrTooManyFailures, r.sum.Failed, r.sum.Succeeded+r.sum.Failed, 100*r.maxFailureShare, r.firstFailure)
	case r.maxFailures == 0 || r.sum.Failed < r.maxFailures:
		return nil
	}
	return fmt.Errorf("%w: %d items failed, the first: %w", ErrTooManyFailures, r.sum.Failed, r.firstFailure)
}
