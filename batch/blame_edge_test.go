package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// A oneByOne is a caller that offers an item only after it has the result of the one before.
type oneByOne struct {
	results chan struct{}
}

func (c oneByOne) items(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if i > 0 {
				<-c.results
			}
			if !yield(i) {
				return
			}
		}
	}
}

// run returns the results of n items and the time that each took.
func (c oneByOne) run(t *testing.T, n int, fn Func[int, int], opts ...Option) (results []Result[int, int], took []time.Duration, err error) {
	t.Helper()
	c.results = make(chan struct{}, n)
	began := time.Now()
	for r, e := range Stream(t.Context(), c.items(n), fn, opts...) {
		if e != nil {
			return results, took, e
		}
		results, took = append(results, r), append(took, time.Since(began))
		began = time.Now()
		c.results <- struct{}{}
	}
	return results, took, nil
}

// A sequential caller does not wait for undecided items. No other item is left to speak for
// them, so they fail.
func TestSequentialCaller(t *testing.T) {
	const items = 12
	poison := func(i int) bool { return i%3 == 1 }
	for name, c := range map[string]struct {
		err  error
		opts []Option
		most time.Duration // that a poison item takes
	}{
		"breaks":            {errBroken, nil, 40 * time.Second},
		"refused key":       {errKey, nil, time.Second},
		"forbidden":         {errForbidden, nil, time.Second},
		"no such model":     {errModel, nil, time.Second},
		"mistake":           {errParameter, []Option{WithAlikeFailures(20)}, time.Second},
		"total known":       {errKey, []Option{WithTotal(items)}, time.Second},
		"one is read ahead": {errKey, []Option{WithReadAhead(1), WithConcurrency(1)}, time.Second},
	} {
		for law, opts := range laws {
			t.Run(name+", "+law, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fn := func(ctx context.Context, i int) (int, error) {
						if poison(i) { // no call fails before the owner hears of the answer to the one before
							return 0, cmp.Or(pause(ctx, time.Millisecond), c.err)
						}
						return i, pause(ctx, 100*time.Millisecond)
					}
					results, took, err := oneByOne{}.run(t, items, fn, append(append([]Option{WithConcurrency(4)}, c.opts...), opts...)...)
					if err != nil || len(results) != items {
						t.Fatalf("%d results, %v", len(results), err)
					}
					for i, r := range results {
						if poison(i) != (r.Err != nil) || errors.Is(r.Err, ErrNotRun) || took[i] > c.most+2*time.Second {
							t.Errorf("item %d after %v: %v", i, took[i], r.Err)
						}
					}
				})
			})
		}
	}
}

// A revoked key stops a sequential caller at the fifth item. The four before have failed, as
// no other item was left to speak for them. The caller may offer one more item before it sees
// that its run has stopped: that item is not called.
func TestSequentialCallerWithARevokedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last atomic.Int64
		ends := func(i int) error {
			last.Store(int64(i))
			if i < 3 {
				return nil
			}
			return errKey
		}
		results, _, err := oneByOne{}.run(t, 100, byItem(ends), WithPlainLaw())
		if !errors.Is(err, ErrStopped) || !errors.Is(err, Unauthorized) || last.Load() != 7 || len(results) < 8 || len(results) > 9 {
			t.Fatalf("%d results, last called %d, %v", len(results), last.Load(), err)
		}
		for i, r := range results {
			if failed := r.Err != nil && !errors.Is(r.Err, ErrNotRun); failed != (i >= 3 && i < 7) {
				t.Errorf("item %d: %v", i, r.Err)
			}
		}
	})
}

// undecided are failures that leave items undecided while a call under way may speak for
// them.
var undecided = map[string]error{"refused": errForbidden, "broken": errBroken}

// untilUndecided brings a run to three undecided items, calls act, and returns the end.
func untilUndecided(t *testing.T, err error, act func(stop func(), ctl *Control, drain chan struct{}), opts ...Option) ([]Result[int, int], Summary, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctl, drain := NewControl(), make(chan struct{})
	fn := func(ctx context.Context, i int) (int, error) {
		if i == 3 {
			return i, pause(ctx, 20*time.Minute)
		}
		return 0, cmp.Or(pause(ctx, time.Second), err) // all are offered by then
	}
	time.AfterFunc(10*time.Minute, func() {
		s, e := ctl.Status(ctx, 1)
		if e != nil || s.Held != 3 || s.Lanes[0].Delayed != 3 || s.Lanes[0].InFlight != 1 {
			t.Errorf("%v: %d are held, %+v", e, s.Held, s.Lanes)
		}
		act(cancel, ctl, drain)
	})
	return judged(ctx, t, numbers(4), fn, append([]Option{WithControl(ctl), WithDrain(drain), WithAnsweredBefore(), WithAttemptTimeout(0), WithPlainLaw()}, opts...)...)
}

