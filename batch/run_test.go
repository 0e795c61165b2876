package batch

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
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
		s := must.Get(c.Open(t.Context(), machine.RunConfig{}))(t)
		s.Offer([]*machine.Item{{}})
		s.EndInput()
		r := &run[int, int]{config: new(config), session: s, results: make(chan *job[int, int])}
		settled := func() uint64 {
			synctest.Wait()
			status := must.Get(c.Status(t.Context(), 0))(t)
			return status.Totals.Settled
		}
		go r.deliver(new(leash), &job[int, int]{}, <-s.Work(), machine.Outcome{Signal: machine.Succeeded})
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
				pause(ctx, time.Second)
				return 0, &provider.Error{Kind: provider.Server}
			case 2:
				pause(ctx, 100*time.Millisecond)
				return 0, RetryAfter(2*time.Second, errors.New("slow down"))
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

// stale is a summary of another run, which must not be taken for this one's.
var stale = Summary{Succeeded: 7, Elapsed: time.Hour}

// However early a run ends, it has a summary that proves, and its observer hears of the
// end, once. Only where its options cannot be meant is it no run, and the observer hears
// nothing.
func TestRunThatCannotBegin(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	closed, open := newShared(t, WithPlainLaw()), newShared(t, WithPlainLaw())
	closed.Close()
	defer open.Close()
	used := NewControl()
	must.Get(Run(t.Context(), numbers(0), double, WithControl(used)))(t)
	for name, c := range map[string]struct {
		ctx   context.Context
		opt   Option
		want  error
		calls int
	}{
		"context":           {over, Option{}, enough, 1},
		"context on Shared": {over, WithShared(open), enough, 1},
		"context, closed":   {over, WithShared(closed), enough, 1},
		"closed Shared":     {t.Context(), WithShared(closed), ErrClosed, 1},
		"options":           {t.Context(), WithConcurrency(0), ErrConfig, 0},
		"control":           {t.Context(), WithControl(used), ErrConfig, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sum, calls := stale, 0
			observer := func(e Event) {
				if calls++; e.Summary == nil || *e.Summary != (Summary{Elapsed: e.Summary.Elapsed, At: e.Summary.At}) {
					t.Errorf("%+v", e)
				}
			}
			results, err := Run(c.ctx, numbers(5), never(t), c.opt, WithSummary(&sum), WithObserver(observer))
			if !errors.Is(err, c.want) || len(results) > 0 || calls != c.calls {
				t.Errorf("%v %v, the observer was told %d times", err, results, calls)
			}
			if sum != (Summary{Elapsed: sum.Elapsed, At: sum.At}) || sum.Elapsed == stale.Elapsed || sum.At.IsZero() != (c.calls == 0) || !sum.Proves() {
				t.Errorf("%+v", sum)
			}
		})
	}
}

// An observer may panic at the summary of a run that could not begin. The error then
// reports the panic and the reason.
func TestPanicInTheObserverOfARunThatCannotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, numbers(5), never(t), WithObserver(func(Event) { explode() }))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrObserver) {
		t.Error(err)
	}
}

// A context that ends while the coordinator is asked leaves nothing behind, the goroutine
// that saves what is learned included.
func TestRunThatCannotBeginDoesNotWaitForASave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		save := func(Memory) error { t.Error("there was nothing to save"); return nil }
		r := &run[int, int]{config: configure([]Option{WithMemorySaver(save)}), finalSummary: make(chan Summary, 1)}
		ctx, cancel := context.WithCancelCause(t.Context())
		r.abort = cancel
		must.Do(t, r.open(ctx))
		r.session.EndInput() // as Open does for one who has left
		r.release()
		if err := r.failStart(context.Canceled); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// answers is a call whose answer begins after some time and is whole after more.
func answers(begins, whole time.Duration) Func[int, int] {
	return func(ctx context.Context, n int) (int, error) {
		for i, wait := range [...]time.Duration{begins, whole} {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			if i == 0 {
				provider.RecorderFrom(ctx).AnswerBegins()
			}
		}
		return n, nil
	}
}

