package batch

import (
	"context"
	"runtime"
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
				synctest.Wait() // the reader waits for leave; what it wrote is read here
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

// A run of three items is small: what it allocates is for its three items, and not for
// the thousands that may come. Half of the bytes is the mailbox, and room for results.
func TestThreeItemsAreCheap(t *testing.T) {
	const runs, most = 20, 80 << 10
	for name, order := range map[string]Option{"as they come": {}, "in order": WithInputOrder()} {
		once := func() {
			if results, err := Run(t.Context(), numbers(3), double, order, WithPlainLaw()); err != nil || len(results) != 3 {
				t.Fatal(err, results)
			}
		}
		once()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			once()
		}
		runtime.ReadMemStats(&after)
		bytes, allocs := (after.TotalAlloc-before.TotalAlloc)/runs, (after.Mallocs-before.Mallocs)/runs
		t.Logf("%s: %d bytes in %d allocations", name, bytes, allocs)
		if bytes > most || allocs > 160 {
			t.Errorf("%s: %d bytes in %d allocations, want at most %d in 160", name, bytes, allocs, most)
		}
	}
}

// A run starts workers as they are needed: one more than it has items, until there are as
// many as may be; and as many calls fly at once as without that.
func TestWorkersAreHiredAsNeeded(t *testing.T) {
	for _, c := range []struct{ items, concurrency, workers int }{
		{3, 64, 4}, {1000, 5, 5}, {1000, 1, 1}, {5, 5, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			before := runtime.NumGoroutine()
			flying, seen := make(chan int, c.items), make(chan [2]int, 1)
			calls := min(c.items, c.concurrency)
			lasts := time.Duration(c.items/calls) * time.Minute
			time.AfterFunc(lasts-time.Second, func() { seen <- [2]int{len(flying), runtime.NumGoroutine() - before} })
			fn := func(ctx context.Context, i int) (int, error) {
				flying <- i
				defer func() { <-flying }()
				return i, pause(ctx, time.Minute)
			}
			_, sum, err := proved(t.Context(), t, numbers(c.items), fn, WithConcurrency(c.concurrency))
			if err != nil || sum.Elapsed != lasts {
				t.Errorf("%v %+v", err, sum)
			}
			// Besides the workers: owner, reader, feed, steward, closer, and the timer's own.
			at := <-seen
			if at[0] != calls || at[1] > c.workers+6 {
				t.Errorf("%d items: %d calls in flight at once, %d goroutines", c.items, at[0], at[1])
			}
		})
	}
}

// An input that pauses, again and again, until all it gave was read costs none of the
// room: the credits that come back meanwhile find their channel full, and are owed. When
// it flows again, as much is read ahead as at first.
func TestPausesOfTheInputCostNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers, stretch, paused, all = 8, 2, 5, 100, 200
		taken, seen, least := 0, 0, all
		read := make(chan struct{}, paused)
		items := func(yield func(int) bool) {
			for i := range all {
				if i > 0 && i <= paused && i%stretch == 0 {
					<-read
				}
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
			if seen++; seen <= paused && seen%stretch == 0 {
				read <- struct{}{}
			}
			synctest.Wait() // everything else goes as far as it can
			if seen > paused && taken < all {
				least = min(least, taken-seen)
			}
		}
		if seen != all || !sum.Proves() {
			t.Errorf("%d results; %+v", seen, sum)
		}
		if withheld := ahead / 4; least < ahead+workers-withheld || least == all {
			t.Errorf("only %d items were taken ahead of the loop, want %d, less %d at most", least, ahead+workers, withheld)
		}
	})
}
