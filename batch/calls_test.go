package batch

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Each call and each end is reported once, by its worker, and a worker reports one at a
// time.
func TestCallsAndEndsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 4
		var busy [workers]atomic.Bool
		var calls, again, ends, failed atomic.Int64
		attempts := make([]atomic.Int64, 40)
		enter := func(worker int) func() {
			if busy[worker].Swap(true) {
				t.Errorf("worker %d tells two things at once", worker)
			}
			return func() { busy[worker].Store(false) }
		}
		fn := func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Duration(i%5+1) * time.Second)
			switch {
			case i%10 == 3:
				return 0, Permanent(errors.New("no"))
			case i%10 == 7 && attempts[i].Load() == 0:
				return 0, errors.New("broke")
			}
			return i, nil
		}
		_, sum, err := proved(t.Context(), t, numbers(40), fn, exact, WithConcurrency(workers),
			WithGate(func(context.Context) { time.Sleep(time.Second) }),
			WithCalls(func(c Call) {
				defer enter(c.Worker)()
				if n := attempts[c.Item].Add(1); int(n) != c.Attempt || c.Gated != time.Second || c.Latency != time.Duration(c.Item%5+1)*time.Second {
					t.Errorf("call %d: %+v", n, c)
				}
				if calls.Add(1); c.Again {
					again.Add(1)
				}
			}),
			WithEnds(func(e End) {
				defer enter(e.Worker)()
				if *e.In.(*int) != int(e.Item) || int64(e.Calls) != attempts[e.Item].Load() {
					t.Errorf("%+v", e)
				}
				if ends.Add(1); e.Err != nil {
					failed.Add(1)
				}
			}))
		if err != nil || calls.Load() != int64(sum.Counters.Calls) || again.Load() != int64(sum.Counters.HandedOver) || again.Load() != 4 {
			t.Errorf("%v: %d calls were told, %d of them to be made again: %+v", err, calls.Load(), again.Load(), sum.Counters)
		}
		if ends.Load() != 40 || failed.Load() != 4 || sum.Failed != 4 {
			t.Errorf("%d ends were told, %d of failures: %+v", ends.Load(), failed.Load(), sum)
		}
	})
}

// A measuring function that misbehaves changes nothing in the run except its error. It is
// not called again.
func TestMeasuringThatMisbehaves(t *testing.T) {
	ways := map[string]func(){"panics": func() { panic("boom") }, "ends its goroutine": runtime.Goexit}
	for way, misbehave := range ways {
		for _, hook := range []string{"calls", "ends"} {
			t.Run(hook+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const workers = 3
					var told atomic.Int64
					opt := WithCalls(func(Call) { told.Add(1); misbehave() })
					if hook == "ends" {
						opt = WithEnds(func(End) { told.Add(1); misbehave() })
					}
					results, sum, err := proved(t.Context(), t, numbers(30), double, exact, opt, WithConcurrency(workers))
					if !errors.Is(err, ErrObserver) || sum.Succeeded != 30 || sum.Counters.Calls != 30 {
						t.Errorf("%v: %+v", err, sum)
					}
					for _, r := range results {
						if r.Err != nil || r.Value != 2*r.Item {
							t.Errorf("%+v", r)
						}
					}
					if told.Load() > workers {
						t.Errorf("%d workers told it %d times", workers, told.Load())
					}
				})
			})
		}
	}
}

// A call that was not made is not reported.
func TestCallsThatWereNotMade(t *testing.T) {
	var told atomic.Int64
	gate := WithGate(func(context.Context) { panic("no place") })
	_, sum, _ := proved(t.Context(), t, numbers(5), double, exact, gate, WithCalls(func(Call) { told.Add(1) }))
	if told.Load() != 0 || sum.Failed != 5 {
		t.Errorf("%d calls were told: %+v", told.Load(), sum)
	}
}
