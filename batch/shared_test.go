package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Closing a Shared ends a run whose input never does: what flies finishes, what was
// taken is given back as not run, little more is taken, and the error says why.
func TestSharedCloseEndsAnEndlessInput(t *testing.T) {
	for name, lane := range map[string]machine.LaneConfig{
		"flowing": {Law: limiter.Plain},
		"waiting": {Law: limiter.Plain, Limits: limiter.Limits{RPM: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared, err := NewShared(WithLaneDefaults(lane))
				if err != nil {
					t.Fatal(err)
				}
				var taken, atClose int
				items := func(yield func(int) bool) {
					for i := 0; i < 1<<20 && yield(i); i++ {
						taken++
					}
				}
				var closed time.Time
				time.AfterFunc(90*time.Second, func() {
					synctest.Wait()
					atClose, closed = taken, time.Now()
					shared.Close()
				})
				opts := []Option{WithShared(shared), WithConcurrency(3), WithReadAhead(8)}
				results, sum, err := proved(t.Context(), t, items, takes(time.Minute), opts...)
				if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrDrained) {
					t.Errorf("%v", err)
				}
				if took := time.Since(closed); took != 30*time.Second {
					t.Errorf("it ended %v after the end of its Shared, want 30 s, when its calls end", took)
				}
				if taken-atClose > 3+8 || sum.NotRun == 0 || len(results) != sum.Items() {
					t.Errorf("%d items were taken after the end, %+v", taken-atClose, sum)
				}
				for _, r := range results {
					if r.Err != nil && !errors.Is(r.Err, ErrNotRun) {
						t.Errorf("%+v", r)
					}
				}
			})
		})
	}
}

// A run that has run everything when its Shared is closed has no error.
func TestSharedCloseWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		time.AfterFunc(time.Second, shared.Close)
		if _, sum, err := proved(t.Context(), t, numbers(10), takes(time.Minute), WithShared(shared)); err != nil || sum.Succeeded != 10 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// Runs that begin while their Shared is closed are refused or drained, and each says
// that it was closed; none of them hangs.
func TestRunsThatBeginWhileTheSharedCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		errs := make(chan error)
		for i := range 20 {
			if i == 10 {
				go shared.Close()
			}
			go func() {
				_, _, err := proved(t.Context(), t, numbers(1<<15), takes(time.Second), WithShared(shared), WithConcurrency(2), WithReadAhead(2))
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// On a Shared that is closed every question has the same answer.
func TestClosedShared(t *testing.T) {
	shared := newShared(t, WithPlainLaw())
	shared.Close()
	shared.Close()
	_, run := Run(t.Context(), numbers(1), never(t), WithShared(shared))
	_, status := shared.Status(t.Context(), 1)
	_, save := shared.Save(t.Context())
	for _, err := range []error{run, status, save} {
		if !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, numbers(1), never(t), WithShared(shared)); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// A Shared that bounds concurrency has no more calls in flight than that, of all its runs
// together. The runs take turns: each has its share of the places, and all places are used.
func TestSharedConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw(), WithConcurrency(6))
		defer shared.Close()
		flying, most, ended := make(chan int, 1000), make(chan int, 3*60), make(chan time.Duration)
		fn := func(ctx context.Context, i int) (int, error) {
			flying <- i
			defer func() { <-flying }()
			most <- len(flying)
			return i, pause(ctx, time.Second)
		}
		for range 3 {
			go func() {
				_, sum, err := proved(t.Context(), t, numbers(60), fn, WithShared(shared), WithConcurrency(5))
				if err != nil {
					t.Error(err)
				}
				ended <- sum.Elapsed
			}()
		}
		for range 3 {
			if took := <-ended; took < 29*time.Second || took > 30*time.Second {
				t.Errorf("a run with a third of 6 places had 60 calls of a second in %v", took)
			}
		}
		close(most)
		for n := range most {
			if n > 6 {
				t.Fatalf("%d calls were in flight, of 6 that may be", n)
			}
		}
	})
}

// Without a bound of its own a Shared has as many calls in flight as its runs may have.
func TestSharedConcurrencyIsUnboundedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		defer shared.Close()
		_, sum, err := proved(t.Context(), t, numbers(200), takes(time.Second), WithShared(shared), WithConcurrency(100))
		if err != nil || sum.Elapsed != 2*time.Second {
			t.Errorf("%v after %v", err, sum.Elapsed)
		}
	})
}
