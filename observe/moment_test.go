package observe

import (
	"context"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
)

// The calls of a lane are as many as its times, whenever it is asked.
func TestSnapshotAndTimesAreOfOneMoment(t *testing.T) {
	rec := New(Config{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = batch.Run(context.Background(), numbers(20000), func(_ context.Context, i int) (int, error) { return i, nil },
			append(rec.Options(), batch.WithConcurrency(4), batch.WithPoolOf(func(int) string { return "a" }), batch.WithProgressEvery(time.Microsecond))...)
	}()
	asked, wrong := 0, 0
	for done := false; !done; asked++ {
		select {
		case <-over:
			done = true
		default:
		}
		p, all := rec.SnapshotAndTimes(time.Now())
		calls, times := 0, 0
		for i := range p.Lanes {
			calls += p.Lanes[i].Calls
		}
		for i := range all {
			times += all[i].Answers.Count() + all[i].Others.Count()
		}
		if calls != times {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d times the calls were not as many as the times", wrong, asked)
	}
}
