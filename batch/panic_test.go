package batch

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/limiter"
)

// trap is an item whose hints run the given functions.
type trap struct{ pool, cost func() }

func (x trap) Pool() string {
	x.pool()
	return "sound"
}

func (x trap) Cost() limiter.Cost {
	x.cost()
	return limiter.Cost{Requests: 1}
}

func nothing() {}

// traps are items of which the second is caught in its Pool, the fourth in its Cost.
func traps(caught func()) func(func(trap) bool) {
	return func(yield func(trap) bool) {
		for _, x := range []trap{{nothing, nothing}, {caught, nothing}, {nothing, nothing}, {nothing, caught}, {nothing, nothing}} {
			if !yield(x) {
				return
			}
		}
	}
}

// An item whose Pool or Cost panics fails with that panic and is never called. Other items
// do not notice, the run has no error, and its summary proves.
func TestPanicInPoolOrCostIsTheItemsError(t *testing.T) {
	fn := func(context.Context, trap) (int, error) { return 1, nil }
	for name, opts := range map[string][]Option{
		"methods": nil,
		"options": {WithPoolOf(trap.Pool), WithCostOf(trap.Cost)},
		"ordered": {WithInputOrder(), WithConcurrency(1), WithReadAhead(1)},
	} {
		t.Run(name, func(t *testing.T) {
			results, sum, err := proved(t.Context(), t, traps(explode), fn, opts...)
			if err != nil || sum.Succeeded != 3 || sum.Failed != 2 || sum.Counters.Offered != 5 || sum.Counters.Released != 2 {
				t.Errorf("%v %+v", err, sum)
			}
			for _, i := range []int{1, 3} {
				var panicked *PanicError
				r := results[i]
				if !errors.As(r.Err, &panicked) || panicked.Value != "boom" || !bytes.Contains(panicked.Stack, []byte("batch.trap.")) {
					t.Errorf("item %d: %v", i, r.Err)
				}
				if r.Index != i || r.Calls != 0 || r.Attempts != 0 || r.Item.pool == nil || (i == 3) != (r.Pool == "sound") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// They count among the failures that a run may have: no more is taken, however much there
// is.
func TestPanicInPoolCountsAsAFailure(t *testing.T) {
	items := func(yield func(trap) bool) {
		for range 1 << 14 {
			if !yield(trap{explode, nothing}) {
				return
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		var sum Summary
		for _, err := range Stream(t.Context(), items, func(context.Context, trap) (int, error) { return 1, nil },
			WithMaxFailures(3), WithReadAhead(1), WithConcurrency(1), WithSummary(&sum)) {
			synctest.Wait() // the run goes as far as it can
			if panicked := (*PanicError)(nil); err != nil && (!errors.Is(err, ErrTooManyFailures) || !errors.As(err, &panicked)) {
				t.Error(err)
			}
		}
		if sum.Failed < 3 || sum.Failed > 3+2 || !sum.Proves() {
			t.Errorf("%+v", sum)
		}
	})
}

// A classifier that is given an error which panics is not to blame, nor is the process.
func TestPanicInAnErrorThatIsClassified(t *testing.T) {
	fn := func(context.Context, int) (int, error) {
		var f *fault
		return 0, f
	}
	ask := WithClassifier(func(err error) Kind {
		_ = err.Error()
		return Unknown
	})
	results, sum, err := proved(t.Context(), t, numbers(3), fn, ask)
	var panicked *PanicError
	if err != nil || sum.Failed != 3 || !errors.As(results[1].Err, &panicked) {
		t.Errorf("%v %+v", err, results)
	}
}

// What a panic says is one line, whatever its value, and its stack is a field: a log of many
// items has a line for each.
func TestPanicErrorIsOneLine(t *testing.T) {
	fn := func(context.Context, int) (int, error) { panic("boom\r\n\tand more") }
	results, _, _ := proved(t.Context(), t, numbers(1), fn)
	var panicked *PanicError
	if !errors.As(results[0].Err, &panicked) || !bytes.Contains(panicked.Stack, []byte("panic_test.go")) {
		t.Fatal(results[0].Err)
	}
	if got := results[0].Err.Error(); got != "batch: function panicked: boom and more" {
		t.Errorf("%q", got)
	}
}

// A Pool that ends its goroutine takes the input with it: its item has a result, and the
// run says so, and not that it was drained.
func TestGoexitInPoolEndsTheInput(t *testing.T) {
	fn := func(context.Context, trap) (int, error) { return 1, nil }
	results, sum, err := proved(t.Context(), t, traps(runtime.Goexit), fn)
	if !errors.Is(err, ErrInput) || errors.Is(err, ErrDrained) || len(results) != 2 || !errors.Is(results[1].Err, errGone) || sum.Failed != 1 {
		t.Errorf("%v %+v", err, results)
	}
}

// So does an input that ends its goroutine.
func TestGoexitInTheInput(t *testing.T) {
	items := func(yield func(int) bool) {
		yield(0)
		runtime.Goexit()
	}
	if results, sum, err := proved(t.Context(), t, items, double); !errors.Is(err, ErrInput) || len(results) != 1 || sum.Succeeded != 1 {
		t.Errorf("%v %+v", err, results)
	}
}

// A panic in the input can be asked for by its type, as any other.
func TestPanicInTheInputIsAPanicError(t *testing.T) {
	items := func(func(int) bool) { explode() }
	var panicked *PanicError
	if _, _, err := proved(t.Context(), t, items, double); !errors.Is(err, ErrInput) || !errors.As(err, &panicked) || !bytes.Contains(panicked.Stack, []byte("batch.explode")) {
		t.Error(err)
	}
}

// An observer that panics, at any event, is not called again. Each item has its result all
// the same, and the run's error reports the panic, joined to the run's own error if it has
// one.
func TestPanicInTheObserver(t *testing.T) {
	for name, at := range map[string]func(Event) bool{
		"transition": func(e Event) bool { return e.Transition != nil },
		"status":     func(e Event) bool { return e.Status != nil },
		"summary":    func(e Event) bool { return e.Summary != nil },
	} {
		for _, ended := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stop, reported := make(chan struct{}), 0
					if !ended {
						time.AfterFunc(time.Minute, func() { close(stop) })
					}
					observer := func(e Event) {
						if reported > 0 {
							t.Error("it was told more")
						}
						if at(e) {
							reported++
							explode()
						}
					}
					log := new(journal)
					fn := func(ctx context.Context, i int) (int, error) {
						if log.add("") == 1 {
							return 0, RetryAfter(10*time.Second, errors.New("busy"))
						}
						return i, pause(ctx, 3*time.Second)
					}
					_, sum, err := proved(t.Context(), t, numbers(100), fn, exact, WithConcurrency(4), WithObserver(observer), WithDrain(stop))
					var panicked *PanicError
					if reported != 1 || !errors.Is(err, ErrObserver) || !errors.As(err, &panicked) || panicked.Value != "boom" {
						t.Errorf("%d times: %v", reported, err)
					}
					if errors.Is(err, ErrDrained) == ended || ended && sum.Succeeded != 100 {
						t.Errorf("%v %+v", err, sum)
					}
				})
			})
		}
	}
}

// An observer that ends its goroutine is not called again, and the run goes on.
func TestGoexitInTheObserver(t *testing.T) {
	_, sum, err := proved(t.Context(), t, numbers(10), double, WithObserver(func(Event) { runtime.Goexit() }))
	if !errors.Is(err, ErrObserver) || sum.Succeeded != 10 {
		t.Errorf("%v %+v", err, sum)
	}
}

// A fault is an error that panics when it is asked what it is, as one that is a nil
// pointer does.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

// An error that panics is the failure of its item.
func TestPanicInAnErrorIsTheItemsError(t *testing.T) {
	fn := func(_ context.Context, i int) (int, error) {
		if i == 1 {
			var f *fault
			return 0, f
		}
		return i, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(3), fn)
	var panicked *PanicError
	if err != nil || sum.Failed != 1 || !errors.As(results[1].Err, &panicked) || results[1].Calls != 1 {
		t.Errorf("%v %+v", err, results)
	}
}
