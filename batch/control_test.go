package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// flights counts calls in flight by the second, in a bubble.
type flights struct {
	begun time.Time
	now   int
	most  map[int]int // the most in flight, by second
	mu    chan struct{}
}

func newFlights() *flights {
	f := &flights{begun: time.Now(), most: map[int]int{}, mu: make(chan struct{}, 1)}
	f.mu <- struct{}{}
	return f
}

func (f *flights) add(n int) {
	<-f.mu
	f.now += n
	at := int(time.Since(f.begun) / time.Second)
	f.most[at] = max(f.most[at], f.now)
	f.mu <- struct{}{}
}

// calls makes a call of 100 ms.
func (f *flights) calls(ctx context.Context, i int) (int, error) {
	f.add(1)
	defer f.add(-1)
	return i, pause(ctx, 100*time.Millisecond)
}

// A control changes how many calls are in flight: at once if there may be more, and within one call's
// time if there may be fewer. It is never exceeded.
func TestControlSetsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, f := NewControl(), newFlights()
		for at, n := range map[time.Duration]int{850 * time.Millisecond: 8, 2050 * time.Millisecond: 160, 2850 * time.Millisecond: 1} {
			time.AfterFunc(at, func() { must.Do(t, ctl.SetConcurrency(t.Context(), n)) })
		}
		time.AfterFunc(3500*time.Millisecond, ctl.Drain)
		_, sum, err := proved(t.Context(), t, numbers(1<<40), f.calls, WithControl(ctl), WithConcurrency(64), WithMostConcurrency(160), WithReadAhead(2), WithPlainLaw())
		if !errors.Is(err, ErrDrained) || sum.Failed > 0 {
			t.Errorf("%v %+v", err, sum)
		}
		for at, want := range map[int]int{0: 64, 1: 8, 2: 160, 3: 1} {
			if f.most[at] != want {
				t.Errorf("second %d: at most %d in flight, want %d", at, f.most[at], want)
			}
		}
		if err := ctl.SetConcurrency(t.Context(), 9); err != nil {
			t.Errorf("a run that is over: %v", err)
		}
	})
}

// A run starts no more workers than calls may be in flight, however far a control may raise that number. Once it does, the new
// ones call, also when each worker is in a long call.
func TestControlHires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctl, f := NewControl(), newFlights()
		seen := func(c Call) {
			places, at := 4, c.Begun.Sub(f.begun)
			if at > 25*time.Second {
				places = 12
			} else if at > 15*time.Second {
				places = 9
			}
			if c.Worker >= places {
				t.Errorf("worker %d began a call after %v, want %d workers", c.Worker, at, places)
			}
		}
		long := func(ctx context.Context, i int) (int, error) {
			f.add(1)
			defer f.add(-1)
			if i < 40 {
				return i, pause(ctx, time.Second)
			}
			return i, pause(ctx, time.Minute)
		}
		for at, n := range map[time.Duration]int{15500 * time.Millisecond: 9, 20500 * time.Millisecond: 3, 25500 * time.Millisecond: 12} {
			time.AfterFunc(at, func() { must.Do(t, ctl.SetConcurrency(t.Context(), n)) })
		}
		_, sum, err := proved(t.Context(), t, numbers(100), long, WithControl(ctl), WithConcurrency(4), WithMostConcurrency(64), WithCalls(seen), WithPlainLaw())
		if err != nil || sum.Succeeded != 100 {
			t.Errorf("%v %+v", err, sum)
		}
		for at, want := range map[int]int{0: 4, 15: 9, 25: 12} {
			if f.most[at] != want {
				t.Errorf("second %d: at most %d in flight, want %d", at, f.most[at], want)
			}
		}
	})
}

// Numbers that a run cannot have are refused, and change nothing.
func TestControlRefuses(t *testing.T) {
	ctl := NewControl()
	fn := func(ctx context.Context, i int) (int, error) {
		for _, n := range []int{-1, 0, 65} {
			if err := ctl.SetConcurrency(ctx, n); !errors.Is(err, ErrConfig) {
				t.Errorf("concurrency %d: %v", n, err)
			}
		}
		for _, usd := range []float64{-1, 0, math.NaN(), math.Inf(1), MostBudget + 1, 1} { // and the run has no budget
			if err := ctl.SetMaxCost(ctx, usd); !errors.Is(err, ErrConfig) {
				t.Errorf("%v USD: %v", usd, err)
			}
		}
		return i, nil
	}
	if _, _, err := proved(t.Context(), t, numbers(1), fn, WithControl(ctl)); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), numbers(1), never(t), WithConcurrency(8), WithMostConcurrency(7)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// A budget may be raised, and the run goes on; one below what is spent ends it.
