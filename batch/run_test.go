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

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Every item gives one result at its own place, whatever the concurrency.
func TestRunReturnsResultsInInputOrder(t *testing.T) {
	for _, workers := range []int{1, 2, 64} {
		results, sum, err := proved(t.Context(), t, numbers(1000), double, WithConcurrency(workers), WithReadAhead(3))
		if err != nil || sum.Succeeded != 1000 {
			t.Fatalf("%v %+v", err, sum)
		}
		for i, r := range results {
			if r.Index != i || r.Item != i || r.Value != 2*i || r.Lane != machine.DefaultPool || r.Attempts != 1 || r.Calls != 1 {
				t.Fatalf("result %d is %+v", i, r)
			}
		}
	}
}

// A result goes out before the coordinator hears that its item is settled: while
// the one has no room, the other is not told.
func TestResultGoesOutFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := coordinator.New(coordinator.Config{})
		go c.Run()
		s, err := c.Open(t.Context(), machine.RunConfig{})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer([]*machine.Item{{}})
		s.EndInput()
		r := &run[int, int]{session: s, results: make(chan Result[int, int])}
		settled := func() uint64 {
			synctest.Wait()
			status, err := c.Status(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return status.Totals.Settled
		}
		go r.settle(Result[int, int]{}, <-s.Work(), machine.Outcome{Signal: machine.Succeeded})
		if n := settled(); n != 0 {
			t.Errorf("%d settled before the result was out", n)
		}
		<-r.results
		if n := settled(); n != 1 {
			t.Errorf("%d settled when the result was out", n)
		}
		c.Close()
		<-c.Done()
	})
}

// An empty input is a run that went well.
func TestRunOfNothing(t *testing.T) {
	results, sum, err := proved(t.Context(), t, numbers(0), never(t))
	if err != nil || len(results) != 0 || sum.Items() != 0 {
		t.Error(err, results, sum)
	}
}

// A result tells what became of its item: a refusal used no attempt, a failure
// did, and the times add up to all that passed.
func TestResultFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := 0
		fn := func(ctx context.Context, i int) (int, error) {
			call++
			rec := provider.RecorderFrom(ctx)
			rec.Usage(provider.Usage{InputTokens: 10, OutputTokens: int64(call)})
			switch call {
			case 1:
				pause(ctx, 100*time.Millisecond)
				return 0, RetryAfter(2*time.Second, errors.New("slow down"))
			case 2:
				pause(ctx, time.Second)
				return 0, &provider.Error{Kind: provider.Server}
			}
			pause(ctx, 3*time.Second)
			rec.Response(200, http.Header{"X-Request-Id": {"req_1"}})
			rec.Finish("stop")
			return 42, nil
		}
		results, sum, err := proved(t.Context(), t, numbers(1), fn, exact)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Value != 42 || r.Err != nil || r.Attempts != 2 || r.Calls != 3 || r.Status != 200 || r.RequestID != "req_1" || r.Finish != "stop" {
			t.Errorf("%+v", r)
		}
		if want := (provider.Usage{InputTokens: 30, OutputTokens: 6}); r.Usage != want || sum.Usage != want {
			t.Errorf("usage %+v, in sum %+v", r.Usage, sum.Usage)
		}
		if r.Queued != 0 || r.Latency != 3*time.Second || r.Waited != sum.Elapsed-4100*time.Millisecond || r.Waited <= 2*time.Second {
			t.Errorf("queued %v, latency %v, waited %v of %v", r.Queued, r.Latency, r.Waited, sum.Elapsed)
		}
		if n := sum.Counters; n.Cooldowns != 1 || n.Throttled != 1 || n.HandedOver != 2 || n.Delayed != 1 {
			t.Errorf("%+v", n)
		}
	})
}

// Queued is the time before the first call, and only that.
func TestQueuedIsTheTimeBeforeTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, _, err := proved(t.Context(), t, numbers(5), takes(time.Minute), WithLimits(limiter.Limits{RPM: 60}))
		for i, r := range results {
			if err != nil || r.Queued != time.Duration(i)*time.Second || r.Waited != 0 || r.Latency != time.Minute {
				t.Errorf("item %d: queued %v, waited %v, latency %v, %v", i, r.Queued, r.Waited, r.Latency, err)
			}
		}
	})
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

// A panic in the input ends the run with ErrInput, after what was read has ended.
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

// In input order a slow head holds back what is ahead of it, and the reader of the
// input with it: no more is taken than fits.
func TestInputOrderWithASlowHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 8, 2
		begun, taken, atHead := time.Now(), 0, 0
		items := func(yield func(int) bool) {
			for i := range 100 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				pause(ctx, time.Minute)
				atHead = taken
			}
			return i, nil
		}
		var sum Summary
		next := 0
		for r, err := range Stream(t.Context(), items, fn, WithInputOrder(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil || r.Index != next || time.Since(begun) != time.Minute {
				t.Fatalf("%v, result %d at place %d after %v", err, r.Index, next, time.Since(begun))
			}
			next++
		}
		if next != 100 || atHead != ahead+workers || !sum.Proves() {
			t.Errorf("%d results; %d items taken while the head was slow, want %d", next, atHead, ahead+workers)
		}
	})
}

