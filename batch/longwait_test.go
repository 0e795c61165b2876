package batch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// waits gathers the long waits that an observer gets.
func waits(to *[]LongWait) Option {
	return WithObserver(func(e Event) {
		if e.LongWait != nil {
			*to = append(*to, *e.LongWait)
		}
	})
}

// refusesFirst refuses the first call, and names how long to wait.
func refusesFirst(wait time.Duration) Func[int, int] {
	var once sync.Once
	return func(ctx context.Context, i int) (int, error) {
		err := pause(ctx, time.Second)
		once.Do(func() { err = RetryAfter(wait, errors.New("busy")) })
		return i, err
	}
}

// A lane that waits longer than five minutes, or than the option says, is reported once,
// with the reason and the end: when the wait begins, if its end is known.
func TestLongWaitIsTold(t *testing.T) {
	for _, c := range []struct {
		name  string
		wait  time.Duration
		opts  []Option
		times int
	}{
		{"ten minutes", 10 * time.Minute, nil, 1},
		{"four minutes", 4 * time.Minute, nil, 0},
		{"of a minute", 90 * time.Second, []Option{WithLongWait(time.Minute)}, 1},
		{"of an hour", 10 * time.Minute, []Option{WithLongWait(time.Hour)}, 0},
		{"never", 10 * time.Minute, []Option{WithLongWait(0)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []LongWait
				began := time.Now()
				_, sum, err := proved(t.Context(), t, numbers(20), refusesFirst(c.wait), append(c.opts, exact, WithConcurrency(4), waits(&told))...)
				if err != nil || sum.Counters.Cooldowns != 1 || len(told) != c.times {
					t.Fatalf("%v, %+v, told %v", err, sum.Counters, told)
				}
				for _, w := range told {
					if w.Lane != machine.DefaultPool || w.Why != "throttled" || w.Own || w.Items < 1 ||
						w.At.Sub(began) != time.Second || w.Until.Sub(began) != time.Second+c.wait {
						t.Errorf("told %+v", w)
					}
				}
			})
		})
	}
}

// An outage is one wait, however often it is tried whether it is over.
func TestOutageIsOneLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []LongWait
		began := time.Now()
		fn := func(ctx context.Context, i int) (int, error) {
			err := pause(ctx, 100*time.Millisecond)
			if time.Since(began) < time.Hour {
				err = &provider.Error{Kind: provider.Server, Status: 500}
			}
			return i, err
		}
		_, sum, err := proved(t.Context(), t, numbers(1000), fn, WithMaxAttempts(1000), WithFirstAnswer(0), waits(&told))
		if err != nil || sum.Counters.Probes < 100 || len(told) != 1 {
			t.Fatalf("%v, %+v, told %v", err, sum.Counters, told)
		}
		if w := told[0]; w.Cause != machine.ByBreaker || w.At.Sub(w.Since) > DefaultLongWait || w.Until.Sub(w.Since) <= DefaultLongWait {
			t.Errorf("told %+v, after %v", w, w.At.Sub(w.Since))
		}
	})
}

// An item that waits on its own account for so long is reported by its number. Other items
// in the run are not reported.
func TestItemThatWaitsForLongIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []LongWait
		failing := map[int]bool{3: true, 5: true}
		fn := func(ctx context.Context, i int) (int, error) {
			pause(ctx, time.Duration(1+i)*time.Second)
			if failing[i] {
				failing[i] = false
				return 0, &provider.Error{Kind: provider.Server, Status: 500, RetryAfter: 10 * time.Minute, HasRetryAfter: true}
			}
			return i, nil
		}
		_, _, err := proved(t.Context(), t, numbers(8), fn, WithConcurrency(1), waits(&told))
		if err != nil || len(told) != 1 {
			t.Fatalf("%v, told %v", err, told)
		}
		if w := told[0]; !w.Own || w.Item != 3 || w.Until.Sub(w.At) != 10*time.Minute {
			t.Errorf("told %+v", w)
		}
	})
}

// A pause is not a wait that anybody need be told of, nor is a call that takes long, nor
// a line behind it.
func TestPauseIsNoLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []LongWait
		ctl := NewControl()
		go func() {
			time.Sleep(10 * time.Second)
			_ = ctl.Pause(t.Context())
			time.Sleep(time.Hour)
			_ = ctl.Resume(t.Context())
		}()
		_, _, err := proved(t.Context(), t, numbers(20), takes(7*time.Minute), WithAttemptTimeout(0), WithConcurrency(2), WithControl(ctl), waits(&told))
		if err != nil || len(told) > 0 {
			t.Errorf("%v, told %v", err, told)
		}
	})
}

// Calls leave at the same moments whether waits are reported or not.
func TestTellingOfLongWaitsChangesNothing(t *testing.T) {
	sent := func(opts ...Option) (times []time.Time) {
		synctest.Test(t, func(t *testing.T) {
			var log journal
			refused := map[int]int{}
			fn := func(ctx context.Context, i int) (int, error) { // one at a time
				log.add("")
				pause(ctx, time.Second)
				if refused[i]++; i%7 == 0 && refused[i] < 4 {
					return 0, RetryAfter(time.Duration(i)*time.Second, errors.New("busy"))
				}
				return i, nil
			}
			_, _, _ = proved(t.Context(), t, numbers(60), fn, append(opts, exact, WithConcurrency(1), WithSeed(1))...)
			times = log.times
		})
		return times
	}
	var told []LongWait
	alone, said := sent(), sent(WithLongWait(5*time.Second), waits(&told))
	if len(told) == 0 || !slices.Equal(alone, said) {
		t.Errorf("told of %d waits; %d calls left in %v, and %d in %v", len(told),
			len(alone), alone[len(alone)-1].Sub(alone[0]), len(said), said[len(said)-1].Sub(said[0]))
	}
}

// What cannot be meant is an error before any call.
func TestWithLongWaitIsChecked(t *testing.T) {
	shared, err := NewShared(WithLongWait(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	for name, opts := range map[string][]Option{
		"less than 0": {WithLongWait(-1)},
		"NewShared":   {WithLongWait(time.Minute), WithShared(shared)},
	} {
		if _, err := Run(t.Context(), numbers(1), never(t), opts...); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "WithLongWait") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := WithLongWait(time.Minute).String(); got != "WithLongWait(1m0s)" {
		t.Error(got)
	}
}
