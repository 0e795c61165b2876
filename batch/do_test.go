package batch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// once calls Do with a summary, and checks the two sums.
func once(ctx context.Context, t *testing.T, s *Shared, in int, fn Func[int, int], opts ...Option) (int, Summary, error) {
	t.Helper()
	var sum Summary
	out, err := Do(ctx, s, in, fn, append(opts, WithSummary(&sum))...)
	if !errors.Is(err, ErrConfig) && (!sum.Proves() || sum.Items() > 1) {
		t.Errorf("the sums do not prove it: %+v", sum)
	}
	return out, sum, err
}

// twice answers after a second with twice the item.
func twice(_ context.Context, i int) (int, error) {
	time.Sleep(time.Second)
	return 2 * i, nil
}

func TestDoReturnsTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t)
		defer shared.Close()
		var ends []End
		out, sum, err := once(t.Context(), t, shared, 21, twice, WithEnds(func(e End) {
			if ends = append(ends, e); *e.In.(*int) != 21 {
				t.Errorf("the end of item %d", *e.In.(*int))
			}
		}))
		if out != 42 || err != nil || sum.Succeeded != 1 || sum.Ran != time.Second {
			t.Errorf("%d, %v, %+v", out, err, sum)
		}
		if len(ends) != 1 || ends[0].Calls != 1 || ends[0].Latency != time.Second {
			t.Errorf("ends: %+v", ends)
		}
	})
}

// A refusal of one item holds back all, and none of them fails.
func TestDoWaitsWhereOthersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		defer shared.Close()
		began, refused := time.Now(), false
		_, sum, err := once(t.Context(), t, shared, 1, func(_ context.Context, i int) (int, error) {
			if !refused {
				refused = true
				return 0, RetryAfter(30*time.Second, errors.New("slow down"))
			}
			return i, nil
		})
		if took := time.Since(began); err != nil || took < 30*time.Second || took > 40*time.Second || sum.Counters.Calls != 2 || sum.Counters.Throttled != 1 {
			t.Errorf("after %v: %v %+v", took, err, sum)
		}
	})
}

// Items that wait are called in the order in which they came, and take turns with a run.
func TestDoIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw(), WithConcurrency(1))
		defer shared.Close()
		var served []int
		note := func(_ context.Context, i int) (int, error) {
			served = append(served, i)
			return twice(t.Context(), i)
		}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() { _, _, _ = once(t.Context(), t, shared, i, note) })
			synctest.Wait()
		}
		all.Go(func() {
			if _, _, err := proved(t.Context(), t, numbers(3), func(_ context.Context, i int) (int, error) { return note(t.Context(), 100+i) }, WithShared(shared)); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		ofRun := func(i int) bool { return i >= 100 }
		if single := slices.DeleteFunc(slices.Clone(served), ofRun); !slices.IsSorted(single) || len(single) != 40 {
			t.Errorf("served %v", served)
		}
		if first := slices.IndexFunc(served, ofRun); len(served) != 43 || first > 41 {
			t.Errorf("the run came at place %d of %v", first, served)
		}
	})
}

// An item that is cancelled while it waits is never called, and leaves nothing behind.
func TestDoCancelledWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithConcurrency(1))
		defer shared.Close()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := Do(t.Context(), shared, 1, takes(time.Minute)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		why := errors.New("the client has gone")
		for i := range 1000 {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Duration(i)*time.Millisecond, func() { cancel(why) })
			all.Go(func() {
				began := time.Now()
				_, sum, err := once(ctx, t, shared, i, func(context.Context, int) (int, error) {
					t.Error("it was called")
					return 0, nil
				})
				if !errors.Is(err, why) || !errors.Is(err, ErrNotRun) || sum.NotRun > 1 || sum.Counters.Calls != 0 {
					t.Errorf("%v %+v", err, sum)
				}
				if took := time.Since(began); took != time.Duration(i)*time.Millisecond {
					t.Errorf("it left after %v, and its client after %d ms", took, i)
				}
			})
		}
		time.Sleep(2 * time.Second)
		s, err := shared.Status(t.Context(), 1)
		if err != nil || s.Held != 0 || s.Totals.Calls != 1 {
			t.Errorf("%v: %d are held, %+v", err, s.Held, s.Totals)
		}
		all.Wait()
		if s, err = shared.Status(t.Context(), 1); err != nil || !s.Totals.Proves() {
			t.Errorf("%v %+v", err, s.Totals)
		}
	})
}

