package batch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
)

var errTeapot = errors.New("i am a teapot")

// The hook runs before each call of an item except its first, when the wait is over. It
// gets the item, the number of its calls, and the error of the latest call.
func TestRetryHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			reported []Retry
			times    []time.Duration
			begun    = time.Now()
			calls    = 0
		)
		fn := func(_ context.Context, i int) (int, error) {
			calls++
			switch calls {
			case 1:
				return 0, errTeapot
			case 2:
				return 0, RetryAfter(10*time.Second, errTeapot)
			}
			return i, nil
		}
		hook := func(r Retry) { reported, times = append(reported, r), append(times, time.Since(begun)) }
		results, _, err := proved(t.Context(), t, numbers(1), fn, exact, WithRetryHook(hook), WithConcurrency(1))
		if err != nil || len(reported) != 2 || results[0].Calls != 3 {
			t.Fatalf("%v %+v", err, reported)
		}
		first, second := reported[0], reported[1]
		if first.Index != 0 || first.Item != 0 || first.Calls != 1 || first.Attempts != 1 || !errors.Is(first.Err, errTeapot) || !errors.Is(first.Err, Unknown) || first.Lane != DefaultLane {
			t.Errorf("%+v", first)
		}
		if second.Calls != 2 || second.Attempts != 1 || !errors.Is(second.Err, Throttled) {
			t.Errorf("%+v", second)
		}
		if wait := times[1] - times[0]; wait != 10*time.Second {
			t.Errorf("told %v after the refusal, and the wait was 10 s", wait)
		}
	})
}

// A hook that panics is its item's error, and the call is not made; one that ends its
// goroutine likewise. A slow one is in no latency, and in no attempt's time.
func TestRetryHookThatMisbehaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		broken := func(context.Context, int) (int, error) { calls++; return 0, errTeapot }
		results, sum, err := proved(t.Context(), t, numbers(1), broken, WithRetryHook(func(Retry) { panic("hook") }))
		var panicked *PanicError
		if err != nil || calls != 1 || sum.Failed != 1 || !errors.As(results[0].Err, &panicked) || panicked.Value != "hook" {
			t.Errorf("%v, %d calls: %+v", err, calls, results)
		}
		once := func(ctx context.Context, i int) (int, error) {
			if calls++; calls == 1 {
				return 0, errTeapot
			}
			return i, pause(ctx, 30*time.Second)
		}
		calls = 0
		slow := func(Retry) { time.Sleep(time.Hour) }
		results, _, err = proved(t.Context(), t, numbers(1), once, WithRetryHook(slow), WithAttemptTimeout(time.Minute))
		if err != nil || results[0].Err != nil || results[0].Latency != 30*time.Second {
			t.Errorf("%v %+v", err, results)
		}
	})
}

// What a call waits for at the gate is in no latency, and in no attempt's time; a gate that
// panics is its item's error, and the call is not made. A run that is abandoned makes no
// call behind it.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		fn := func(ctx context.Context, i int) (int, error) { calls++; return i, pause(ctx, 30*time.Second) }
		slow := func(ctx context.Context) { _ = pause(ctx, time.Hour) }
		results, sum, err := proved(t.Context(), t, numbers(2), fn, WithGate(slow), WithAttemptTimeout(time.Minute), WithConcurrency(1))
		if err != nil || sum.Succeeded != 2 || calls != 2 || results[0].Latency != 30*time.Second {
			t.Errorf("%v, %d calls: %+v", err, calls, results)
		}
		calls = 0
		var panicked *PanicError
		results, sum, err = proved(t.Context(), t, numbers(1), fn, WithGate(func(context.Context) { panic("gate") }))
		if err != nil || calls != 0 || sum.Failed != 1 || !errors.As(results[0].Err, &panicked) {
			t.Errorf("%v, %d calls: %+v", err, calls, results)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		results, sum, err = proved(ctx, t, numbers(3), fn, WithGate(slow), WithConcurrency(2))
		if !errors.Is(err, context.Canceled) || calls != 0 || sum.NotRun != 3 || sum.Elapsed != time.Minute || !errors.Is(results[0].Err, ErrNotRun) {
			t.Errorf("%v, %d calls, %+v: %+v", err, calls, sum, results)
		}
	})
}

