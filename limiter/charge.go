package limiter

import (
	"errors"
	"fmt"
	"math"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// A ChargeRule says which of a call's tokens a provider draws from its limits when it lets the
// call in.
type ChargeRule uint8

// The rules.
const (
	// ChargeAsTold draws the cost as the caller gave it: the caller knew the rule.
	ChargeAsTold ChargeRule = iota
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
	if c.Rule == ChargeAsTold {
		return estimate
	}
	return c.made(estimate)
}

// made runs some five times for each item. So it compares, where max would also check for NaN.
func (c *Charge) made(e Cost) Cost {
	output := e.Output
	if !(output > 0) {
		output = c.Assumed
	}
	if c.OutputFactor > 0 {
		output *= c.OutputFactor
	}
	switch c.Rule {
	case ChargeGreater: // both together make the greater of them
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

// expected returns the draw for output of that weight, 0 if nothing bounds it.
func (c *Charge) expected(output float64) float64 {
	most := c.factor() * measure.OrElse(c.Assumed, ExpectedOutput)
	if output > 0 {
		return min(output, most)
	}
	return most
}

// Settled returns the whole draw of a call with that usage. cached counts the tokens of its
// input that came from a cache.
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

// Validate checks c: the rule must exist, the factor be in 0..1,000, and the assumption in
// 0..10,000,000 tokens. The error is [ErrCharge].
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
