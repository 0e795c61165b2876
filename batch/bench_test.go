package batch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// An item's whole way with a call that does nothing: nanoseconds and allocations
// are per item.
func BenchmarkRun(b *testing.B) {
	for _, workers := range []int{1, 16, 256, 4096} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for _, err := range Stream(b.Context(), numbers(b.N), double, WithPlainLaw(), WithConcurrency(workers)) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != b.N {
				b.Fatalf("%d of %d", n, b.N)
			}
		})
	}
}

const (
	callTime    = 10 * time.Millisecond
	callWorkers = 64
)

// plainly makes the calls with as many goroutines and nothing else.
func plainly(ctx context.Context, n int, call Func[int, int]) time.Duration {
	begun := time.Now()
	var g errgroup.Group
	next := make(chan int)
	for range callWorkers {
		g.Go(func() error {
			for i := range next {
				if _, err := call(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	g.Wait()
	return time.Since(begun)
}

// throughHeadrace makes them by a run.
func throughHeadrace(ctx context.Context, n int, call Func[int, int]) time.Duration {
	begun := time.Now()
	for range Stream(ctx, numbers(n), call, WithPlainLaw(), WithConcurrency(callWorkers)) {
	}
	return time.Since(begun)
}

// What the coordinator costs where calls take 10 ms: the ratio of a run to the
// same calls from bare goroutines, measured in turns.
func BenchmarkOverhead(b *testing.B) {
	call := takes(callTime)
	const n = 20 * callWorkers
	var bare, run time.Duration
	for b.Loop() {
		bare += plainly(b.Context(), n, call)
		run += throughHeadrace(b.Context(), n, call)
	}
	b.ReportMetric(float64(run)/float64(bare), "ratio")
}

// A run of calls that take 10 ms lasts hardly longer than the same calls from bare
// goroutines. The bound is generous and the best of several turns counts: a busy
// machine may slow either.
func TestOverheadIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as its calls do")
	}
	call := takes(callTime)
	const n = 10 * callWorkers
	best := 1e9
	for range 5 {
		best = min(best, float64(throughHeadrace(t.Context(), n, call))/float64(plainly(t.Context(), n, call)))
		if best < 1.25 {
			return
		}
	}
	t.Errorf("a run takes %.2f times as long as its calls", best)
}

// BenchmarkThreeItems runs three items from start to end: the cost of a small run in
// addition to its calls.
func BenchmarkThreeItems(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if results, err := Run(b.Context(), numbers(3), double, WithPlainLaw()); err != nil || len(results) != 3 {
			b.Fatal(err, results)
		}
	}
}