func TestControlSetsMaxCost(t *testing.T) {
	for _, c := range []struct {
		to       float64
		answered int
	}{{5, 50}, {0.5, 10}, {2, 20}} {
		t.Run(fmt.Sprint(c.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctl := NewControl()
				time.AfterFunc(9500*time.Millisecond, func() { must.Do(t, ctl.SetMaxCost(t.Context(), c.to)) })
				b := Budget[int]{
					Max:     3,
					Reserve: func(int, string, float64) (float64, bool) { return 0.1, true },
					Cost:    func(int, string, provider.Usage) (float64, bool) { return 0.1, true },
				}
				_, sum, err := proved(t.Context(), t, numbers(100), takes(time.Second), WithControl(ctl), WithConcurrency(1), WithMaxCost(b))
				if !errors.Is(err, ErrMaxCost) || sum.Succeeded != c.answered || sum.Money.Cap != limiter.USD(c.to) {
					t.Errorf("%v, %d answered, %+v; want %d", err, sum.Succeeded, sum.Money, c.answered)
				}
			})
		})
	}
}

// The runs of a Shared have a ceiling together that may be changed.
func TestSharedSetsConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, f := must.Get(NewShared(WithPlainLaw(), WithConcurrency(16)))(t), newFlights()
		for at, n := range map[time.Duration]int{850 * time.Millisecond: 5, 2050 * time.Millisecond: 40} {
			time.AfterFunc(at, func() { must.Do(t, shared.SetConcurrency(n)) })
		}
		if err := shared.SetConcurrency(0); !errors.Is(err, ErrConfig) {
			t.Error(err)
		}
		done := make(chan error, 2)
		for range 2 {
			ctl := NewControl()
			time.AfterFunc(3500*time.Millisecond, ctl.Drain)
			go func() {
				_, _, err := proved(t.Context(), t, numbers(1<<40), f.calls, WithShared(shared), WithControl(ctl))
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; !errors.Is(err, ErrDrained) {
				t.Error(err)
			}
		}
		shared.Close()
		if f.most[0] != 16 || f.most[1] != 5 || f.most[2] != 40 {
			t.Errorf("at most in flight: %v", f.most)
		}
	})
}

// New limits of all lanes hold within a second, by either law: fewer calls leave than the lower one lets through, and
// soon as many as the higher one does. A lane that an item opens later has them, too.
func TestControlSetsLimitsOfAll(t *testing.T) {
	for name, law := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctl, begun := NewControl(), time.Now()
				left := make(chan time.Duration, 10_000)
				fn := func(ctx context.Context, i int) (int, error) {
					left <- time.Since(begun)
					return i, pause(ctx, 10*time.Millisecond)
				}
				for at, rpm := range map[time.Duration]float64{30 * time.Second: 60, 90 * time.Second: 1200} {
					time.AfterFunc(at, func() { must.Do(t, ctl.SetLimitsOfAll(t.Context(), Limits{RPM: rpm, Burst: time.Second})) })
				}
				time.AfterFunc(120*time.Second, ctl.Drain)
				pool := func(int) string { // until then there is one lane
					if time.Since(begun) < 100*time.Second {
						return "a"
					}
					return "b"
				}
				opts := append([]Option{WithControl(ctl), WithLimits(Limits{RPM: 600, Burst: time.Second}), WithPoolOf(pool), WithReadAhead(1), WithConcurrency(8)}, law...)
				_, _, err := proved(t.Context(), t, numbers(1<<40), fn, opts...)
				if !errors.Is(err, ErrDrained) {
					t.Error(err)
				}
				close(left)
				counts := [3]int{}
				for at := range left {
					switch {
					case at > 31*time.Second && at <= 90*time.Second:
						counts[0]++
					case at > 91*time.Second && at <= 99*time.Second:
						counts[1]++
					case at > 102*time.Second && at <= 118*time.Second:
						counts[2]++
					}
				}
				if counts[0] > 60 || counts[1] < 120 || counts[1] > 180 || counts[2] > 340 {
					t.Errorf("%d calls in 59 s at 60 a minute, %d in 8 s at 1,200, and %d in 16 s on a lane that is new", counts[0], counts[1], counts[2])
				}
			})
		})
	}
}