// A slow consumer slows the reader of the input: beyond what the loop has seen, no
// more than read-ahead and concurrency together are ever taken; nor much less.
func TestSlowConsumerBoundsTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 10, 4
		taken, seen, most := 0, 0, 0
		items := func(yield func(int) bool) {
			for i := range 200 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		var sum Summary
		for _, err := range Stream(t.Context(), items, double, WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
			synctest.Wait() // everything else goes as far as it can
			most = max(most, taken-seen)
		}
		if most != ahead+workers || seen != 200 || !sum.Proves() {
			t.Errorf("%d items were taken ahead of the loop, want %d; %d seen", most, ahead+workers, seen)
		}
	})
}

// The call knows its lane, lanes of a pool take turns, and results say where.
func TestPoolOfLanes(t *testing.T) {
	var log journal
	fn := func(ctx context.Context, _ hinted) (string, error) {
		log.add(LaneFrom(ctx))
		return LaneFrom(ctx), nil
	}
	items := func(yield func(hinted) bool) {
		for range 100 {
			if !yield(hinted{pool: "keys"}) {
				return
			}
		}
	}
	results, _, err := proved(t.Context(), t, items, fn, WithPool("keys", "a", "b"))
	if err != nil || log.lanes["a"] != 50 || log.lanes["b"] != 50 {
		t.Errorf("%v %v", err, log.lanes)
	}
	for _, r := range results {
		if r.Pool != "keys" || r.Lane != r.Value {
			t.Fatalf("%+v", r)
		}
	}
	if LaneFrom(t.Context()) != "" {
		t.Error("a context that is not a call's has a lane")
	}
}

// A fallback lane is used while the first cools, and only then; the cooled lane's
// items need not wait for it.
func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		fn := func(ctx context.Context, _ int) (int, error) {
			lane := LaneFrom(ctx)
			n := log.add(lane)
			pause(ctx, time.Second)
			if lane == "main" && n <= 2 {
				return 0, RetryAfter(10*time.Second, errors.New("busy"))
			}
			return 0, nil
		}
		_, sum, err := proved(t.Context(), t, numbers(40), fn, exact, WithConcurrency(2),
			WithPoolOf(func(int) string { return "p" }), WithFallback("p", "main", "spare"))
		// Two calls meet the refusal at 1 s. Until 11 s the spare takes two a second; the
		// probe of the main lane is one call more.
		if err != nil || sum.Succeeded != 40 || log.lanes["spare"] < 20 || log.lanes["spare"] > 24 || sum.Counters.Cooldowns != 1 {
			t.Errorf("%v, %v, %+v", err, log.lanes, sum.Counters)
		}
	})
}

// When the provider will serve the run no more, what flies may end, what waits is
// not run, and the error is both ErrStopped and what the provider said.
func TestStrandedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			pause(ctx, time.Second)
			if i >= 10 {
				return 0, &provider.Error{Kind: provider.QuotaExhausted, Code: "insufficient_quota", Message: "add credits"}
			}
			return i, nil
		}
		results, sum, err := proved(t.Context(), t, numbers(10_000), fn, WithConcurrency(4))
		var fault *provider.Error
		if !errors.Is(err, ErrStopped) || !errors.As(err, &fault) || fault.Code != "insufficient_quota" {
			t.Fatal(err)
		}
		if sum.Succeeded < 10 || sum.Succeeded > 12 || sum.Counters.Calls > 16 || len(results) > 2000 {
			t.Errorf("%+v", sum)
		}
		last := results[len(results)-1]
		if !errors.Is(last.Err, ErrNotRun) || !errors.As(last.Err, &fault) || last.Calls != 0 {
			t.Errorf("%+v", last)
		}
	})
}

// One lane of a pool that is exhausted hands its items to the other.
func TestExhaustedLaneOfAPool(t *testing.T) {
	fn := func(ctx context.Context, _ int) (int, error) {
		if LaneFrom(ctx) == "empty" {
			return 0, provider.Unauthorized
		}
		return 0, nil
	}
	_, sum, err := proved(t.Context(), t, numbers(100), fn, WithPoolOf(func(int) string { return "p" }), WithPool("p", "empty", "full"))
	if err != nil || sum.Succeeded != 100 {
		t.Errorf("%v %+v", err, sum)
	}
}

// A model that is not found stops the run if that is the first answer; later it is
// the failure of the item that asked for it.
func TestModelNotFound(t *testing.T) {
	missing := &provider.Error{Kind: provider.ModelNotFound, Status: 404}
	fn := func(bad int) Func[int, int] {
		return func(ctx context.Context, i int) (int, error) {
			if i >= bad {
				provider.RecorderFrom(ctx).Response(404, nil)
				return 0, missing
			}
			return i, nil
		}
	}
	results, sum, err := proved(t.Context(), t, numbers(100), fn(0), WithConcurrency(1))
	if !errors.Is(err, ErrStopped) || !errors.Is(err, provider.ModelNotFound) || sum.Counters.Calls != 1 || !errors.Is(results[0].Err, ErrNotRun) {
		t.Errorf("first: %v %+v", err, sum)
	}
	results, sum, err = proved(t.Context(), t, numbers(100), fn(99), WithConcurrency(1))
	if r := results[99]; err != nil || sum.Failed != 1 || sum.Succeeded != 99 || !errors.Is(r.Err, provider.ModelNotFound) ||
		errors.Is(r.Err, ErrNotRun) || r.Calls != 1 || r.Attempts != 1 || r.Status != 404 || r.Lane == "" {
		t.Errorf("later: %v %+v", err, r)
	}
}
