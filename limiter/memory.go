package limiter

import (
	"errors"
	"fmt"
	"time"
)

// MemoryVersion is the version of a [Memory] that this package writes.
const MemoryVersion = 1

// ErrMemory is the kind of every error about a memory that is not taken up.
var ErrMemory = errors.New("limiter: memory")

// A Memory is what a law knows that is worth knowing after a restart, in a form that
// encoding/json writes and reads. All moments are absolute, so that what is read hours
// later is known to be hours old. Rates are units per second, lengths of time seconds.
// A field that is zero is not known.
//
// It says nothing of calls that are in flight: they end with the process.
type Memory struct {
	Version int       `json:"version"`
	Law     string    `json:"law"`               // "model" or "plain"
	At      time.Time `json:"at"`                // when it was saved
	Emptied bool      `json:"emptied,omitempty"` // it is for a successor; see [Memory.Empty]

	Limits    []LimitMemory   `json:"limits,omitempty"`
	Answered  float64         `json:"answered,omitempty"`  // calls per second, recently
	Latency   float64         `json:"latency_s,omitempty"` // of answers
	Refusal   float64         `json:"refusal_s,omitempty"` // that refusals take
	Pace      float64         `json:"pace,omitempty"`      // at which the latest call left that was let in
	Factor    float64         `json:"factor,omitempty"`    // real input tokens per estimated one
	Longer    float64         `json:"longer,omitempty"`    // output tokens per estimated one
	Reserve   float64         `json:"reserve_s,omitempty"` // of refill
	ReserveAt time.Time       `json:"reserve_at,omitzero"`
	Hold      time.Time       `json:"hold,omitzero"` // nothing may leave before
	Refused   time.Time       `json:"refused_at,omitzero"`
	Lied      float64         `json:"lied,omitempty"` // the rate that headers showed and that was wrong
	Local     float64         `json:"local,omitempty"`
	Window    float64         `json:"window,omitempty"` // calls in flight at which the mean latency was at its target
	Ramp      *RampMemory     `json:"ramp,omitempty"`
	Estimate  *EstimateMemory `json:"estimate,omitempty"`
	Chance    Counts          `json:"chance,omitempty"` // by pace
	Cap       *CapMemory      `json:"cap,omitempty"`
	Drought   *DroughtMemory  `json:"drought,omitempty"`
	Plain     *PlainMemory    `json:"plain,omitempty"`
}

// A LimitMemory is one limit.
type LimitMemory struct {
	On       string        `json:"on"`     // as [Dimension.String]
	Source   string        `json:"source"` // as [Source.String]
	Refill   float64       `json:"refill"`
	Capacity float64       `json:"capacity"`
	Debt     float64       `json:"debt"` // units missing from full when it was saved: they flow in while nobody calls
	Others   float64       `json:"others,omitempty"`
	Ceiling  float64       `json:"ceiling,omitempty"`  // the user's word then
	Period   float64       `json:"period_s,omitempty"` // of the limit, if it was found out
	Said     bool          `json:"said,omitempty"`     // seen in the words of a refusal, and in no header
	Window   *WindowMemory `json:"window,omitempty"`
}

// A WindowMemory is the window of a limit that is whole again all at once.
type WindowMemory struct {
	Ends   time.Time `json:"ends"`
	Period float64   `json:"period_s"`
	Most   float64   `json:"most"`
}

// A RampMemory is a pace that still rises: a share of the full one, that doubles. Of the
// plain law's the share is the rate at its start, and it goes to a target in a straight
// line.
type RampMemory struct {
	At     time.Time `json:"at"`
	Share  float64   `json:"share"` // of the full pace at At; the model law always begins with the same
	Double float64   `json:"double_s,omitempty"`
	Target float64   `json:"target,omitempty"`
	Time   float64   `json:"time_s,omitempty"`
}

// An EstimateMemory is how far the rate of requests is known, and from what.
type EstimateMemory struct {
	Search    float64   `json:"search,omitempty"` // the rate that is tried while none is known
	Calls     float64   `json:"calls,omitempty"`  // evidence: so many were let in
	Span      float64   `json:"span_s,omitempty"`
	At        time.Time `json:"at,omitzero"`
	Every     float64   `json:"every_s,omitempty"` // between tries
	Confirmed bool      `json:"confirmed,omitempty"`
}

// A CapMemory is a cap on calls in flight, and what speaks for it.
type CapMemory struct {
	Most   float64 `json:"most,omitempty"` // 0: none is believed
	Clear  float64 `json:"clear,omitempty"`
	Beside Counts  `json:"beside,omitempty"` // by calls in flight beside the one in question
	Paces  Counts  `json:"paces,omitempty"`
}

// A DroughtMemory is a time in which nothing is let in.
type DroughtMemory struct {
	Began    time.Time `json:"began"`
	Refusals int       `json:"refusals"`
	Busy     bool      `json:"busy,omitempty"`
}

// A PlainMemory is what the plain law knows besides.
type PlainMemory struct {
	Rate       float64 `json:"rate,omitempty"` // 0: none was learned
	Goal       float64 `json:"goal,omitempty"` // the rate to climb back to
	Escalation int     `json:"escalation,omitempty"`
}

// Counts are calls and refusals by bins, each line a bin, calls and refusals. Bins
// without calls are left out.
type Counts [][3]int

// Empty is the memory as a successor takes it up that begins while calls of the law which
// saved it are still on their way: all that was learned, and nothing in hand. What had been
// saved up, and what has flowed in since, may have been drawn by calls that left after it
// was saved; debts remain. Of a limit that is whole again all at once nothing flows in
// before that moment, so there as much is left as could not have been drawn meanwhile.
//
// The successor of a law of which nothing was saved empties a memory that has nothing but its
// Version, Law and At: the user's limits are then not full at the start.
func (m Memory) Empty() Memory {
	m.Emptied = true
	return m
}

// ValidFor says whether a memory may be taken up by that law.
func (m *Memory) ValidFor(law string) error {
	switch {
	case m.Version <= 0:
		return fmt.Errorf("%w: version %d is none", ErrMemory, m.Version)
	case m.Version > MemoryVersion:
		return fmt.Errorf("%w: version %d is newer than %d: it was saved by a later headrace", ErrMemory, m.Version, MemoryVersion)
	case law != "" && m.Law != law:
		return fmt.Errorf("%w: it is of the law %q, and not of %q", ErrMemory, m.Law, law)
	case m.At.IsZero():
		return fmt.Errorf("%w: when it was saved is missing", ErrMemory)
	}
	return nil
}

// Validate says whether the memory is one that this version reads. The error is
// [ErrMemory]. Single values that cannot be true are no error: they are left out.
func (m Memory) Validate() error { return m.ValidFor("") }