// A call in flight ends with its caller's context.
func TestDoCancelledInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t)
		defer shared.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, sum, err := once(ctx, t, shared, 1, func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotRun) || sum.Counters.Calls != 1 || sum.NotRun != 1 {
			t.Errorf("%v %+v", err, sum)
		}
		if _, err := Do(ctx, shared, 1, twice); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNotRun) {
			t.Errorf("of a context that is over: %v", err)
		}
	})
}

// Close lets the call in flight finish, and releases what waits.
func TestDoOnASharedThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithConcurrency(1))
		var all sync.WaitGroup
		all.Go(func() {
			if out, _, err := once(t.Context(), t, shared, 1, takes(time.Minute)); err != nil {
				t.Errorf("%d, %v", out, err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, sum, err := once(t.Context(), t, shared, 2, twice); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrNotRun) || sum.NotRun != 1 {
				t.Errorf("%v %+v", err, sum)
			}
		})
		synctest.Wait()
		began := time.Now()
		shared.Close()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Close took %v", took)
		}
		all.Wait()
		if _, err := Do(t.Context(), shared, 3, twice); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrNotRun) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// The error of an item is that of a result, and the item counts for its lane.
func TestDoReturnsTheErrorOfItsItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t)
		defer shared.Close()
		bad := &provider.Error{Kind: provider.Invalid, Status: 400, Message: "no"}
		if _, sum, err := once(t.Context(), t, shared, 1, func(context.Context, int) (int, error) { return 0, bad }); !errors.Is(err, Invalid) || errors.Is(err, ErrNotRun) || sum.Failed != 1 {
			t.Errorf("%v %+v", err, sum)
		}
		var panicked *PanicError
		if _, _, err := once(t.Context(), t, shared, 1, func(context.Context, int) (int, error) { panic("oh") }); !errors.As(err, &panicked) {
			t.Errorf("%v", err)
		}
		if _, sum, err := once(t.Context(), t, shared, 1, twice, WithPoolOf(func(int) string { panic("oh") })); !errors.As(err, &panicked) || sum.Failed != 1 || sum.Counters.Calls != 0 {
			t.Errorf("%v %+v", err, sum)
		}
		if _, _, err := once(t.Context(), t, shared, 1, twice, WithEnds(func(End) { panic("oh") })); !errors.Is(err, ErrObserver) {
			t.Errorf("%v", err)
		}
		if _, sum, err := once(t.Context(), t, shared, 1, takes(time.Hour), WithItemTimeout(time.Minute), WithAttemptTimeout(0)); !errors.Is(err, ErrItemTimeout) || sum.Ran != time.Minute {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// A function that ends its goroutine takes nothing with it: the others go on, and Close returns.
func TestDoWhoseFunctionEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithConcurrency(1))
		leaves := func(int) string { runtime.Goexit(); return "" }
		var all sync.WaitGroup
		all.Go(func() {
			_, _ = Do(t.Context(), shared, 1, func(context.Context, int) (int, error) {
				runtime.Goexit()
				return 0, nil
			})
			t.Error("it went on after its function")
		})
		all.Go(func() {
			_, _ = Do(t.Context(), shared, 1, twice, WithPoolOf(leaves))
			t.Error("it went on after its pool")
		})
		all.Go(func() { // its item has been handed over
			_, _ = Do(t.Context(), shared, 1, func(context.Context, int) (int, error) {
				return 0, RetryAfter(time.Second, errors.New("slow down"))
			}, WithCalls(func(Call) { runtime.Goexit() }))
			t.Error("it went on after its hook")
		})
		all.Go(func() {
			_, _ = Do(t.Context(), shared, 1, twice, WithGate(func(context.Context) { runtime.Goexit() }))
			t.Error("it went on after its gate")
		})
		all.Go(func() {
			_, _ = Do(t.Context(), shared, 1, twice, WithEnds(func(End) { runtime.Goexit() }))
			t.Error("it went on after its end")
		})
		all.Wait()
		if out, _, err := once(t.Context(), t, shared, 2, twice); out != 4 || err != nil {
			t.Errorf("%d, %v", out, err)
		}
		shared.Close()
	})
}