// A call that does not get past the gate draws nothing: the next call need not wait for it.
func TestGateThatPanicsIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := 0
		gate := func(context.Context) {
			if gates++; gates == 1 {
				panic("gate")
			}
		}
		fn := func(_ context.Context, i int) (int, error) { return i, nil }
		_, sum, err := proved(t.Context(), t, numbers(2), fn, WithGate(gate), WithConcurrency(1), WithLimits(Limits{RPM: 1}))
		if err != nil || sum.Failed != 1 || sum.Succeeded != 1 || sum.Elapsed > time.Second {
			t.Errorf("%v: %+v", err, sum)
		}
	})
}

// The charge of a call that was not made comes back: its lane learns nothing else of it.
func TestCallThatWasNotMadeIsNotCharged(t *testing.T) {
	for _, unsent := range []bool{true, false} {
		j := judge(ending{err: &PanicError{Value: "hook"}, unsent: unsent}, 0, 0, policy{maxAttempts: 3})
		if j.outcome.Signal != machine.Nothing || j.outcome.Unsent != unsent || j.again {
			t.Errorf("%+v", j)
		}
	}
}

// What a classifier says decides alone: whether the item is tried again, whether that uses
// an attempt, what its lane learns; and errors.Is finds its kind and the error itself.
func TestClassifier(t *testing.T) {
	for kind, want := range map[Kind]struct {
		calls, attempts int // calls at least; of what uses attempts, exactly
		err             error
	}{
		Unknown:      {3, 3, nil}, // as if there were none
		Server:       {3, 3, nil},
		Invalid:      {1, 1, nil},
		Refused:      {1, 1, nil},
		Throttled:    {MaxRefusals, 0, ErrOutage},
		Unauthorized: {1, 0, ErrStopped},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			classify := func(err error) Kind {
				if asked++; !errors.Is(err, errTeapot) {
					t.Errorf("asked about %v", err)
				}
				return kind
			}
			fn := func(context.Context, int) (int, error) { return 0, errTeapot }
			results, _, err := proved(t.Context(), t, numbers(1), fn, WithClassifier(classify), WithMaxAttempts(3))
			r := results[0]
			if !errors.Is(err, want.err) || r.Calls < want.calls || r.Attempts != want.attempts || asked != r.Calls || want.attempts > 0 && r.Calls != want.calls {
				t.Errorf("%v: %v, asked %d times: %+v", kind, err, asked, r)
			}
			if !errors.Is(r.Err, kind) || !errors.Is(r.Err, errTeapot) {
				t.Errorf("%v: the item's error is %v", kind, r.Err)
			}
		})
	}
}

// A wait named in the error counts, whatever kind the classifier returns.
func TestClassifierKeepsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(_ context.Context, i int) (int, error) {
			return i, &Error{Kind: Server, RetryAfter: 10 * time.Second, HasRetryAfter: true, Code: "later"}
		}
		begun, second := time.Now(), time.Duration(0)
		hook := func(Retry) { second = time.Since(begun) }
		results, _, _ := proved(t.Context(), t, numbers(1), fn, exact, WithRetryHook(hook), WithItemTimeout(11*time.Second),
			WithClassifier(func(error) Kind { return Throttled }))
		var fault *Error
		if !errors.As(results[0].Err, &fault) || fault.Kind != Throttled || fault.Code != "later" {
			t.Errorf("%v", results[0].Err)
		}
		if second != 10*time.Second {
			t.Errorf("called again after %v, want 10 s", second)
		}
	})
}

