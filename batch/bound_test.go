package batch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// In input order a slow head holds back what is ahead of it, and the reader of the
// input with it: no more is taken than fits.
func TestInputOrderWithASlowHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 8, 2
		begun, taken, atHead := time.Now(), 0, 0
		items := func(yield func(int) bool) {
			for i := range 100 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				pause(ctx, time.Minute)
				atHead = taken
			}
			return i, nil
		}
		var sum Summary
		next := 0
		for r, err := range Stream(t.Context(), items, fn, WithPlainLaw(), WithInputOrder(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil || r.Index != next || time.Since(begun) != time.Minute {
				t.Fatalf("%v, result %d at place %d after %v", err, r.Index, next, time.Since(begun))
			}
			next++
		}
		if next != 100 || atHead != ahead+workers || !sum.Proves() {
			t.Errorf("%d results; %d items taken while the head was slow, want %d", next, atHead, ahead+workers)
		}
	})
}

// A slow consumer slows the reader of the input: beyond what the loop has seen, no
// more than read-ahead and concurrency together are ever taken; nor much less.
func TestSlowConsumerBoundsTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 10, 4
		taken, seen, most := 0, 0, 0
		items := func(yield func(int) bool) {
			for i := range 200 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		var sum Summary
		for _, err := range Stream(t.Context(), items, double, WithPlainLaw(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
			synctest.Wait() // everything else goes as far as it can
			most = max(most, taken-seen)
		}
		if most != ahead+workers || seen != 200 || !sum.Proves() {
			t.Errorf("%d items were taken ahead of the loop, want %d; %d seen", most, ahead+workers, seen)
		}
	})
}
