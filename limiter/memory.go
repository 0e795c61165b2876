package limiter

import (
	"errors"
	"fmt"
	"time"
)

// MemoryVersion is the version of a [Memory] that this package writes.
const MemoryVersion = 1

// ErrMemory is the kind of every error about a memory that a law does not take up.
var ErrMemory = errors.New("limiter: memory")

// A Memory is the knowledge of a law that is worth keeping over a restart, in a form that
// encoding/json writes and reads. All moments are absolute, so that a memory that is read hours
// later is known to be hours old. Rates are units per second, lengths of time seconds. A field
// that is zero is not known.
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
	Refusal   float64         `json:"refusal_s,omitempty"` // latency of refusals
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
	Ceiling  float64       `json:"ceiling,omitempty"`   // the user's word then
	UserDebt *float64      `json:"user_debt,omitempty"` // units missing from full in the bucket of the user's limit; nil: unknown
	Period   float64       `json:"period_s,omitempty"`  // of the limit, if it was found out
	Said     bool          `json:"said,omitempty"`      // seen in the words of a refusal, and in no header
	Window   *WindowMemory `json:"window,omitempty"`
}

// A WindowMemory is the window of a limit that is whole again all at once.
type WindowMemory struct {
	Ends   time.Time `json:"ends"`
	Period float64   `json:"period_s"`
	Most   float64   `json:"most"`
}

// A RampMemory is a pace that still rises: a share of the full one, which doubles. For the
// plain law the share is the rate at its start, and it goes to a target in a straight line.
type RampMemory struct {
	At     time.Time `json:"at"`
	Share  float64   `json:"share"` // of the full pace at At; the model law always begins with the same
	Double float64   `json:"double_s,omitempty"`
	Target float64   `json:"target,omitempty"`
	Time   float64   `json:"time_s,omitempty"`
}

// An EstimateMemory says how far the rate of requests is known, and from what.
type EstimateMemory struct {
	Search    float64   `json:"search,omitempty"` // the rate that is tried while none is known
	Calls     float64   `json:"calls,omitempty"`  // evidence: so many were let in
	Span      float64   `json:"span_s,omitempty"`
	At        time.Time `json:"at,omitzero"`
	Every     float64   `json:"every_s,omitempty"` // between tries
	Confirmed bool      `json:"confirmed,omitempty"`
}

// A CapMemory is a cap on calls in flight, and the evidence for it.
type CapMemory struct {
	Most   float64 `json:"most,omitempty"` // 0: none is believed
	Clear  float64 `json:"clear,omitempty"`
	Beside Counts  `json:"beside,omitempty"` // by the other calls in flight
	Paces  Counts  `json:"paces,omitempty"`
}

// A DroughtMemory is a time in which no call is let in.
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

// Counts are calls and refusals by bins. Each line is a bin, calls and refusals. Bins without
// calls are left out.
type Counts [][3]int

// Empty returns the memory for a successor that begins while calls of the law which saved it
// are still on their way. It has all the lessons, and nothing in hand. Calls that left after
// the save may have drawn the savings, and the inflow since; debts remain. A limit that is
// whole again all at once has no inflow before that moment. So the part that such calls cannot
// have drawn is left there.
//
// If nothing was saved of a law, its successor empties a memory that has nothing but its
// Version, Law and At. The user's limits are then not full at the start.
func (m Memory) Empty() Memory {
	m.Emptied = true
	return m
}

// ValidFor returns an error if a law of that name cannot take over the memory.
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

// Validate checks that this version reads the memory. The error is [ErrMemory]. Single values
// that cannot be true are no error: they are left out.
func (m Memory) Validate() error { return m.ValidFor("") }