// Items that are undecided as the run is cancelled or drained are not run, like others that
// wait. Their errors contain that of their latest call.
func TestRunEndsWhileItemsAreUndecided(t *testing.T) {
	for name, end := range map[string]func(stop func(), ctl *Control, drain chan struct{}){
		"cancelled": func(stop func(), _ *Control, _ chan struct{}) { stop() },
		"drained":   func(_ func(), _ *Control, drain chan struct{}) { close(drain) },
		"by hand":   func(_ func(), ctl *Control, _ chan struct{}) { ctl.Drain() },
	} {
		for how, cause := range undecided {
			t.Run(name+", "+how, func(t *testing.T) {
				runEndsWhileUndecided(t, name, cause, end)
			})
		}
	}
}

// runEndsWhileUndecided ends many runs at that moment: the end of the call under way and that of
// the run come in either order.
func runEndsWhileUndecided(t *testing.T, name string, cause error, end func(func(), *Control, chan struct{})) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			results, sum, err := untilUndecided(t, cause, end)
			want := ErrDrained
			answered := 1
			if name == "cancelled" {
				want, answered = context.Canceled, 0
			}
			if !errors.Is(err, want) || errors.Is(err, ErrStopped) || sum.Failed > 0 || sum.Succeeded != answered {
				t.Errorf("%v, %+v", err, sum)
			}
			for _, r := range results[:3] {
				if !errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, cause) || len(r.Failures) != 1 {
					t.Errorf("item %d: %v, %+v", r.Index, r.Err, r.Failures)
				}
			}
		})
	}
}

// An undecided item fails when its own time is up.
func TestItemTimeoutWhileUndecided(t *testing.T) {
	for how, cause := range undecided {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nothing := func(func(), *Control, chan struct{}) {}
				results, sum, err := untilUndecided(t, cause, nothing, WithItemTimeout(15*time.Minute))
				if err != nil || sum.Failed != 4 {
					t.Errorf("%v, %+v", err, sum)
				}
				for _, r := range results[:3] {
					if !errors.Is(r.Err, ErrItemTimeout) || !errors.Is(r.Err, cause) {
						t.Errorf("item %d: %v", r.Index, r.Err)
					}
				}
			})
		})
	}
}

// ResetLane calls the undecided items of the lane again.
func TestResetCallsUndecidedItemsAgain(t *testing.T) {
	for how, cause := range undecided {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := untilUndecided(t, cause, func(_ func(), ctl *Control, _ chan struct{}) {
					if e := ctl.ResetLane(t.Context(), ""); e != nil {
						t.Error(e)
					}
				})
				if err != nil || sum.Succeeded != 1 || sum.Failed != 3 {
					t.Errorf("%v, %+v", err, sum)
				}
				for _, r := range results[:3] {
					if least := map[error]int{errForbidden: 2, errBroken: 6}[cause]; r.Calls < least || errors.Is(r.Err, ErrNotRun) {
						t.Errorf("item %d: %d calls, want %d and more; %v", r.Index, r.Calls, least, r.Err)
					}
				}
			})
		})
	}
}

// An item that always meets the timeout fails where others are answered. Its failures name the
// timeout, which is ten minutes by default.
func TestItemThatAlwaysMeetsTheTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		each time.Duration
	}{
		"default":     {nil, 10 * time.Minute},
		"two minutes": {[]Option{WithAttemptTimeout(2 * time.Minute)}, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				fn := func(ctx context.Context, i int) (int, error) {
					if i == 7 {
						return hang(ctx, i)
					}
					return i, pause(ctx, time.Second)
				}
				results, sum, err := judged(t.Context(), t, numbers(20_000), fn, append(c.opts, WithConcurrency(4), WithPlainLaw())...)
				want := Failure{Kind: Timeout, Message: fmt.Sprint("no answer within ", c.each), Calls: 5}
				if r := results[7]; err != nil || sum.Failed != 1 || !errors.Is(r.Err, Timeout) || r.Attempts != 5 || len(r.Failures) != 1 || r.Failures[0] != want {
					t.Errorf("%v, %v: %d attempts, %+v", err, r.Err, r.Attempts, r.Failures)
				}
				if took := time.Since(began); took > 3*time.Hour {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// An overdue call speaks for no other item. An undecided item fails within two minutes, though
// that call is under way for an hour.
func TestOverdueCallSpeaksForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, took := time.Now(), time.Duration(0)
		fn := func(ctx context.Context, i int) (int, error) {
			switch i {
			case 199:
				_ = pause(ctx, 100*time.Millisecond)
				return 0, errForbidden
			case 198:
				return i, pause(ctx, time.Hour)
			}
			return i, pause(ctx, time.Second)
		}
		for r, err := range Stream(t.Context(), numbers(200), fn, WithConcurrency(8), WithAttemptTimeout(0), WithPlainLaw()) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Index == 199 {
				took = time.Since(began)
			}
		}
		if took < 30*time.Second || took > 2*time.Minute {
			t.Errorf("the item had its result after %v", took)
		}
	})
}

