package batch

import (
	"testing"
	"testing/synctest"
	"time"
)

// An item that would wait too long for a well lane goes to the next tier, and without the
// option it waits.
func TestSpillTakesTheNextTierInsteadOfWaiting(t *testing.T) {
	for name, row := range map[string]struct {
		also  []Option
		lanes string
		took  time.Duration
	}{
		"spills":                    {[]Option{WithSpill("p", 5*time.Second)}, "cheap dear", time.Second},
		"waits":                     {nil, "cheap cheap", 30*time.Second + time.Second},
		"waits less than the spill": {[]Option{WithSpill("p", time.Minute)}, "cheap cheap", 30*time.Second + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := append(row.also, WithPoolOf(func(int) string { return "p" }), WithPrefer("p", time.Minute, []string{"cheap"}, []string{"dear"}),
					WithLaneDefaults(LaneConfig{Law: Plain}), WithLane("cheap", LaneConfig{Law: Plain, Limits: Limits{RPM: 2}}))
				results, sum, err := proved(t.Context(), t, numbers(2), takes(time.Second), opts...)
				if err != nil || sum.Ran != row.took {
					t.Errorf("%v after %v, want %v", err, sum.Ran, row.took)
				}
				if lanes := results[0].Lane + " " + results[1].Lane; lanes != row.lanes {
					t.Errorf("the items went to %s, want %s", lanes, row.lanes)
				}
			})
		})
	}
}
