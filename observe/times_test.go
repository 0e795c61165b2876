package observe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
)

// A time is in the first bucket whose end it does not exceed.
func TestHistogramHasEachTimeInItsBucket(t *testing.T) {
	for _, row := range []struct {
		d      time.Duration
		bucket int
	}{
		{-time.Second, 0},
		{0, 0},
		{10 * time.Millisecond, 0},
		{10*time.Millisecond + 1, 1},
		{20 * time.Millisecond, 1},
		{20*time.Millisecond + 1, 2},
		{655360 * time.Millisecond, 16},
		{655360*time.Millisecond + 1, 17},
		{time.Hour, 17},
	} {
		var h Histogram
		h.note(row.d)
		if h.Counts[row.bucket] != 1 || h.Count() != 1 || h.Sum != max(0, row.d) {
			t.Errorf("%v: %v with a sum of %v, want bucket %d", row.d, h.Counts, h.Sum, row.bucket)
		}
		if k := row.bucket; k < len(TimeEnds) && row.d > TimeEnds[k] || k > 0 && row.d <= TimeEnds[k-1] {
			t.Errorf("%v is outside bucket %d", row.d, k)
		}
	}
}

// The times of a run hold each call once, and each item once by its waits.
func TestTimesHoldEachCallAndEachItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{})
		tries := map[int]int{}
		results, err := batch.Run(context.Background(), numbers(6), func(_ context.Context, i int) (int, error) {
			time.Sleep(30 * time.Millisecond)
			if tries[i]++; i == 3 && tries[i] == 1 {
				return 0, batch.RetryAfter(300*time.Millisecond, errors.New("slow down"))
			}
			return i, nil
		}, append(rec.Options(), batch.WithConcurrency(1), batch.WithPoolOf(func(int) string { return "a" }))...)
		if err != nil || len(results) != 6 {
			t.Fatal(err)
		}
		p, all := rec.SnapshotAndTimes(time.Now())
		if len(all) != 1 || all[0].Lane != "a" {
			t.Fatalf("lanes: %v", all)
		}
		of := &all[0]
		if n := of.Answers.Counts[2]; n != 6 || of.Answers.Count() != 6 || of.Answers.Sum != 180*time.Millisecond {
			t.Errorf("answers: %v", of.Answers)
		}
		if of.Others.Count() != 1 || of.Others.Sum != 30*time.Millisecond {
			t.Errorf("others: %v", of.Others)
		}
		if of.Queued.Count() != 6 {
			t.Errorf("queued: %v", of.Queued)
		}
		if of.Between.Count() != 1 || of.Between.Sum < 300*time.Millisecond {
			t.Errorf("between: %v", of.Between)
		}
		if l := p.Lanes[0]; l.Calls != 7 || p.LastEnd.IsZero() || l.Throttled != 1 {
			t.Errorf("%d calls, %d throttled, last end %v", l.Calls, l.Throttled, p.LastEnd)
		}
	})
}
