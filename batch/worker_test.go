package batch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

var errSlow = errors.New("slow")

func newLeash(t *testing.T, clock clockwork.Clock) *leash {
	l := &leash{clock: clock, parent: t.Context()}
	t.Cleanup(l.drop)
	return l
}

// The timer of one call never cuts off the next: where it fired as its call ended,
// the next has a context of its own.
func TestLateTimerDoesNotCutOffTheNextCall(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	first := l.acquire(time.Second, errSlow)
	clock.Advance(time.Second) // first: the timer fires; second: the call ends, too late to stop it
	<-first.Done()
	l.release(time.Second, false)
	second := l.acquire(time.Second, errSlow)
	if second.Err() != nil || second == first {
		t.Fatalf("the second call begins with a context that ended: %v", context.Cause(second))
	}
	l.release(time.Second, false)
}

// A call is ended after its own limit, counted from its own start, with the cause
// that was given for it.
func TestEachCallHasItsOwnTime(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.acquire(3*time.Second, errSlow)
	clock.Advance(2 * time.Second)
	l.release(3*time.Second, false)
	ctx := l.acquire(3*time.Second, errSlow)
	clock.Advance(2 * time.Second)
	if ctx.Err() != nil {
		t.Fatal("the second call was ended by the first one's timer")
	}
	clock.Advance(time.Second)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errSlow) {
		t.Errorf("ended with %v", context.Cause(ctx))
	}
	l.release(3*time.Second, false)
	l.acquire(time.Second, errSlow)
	l.release(time.Second, false)
	other := errors.New("other")
	ctx = l.acquire(time.Second, other)
	clock.Advance(time.Second)
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), other) {
		t.Errorf("ended with %v, want %v", context.Cause(ctx), other)
	}
	l.release(time.Second, false)
}

// Without a limit no timer runs, and one that ran for the call before is stopped.
func TestCallWithoutLimitIsNotEnded(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.acquire(time.Second, nil)
	l.release(time.Second, false)
	ctx := l.acquire(0, nil)
	clock.Advance(time.Hour)
	if ctx.Err() != nil {
		t.Errorf("ended: %v", context.Cause(ctx))
	}
	l.release(0, false)
}

// What a careless function left on its context is let go after leashCalls calls.
func TestLeashLetsGo(t *testing.T) {
	l := newLeash(t, clockwork.NewFakeClock())
	child, cancel := context.WithCancel(l.acquire(time.Second, errSlow))
	defer cancel()
	l.release(time.Second, false)
	for range leashCalls - 1 {
		l.acquire(time.Second, errSlow)
		l.release(time.Second, false)
	}
	if child.Err() != nil {
		t.Error("let go too early: the price is paid more often than it need be")
	}
	l.acquire(time.Second, errSlow)
	if child.Err() == nil {
		t.Error("still held")
	}
	l.release(time.Second, false)
}

// Calls on one leash allocate next to nothing.
func TestLeashIsShared(t *testing.T) {
	l := newLeash(t, clockwork.NewRealClock())
	allocs := testing.AllocsPerRun(10*leashCalls, func() {
		l.acquire(time.Hour, errSlow)
		l.release(time.Hour, false)
	})
	if allocs >= 1 {
		t.Errorf("%v allocations a call", allocs)
	}
}

// What a failed call left is let go with it, and a call that did not return leaves no
// timer behind.
func TestLeashEndsWithAFailure(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	ctx := l.acquire(time.Second, errSlow)
	l.release(time.Second, true)
	if ctx.Err() == nil {
		t.Error("what a failed call left is still held")
	}
	ctx = l.acquire(time.Second, errSlow)
	l.drop()
	clock.Advance(time.Second)
	if errors.Is(context.Cause(ctx), errSlow) {
		t.Error("the timer of a call that is over has fired")
	}
}

// A call that ran out of time leaves nothing of that to the next call of its worker.
// In a bubble, as on a busy machine a millisecond is over before a call has begun.
func TestNextCallBeginsAlive(t *testing.T) {
	synctest.Test(t, nextCallBeginsAlive)
}

