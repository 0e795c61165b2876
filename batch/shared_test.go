package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	admission "github.com/headrace/headrace/limiter/laws"
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
				shared := must.Get(NewShared(WithLaneDefaults(lane)))(t)
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

// Limits may be changed while a run is on, by its control or by the Shared that it is on;
// limits that cannot be meant are refused.
func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, log, begun := NewControl(), new(journal), time.Now()
		fn := func(_ context.Context, i int) (int, error) { log.add(""); return i, nil }
		time.AfterFunc(10*time.Second+time.Millisecond, func() {
			if err := ctl.SetLimits(t.Context(), "", Limits{RPM: 600}); err != nil {
				t.Error(err)
			}
			if err := ctl.SetLimits(t.Context(), "", Limits{RPM: -1}); !errors.Is(err, ErrConfig) {
				t.Error(err)
			}
		})
		_, sum, err := proved(t.Context(), t, numbers(111), fn, WithControl(ctl), WithLimits(Limits{RPM: 60}))
		if err != nil || sum.Elapsed < 19*time.Second || sum.Elapsed > 21*time.Second {
			t.Errorf("%v, 11 calls in 10 s and 100 in ten more: %v", err, sum.Elapsed)
		}
		if at := log.times[9].Sub(begun); at != 9*time.Second {
			t.Errorf("the tenth call left after %v", at)
		}
		shared := newShared(t, WithPlainLaw())
		if err := shared.SetLimits("x", Limits{RPM: 60}); err != nil {
			t.Error(err)
		}
		if err := shared.SetLimits("x", Limits{RPM: -1}); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
		_, sum, err = proved(t.Context(), t, numbers(11), double, WithShared(shared), WithPoolOf(func(int) string { return "x" }))
		if err != nil || sum.Elapsed != 10*time.Second {
			t.Errorf("%v %v", err, sum.Elapsed)
		}
	})
}

// A lane that its run's control resets flows again at once.
func TestControlResetLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, calls := NewControl(), 0
		fn := func(_ context.Context, i int) (int, error) {
			if calls++; calls == 1 {
				return 0, RetryAfter(10*time.Minute, errTeapot)
			}
			return i, nil
		}
		time.AfterFunc(time.Minute, func() {
			if err := ctl.ResetLane(t.Context(), ""); err != nil {
				t.Error(err)
			}
		})
		_, sum, err := proved(t.Context(), t, numbers(1), fn, WithControl(ctl))
		if err != nil || sum.Elapsed != time.Minute {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// An item that waits alone goes at once when its lane is reset, under either law.
func TestResetLaneFreesAnItemThatWaitsAlone(t *testing.T) {
	for law, opts := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
		t.Run(law, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const items = 500
				ctl, refused, at := NewControl(), make(chan map[int]bool, 1), make(chan time.Time, 1)
				refused <- map[int]bool{}
				fn := func(ctx context.Context, i int) (int, error) {
					known := <-refused
					again := known[i]
					known[i] = true
					switch refused <- known; {
					case i == items-10 && !again:
						time.AfterFunc(time.Minute, func() {
							if err := ctl.ResetLane(t.Context(), ""); err != nil {
								t.Error(err)
							}
						})
						at <- time.Now()
						return 0, RetryAfter(14*time.Minute, errTeapot)
					case i%10 == 0 && !again: // by chance
						return 0, RetryAfter(time.Second, errTeapot)
					}
					return i, pause(ctx, time.Second)
				}
				_, sum, err := judged(t.Context(), t, numbers(items), fn, append(opts, WithControl(ctl), WithConcurrency(8))...)
				if err != nil || sum.Succeeded != items || time.Since(<-at) > 2*time.Minute {
					t.Errorf("%v, %d succeeded in %v", err, sum.Succeeded, sum.Elapsed)
				}
			})
		})
	}
}

// A lane that its run's control defines is so for the items that are read after that.
func TestControlDefine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl := NewControl()
		input := func(yield func(int) bool) {
			if err := ctl.Define(t.Context(), "slow", LaneConfig{Limits: Limits{RPM: 1}}); err != nil {
				t.Error(err)
			}
			if err := ctl.Define(t.Context(), "slow", LaneConfig{Window: -1}); !errors.Is(err, ErrConfig) {
				t.Errorf("a window of -1: %v", err)
			}
			for i := range 4 {
				if !yield(i) {
					return
				}
			}
		}
		fn := func(_ context.Context, i int) (int, error) { return i, nil }
		_, sum, err := proved(t.Context(), t, input, fn, WithControl(ctl), WithPoolOf(func(int) string { return "slow" }))
		if err != nil || sum.Elapsed < 2*time.Minute || sum.Elapsed > 4*time.Minute {
			t.Errorf("%v in %v", err, sum.Elapsed)
		}
	})
}

// What options say of lanes can be asked for without a run.
func TestLaneOf(t *testing.T) {
	l, err := LaneOf(WithLimits(Limits{RPM: 7}), WithLane("other", LaneConfig{Window: 3}), WithLocalServer(time.Second))
	if err != nil || l.Limits.RPM != 7 || l.Window != 0 || !l.Local || l.Target != time.Second {
		t.Errorf("%+v %v", l, err)
	}
	if _, err := LaneOf(WithLocalServer(0), WithPlainLaw()); !errors.Is(err, ErrConfig) {
		t.Errorf("two that contradict each other: %v", err)
	}
}

// An askedMaker makes plain laws that count how often they are asked. The owner alone asks.
type askedMaker struct{ asked int }

func (m *askedMaker) NewLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	c.Maker, c.Law = nil, limiter.Plain
	return &askedLaw{admission.New(c, now, rng), m}
}

type askedLaw struct {
	limiter.Law
	maker *askedMaker
}

func (l *askedLaw) Wait(now time.Time, cost limiter.Cost) (time.Duration, limiter.Bound) {
	l.maker.asked++
	return l.Law.Wait(now, cost)
}

// Many runs on one lane take turns, and each call of them asks the lane a few times, not once
// for each run that waits.
func TestManyRunsOfASharedTakeTurns(t *testing.T) {
	const runs, each = 300, 3
	synctest.Test(t, func(t *testing.T) {
		maker := &askedMaker{}
		shared := must.Get(NewShared(WithLane("", LaneConfig{Maker: maker, Limits: limiter.Limits{RPM: 600}})))(t)
		ended := make([][]time.Duration, runs)
		begun := time.Now()
		var group sync.WaitGroup
		for id := range runs {
			group.Go(func() {
				for r, err := range Stream(t.Context(), numbers(each), takes(time.Millisecond), WithShared(shared)) {
					if err != nil || r.Err != nil {
						t.Error(err, r.Err)
					}
					ended[id] = append(ended[id], time.Since(begun))
				}
			})
		}
		group.Wait()
		shared.Close()
		synctest.Wait()
		if most := 5 * runs * each; maker.asked > most {
			t.Errorf("%d calls asked %d times, want at most %d", runs*each, maker.asked, most)
		}
		turn := 60 * time.Second / 600 * runs
		for id, at := range ended {
			for k := range at[1:] {
				if wait := at[k+1] - at[k]; wait > turn+time.Second {
					t.Errorf("run %d waited %v for its next call, want at most a turn of %v", id, wait, turn)
				}
			}
		}
	})
}
