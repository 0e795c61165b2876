package limiter

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// Each provider charges by its own rule.
func TestChargeOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		charge Charge
		bound  float64 // on output, of a prompt of 10
		output float64 // that is drawn
	}{
		{"as told", Charge{}, 100, 100},
		{"as told, whatever else", Charge{OutputFactor: 5, Assumed: 9}, 0, 0},
		{"greater: the bound", Charge{Rule: ChargeGreater}, 100, 90}, // the greater of both, as a sum
		{"greater: the prompt", Charge{Rule: ChargeGreater}, 2, 0},
		{"greater, unbounded", Charge{Rule: ChargeGreater}, 0, 0},
		{"greater, assumed", Charge{Rule: ChargeGreater, Assumed: 50}, 0, 40},
		{"greater, with a factor", Charge{Rule: ChargeGreater, OutputFactor: 5}, 4, 10},
		{"both", Charge{Rule: ChargeBoth}, 100, 100},
		{"both, unbounded", Charge{Rule: ChargeBoth, Assumed: 4096}, 0, 4096},
		{"both, bounded though something is assumed", Charge{Rule: ChargeBoth, Assumed: 4096}, 7, 7},
		{"both, nothing assumed", Charge{Rule: ChargeBoth}, 0, 0},
		{"both, with a factor", Charge{Rule: ChargeBoth, OutputFactor: 5}, 100, 500},
		{"as expected: no more than that", Charge{Rule: ChargeAsExpected}, 64000, ExpectedOutput},
		{"as expected: the bound is less", Charge{Rule: ChargeAsExpected}, 50, 50},
		{"as expected, unbounded", Charge{Rule: ChargeAsExpected}, 0, ExpectedOutput},
		{"as expected, by another's word", Charge{Rule: ChargeAsExpected, Assumed: 20}, 50, 20},
		{"as expected, with a factor", Charge{Rule: ChargeAsExpected, OutputFactor: 2}, 50, 100},
		{"prompt only", Charge{Rule: ChargePromptOnly}, 100, 0},
		{"prompt only, assumed", Charge{Rule: ChargePromptOnly, Assumed: 5}, 0, 0},
	} {
		estimate := Cost{Requests: 1, Input: 10, Output: tt.bound}
		if got, want := tt.charge.Of(estimate), (Cost{Requests: 1, Input: 10, Output: tt.output}); got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
}

// What a call has drawn is what it used, but for what is free, and what counts for more.
func TestChargeSettled(t *testing.T) {
	used := Cost{Requests: 1, Input: 1000, Output: 20}
	for _, tt := range []struct {
		name          string
		charge        Charge
		cached        float64
		input, output float64
	}{
		{"as it is", Charge{}, 800, 1000, 20},
		{"the bound comes back", Charge{Rule: ChargeBoth}, 0, 1000, 20},
		{"cached is free", Charge{CachedFree: true}, 800, 200, 20},
		{"all of it cached", Charge{CachedFree: true}, 1000, 0, 20},
		{"more cached than read", Charge{CachedFree: true}, 2000, 0, 20},
		{"less than none cached", Charge{CachedFree: true}, -5, 1000, 20},
		{"output is not limited", Charge{Rule: ChargePromptOnly}, 0, 1000, 0},
		{"output counts for more", Charge{Rule: ChargeBoth, OutputFactor: 5}, 0, 1000, 100},
	} {
		if got, want := tt.charge.Settled(used, tt.cached), (Cost{Requests: 1, Input: tt.input, Output: tt.output}); got != want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, want)
		}
	}
}

// Whatever the estimate, a rule makes no cost that is negative, or that no limit could be asked
// for; the greater of both is the greater of both; and the zero value changes nothing.
func TestChargesAreCosts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20_000 {
		c := Charge{Rule: ChargeRule(rng.IntN(5)), OutputFactor: float64(rng.IntN(4)), Assumed: float64(rng.IntN(3) * 1000), CachedFree: rng.IntN(2) == 0}
		e := Cost{Requests: 1, Input: float64(rng.IntN(5000)), Output: float64(rng.IntN(3) * rng.IntN(5000))}
		must.Do(t, c.Validate())
		drawn, settled := c.Of(e), c.Settled(e, float64(rng.IntN(9000)))
		for _, got := range []Cost{drawn, settled} {
			if got.Requests != 1 || !(got.Input >= 0 && got.Output >= 0) || math.IsInf(got.Tokens(), 0) {
				t.Fatalf("%+v of %+v: %+v", c, e, got)
			}
		}
		if c.Rule == ChargeGreater && e.Output > 0 && drawn.Tokens() != max(e.Input, c.factor()*e.Output) {
			t.Fatalf("%+v of %+v: %+v", c, e, drawn)
		}
		if zero := (Charge{}); zero.Of(e) != e || zero.Settled(e, 7) != e {
			t.Fatal("the zero value changes a cost")
		}
	}
}

// What cannot be meant is refused, with its name.
func TestChargeIsValidated(t *testing.T) {
	for _, c := range []Charge{
		{Rule: 5},
		{OutputFactor: -1},
		{OutputFactor: math.NaN()},
		{OutputFactor: math.Inf(1)},
		{OutputFactor: 1001},
		{Assumed: -1},
		{Assumed: math.NaN()},
		{Assumed: 1e8},
	} {
		if err := c.Validate(); !errors.Is(err, ErrCharge) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := ChargeRule(9).String() + ", " + ChargeGreater.String(); got != "rule(9), greater" {
		t.Error(got)
	}
}
