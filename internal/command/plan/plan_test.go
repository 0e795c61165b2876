package plan

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/limiter"
)

// The built-in tiers can be read, are dated, and have no model without a limit.
func TestBuiltInTiers(t *testing.T) {
	for _, tier := range builtIn() {
		if _, err := time.Parse(time.DateOnly, tier.AsOf); err != nil || len(tier.Limits) == 0 {
			t.Errorf("%s: %v", tier.Name, err)
		}
		for model, l := range tier.Limits {
			if l.RPM <= 0 || l.TPM <= l.RPM || l.Validate() != nil {
				t.Errorf("%s: %s: %+v", tier.Name, model, l)
			}
		}
	}
}

// A higher tier allows no less, of no fewer models.
func TestTiersRise(t *testing.T) {
	build, launch, grow := tierNamed(t, "openai-build"), tierNamed(t, "openai-launch"), tierNamed(t, "openai-grow")
	for model, l := range build.Limits {
		m, h := launch.limitsOf(model), grow.limitsOf(model)
		if m.RPM <= l.RPM || m.TPM <= l.TPM || h.RPM <= m.RPM || h.TPM <= m.TPM {
			t.Errorf("%s: %+v, %+v, %+v", model, l, m, h)
		}
	}
}

func tierNamed(t *testing.T, name string) Tier {
	t.Helper()
	tier, err := TierOf(name)
	if err != nil || tier.Name != name {
		t.Fatalf("%+v, %v", tier, err)
	}
	return tier
}

// A dated build has the limits of its model.
func TestDatedBuilds(t *testing.T) {
	tier := tierNamed(t, "openai-build")
	if tier.limitsOf("gpt-6-luna-2026-09-22").RPM != 5000 || !tier.limitsOf("gpt-6").Zero() {
		t.Errorf("%+v", tier)
	}
}

// Limits that the user sets beat the tier, one limit at a time.
func TestLimitsOf(t *testing.T) {
	f := &Config{Limits: limiter.Limits{RPM: 7}, Tier: Tier{Limits: map[string]limiter.Limits{"m": {RPM: 5, TPM: 100}}}}
	if got := f.limitsOf("m"); got != (limiter.Limits{RPM: 7, TPM: 100}) {
		t.Errorf("%+v", got)
	}
}

// A batch is bound by the limit whose doubling saves the most time.
func TestBinding(t *testing.T) {
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for _, tt := range []struct {
		requests, calls int // minutes with twice of them, of 100
		on              limiter.Dimension
		ok              bool
	}{
		{60, 80, limiter.Requests, true},
		{99, 80, limiter.None, true},
		{98, 97, limiter.None, false},
		{100, 100, limiter.None, false},
	} {
		s := &Plan{forecast: forecast.Forecast{Took: minutes(100)}, whatIfs: []whatIf{
			{dimension: limiter.Requests, double: minutes(tt.requests)}, {dimension: limiter.None, double: minutes(tt.calls)},
		}}
		if on, ok := s.binding(); on != tt.on || ok != tt.ok {
			t.Errorf("%+v: %v, %v", tt, on, ok)
		}
	}
}

// An unknown price is never one of nothing, and a small one is not rounded to it.
func TestMoney(t *testing.T) {
	for want, got := range map[string]string{
		"unknown": money(0, false), "$0.00": money(0, true), "$0.0002": money(0.0002, true), "$1.50": money(1.5, true), "$12,346": money(12345.6, true),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A count that no float can hold exactly still is a count.
func TestWhole(t *testing.T) {
	if got := whole(math.MaxFloat64); got <= 0 {
		t.Error(got)
	}
}

// A bound that is advised covers the call that reserves most, also in a short file of answers without a bound.
func TestRoomForTheDearestCall(t *testing.T) {
	if got := suggestedCap(0.001, 0.13, 0.5); got != "0.64" {
		t.Error(got)
	}
}

// A bound that is advised is a little more than the cost, and short.
func TestRoomFor(t *testing.T) {
	for usd, want := range map[float64]string{9.98: "12", 0.0453: "0.055", 100: "120", 1234.5: "1500", 83: "100", 0.00001: "0.000012"} {
		if got := suggestedCap(usd, 0.1*usd, 0); got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
	}
}
