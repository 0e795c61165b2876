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

// In returns the draw from a limit in one dimension.
func (c Cost) In(d Dimension) float64 {
	switch d {
	case Requests:
		return c.Requests
	case Tokens:
		return c.Tokens()
	case InputTokens:
		return c.Input
	case OutputTokens:
		return c.Output
	}
	return 0
}

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
// A limit is a ceiling, whatever the provider lets in and its headers show: no call leaves above it,
// except one that is larger than the bucket. That call leaves when the bucket is full, and its
// debt is paid back before the next. A call that the provider refused does not count.
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

// String returns the dimension in words. Memories contain them, so they must not change.
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

// A ChargeRule says which of a call's tokens a provider draws from its limits when it lets the
// call in.
type ChargeRule uint8

// The rules.
const (
	// ChargeAsGiven draws the cost as the caller gave it: the caller knew the rule.
	ChargeAsGiven ChargeRule = iota
	// ChargeGreater draws the greater of the prompt and the bound on output. OpenAI: "the
	// maximum of max_tokens and the estimated number of tokens based on the character
	// count of your request"; Azure likewise.
	ChargeGreater
	// ChargeBoth draws the prompt and the whole bound on output, as Bedrock does. The unused
	// part comes back at the end.
	ChargeBoth
	// ChargeAsExpected draws the prompt, and the output as it is written. Anthropic:
	// "max_tokens does not factor in".
	ChargeAsExpected
	// ChargePromptOnly draws the prompt alone, as Gemini does: output is not limited.
	ChargePromptOnly
)

var ruleWords = [...]string{"as told", "greater", "both", "as expected", "prompt only"}

func (r ChargeRule) String() string {
	if int(r) >= len(ruleWords) {
		return fmt.Sprintf("rule(%d)", uint8(r))
	}
	return ruleWords[r]
}

// ExpectedOutput is the assumed number of tokens of an answer before it is there: some 200
// English words, a usual answer to a short question.
const ExpectedOutput = 300

// A Charge describes how a lane's provider draws on its limits. It makes the cost of a call
// from an estimate. Input of the estimate is the tokens of the prompt. Output is the bound on
// written tokens, 0 if the request has none.
//
//	estimate ─Of─▶ what is drawn when the call is let in
//	usage ─Settled─▶ what it has drawn in all, once its answer tells that
//
// It is a value, and may be compared. The zero value takes costs and usage as they are.
type Charge struct {
	Rule       ChargeRule
	CachedFree bool // input that was read from a cache draws nothing, as shows once the answer is there
	// OutputFactor is the weight of one token of output: Bedrock draws five for one of newer
	// Claude models. 0 is 1. A cost that is taken as told already includes it.
	OutputFactor float64
	// Assumed is the number of output tokens where nothing bounds them. 0: none. For
	// ChargeAsExpected it is also the most, and 0 is ExpectedOutput.
	Assumed float64
}

// Of returns the draw of a call when it is let in.
func (c *Charge) Of(estimate Cost) Cost {
	if c.Rule == ChargeAsGiven {
		return estimate
	}
	return c.costOf(estimate)
}

// costOf returns the cost that a provider draws for an estimate when it lets the call in. It runs
// some five times for each item, so it compares where max would also check for NaN.
func (c *Charge) costOf(cost Cost) Cost {
	output := cost.Output
	if !(output > 0) {
		output = c.Assumed
	}
	if c.OutputFactor > 0 {
		output *= c.OutputFactor
	}
	switch c.Rule {
	case ChargeGreater: // both together make the greater of them
		if cost.Input > 0 {
			output -= cost.Input
		}
		if cost.Output = output; !(output > 0) {
			cost.Output = 0
		}
	case ChargeAsExpected:
		cost.Output = c.expected(output)
	case ChargePromptOnly:
		cost.Output = 0
	default:
		cost.Output = output
	}
	return cost
}

