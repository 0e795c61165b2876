package batch

import (
	"context"
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
