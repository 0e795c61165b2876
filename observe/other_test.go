package observe

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
)

// A lane that is itself called other is part of OtherLanes: no two lanes of a snapshot, or of its times, have one name.
func TestLaneNamedOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{})
		_, err := batch.Run(context.Background(), numbers(100), func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Millisecond)
			return i, nil
		}, append(rec.Options(), batch.WithConcurrency(1), batch.WithPoolOf(func(i int) string {
			if i == 0 {
				return OtherLanes
			}
			return fmt.Sprint("l", i)
		}))...)
		if err != nil {
			t.Fatal(err)
		}
		seen, times := map[string]int{}, map[string]int{}
		p, all := rec.SnapshotAndTimes(time.Now())
		for _, l := range p.Lanes {
			seen[l.Name]++
		}
		for _, l := range all {
			times[l.Lane]++
		}
		if seen[OtherLanes] != 1 || times[OtherLanes] != 1 {
			t.Errorf("%d lanes and %d times are called other", seen[OtherLanes], times[OtherLanes])
		}
	})
}
