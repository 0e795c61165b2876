package limiter

import (
	"errors"
	"fmt"
	"math"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// A ChargeRule says what of a call's tokens a provider draws from its limits when it
// lets the call in.
type ChargeRule uint8

// The rules.
const (
	// ChargeAsTold draws the cost as it was told: who told it knew the rule.
	ChargeAsTold ChargeRule = iota
	// ChargeGreater draws the greater of the prompt and the bound on output. OpenAI: "the
	// maximum of max_tokens and the estimated number of tokens based on the character
	// count of your request"; Azure likewise.
	ChargeGreater
	// ChargeBoth draws the prompt and the whole bound on output, as Bedrock does. What was
	// not used comes back at the end.
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

// ExpectedOutput is how many tokens an answer is taken to have until it is there: some
// 200 English words, a usual answer to a short question.
const ExpectedOutput = 300

// A Charge is how a lane's provider draws on its limits: it makes the cost of a call from
// an estimate, whose Input are the tokens of the prompt and whose Output is the bound on
// what may be written; 0 if the request has none.
//
//	estimate ─Of─▶ what is drawn when the call is let in
//	usage ─Settled─▶ what it has drawn in all, once its answer tells that
//
// It is a value, and may be compared. The zero value takes costs and usage as they are.
type Charge struct {
	Rule       ChargeRule
	CachedFree bool // input that was read from a cache draws nothing: that shows when the answer is there
	// OutputFactor is how many tokens one of output counts for: Bedrock draws five for one
	// of newer Claude models. 0 is 1. A cost that is taken as told has it in already.
	OutputFactor float64
	// Assumed is how many tokens output is taken to have where nothing bounds it, and of
	// ChargeAsExpected how many at most. 0: none, and of ChargeAsExpected ExpectedOutput.
	Assumed float64
}

// Of is what a call draws when it is let in.
func (c *Charge) Of(estimate Cost) Cost {
	if c.Rule == ChargeAsTold {
		return estimate
	}
	return c.made(estimate)
}

// made is asked some five times for each item: it compares, where max would have an eye on
// what is no number.
func (c *Charge) made(e Cost) Cost {
	output := e.Output
	if !(output > 0) {
		output = c.Assumed
	}
	if c.OutputFactor > 0 {
		output *= c.OutputFactor
	}
	switch c.Rule {
	case ChargeGreater: // both together come to the greater of them
		if e.Input > 0 {
			output -= e.Input
		}
		if e.Output = output; !(output > 0) {
			e.Output = 0
		}
	case ChargeAsExpected:
		e.Output = c.expected(output)
	case ChargePromptOnly:
		e.Output = 0
	default:
		e.Output = output
	}
	return e
}

// expected is what is drawn of output that counts for so much, 0 if nothing bounds it.
func (c *Charge) expected(output float64) float64 {
	most := c.factor() * measure.OrElse(c.Assumed, ExpectedOutput)
	if output > 0 {
		return min(output, most)
	}
	return most
}

// Settled is what a call has drawn that used so much, of its input so many tokens from a
// cache.
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

// Bounds of what a charge may say: over what any provider does, and far under what would
// make a lane wait for ever.
const (
	mostFactor  = 1000
	mostAssumed = 1e7 // tokens
)

// Validate says whether c can be meant: a rule that there is, a factor in 0..1,000, an
// assumption in 0..10,000,000 tokens. The error is [ErrCharge].
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
