package batch

import (
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Types of options and results, so that usual work needs no other import. Each alias is the
// same type as the one that it names.
type (
	// Limits holds what a lane may draw per minute; see [limiter.Limits].
	//
	//	struct {
	//		RPM, TPM, InputTPM, OutputTPM float64 // per minute
	//		Burst                         time.Duration
	//	}
	Limits = limiter.Limits
	// Cost holds what one call draws; see [limiter.Cost].
	//
	//	struct{ Requests, Input, Output float64 }
	Cost = limiter.Cost
	// Charge says how a provider counts calls against its limits; see [limiter.Charge].
	//
	//	struct {
	//		Rule       ChargeRule
	//		CachedFree bool // input that was read from a cache draws nothing, as shows once the answer is there
	//		// OutputFactor is the weight of one token of output: Bedrock draws five for one of newer
	//		// Claude models. 0 is 1. A cost that is taken as told already includes it.
	//		OutputFactor float64
	//		// Assumed is the number of output tokens where nothing bounds them. 0: none. For
	//		// ChargeAsExpected it is also the most, and 0 is ExpectedOutput.
	//		Assumed float64
	//	}
	Charge = limiter.Charge
	// Periods says which periods the limits in headers cover; see [limiter.Periods].
	//
	//	[MaxPeriods]Period
	Periods = limiter.Periods
	// Period is one entry of [Periods]; see [limiter.Period].
	//
	//	struct {
	//		Family string        // whose headers, in the words of the code that reads them: "openai", "anthropic"; "": any
	//		On     Dimension     // what they count; None: anything
	//		Per    time.Duration // more than 0
	//	}
	Period = limiter.Period
	// Usage counts the tokens of calls, as the provider reported them; see
	// [provider.Usage].
	//
	//	struct {
	//		InputTokens, OutputTokens, CachedTokens, CacheWriteTokens, ReasoningTokens int64
	//		// LongWriteTokens are the part of CacheWriteTokens that the cache keeps for an hour, which
	//		// costs more.
	//		LongWriteTokens int64
	//
	//		// Told holds the cost that the answer names, in picodollars, if HasTold. A price table
	//		// decides whether that provider's word counts.
	//		Told    int64
	//		HasTold bool
	//		// Tier is the class of service that the answer names.
	//		Tier Tier
	//	}
	Usage = provider.Usage
	// Doubtful counts calls that may be billed; see [provider.Doubtful].
	//
	//	struct {
	//		Calls int
	//		// Usage is the usage that these answers reported before they were cut off. The calls may have
	//		// used more, and most answers report nothing so early.
	//		Usage Usage
	//	}
	Doubtful = provider.Doubtful

	// LaneMemory holds what is known of a lane; see [machine.LaneMemory].
	//
	//	struct {
	//		Version int                   `json:"version"`
	//		Law     limiter.Memory        `json:"law"`
	//		Breaker limiter.BreakerMemory `json:"breaker"`
	//		Until   time.Time             `json:"until,omitzero"` // the end of a cooldown, or of the one that is being probed
	//
	//		Answered bool `json:"answered,omitempty"` // a call was answered as hoped, ever
	//	}
	LaneMemory = machine.LaneMemory
	// ItemMemory holds what is known of an item; see [machine.ItemMemory].
	//
	//	struct {
	//		Failures int `json:"failures"`         // attempts that it has used up, 1 or more
	//		Doubts   int `json:"doubts,omitempty"` // of these: those after which no other item was answered
	//	}
	ItemMemory = machine.ItemMemory

	// WaitError reports a wait that is too long; see [ErrWaitTooLong].
	//
	//	struct {
	//		Lane  string
	//		Wait  time.Duration // as the server named it
	//		Until time.Time     // when it ends
	//		Most  time.Duration // the longest that the machine accepts
	//		Cause error         // the server's error; nil: unknown
	//	}
	WaitError = machine.WaitError

	// OutageError reports an outage that lasted too long; see [ErrOutage].
	//
	//	struct {
	//		Lane    string
	//		Since   time.Time     // when the first call failed, or was refused, after the latest answer
	//		For     time.Duration // how long ago that was
	//		Waiting int           // items that waited for the lane
	//		Cause   error         // what the latest call met; nil: that is not known
	//	}
	OutageError = machine.OutageError

	// AlikeError reports a mistake in every item; see [ErrAlike].
	//
	//	struct {
	//		Lane  string
	//		Items int   // that failed alike
	//		Cause error // what the server said of the latest of them
	//	}
	AlikeError = machine.AlikeError

	// LawError reports the failure of a law that a Maker made; see [ErrLaw].
	//
	//	struct {
	//		Lane  string
	//		Value any    // the value of the panic; nil: the maker returned nil
	//		Stack []byte // of the panic
	//	}
	LawError = machine.LawError

	// UsedUpError reports a limit with nothing left; see [machine.UsedUpError].
	//
	//	struct {
	//		Dimension limiter.Dimension
	//		Limit     float64       // units per Window
	//		Window    time.Duration // a day or more
	//	}
	UsedUpError = machine.UsedUpError

	// LaneConfig holds the settings of one lane; see [machine.LaneConfig].
	//
	//	struct {
	//		Limits   limiter.Limits            // told by the user; zero fields are not limited
	//		Window   int                       // calls in flight; 0: only the run's concurrency
	//		Law      limiter.LawName           // by which calls are let in; zero: limiter.Model, which follows the provider's own limits; limiter.NoLaw limits nothing but Window
	//		Maker    limiter.Maker             // who makes its law instead, of the fields below what it likes; nil: it is the one that Law names. Must be comparable. If it fails, or its law does, the lane stops by a LawError
	//		Local    bool                      // of the model law: a server of one's own, which queues; if it refuses, it is judged like any other
	//		Target   time.Duration             // latency: the mean stays within limiter.MeanTolerance of it; 0: it may be any. Of Local: what the 90th percentile stays under; 0: limiter.LocalTarget of AttemptTimeout
	//		Rate     limiter.RateConfig        // of the plain law; the model law takes Initial, as a first guess
	//		Ramp     limiter.RampConfig        // of the plain law; zero: limiter.RampShare of the known rate to all of it in limiter.RampTime; else nothing that was learned limits outside of it
	//		Cooldown limiter.CooldownConfig    // of the plain law; a wait over its MaxDirected stops the lane
	//		Breaker  limiter.BreakerConfig     // zero under the model law: as usual, but open for ModelOpen at a time
	//		Errors   limiter.ErrorWindowConfig // when failures slow the lane down
	//
	//		// Charge describes how the provider draws on the limits: it makes a call's cost from its
	//		// item's estimate. The zero value takes the estimate as it is.
	//		Charge limiter.Charge
	//		// Periods are the periods of the limits in the provider's headers, where they are known.
	//		// The machine does not read them: they are for the caller, who makes [Outcome].Sightings of
	//		// headers. But a sighting of a used-up daily limit stops the lane, by a [UsedUpError].
	//		Periods limiter.Periods
	//		// Account names the account that the lane draws on. Lanes of one account share its fate: a
	//		// refusal that concerns the account stops all of them. "": the lane shares none.
	//		Account string
	//		// AttemptTimeout bounds one call; 0: the run's own. The caller enforces it. The machine
	//		// uses it only where Local has no Target; see [limiter.LocalTarget].
	//		AttemptTimeout time.Duration
	//		// ItemTimeout bounds the time of items whose first call goes out on this lane; 0: as
	//		// [RunConfig] says.
	//		ItemTimeout time.Duration
	//		// MaxAttempts bounds the failed attempts of an item whose call fails on this lane; 0: the
	//		// run's own. The caller enforces it; the machine does not look at it.
	//		MaxAttempts int
	//	}
	LaneConfig = machine.LaneConfig
	// PoolConfig holds the settings of one pool, for [Control.DefinePool].
	//
	//	struct {
	//		Name  string
	//		Lanes []string // at least one
	//		// Tiers holds the tier of each of Lanes: 0 first, then each as before or one more. nil: all
	//		// are of one tier.
	//		Tiers []int
	//		After time.Duration // 0: the next tier is used at once, and not while a better lane climbs
	//		// Spill is another way to the next tier: the head of the pool would wait for longer than
	//		// that for lanes that are well. 0: there is none.
	//		Spill time.Duration
	//		// Weights holds a weight for each of Lanes, 1..MaxWeight: of the turns of lanes of one tier
	//		// that have room, each gets its part. A lane that has none leaves its turns to the others.
	//		// nil: all weigh the same.
	//		Weights []int
	//	}
	PoolConfig = machine.PoolConfig
	// LawName names a law of admission: [Model], [Plain] or [NoLaw].
	LawName = limiter.LawName
	// RateConfig says how the plain law's rate adapts; see [limiter.RateConfig].
	//
	//	struct {
	//		Initial  float64 // calls per second; 0: unlimited until something is learned
	//		Floor    float64 // calls per second, the least
	//		Ceiling  float64 // calls per second, the most; 0: none
	//		Increase float64 // per second, as a share of the rate that was refused last
	//		Decrease float64 // factor of a decrease, in (0, 1)
	//	}
	RateConfig = limiter.RateConfig
	// RampConfig shapes the plain law's recovery; see [limiter.RampConfig].
	//
	//	struct {
	//		Initial, Target float64 // calls per second
	//		Duration        time.Duration
	//	}
	RampConfig = limiter.RampConfig
	// CooldownConfig says how long a refusal stops a lane under the plain law; see
	// [limiter.CooldownConfig].
	//
	//	struct {
	//		Base        time.Duration // the first wait that the server did not name
	//		Max         time.Duration // the longest such wait, before jitter
	//		MaxDirected time.Duration // the longest wait that the server may name, jitter included
	//		Jitter      float64       // share of an undirected wait, in 0..1; less than 0: none
	//	}
	CooldownConfig = limiter.CooldownConfig
	// BreakerConfig says when a lane is given up for a while; see
	// [limiter.BreakerConfig].
	//
	//	struct {
	//		Window      time.Duration // how far back failures are counted, for FailureRate
	//		MinSamples  int           // fewer calls than this in the window decide nothing by rate
	//		FailureRate float64       // share of failures that opens; 0 or more than 1: never by rate
	//		Consecutive int           // failures in a row that open; less than 0: never
	//		OpenFor     time.Duration // the first open interval
	//		MaxOpen     time.Duration // the longest
	//		Successes   int           // of probes, one after the other, that close
	//	}
	BreakerConfig = limiter.BreakerConfig
	// ErrorWindowConfig says when failures slow a lane down; see
	// [limiter.ErrorWindowConfig].
	//
	//	struct {
	//		Window     time.Duration // how far back it looks
	//		Buckets    int           // of the window, at most 60
	//		High       float64       // above this share of failures: slow down
	//		Low        float64       // below it, and after Hold: full speed; at most High
	//		Factor     float64       // what the pace is multiplied by meanwhile, in (0, 1]; 1: it is never slowed down
	//		Hold       time.Duration // the least time it stays slow
	//		MinSamples int           // fewer calls than this in the window decide nothing
	//	}
	ErrorWindowConfig = limiter.ErrorWindowConfig

	// Word is a message from a lane's law to the outside; see [machine.Word].
	//
	//	struct {
	//		Lane string
	//		Said any
	//	}
	Word = machine.Word

	// LaneStatus is a snapshot of one lane; see [machine.LaneStatus].
	//
	//	struct {
	//		Name     string
	//		Phase    Phase
	//		Reason   Reason
	//		Cause    error // of Stopped; while the breaker is not closed, what the calls broke of; nil: nobody said
	//		Speed    Speed
	//		Why      string        // what the next call waits for; "" if it does not wait
	//		Wait     time.Duration // how long, as far as time alone decides
	//		Until    time.Time     // when time alone changes the phase; zero: it does not
	//		Epoch    uint64
	//		Wave     int     // calls that met the refusals of its latest cooldown
	//		Rate     float64 // calls per second that are allowed; +Inf while unlimited
	//		Level    Levels
	//		InFlight int
	//		Parked   int
	//		Delayed  int       // items that wait for themselves, or until it is known whose their failure is
	//		FirstDue time.Time // when the first of them may go again; zero: there is none
	//		LastDue  time.Time // and the last
	//		Breaker  limiter.BreakerState
	//		Failures int           // calls in a row that broke, as far as the breaker counts them
	//		Latency  time.Duration // smoothed, of answers
	//		P95      time.Duration
	//		Errors   float64 // share of calls that broke, 0..1, over the error window
	//		Slowed   float64 // the part of its pace that is left because too many broke, 0..1; 0: all of it, they do not
	//		Counters Counters
	//		View     limiter.View // the law's beliefs
	//		Bound    Bound        // the bound of the lane's own that holds its next call back; BoundNone: nothing does
	//		Draw     limiter.Cost // of one of the items that wait for it, on average, as its law counts it; zero: none waits
	//		Account  string       // that it draws on; "": it shares none
	//		Local    bool         // it is a server of one's own, which may queue what is in flight
	//		Window   int          // calls that may be in flight on it, by the user's word or the law's; 0: as many as the run allows
	//	}
	LaneStatus = machine.LaneStatus
	// RunStatus is a snapshot of one run; see [machine.RunStatus].
	//
	//	struct {
	//		Counters Counters
	//		Total    int       // items that are to come in all, by the run's config; 0: unknown
	//		Held     int       // its items that wait
	//		Parked   int       // of these, after a refusal of their lane
	//		Delayed  int       // of these, for themselves
	//		Paused   bool      // it is to be given nothing until it is resumed
	//		FirstDue time.Time // when the first delayed one may go again; zero: there is none
	//
	//		Bound       Bound     // what holds it back
	//		Ledger      Ledger    // its time by what held it back
	//		InFlight    int       // its calls under way
	//		Oldest      time.Time // when the one that left first did; zero: there is none
	//		Concurrency int       // its ceiling on calls in flight, or that of all runs together if that is less
	//		InputEnded  bool      // nothing more will be offered
	//		Money       Spending  // against its budget; zero: it has none
	//	}
	RunStatus = machine.RunStatus
	// Phase is the state of a lane, from full flow to a stop.
	Phase = machine.Phase
	// Reason says why a lane is in its phase.
	Reason = machine.Reason
	// Speed says in three words what holds a lane back.
	Speed = machine.Speed

	// Error describes a failed call in terms common to all providers; see [provider.Error].
	//
	//	struct {
	//		// Kind decides what happens next.
	//		Kind Kind
	//		// Provider names the provider that answered ("openai"); the text begins with it.
	//		Provider string
	//		// Status is the HTTP status, 0 if no answer came. A 200 that carried an
	//		// error object keeps its 200.
	//		Status int
	//		// Code, Type and Param are the provider's own words, "" where it gave
	//		// none. A prompt that is too long has the code "context_length_exceeded"
	//		// also where the provider says so only in prose.
	//		Code, Type, Param string
	//		// Message is the provider's prose, at most 1 KiB.
	//		Message string
	//		// RequestID is the id for which the provider's support asks.
	//		RequestID string
	//		// RetryAfter is the wait that the server asked for, between 0 and
	//		// MaxRetryAfter. It means something only if HasRetryAfter.
	//		RetryAfter    time.Duration
	//		HasRetryAfter bool
	//		// OddWait names the header in which the server asked for an impossible wait: over
	//		// MaxRetryAfter, negative, or no duration at all. The wait then counts as unnamed. "" if
	//		// there is no such header.
	//		OddWait string
	//		// Slow says that the server minds the growth of the rate rather than the
	//		// rate (slow_down, acceleration limits): come back slower than usual.
	//		Slow bool
	//		// Unclear says that the server may mean a limit per minute or one per day
	//		// and does not say which. After the third in a row, take it for
	//		// QuotaExhausted.
	//		Unclear bool
	//		// Account says of QuotaExhausted and Unauthorized that the words concern the whole
	//		// account, or its key: other models of it are refused as well.
	//		Account bool
	//		// AskAgain says of Misfit that the item is to be asked once more: the maker of the error
	//		// bounds how often. A run with bounds of its own for that does not heed it.
	//		AskAgain bool
	//		// Quota is the limit that was hit, as the message describes it; zero if it
	//		// does not.
	//		Quota QuotaNote
	//		// Body is the answer's body as sent, at most MaxErrorBody bytes; nil if
	//		// there was none.
	//		Body []byte
	//		// Err is the cause where there is one: a Go error, or the user's own.
	//		Err error
	//	}
	Error = provider.Error
	// Kind says what a failed call means. It is an error too: errors.Is(err, Throttled).
	Kind = provider.Kind
)

// The laws of admission.
const (
	Model = limiter.Model // follows the provider's own limits; the default
	Plain = limiter.Plain // given limits, a rate found by trial, a cooldown and a ramp
	NoLaw = limiter.NoLaw // limits nothing but calls in flight; keeps waits that the server names
)

// The phases of a lane.
const (
	Flowing = machine.Flowing // calls leave as limits and the learned rate allow
	Cooling = machine.Cooling // nothing leaves
	Probing = machine.Probing // one call at a time leaves, to see whether the refusals are over
	Ramping = machine.Ramping // the rate climbs back
	Stopped = machine.Stopped // nothing leaves any more, unless a person resets the lane
)

// The kinds of failures. The table at [Run] says what each means for its item and its lane;
// [provider.Kind] says which failures each covers.
const (
	Unknown        = provider.Unknown
	Throttled      = provider.Throttled
	Overloaded     = provider.Overloaded
	QuotaExhausted = provider.QuotaExhausted
	Unauthorized   = provider.Unauthorized
	Timeout        = provider.Timeout
	TransportFault = provider.TransportFault
	EmptyAnswer    = provider.EmptyAnswer
	Server         = provider.Server
	Invalid        = provider.Invalid
	Refused        = provider.Refused
	Truncated      = provider.Truncated
	Canceled       = provider.Canceled
	ModelNotFound  = provider.ModelNotFound
	Misconfigured  = provider.Misconfigured
	Misfit         = provider.Misfit
)

// Spending is a picture of a run's money; see [machine.Spending].
//
//	struct {
//		Cap       limiter.Money // the budget
//		Spent     limiter.Money // the cost of calls that have ended, with what was spent before
//		Reserved  limiter.Money // of calls in flight
//		Doubtful  limiter.Money // the most that calls which broke may cost in addition
//		Over      limiter.Money // by which calls cost more than was reserved for them, in all
//		OverCalls int           // the number of those calls
//	}
type Spending = machine.Spending

// BudgetError says why a run with a budget has ended; see [machine.BudgetError].
//
//	struct {
//		Spending
//		Next     limiter.Money // the price of the call that did not fit
//		Lane     string        // on which that call would have left
//		Item     uint64        // the number of its item in the run
//		Unpriced bool          // its price is not known, and Next is 0
//	}
type BudgetError = machine.BudgetError
