package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// A lane's own bound on a call holds on that lane, be it shorter than the run's or longer;
// an item's time is the shorter one of all the same.
func TestAttemptTimeoutOfTheLane(t *testing.T) {
	for name, c := range map[string]struct {
		run, item, want time.Duration
		lane            string
		kind            error
	}{
		"shorter":               {time.Minute, 0, 10 * time.Second, "quick", provider.Timeout},
		"longer":                {time.Minute, 0, 30 * time.Minute, "slow", provider.Timeout},
		"longer than no bound":  {0, 0, 30 * time.Minute, "slow", provider.Timeout},
		"none of its own":       {time.Minute, 0, time.Minute, "other", provider.Timeout},
		"the item's is shorter": {time.Minute, 5 * time.Second, 5 * time.Second, "quick", ErrItemTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			results, _, err := proved(t.Context(), t, numbers(1), takes(time.Hour), WithAttemptTimeout(c.run), WithItemTimeout(c.item), WithMaxAttempts(1),
				WithLane("quick", LaneConfig{AttemptTimeout: 10 * time.Second}), WithLane("slow", LaneConfig{AttemptTimeout: 30 * time.Minute}),
				WithPoolOf(func(int) string { return c.lane }))
			if r := results[0]; err != nil || r.Latency != c.want || !errors.Is(r.Err, c.kind) {
				t.Errorf("%s: after %v: %v, %v", name, r.Latency, r.Err, err)
			}
		})
	}
}

// Each call of an item is bounded by the lane that it goes out on.
func TestAttemptTimeoutFollowsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[string]time.Duration{}
		note := WithCalls(func(c Call) { took[c.Lane] = max(took[c.Lane], c.Latency) })
		fn := func(ctx context.Context, i int) (int, error) { return i, pause(ctx, time.Hour) }
		_, _, err := proved(t.Context(), t, numbers(1), fn, WithConcurrency(1), WithMaxAttempts(4), WithPool("p", "quick", "slow"), WithPoolOf(func(int) string { return "p" }),
			WithLane("quick", LaneConfig{AttemptTimeout: 7 * time.Second}), WithLane("slow", LaneConfig{AttemptTimeout: 70 * time.Second}), note)
		if err != nil || took["quick"] != 7*time.Second || took["slow"] != 70*time.Second {
			t.Errorf("%v, %v", took, err)
		}
	})
}

// Who says that the server is his own has it held to half of the lane's time for a call.
func TestLocalServerIsHeldToHalfOfTheLanesTime(t *testing.T) {
	for _, c := range []struct {
		opts []Option
		want time.Duration
	}{
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute)}, 30 * time.Second},
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, 5 * time.Minute},
		{[]Option{WithLocalServer(time.Second), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, time.Second},
	} {
		if got := configure(c.opts).machine.Lane.Target; got != c.want {
			t.Errorf("%v: %v, want %v", c.opts, got, c.want)
		}
	}
}
