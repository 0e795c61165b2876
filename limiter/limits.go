package limiter

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// A Cost is the draw of one call from the limits of its lane: one request, as a rule, and the
// tokens the model reads (Input) and writes (Output). Before the call it is an estimate, after
// it the provider's report. Fractions are fine. A part that is negative, NaN or infinite cannot
// be meant: see [Cost.Drawn], which a law's owner calls.
type Cost struct{ Requests, Input, Output float64 }

// Drawn returns c with 0 for each part that cannot be meant. A machine calls it for every
// estimate and report, so that laws need not look again.
func (c Cost) Drawn() Cost {
	if c.Requests >= 0 && c.Input >= 0 && c.Output >= 0 && c.Requests+c.Input+c.Output <= math.MaxFloat64 {
		return c
	}
	return Cost{measure.Amount(c.Requests), measure.Amount(c.Input), measure.Amount(c.Output)}
}

// Tokens returns the draw from a limit on tokens of either kind together.
func (c Cost) Tokens() float64 { return c.Input + c.Output }

// Plus returns the sum of both.
func (c Cost) Plus(d Cost) Cost {
	return Cost{Requests: c.Requests + d.Requests, Input: c.Input + d.Input, Output: c.Output + d.Output}
}

// Minus returns c without d, part by part. A part is negative where d is the greater.
func (c Cost) Minus(d Cost) Cost {
	return Cost{c.Requests - d.Requests, c.Input - d.Input, c.Output - d.Output}
}

// Bounds of a bucket's capacity.
const (
	// DefaultBurst is one second of refill. A provider that publishes 60 a minute may enforce
	// one a second, so larger savings would be refused there. Where a whole minute may be spent
	// at once, the user says so.
	DefaultBurst = time.Second

	// MaxBurst is one minute: a limit is a promise per minute, and a bucket deeper
	// than that would break it in its first one.
	MaxBurst = time.Minute

	// MinCapacity is the least capacity of any bucket: one call, or one token.
	MinCapacity = 1
)

// Limits bounds the draw of a lane per minute. A field that is 0 is not limited, so the zero
// value limits nothing. TPM counts input and output tokens together; InputTPM and OutputTPM
// count each kind. All that are set hold at once.
//
// A limit is a ceiling: no call leaves above it, except one that is larger than the bucket.
// That call leaves when the bucket is full, and its debt is paid back before the next.
//
// Burst is the time of refill that a bucket saves up while nothing is drawn, and holds at the
// start: from 0 to [MaxBurst]. 0 means [DefaultBurst] under the plain law, and a fifth of a
// second under the model law. A bucket holds at least one call, or [MinCapacity], and beyond
// that no more than one minute of its budget. The plain law spends a burst at once. The model
// law spends most of it within ten seconds, and nearly all within thirty.
//
// Calls overtake one another on their way. The model law therefore keeps 50 ms of a burst
// of 250 ms or more, and charges a call that empties the bucket 2 % more than it draws.
type Limits struct {
	RPM, TPM, InputTPM, OutputTPM float64 // per minute
	Burst                         time.Duration
}

// ErrLimits is the kind of every error of [Limits.Validate].
var ErrLimits = errors.New("limiter: limits")

// Validate checks the limits: every number is finite and not negative, and Burst is in
// 0..[MaxBurst]. The error names the field and is [ErrLimits].
func (l Limits) Validate() error {
	for d := Requests; d <= OutputTokens; d++ {
		if x := l.PerMinute(d); x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: %s per minute: %v is not a finite number of 0 or more", ErrLimits, d, x)
		}
	}
	if l.Burst < 0 || l.Burst > MaxBurst {
		return fmt.Errorf("%w: burst: %v is not in 0..%v", ErrLimits, l.Burst, MaxBurst)
	}
	return nil
}

// Zero reports whether nothing is limited. Burst alone limits nothing.
func (l Limits) Zero() bool {
	for d := Requests; d <= OutputTokens; d++ {
		if measure.Positive(l.PerMinute(d)) {
			return false
		}
	}
	return true
}

// PerMinute returns the limit in one dimension, 0 if there is none.
func (l Limits) PerMinute(d Dimension) float64 {
	switch d {
	case Requests:
		return l.RPM
	case Tokens:
		return l.TPM
	case InputTokens:
		return l.InputTPM
	case OutputTokens:
		return l.OutputTPM
	}
	return 0
}

// Capacity returns the capacity of the bucket of one dimension, 0 if it is not limited.
func (l Limits) Capacity(d Dimension) float64 {
	perMinute := l.PerMinute(d)
	if !measure.Positive(perMinute) {
		return 0
	}
	saved := perMinute * measure.OrElseDuration(l.Burst, DefaultBurst).Minutes()
	return max(min(saved, perMinute), MinCapacity)
}

// A Dimension is one of the things a provider counts.
type Dimension uint8

// The dimensions, in the order in which ties are broken.
const (
	None         Dimension = iota // nothing binds
	Requests                      // calls
	Tokens                        // input and output together
	InputTokens                   // what the model reads
	OutputTokens                  // what the model writes
)

func (d Dimension) String() string {
	switch d {
	case None:
		return "none"
	case Requests:
		return "requests"
	case Tokens:
		return "tokens"
	case InputTokens:
		return "input tokens"
	case OutputTokens:
		return "output tokens"
	}
	return fmt.Sprintf("dimension(%d)", uint8(d))
}
