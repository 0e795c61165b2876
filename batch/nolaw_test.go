package batch

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Under no law a refusal stops nothing but its item: the next call leaves in its place at
// once, where any other law has the lane wait.
func TestNoLawLimitsNothing(t *testing.T) {
	for law, limited := range map[LawName]bool{NoLaw: false, Model: true, Plain: true} {
		synctest.Test(t, func(t *testing.T) {
			const refusedAfter = 100 * time.Millisecond
			began, next := time.Now(), time.Duration(0)
			var calls atomic.Int32
			fn := func(context.Context, int) (int, error) {
				switch calls.Add(1) {
				case 1:
					time.Sleep(refusedAfter)
					return 0, &Error{Kind: Throttled}
				case 11:
					next = time.Since(began)
				}
				time.Sleep(time.Second)
				return 1, nil
			}
			var sum Summary
			_, err := Run(t.Context(), numbers(100), fn, WithSummary(&sum), WithConcurrency(10), WithLaneDefaults(LaneConfig{Law: law}))
			if err != nil || sum.Succeeded != 100 || (next > refusedAfter) != limited {
				t.Errorf("%v: %v, the call after the refusal left after %v: %+v", law, err, next, sum)
			}
		})
	}
	for _, limit := range []Option{WithLimits(Limits{RPM: 60}), WithPlainLaw(), WithRamp(1, 2, 0), WithLocalServer(0), WithLatencyTarget(1)} {
		if _, err := Run(t.Context(), numbers(1), never(t), limit, WithLaneDefaults(LaneConfig{Law: NoLaw})); !errors.Is(err, ErrConfig) {
			t.Errorf("%v under no law: %v", limit, err)
		}
	}
}