func nextCallBeginsAlive(t *testing.T) {
	dead := 0
	call := func(ctx context.Context, n int) (int, error) {
		if ctx.Err() != nil {
			dead++
		}
		if n%2 == 0 {
			<-ctx.Done()
		}
		return n, nil // an answer all the same: it came as the time ran out
	}
	for r, err := range Stream(t.Context(), numbers(6), call, WithPlainLaw(), WithConcurrency(1), WithAttemptTimeout(time.Millisecond)) {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
	}
	if dead > 0 {
		t.Errorf("%d calls began with a context that had ended", dead)
	}
}

// A lane's own bound on a call holds on that lane, be it shorter than the run's or longer;
// an item's time is the shorter one of all the same.
func TestAttemptTimeoutOfTheLane(t *testing.T) {
	for name, c := range map[string]struct {
		run, item, want time.Duration
		lane            string
		kind            error
	}{
		"shorter":               {time.Minute, 0, 10 * time.Second, "quick", provider.Timeout},
		"longer":                {time.Minute, 0, 30 * time.Minute, "slow", provider.Timeout},
		"longer than no bound":  {0, 0, 30 * time.Minute, "slow", provider.Timeout},
		"none of its own":       {time.Minute, 0, time.Minute, "other", provider.Timeout},
		"the item's is shorter": {time.Minute, 5 * time.Second, 5 * time.Second, "quick", ErrItemTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			results, _, err := proved(t.Context(), t, numbers(1), takes(time.Hour), WithAttemptTimeout(c.run), WithItemTimeout(c.item), WithMaxAttempts(1),
				WithLane("quick", LaneConfig{AttemptTimeout: 10 * time.Second}), WithLane("slow", LaneConfig{AttemptTimeout: 30 * time.Minute}),
				WithPoolOf(func(int) string { return c.lane }))
			if r := results[0]; err != nil || r.Latency != c.want || !errors.Is(r.Err, c.kind) {
				t.Errorf("%s: after %v: %v, %v", name, r.Latency, r.Err, err)
			}
		})
	}
}

// A lane's own bounds on its items hold there, be they tighter than the run's or wider: how often one may fail, and how
// long it may take in all.
func TestBoundsOfTheLanesItems(t *testing.T) {
	for lane, c := range map[string]struct {
		kind  error
		tries int
		took  time.Duration
	}{
		"twice":   {provider.Timeout, 2, 0},
		"brief":   {ErrItemTimeout, 0, 15 * time.Second},
		"patient": {ErrItemTimeout, 0, 90 * time.Second},
		"other":   {ErrItemTimeout, 0, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, began := 0, time.Now()
			results, _, err := proved(t.Context(), t, numbers(1), takes(time.Hour), WithAttemptTimeout(10*time.Second), WithItemTimeout(time.Minute), WithMaxAttempts(1000),
				WithLane("twice", LaneConfig{MaxAttempts: 2, ItemTimeout: time.Hour}), WithLane("brief", LaneConfig{ItemTimeout: 15 * time.Second}),
				WithLane("patient", LaneConfig{ItemTimeout: 90 * time.Second}), WithCalls(func(Call) { calls++ }),
				WithBackoff(time.Millisecond, time.Millisecond),
				WithPoolOf(func(int) string { return lane }))
			took := time.Since(began)
			if err != nil || len(results) != 1 || !errors.Is(results[0].Err, c.kind) || c.tries > 0 && calls != c.tries || c.took > 0 && took != c.took {
				t.Errorf("%s: %d calls in %v: %v, %v", lane, calls, took, results, err)
			}
		})
	}
}

// Each call of an item is bounded by the lane that it goes out on.
func TestAttemptTimeoutFollowsTheLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[string]time.Duration{}
		note := WithCalls(func(c Call) { took[c.Lane] = max(took[c.Lane], c.Latency) })
		fn := func(ctx context.Context, i int) (int, error) { return i, pause(ctx, time.Hour) }
		_, _, err := proved(t.Context(), t, numbers(1), fn, WithConcurrency(1), WithMaxAttempts(4), WithPool("p", "quick", "slow"), WithPoolOf(func(int) string { return "p" }),
			WithLane("quick", LaneConfig{AttemptTimeout: 7 * time.Second}), WithLane("slow", LaneConfig{AttemptTimeout: 70 * time.Second}), note)
		if err != nil || took["quick"] != 7*time.Second || took["slow"] != 70*time.Second {
			t.Errorf("%v, %v", took, err)
		}
	})
}