func results(t *testing.T, fn Func[int, int], opts ...Option) (all []Result[int, int]) {
	t.Helper()
	for r, err := range Stream(t.Context(), numbers(3), fn, append([]Option{WithPlainLaw(), WithConcurrency(1), WithMaxAttempts(1)}, opts...)...) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// An answer that has begun is ended by no clock of the attempt, however long it takes, and
// the worker's next calls have theirs.
func TestAnswerThatHasBegunIsNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 1 {
				return answers(3*time.Minute, 0)(ctx, i) // it begins too late
			}
			return answers(time.Minute, 11*time.Minute)(ctx, i)
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute)) {
			if late := errors.Is(r.Err, provider.Timeout); late != (r.Item == 1) || !late && r.Err != nil {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// The time of an item ends an answer on its way, and says so.
func TestItemsTimeEndsAnAnswerThatHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, n int) (int, error) {
			began := time.Now()
			_, err := answers(time.Minute, time.Hour)(ctx, n)
			if took := time.Since(began); took != 5*time.Minute {
				t.Errorf("item %d: ended after %v", n, took)
			}
			return n, err
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute), WithItemTimeout(5*time.Minute)) {
			if !errors.Is(r.Err, ErrItemTimeout) || !strings.Contains(r.Err.Error(), "5m0s") {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// A goroutine that a call left behind does not stop the clock of the next call.
func TestClockOfTheNextCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left context.Context
		fn := func(ctx context.Context, n int) (int, error) {
			if left != nil {
				provider.RecorderFrom(left).AnswerBegins()
			}
			if left = ctx; n == 0 {
				return n, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute)) {
			if late := errors.Is(r.Err, provider.Timeout); late != (r.Item > 0) {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// The time of an item that was left is not that of the worker's next call, which ends by its
// own.
func TestNextAttemptHasItsOwnCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn := func(ctx context.Context, n int) (int, error) {
			if n == 0 {
				return answers(time.Minute, 5*time.Minute)(ctx, n)
			}
			return answers(time.Hour, 0)(ctx, n)
		}
		for _, r := range results(t, fn, WithAttemptTimeout(2*time.Minute), WithItemTimeout(time.Hour)) {
			if late := errors.Is(r.Err, provider.Timeout) && !errors.Is(r.Err, ErrItemTimeout); late != (r.Item > 0) || r.Item == 0 && r.Err != nil {
				t.Errorf("item %d: %v", r.Item, r.Err)
			}
		}
	})
}

// endings are the ways to end a run.
var endings = map[string]func(stop chan struct{}, ctl *Control, cancel context.CancelFunc, shared *Shared){
	"drain":   func(stop chan struct{}, _ *Control, _ context.CancelFunc, _ *Shared) { close(stop) },
	"control": func(_ chan struct{}, ctl *Control, _ context.CancelFunc, _ *Shared) { ctl.Drain() },
	"context": func(_ chan struct{}, _ *Control, cancel context.CancelFunc, _ *Shared) { cancel() },
	"close":   func(_ chan struct{}, _ *Control, _ context.CancelFunc, shared *Shared) { go shared.Close() },
}

// room is the number of items that a run takes with these options before the caller has
// taken two results.
const room = 9

func roomy(opts ...Option) []Option {
	return append(opts, WithConcurrency(1), WithReadAhead(room-1))
}

// atFirst ranges over a Stream, and does something with the first result when all else has
// gone as far as it can.
func atFirst(results iter.Seq2[Result[int, int], error], do func()) (n int, err error) {
	for _, err = range results {
		if n++; n == 1 {
			synctest.Wait()
			do()
			synctest.Wait()
		}
	}
	if err != nil {
		n--
	}
	return n, err
}

// A run may be told to stop when all its items are answered and the input has given exactly
// as many as there was room for. It then asks its input once more: if that was all, it has
// no error.
func TestStopWithNothingLeft(t *testing.T) {
	for name, tell := range endings {
		for _, items := range []int{room - 1, room, room + 1} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					stop, ctl, shared := make(chan struct{}), NewControl(), newShared(t, WithPlainLaw(), WithReadAhead(room))
					var sum Summary
					opts := roomy(WithShared(shared), WithDrain(stop), WithControl(ctl), WithSummary(&sum))
					n, err := atFirst(Stream(ctx, numbers(items), double, opts...), func() { tell(stop, ctl, cancel, shared) })
					if left := items > room; (err != nil) != left || n != min(items, room) || sum.Succeeded != n || !sum.Proves() {
						t.Errorf("%d items: %d results, %v, %+v", items, n, err, sum)
					}
				})
			})
		}
	}
}

// noMore gives as many items as there is room for, and then blocks until the test ends.
func noMore(t *testing.T) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range room {
			if !yield(i) {
				return
			}
		}
		t.Error("it is asked for more")
		<-t.Context().Done()
	}
}

// The input is not asked where its answer would decide nothing: an item was left that it gave,
// too many have failed, or the loop over the results was left. There an input that blocks does
// not keep a run that is to end.
func TestStopAsksNothingThatItNeedNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		ends := sync.OnceFunc(func() { close(stop) })
		fn := func(context.Context, int) (int, error) {
			synctest.Wait() // the others wait
			ends()          // now and then the law lets two calls go at once
			return 0, nil
		}
		_, sum, err := proved(t.Context(), t, noMore(t), fn, roomy(WithDrain(stop))...)
		if !errors.Is(err, ErrDrained) || sum.Failed > 0 || sum.NotRun == 0 || sum.NotRun+sum.Succeeded != room {
			t.Errorf("%v %+v", err, sum)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n, err := atFirst(Stream(t.Context(), noMore(t), fail(Invalid), roomy(WithPlainLaw(), WithMaxFailures(room))...), nothing)
		if !errors.Is(err, ErrTooManyFailures) || n != room {
			t.Errorf("%v after %d", err, n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		for range Stream(t.Context(), noMore(t), double, roomy(WithPlainLaw())...) {
			synctest.Wait()
			break
		}
	})
}

// An input that panics as it is asked for the last time is the run's error.
func TestStopByAnInputThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		items := func(yield func(int) bool) {
			for i := range room {
				if !yield(i) {
					return
				}
			}
			explode()
		}
		n, err := atFirst(Stream(t.Context(), items, double, roomy(WithPlainLaw(), WithDrain(stop))...), func() { close(stop) })
		if !errors.Is(err, ErrInput) || n != room {
			t.Errorf("%v after %d", err, n)
		}
	})
}

// Credits are given back whole, also if the reader has not come for the last ones: with no further result
// to come for long, places for calls would stay empty.
func TestCreditsAreGivenBackWhole(t *testing.T) {
	r := &run[int, int]{config: &config{}, creditBatch: 2, credit: make(chan int, 1)}
	for range 7 {
		r.returnCredits()
	}
	if n := <-r.credit; n != 6 || r.owedCredits != 1 {
		t.Errorf("%d credits are given back and %d owed, want 6 and 1", n, r.owedCredits)
	}
}
