package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
