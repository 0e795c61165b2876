package limiter

import (
	"errors"
	"math"
	"testing"
	"time"
)

// A bucket holds a second of refill by default: at least one request or token, never more
// than a minute.
func TestLimitsCapacity(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		d      Dimension
		holds  float64
	}{
		{Limits{RPM: 600}, Requests, 10},
		{Limits{RPM: 30}, Requests, 1},
		{Limits{RPM: 0.5}, Requests, 1},
		{Limits{RPM: 600, Burst: MaxBurst}, Requests, 600},
		{Limits{TPM: 6_000_000}, Tokens, 100_000},
		{Limits{TPM: 60_000}, Tokens, 1000},
		{Limits{InputTPM: 3000}, InputTokens, 50},
		{Limits{InputTPM: 30}, InputTokens, 1},
		{Limits{OutputTPM: 60_000, Burst: 30 * time.Second}, OutputTokens, 30_000},
		{Limits{}, Tokens, 0},
		{Limits{RPM: 1}, None, 0},
	} {
		near(t, c.d.String(), c.limits.Capacity(c.d), c.holds, 1e-9)
	}
}

// Limits that cannot be meant are refused, each by the name of its field.
func TestLimitsValidate(t *testing.T) {
	for _, good := range []Limits{{}, {RPM: 1, TPM: 2, InputTPM: 3, OutputTPM: 0.5, Burst: MaxBurst}} {
		if err := good.Validate(); err != nil {
			t.Error(err)
		}
	}
	for text, bad := range map[string]Limits{
		"limiter: limits: requests per minute: -1 is not a finite number of 0 or more":        {RPM: -1},
		"limiter: limits: tokens per minute: NaN is not a finite number of 0 or more":         {TPM: math.NaN()},
		"limiter: limits: input tokens per minute: +Inf is not a finite number of 0 or more":  {InputTPM: math.Inf(1)},
		"limiter: limits: output tokens per minute: -Inf is not a finite number of 0 or more": {OutputTPM: math.Inf(-1)},
		"limiter: limits: burst: 1m1s is not in 0..1m0s":                                      {Burst: 61 * time.Second},
		"limiter: limits: burst: -1s is not in 0..1m0s":                                       {Burst: -time.Second},
	} {
		err := bad.Validate()
		if !errors.Is(err, ErrLimits) || err.Error() != text {
			t.Errorf("%+v: got %v, want %s", bad, err, text)
		}
	}
}

// Only a positive number limits; a burst alone does not.
func TestLimitsZero(t *testing.T) {
	want(t, "zero", Limits{}.Zero(), true)
	want(t, "burst", Limits{Burst: time.Second}.Zero(), true)
	want(t, "negative", Limits{RPM: -1}.Zero(), true)
	for _, l := range []Limits{{RPM: 1}, {TPM: 1}, {InputTPM: 1}, {OutputTPM: 1}} {
		want(t, "limited", l.Zero(), false)
	}
}

// A cost's tokens are those of both kinds; a difference is taken part by part.
func TestCost(t *testing.T) {
	c := Cost{1, 20, 300}
	want(t, "tokens", c.Tokens(), 320)
	want(t, "minus", c.Minus(Cost{1, 30, 100}), Cost{0, -10, 200})
}

// Dimensions have names that can stand in a sentence.
func TestDimensionNames(t *testing.T) {
	for d, name := range []string{"none", "requests", "tokens", "input tokens", "output tokens", "dimension(5)"} {
		want(t, "name", Dimension(d).String(), name)
	}
}