// What means nothing to one item is refused, and all at once.
func TestDoChecksItsOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t)
		defer shared.Close()
		for _, o := range []Option{
			WithConcurrency(2), WithReadAhead(3), WithInputOrder(), WithTotal(4), WithMaxFailures(1), WithMaxFailureShare(0.5), WithDrain(make(chan struct{})),
			WithControl(NewControl()), WithObserver(func(Event) {}), WithProgressEvery(time.Second), WithMaxAttempts(-1), WithLimits(Limits{RPM: 1}), WithPlainLaw(),
		} {
			if _, _, err := once(t.Context(), t, shared, 1, twice, o); !errors.Is(err, ErrConfig) {
				t.Errorf("%v: %v", o, err)
			}
		}
		for name, s := range map[string]*Shared{"nil": nil, "zero": {}} {
			if _, err := Do(t.Context(), s, 1, twice); !errors.Is(err, ErrConfig) {
				t.Errorf("a %s Shared: %v", name, err)
			}
		}
		if _, err := Do[int, int](t.Context(), shared, 1, nil); !errors.Is(err, ErrConfig) {
			t.Errorf("no function: %v", err)
		}
	})
}

// Six hundred calls at once, of a server that lets sixty a minute in and says so: none fails,
// at most one in a hundred is refused, and all are done in hardly more than the ten minutes
// that it takes.
func TestDoOfManyAtOnceKeepsToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t)
		defer shared.Close()
		server := &minuteServer{limit: 60, left: 60, at: time.Now()}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 600 {
			all.Go(func() {
				if out, _, err := once(t.Context(), t, shared, i, server.call); err != nil || out != i {
					t.Errorf("item %d: %d, %v", i, out, err)
				}
			})
		}
		all.Wait()
		ideal := 540 * time.Second // the first sixty go at once
		if took := time.Since(began); took > ideal+ideal/20 || server.refused > 6 {
			t.Errorf("it took %v, ideal are %v; %d calls were refused", took, ideal, server.refused)
		}
	})
}

// A minuteServer lets a number of calls in each minute, one by one, and its headers say how
// many are left.
type minuteServer struct {
	mu      sync.Mutex
	limit   float64
	left    float64
	at      time.Time
	refused int
}

func (s *minuteServer) call(ctx context.Context, i int) (int, error) {
	s.mu.Lock()
	now := time.Now()
	s.left, s.at = min(s.limit, s.left+now.Sub(s.at).Minutes()*s.limit), now
	let := s.left >= 1
	if let {
		s.left--
	} else {
		s.refused++
	}
	left := s.left
	s.mu.Unlock()
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", fmt.Sprint(s.limit))
	h.Set("x-ratelimit-remaining-requests", fmt.Sprint(int(left)))
	h.Set("x-ratelimit-reset-requests", time.Duration((s.limit-left)/s.limit*float64(time.Minute)).String())
	status := http.StatusOK
	if !let {
		status = http.StatusTooManyRequests
	}
	provider.RecorderFrom(ctx).Response(status, h)
	time.Sleep(500 * time.Millisecond)
	if !let {
		return 0, &provider.Error{Kind: provider.Throttled, Status: 429}
	}
	return i, nil
}

// BenchmarkDo has calls that answer at once, so that only the cost of Do is left: alone, and
// with a thousand that wait.
func BenchmarkDo(b *testing.B) {
	for _, waiting := range []int{0, 1000, 10000} {
		b.Run(fmt.Sprint(waiting, " waiting"), func(b *testing.B) {
			shared := must.Get(NewShared())(b)
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			for range waiting {
				all.Go(func() {
					_, _ = Do(ctx, shared, 1, func(context.Context, int) (int, error) { return 0, nil }, WithPoolOf(func(int) string { return "held" }))
				})
			}
			b.ReportAllocs()
			for b.Loop() {
				must.Get(Do(ctx, shared, 1, func(context.Context, int) (int, error) { return 0, nil }))(b)
			}
			cancel()
			all.Wait()
			shared.Close()
		})
	}
}