// A server of one's own is held to a minute, or to half of the lane's time for a call if that
// is less: a longer timeout does not let it be slower.
func TestLocalServersTarget(t *testing.T) {
	for _, c := range []struct {
		opts []Option
		want time.Duration
	}{
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute)}, 30 * time.Second},
		{[]Option{WithLocalServer(0), WithAttemptTimeout(time.Minute), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, time.Minute},
		{[]Option{WithLocalServer(0), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Second})}, 5 * time.Second},
		{[]Option{WithLocalServer(0)}, time.Minute},
		{[]Option{WithLocalServer(time.Second), WithLaneDefaults(LaneConfig{AttemptTimeout: 10 * time.Minute})}, time.Second},
	} {
		if got := configure(c.opts).machine.Lane.Target; got != c.want {
			t.Errorf("%v: %v, want %v", c.opts, got, c.want)
		}
	}
}

// A failed item is a result and no error of the run; Permanent ends it at once.
func TestPermanentIsNotTriedAgain(t *testing.T) {
	no := errors.New("no")
	fn := func(_ context.Context, i int) (int, error) {
		if i == 1 {
			return 0, Permanent(no)
		}
		return i, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(3), fn)
	if r := results[1]; err != nil || sum.Failed != 1 || !errors.Is(r.Err, no) || !errors.Is(r.Err, provider.Invalid) || r.Calls != 1 || r.Attempts != 1 {
		t.Errorf("%v %+v", err, results[1])
	}
}

// A failure is tried again until the attempts are used up, and no further.
func TestAttemptsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		fn := func(context.Context, int) (int, error) { return 0, down }
		results, _, err := proved(t.Context(), t, numbers(1), fn, WithMaxAttempts(3))
		if r := results[0]; err != nil || r.Calls != 3 || r.Attempts != 3 || !errors.Is(r.Err, down) {
			t.Errorf("%v %+v", err, r)
		}
	})
}

// A wait that the function names holds the lane for exactly that long.
func TestRetryAfterFromTheFunction(t *testing.T) {
	waitsExactly(t, func(context.Context) error { return RetryAfter(7*time.Second, errors.New("busy")) })
}

