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

// A lane's own bounds on its items hold there, be they tighter than the run's or wider: how often one may fail, and how
// long it may take in all.
func TestBoundsOfTheLanesItems(t *testing.T) {
	for lane, c := range map[string]struct {
		kind  error
		tries int
		took  time.Duration
	}{
		"twice":   {provider.Timeout, 2, 0},
		"brief":   {ErrItemTimeout, 0, 15 * time.Second},
		"patient": {ErrItemTimeout, 0, 90 * time.Second},
		"other":   {ErrItemTimeout, 0, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			results, _, err := proved(t.Context(), t, numbers(1), takes(time.Hour), WithAttemptTimeout(10*time.Second), WithItemTimeout(time.Minute), WithMaxAttempts(1000),
				WithLane("twice", LaneConfig{MaxAttempts: 2, ItemTimeout: time.Hour}), WithLane("brief", LaneConfig{ItemTimeout: 15 * time.Second}),
				WithLane("patient", LaneConfig{ItemTimeout: 90 * time.Second}), WithCalls(func(Call) { calls++ }),
				WithBackoff(time.Millisecond, time.Millisecond),
				WithPoolOf(func(int) string { return lane }))
			took := time.Since(began)
			if err != nil || len(results) != 1 || !errors.Is(results[0].Err, c.kind) || c.tries > 0 && calls != c.tries || c.took > 0 && took != c.took {
				t.Errorf("%s: %d calls in %v: %v, %v", lane, calls, took, results, err)
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

// A server of one's own is held to a minute, or to half of the lane's time for a call if that
// is less: a longer timeout does not let it be slower.
func TestLocalServersTarget(t *testing.T) {
	for _, c := range []struct {
		opts []Option
		want time.Duration
	}{
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute)}, 30 * time.Second},
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, time.Minute},
		{[]Option{WithLocalServer(0), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Second})}, 5 * time.Second},
		{[]Option{WithLocalServer(0)}, time.Minute},
		{[]Option{WithLocalServer(time.Second), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, time.Second},
	} {
		if got := configure(c.opts).machine.Lane.Target; got != c.want {
			t.Errorf("%v: %v, want %v", c.opts, got, c.want)
		}
	}
}
