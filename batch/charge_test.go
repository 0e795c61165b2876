package batch

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Two lanes of one pool, with the same limit and the same items, charge by their own
// rules: where the bound on output is charged a tenth as much is let through in a minute.
func TestLanesOfAPoolChargeByTheirOwnRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fn := func(ctx context.Context, i int) (int, error) {
			j.add(LaneFrom(ctx))
			return i, pause(ctx, 100*time.Millisecond)
		}
		limits := Limits{TPM: 60_000}
		_, sum, err := proved(t.Context(), t, numbers(1100), fn, WithPool("p", "prompt", "both"), WithPoolOf(func(int) string { return "p" }),
			WithCostOf(func(int) Cost { return Cost{Input: 100, Output: 900} }), WithConcurrency(8),
			WithLane("prompt", LaneConfig{Limits: limits, Charge: Charge{Rule: limiter.ChargePromptOnly}}),
			WithLane("both", LaneConfig{Limits: limits, Charge: Charge{Rule: limiter.ChargeBoth}}))
		if err != nil || j.lanes["prompt"] < 9*j.lanes["both"] || j.lanes["both"] < 50 {
			t.Errorf("%v in %v: %v", j.lanes, sum.Elapsed, err)
		}
	})
}

// Input that came from a cache comes back to the limit once the answer says so, where the
// lane has it free, and only there.
func TestCachedInputComesBack(t *testing.T) {
	took := func(free bool) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			fn := func(ctx context.Context, i int) (int, error) {
				r := provider.RecorderFrom(ctx)
				err := pause(ctx, 10*time.Millisecond)
				r.Response(http.StatusOK, nil)
				r.Usage(provider.Usage{InputTokens: 1000, CachedTokens: 900})
				return i, err
			}
			_, sum, err := proved(t.Context(), t, numbers(600), fn, WithConcurrency(2), WithLimits(Limits{InputTPM: 60_000}),
				WithCharge(Charge{CachedFree: free}), WithCostOf(func(int) Cost { return Cost{Input: 1000} }))
			if err != nil {
				t.Error(err)
			}
			d = sum.Elapsed
		})
		return d
	}
	free, paid := took(true), took(false)
	if paid < 9*time.Minute || free > 2*time.Minute {
		t.Errorf("%v where cached input is free, %v where it is not", free, paid)
	}
}

// What WithLaneDefaults says of a rule, or of periods, counts more than the options for
// all lanes, and WithLane more than either.
func TestTheNearerWordOfARuleCounts(t *testing.T) {
	both, prompt := Charge{Rule: limiter.ChargeBoth}, Charge{Rule: limiter.ChargePromptOnly}
	day, minute := Periods{{Per: 24 * time.Hour}}, Periods{{Per: time.Minute}}
	for _, opts := range [][]Option{
		{WithCharge(both), WithPeriods(day)},
		{WithCharge(prompt), WithPeriods(minute), WithLaneDefaults(LaneConfig{Charge: both, Periods: day})},
		{WithLaneDefaults(LaneConfig{Window: 3}), WithCharge(both), WithPeriods(day), WithLane("x", LaneConfig{Charge: prompt, Periods: minute})},
	} {
		c := configure(opts)
		if lane := c.machine.Lane; lane.Charge != both || lane.Periods != day || c.check() != nil {
			t.Errorf("%v: %+v, %v", opts, lane, c.check())
		}
		if x, ok := c.machine.Lanes["x"]; ok && (x.Charge != prompt || x.Periods != minute) {
			t.Errorf("%+v", x)
		}
	}
}