// So does one in a header, behind a library whose errors carry none: it is read on
// the way by provider.Transport.
func TestRetryAfterFromAHeader(t *testing.T) {
	base := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"7"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`)),
		}, nil
	})
	client := &http.Client{Transport: &provider.Transport{Base: base}}
	waitsExactly(t, func(ctx context.Context) error {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.invalid/", nil)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return errors.New("sdk: something went wrong")
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// waitsExactly fails the test unless a call that was refused with fail leaves
// again after seven seconds.
func waitsExactly(t *testing.T, fail func(context.Context) error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log journal
		fn := func(ctx context.Context, _ int) (int, error) {
			log.add(LaneFrom(ctx))
			if len(log.times) == 1 {
				return 0, fail(ctx)
			}
			return 0, nil
		}
		results, _, err := proved(t.Context(), t, numbers(1), fn, exact, WithConcurrency(1))
		if err != nil || results[0].Err != nil || len(log.times) != 2 || log.times[1].Sub(log.times[0]) != 7*time.Second {
			t.Errorf("%v %+v, calls at %v", err, results, log.times)
		}
	})
}

// An attempt is ended when its time is up, which does not begin before the call
// leaves: with one call a minute and ten seconds each, the last of five waits four
// minutes and succeeds. A call that hangs fails as a timeout, which is a deadline
// and not a cancellation.
func TestAttemptTimeoutDoesNotCountQueueing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 4 {
				return i, pause(ctx, 9*time.Second)
			}
			return i, pause(ctx, time.Hour)
		}
		results, sum, err := proved(t.Context(), t, numbers(5), fn,
			WithLimits(limiter.Limits{RPM: 1}), WithAttemptTimeout(10*time.Second), WithMaxAttempts(1))
		if err != nil || sum.Succeeded != 1 || results[4].Err != nil || results[4].Queued != 4*time.Minute {
			t.Fatalf("%v %+v", err, results)
		}
		for _, r := range results[:4] {
			if !errors.Is(r.Err, provider.Timeout) || !errors.Is(r.Err, context.DeadlineExceeded) || errors.Is(r.Err, context.Canceled) || r.Latency != 10*time.Second {
				t.Errorf("after %v: %v", r.Latency, r.Err)
			}
		}
	})
}

// Without an attempt timeout a call may take as long as it likes.
func TestNoAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, sum, err := proved(t.Context(), t, numbers(1), takes(24*time.Hour), WithAttemptTimeout(0)); err != nil || sum.Succeeded != 1 {
			t.Error(err, sum)
		}
	})
}

// An item ends when its own time is up: while it waits, with the error of its
// latest call, and while its call runs, which is cut off.
func TestItemTimeout(t *testing.T) {
	for name, c := range map[string]struct {
		fn   Func[int, int]
		kind provider.Kind
	}{
		"waiting": {func(context.Context, int) (int, error) { return 0, RetryAfter(time.Hour/6, errors.New("busy")) }, provider.Throttled},
		"calling": {takes(time.Hour), provider.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				results, sum, err := proved(t.Context(), t, numbers(1), c.fn, exact, WithItemTimeout(time.Minute))
				if r := results[0]; err != nil || !errors.Is(r.Err, ErrItemTimeout) || !errors.Is(r.Err, c.kind) || r.Calls != 1 || r.Lane == "" || sum.Failed != 1 {
					t.Errorf("%v %+v", err, r)
				}
				if sum.Elapsed != time.Minute {
					t.Errorf("it ended after %v", sum.Elapsed)
				}
			})
		})
	}
}

func explode() { panic("boom") }

// A panic in the function is its item's error, with the stack of the place where
// it happened; the other items do not notice.
func TestPanicIsTheItemsError(t *testing.T) {
	fn := func(_ context.Context, i int) (int, error) {
		if i == 3 {
			explode()
		}
		return i, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(10), fn)
	var panicked *PanicError
	if err != nil || sum.Failed != 1 || !errors.As(results[3].Err, &panicked) {
		t.Fatalf("%v %+v", err, results[3])
	}
	if panicked.Value != "boom" || !bytes.Contains(panicked.Stack, []byte("batch.explode")) || !strings.Contains(panicked.Error(), "boom") {
		t.Errorf("%v", panicked)
	}
	if results[3].Calls != 1 || results[3].Attempts != 1 {
		t.Errorf("it was tried again: %+v", results[3])
	}
}

// A panic with an error can be asked for that error.
func TestPanicWithAnError(t *testing.T) {
	fn := func(context.Context, int) (int, error) { panic(io.ErrUnexpectedEOF) }
	results, _, _ := proved(t.Context(), t, numbers(1), fn)
	if !errors.Is(results[0].Err, io.ErrUnexpectedEOF) {
		t.Error(results[0].Err)
	}
}

// A function that ends its goroutine, as a test's FailNow does, loses its item and
// nothing else, also when every worker meets one.
func TestGoexitIsTheItemsError(t *testing.T) {
	fn := func(_ context.Context, i int) (int, error) {
		if i%2 == 0 {
			runtime.Goexit()
		}
		return i, nil
	}
	results, sum, err := proved(t.Context(), t, numbers(20), fn, WithConcurrency(2))
	if err != nil || sum.Failed != 10 || sum.Succeeded != 10 || !errors.Is(results[4].Err, errGone) {
		t.Errorf("%v %+v", err, sum)
	}
}

// A panic in the input ends the run with ErrInput, after the items read before have ended.
func TestPanicInTheInput(t *testing.T) {
	items := func(yield func(int) bool) {
		for i := range 5 {
			yield(i)
		}
		panic("torn")
	}
	results, sum, err := proved(t.Context(), t, items, double)
	if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "torn") || len(results) != 5 || sum.Succeeded != 5 {
		t.Errorf("%v %+v", err, sum)
	}
}