// A classifier is not asked what a panic means, nor a call that the run cut off; if it
// panics, that is the item's error.
func TestClassifierIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := WithClassifier(func(err error) Kind { t.Errorf("asked about %v", err); return Unknown })
		boom := func(context.Context, int) (int, error) { panic("boom") }
		if _, sum, err := proved(t.Context(), t, numbers(1), boom, never); err != nil || sum.Failed != 1 {
			t.Error(err)
		}
		if _, sum, err := proved(t.Context(), t, numbers(1), takes(time.Hour), never, WithAttemptTimeout(time.Second), WithMaxAttempts(2)); err != nil || sum.Failed != 1 {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, sum, err := proved(ctx, t, numbers(1), takes(time.Hour), never); !errors.Is(err, context.DeadlineExceeded) || sum.NotRun != 1 {
			t.Error(err)
		}
		teapot := func(context.Context, int) (int, error) { return 0, errTeapot }
		results, _, err := proved(t.Context(), t, numbers(1), teapot, WithClassifier(func(error) Kind { panic("classifier") }))
		var panicked *PanicError
		if err != nil || !errors.As(results[0].Err, &panicked) || panicked.Value != "classifier" || results[0].Calls != 1 {
			t.Errorf("%v %+v", err, results)
		}
	})
}

// A run ends once as many items have failed for good as may: what is in flight finishes,
// what waits is not run, and the error is both the bound's and the first item's.
func TestMaxFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			pause(ctx, time.Second)
			if i%2 == 1 {
				return 0, Permanent(errTeapot)
			}
			return i, nil
		}
		for _, most := range []int{1, 2, 5} {
			results, sum, err := proved(t.Context(), t, numbers(5000), fn, WithConcurrency(1), WithMaxFailures(most))
			if !errors.Is(err, ErrTooManyFailures) || !errors.Is(err, errTeapot) || errors.Is(err, ErrDrained) {
				t.Error(err)
			}
			if sum.Failed != most || sum.Succeeded != most || sum.NotRun == 0 {
				t.Errorf("at most %d: %+v", most, sum)
			}
			if last := results[len(results)-1]; !errors.Is(last.Err, ErrNotRun) {
				t.Errorf("%+v", last)
			}
		}
	})
}

// What is in flight when the bound is reached finishes, and an endless input is read no
// further.
func TestMaxFailuresOfManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			pause(ctx, time.Duration(1+i)*time.Second)
			return 0, Permanent(errTeapot)
		}
		_, sum, err := proved(t.Context(), t, numbers(1<<40), fn, WithConcurrency(4), WithMaxFailures(2))
		if !errors.Is(err, ErrTooManyFailures) || sum.Failed != 5 || sum.Counters.Calls != 5 || sum.Elapsed != 6*time.Second {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// Nothing leaves after the failure that is one too many, however fast calls fail.
func TestMaxFailuresOfFastCalls(t *testing.T) {
	broken := func(context.Context, int) (int, error) { return 0, Permanent(errTeapot) }
	for range 100 {
		_, sum, err := proved(t.Context(), t, numbers(1000), broken, WithConcurrency(1), WithMaxFailures(3))
		if !errors.Is(err, ErrTooManyFailures) || sum.Counters.Calls != 3 {
			t.Fatalf("%v %+v", err, sum)
		}
	}
}

// Attempts that fail are no failed items, nor are items that were not run; and the bound
// counts for itself, also if nothing was left to run.
func TestWhatIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := map[int]int{}
		flaky := func(_ context.Context, i int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls[i]++; calls[i] < 3 && i%3 == 0 {
				return 0, errTeapot
			}
			return i, nil
		}
		if _, sum, err := proved(t.Context(), t, numbers(100), flaky, WithMaxFailures(1)); err != nil || sum.Succeeded != 100 {
			t.Errorf("%v %+v", err, sum)
		}
		broken := func(context.Context, int) (int, error) { return 0, Permanent(errTeapot) }
		for most, want := range map[int]error{0: nil, 1: ErrTooManyFailures, 3: ErrTooManyFailures, 4: nil} {
			if _, sum, err := proved(t.Context(), t, numbers(3), broken, WithMaxFailures(most), WithConcurrency(1)); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("at most %d: %v %+v", most, err, sum)
			}
		}
		stop := make(chan struct{})
		close(stop)
		if _, sum, err := proved(t.Context(), t, numbers(1<<40), takes(time.Second), WithMaxFailures(1), WithDrain(stop)); !errors.Is(err, ErrDrained) || sum.Failed != 0 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// A run knows how far it is, of how much, also where others share its coordinator.
func TestProgressAgainstATotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw())
		go func() { _, _ = Run(t.Context(), numbers(7), takes(time.Second), WithShared(shared)) }()
		var done []uint64
		observe := func(e Event) {
			if e.Status == nil {
				return
			}
			if e.Status.Run.Total != 10 {
				t.Errorf("%+v", e.Status.Run)
			}
			done = append(done, e.Status.Run.Done())
		}
		ctl := NewControl()
		time.AfterFunc(2500*time.Millisecond, func() {
			if s, err := ctl.Status(t.Context(), 1); err != nil || s.Run.Done() != 4 || s.Run.Held != 4 || s.Run.Total != 10 {
				t.Errorf("%v %+v", err, s.Run)
			}
		})
		_, sum, err := proved(t.Context(), t, numbers(10), takes(time.Second), WithShared(shared), WithTotal(10), WithConcurrency(2),
			WithControl(ctl), WithObserver(observe), WithProgressEvery(1500*time.Millisecond))
		if err != nil || sum.Total != 10 {
			t.Errorf("%v %+v", err, sum)
		}
		if len(done) != 3 || done[0] != 2 || done[1] < 4 || done[2] != 8 {
			t.Errorf("done, every 1.5 s: %v", done)
		}
		if s, _ := shared.Status(t.Context(), 1); s.Run != (RunStatus{}) {
			t.Errorf("nobody's run: %+v", s.Run)
		}
	})
}

// Of two runs that want one lane, the one of priority 3 has three calls of four.
func TestPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithPlainLaw(), WithLimits(Limits{RPM: 60}))
		log := new(journal)
		done := make(chan error, 2)
		for name, priority := range map[string]int{"high": 3, "low": 1} {
			fn := func(_ context.Context, i int) (int, error) { log.add(name); return i, nil }
			go func() {
				_, err := Run(t.Context(), numbers(60), fn, WithShared(shared), WithPriority(priority))
				done <- err
			}()
		}
		time.Sleep(39*time.Second + time.Millisecond)
		log.mu.Lock()
		if log.lanes["high"] < 29 || log.lanes["high"] > 31 || log.lanes["low"] < 9 || log.lanes["low"] > 11 {
			t.Errorf("of 40 calls: %v", log.lanes)
		}
		log.mu.Unlock()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
}

// Items that failed wait as long as the backoff says.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(context.Context, int) (int, error) { return 0, errTeapot }
		results, sum, err := proved(t.Context(), t, numbers(1), fn, WithBackoff(time.Hour, time.Hour), WithMaxAttempts(3))
		if err != nil || sum.Elapsed < 12*time.Minute || sum.Elapsed > 2*time.Hour || results[0].Attempts != 3 {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// A lane that nobody has used for its time to live is forgotten.
func TestIdleLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(t, WithIdleLanes(time.Minute))
		runs := func(lane string) {
			must.Get(Run(t.Context(), numbers(1), double, WithShared(shared), WithPoolOf(func(int) string { return lane })))(t)
		}
		known := func() int {
			s := must.Get(shared.Status(t.Context(), 9))(t)
			return s.Known
		}
		runs("a")
		time.Sleep(59 * time.Second)
		runs("b")
		if n := known(); n != 2 {
			t.Errorf("%d lanes are known, want both", n)
		}
		time.Sleep(30 * time.Second)
		runs("b")
		if n := known(); n != 1 {
			t.Errorf("%d lanes are known, want b alone", n)
		}
	})
}