// Runs on one Shared speak for each other's items. No item waits for a paused run.
func TestRunsOfASharedSpeakForEachOther(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := newShared(t, WithPlainLaw())
				defer shared.Close()
				ctl, over := NewControl(), make(chan struct{})
				go func() {
					defer close(over)
					if _, err := Run(t.Context(), numbers(600), takes(time.Second), WithShared(shared), WithConcurrency(2), WithControl(ctl)); err != nil {
						t.Error(err)
					}
				}()
				time.Sleep(10 * time.Second)
				if paused {
					must.Do(t, ctl.Pause(t.Context()))
				}
				began := time.Now()
				results, sum, err := judged(t.Context(), t, numbers(3), fail(errBroken), WithShared(shared))
				took := time.Since(began)
				// Five attempts in doubt take 35 s. Answers in between leave the backoff alone.
				if err != nil || sum.Failed != 3 || took > time.Minute || !paused && took > 30*time.Second {
					t.Errorf("%v, %+v after %v", err, results, took)
				}
				_ = ctl.Resume(t.Context())
				<-over
			})
		})
	}
}

// A configured breaker counts different items, and not the calls of one.
func TestConfiguredBreakerCountsItems(t *testing.T) {
	for name, c := range map[string]struct {
		breaker BreakerConfig
		broken  int // items, the last of ten
		opens   bool
	}{
		"two of three in a row":  {BreakerConfig{Consecutive: 3}, 2, false},
		"three of three in row":  {BreakerConfig{Consecutive: 3}, 3, true},
		"default":                {BreakerConfig{}, 9, false},
		"default, ten":           {BreakerConfig{}, 10, true},
		"never":                  {BreakerConfig{Consecutive: -1}, 10, false},
		"one item, by the share": {BreakerConfig{Consecutive: -1, FailureRate: 0.4, MinSamples: 4}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := blameWorld{items: 20, last: c.broken, atOnce: 1, answer: time.Second, seed: 1}
			w.options = []Option{WithLaneDefaults(LaneConfig{Breaker: c.breaker}), WithOutagePatience(time.Hour), WithBackoff(time.Millisecond, time.Millisecond)}
			seen := w.run(t)
			if opened := seen.openings > 0; opened != c.opens || opened != errors.Is(seen.err, ErrOutage) || !opened && seen.named != c.broken {
				t.Errorf("%d openings, %v, %d of %d named", seen.openings, seen.err, seen.named, seen.poison)
			}
		})
	}
}

// A witness may join the doubts of an item while its call is under way. The item keeps the
// attempts that this gives back: its fifth call here is its second attempt.
func TestDoubtsShrinkWhileACallIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := func(yield func(int) bool) {
			for i := range 100 {
				if i == 1 {
					time.Sleep(45 * time.Second) // until the fifth call is under way
				}
				if !yield(i) {
					return
				}
			}
		}
		fn := func(ctx context.Context, i int) (int, error) {
			switch n := CallFrom(ctx); {
			case i == 0 && n == 5:
				_ = pause(ctx, time.Minute)
				return 0, errBroken
			case i == 0 && n < 5:
				return 0, errBroken
			}
			return i, pause(ctx, time.Second)
		}
		results, sum, err := judged(t.Context(), t, items, fn, WithConcurrency(2), WithPlainLaw())
		if r := results[0]; err != nil || sum.Failed > 0 || r.Calls != 6 {
			t.Errorf("%v, %v after %d attempts in %d calls: %+v", err, r.Err, r.Attempts, r.Calls, r.Failures)
		}
	})
}

// Undecided items do not stop a run that gives its results in input order, however short its
// read-ahead is.
func TestUndecidedItemsInInputOrder(t *testing.T) {
	for name, cause := range map[string]error{"broken": errBroken, "forbidden": errForbidden, "mistake": errParameter} {
		for _, ahead := range []int{1, 2, 50} {
			t.Run(fmt.Sprint(name, " ", ahead, " ahead"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ends := func(i int) error {
						if i%7 == 3 {
							return cause
						}
						return nil
					}
					next, failed := 0, 0
					for r, err := range Stream(t.Context(), numbers(100), byItem(ends), WithInputOrder(), WithReadAhead(ahead), WithConcurrency(2), WithAlikeFailures(20), WithPlainLaw()) {
						if err != nil || r.Index != next {
							t.Fatalf("%v, result %d at place %d", err, r.Index, next)
						}
						if next++; r.Err != nil {
							failed++
						}
					}
					if next != 100 || failed != 14 {
						t.Errorf("%d results, %d failed", next, failed)
					}
				})
			})
		}
	}
}

// Where the first call of each item breaks, the breaker opens at once. Each second probe is an
// item that has failed before, so one is answered before the lane counts as silent.
func TestEachFirstCallBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called [60]atomic.Bool
		fn := func(ctx context.Context, i int) (int, error) {
			if !called[i].Swap(true) {
				return 0, cmp.Or[error](pause(ctx, 200*time.Millisecond), errBroken)
			}
			return i, pause(ctx, 200*time.Millisecond)
		}
		_, sum, err := judged(t.Context(), t, numbers(60), fn, WithConcurrency(16), WithPlainLaw())
		if err != nil || sum.Failed > 0 {
			t.Errorf("%v, %d failed", err, sum.Failed)
		}
	})
}