// expected returns the draw for output of that weight, 0 if nothing bounds it.
func (c *Charge) expected(output float64) float64 {
	most := c.factor() * measure.OrElse(c.Assumed, ExpectedOutput)
	if output > 0 {
		return min(output, most)
	}
	return most
}

// Settled returns all that a call with that usage has drawn. cached is the number of its input
// tokens that came from a cache.
func (c *Charge) Settled(used Cost, cached float64) Cost {
	if c.CachedFree {
		used.Input = max(0, used.Input-max(0, cached))
	}
	if c.Rule == ChargePromptOnly {
		used.Output = 0
	}
	used.Output *= c.factor()
	return used
}

func (c *Charge) factor() float64 { return measure.OrElse(c.OutputFactor, 1) }

// ErrCharge is the kind of every error of [Charge.Validate].
var ErrCharge = errors.New("limiter: charge")

// Bounds of a valid charge: over what any provider does, and far below values that would make a
// lane wait for ever.
const (
	mostFactor  = 1000
	mostAssumed = 1e7 // tokens
)

// Validate returns an error that is [ErrCharge] unless the rule exists, the factor is in 0..1,000,
// and the assumption is in 0..10,000,000 tokens.
func (c *Charge) Validate() error {
	if int(c.Rule) >= len(ruleWords) {
		return fmt.Errorf("%w: %v is unknown", ErrCharge, c.Rule)
	}
	if f := c.OutputFactor; math.IsNaN(f) || f < 0 || f > mostFactor {
		return fmt.Errorf("%w: output factor: %v is not in 0..%d", ErrCharge, f, mostFactor)
	}
	if a := c.Assumed; math.IsNaN(a) || a < 0 || a > mostAssumed {
		return fmt.Errorf("%w: assumed output: %v is not in 0..%d tokens", ErrCharge, a, int(mostAssumed))
	}
	return nil
}

// MaxPeriods is the most periods that a lane may have: one for each limit that the headers of a
// provider show.
const MaxPeriods = 4

// Periods are the periods that the limits in a lane's headers are for, where its provider is
// known to mean always the same. Headers show "14400 requests", and not whether that is a
// minute's or a day's. The law finds out the other periods (see [Sighting]).
//
// The first that fits holds. It is a value, and may be compared; the zero value knows none.
type Periods [MaxPeriods]Period

// A Period is the period of the limits in one kind of header. The zero value says nothing.
//
// A user who names a period vouches for these headers. A refusal that shows a limit of 0 in one
// of them says that the lane has no quota at all.
type Period struct {
	Family string        // whose headers, in the words of the code that reads them: "openai", "anthropic"; "": any
	On     Dimension     // what they count; None: anything
	Per    time.Duration // more than 0
}

// Of returns the period of a limit in a family's headers, 0 if it is not told.
func (p *Periods) Of(family string, on Dimension) time.Duration {
	for i := range p {
		if period := &p[i]; period.Per > 0 && (period.Family == "" || period.Family == family) && (period.On == None || period.On == on) {
			return period.Per
		}
	}
	return 0
}

// ErrPeriods is the kind of every error of [Periods.Validate].
var ErrPeriods = errors.New("limiter: periods")

// longestPeriod is the period of a monthly limit.
const longestPeriod = 31 * 24 * time.Hour

// Validate checks the periods: each is over 0, and no longer than a month of 31 days. The error
// is [ErrPeriods].
func (p *Periods) Validate() error {
	for _, one := range p {
		switch {
		case one == Period{}: // an unused place
		case one.On > OutputTokens:
			return fmt.Errorf("%w: %v: there is no such dimension", ErrPeriods, one.On)
		case one.Per <= 0 || one.Per > longestPeriod:
			return fmt.Errorf("%w: %s of family %q: %v is out of range: want more than 0s and at most %v", ErrPeriods, one.On, one.Family, one.Per, longestPeriod)
		}
	}
	return nil
}
