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

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

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
