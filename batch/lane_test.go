package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

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

// deadAndWell are items of two pools in turn: the provider stops serving the first.
func deadAndWell(n int) iter.Seq[hinted] {
	return func(yield func(hinted) bool) {
		for i := range n {
			if !yield(hinted{pool: []string{"dead", "well"}[i%2]}) {
				return
			}
		}
	}
}

func servesOnlyOne(ctx context.Context, in hinted) (string, error) {
	pause(ctx, time.Second)
	if in.pool == "dead" {
		return "", &provider.Error{Kind: provider.QuotaExhausted, Code: "insufficient_quota"}
	}
	return LaneFrom(ctx), nil
}

// Where the provider stops serving one pool, the items of the other are all run, and the
// input is read to its end. The error says that the provider stopped, and why; nobody has
// drained anything.
func TestOneDeadPoolOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results, sum, err := proved(t.Context(), t, deadAndWell(5000), servesOnlyOne, WithConcurrency(8))
		var fault *provider.Error
		if !errors.Is(err, ErrStopped) || errors.Is(err, ErrDrained) || !errors.As(err, &fault) || fault.Code != "insufficient_quota" {
			t.Fatal(err)
		}
		if len(results) != 5000 || sum.Succeeded != 2500 || sum.NotRun != 2500 || sum.Failed != 0 {
			t.Errorf("%d results, %+v", len(results), sum)
		}
		for _, r := range results {
			if well := r.Pool == "well"; well != (r.Err == nil) || !well && (!errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, provider.QuotaExhausted)) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// If such a run is drained or abandoned before its input has ended, the error is that as
// well.
func TestDeadPoolAndDrained(t *testing.T) {
	for name, c := range map[string]struct {
		stop func(ctl *Control, cancel func())
		kind error
	}{
		"drained":   {func(ctl *Control, _ func()) { ctl.Drain() }, ErrDrained},
		"abandoned": {func(_ *Control, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ctl := NewControl()
				time.AfterFunc(time.Minute, func() { c.stop(ctl, cancel) })
				_, sum, err := proved(ctx, t, deadAndWell(1<<40), servesOnlyOne, WithConcurrency(8), WithControl(ctl))
				if !errors.Is(err, c.kind) || !errors.Is(err, ErrStopped) || !errors.Is(err, provider.QuotaExhausted) || sum.Succeeded == 0 {
					t.Errorf("%v %+v", err, sum)
				}
			})
		})
	}
}

// A field that differs from item to item, taken for a pool's name, makes a lane of each.
// Over the cap on lanes the run ends: items with a lane are run, items without one are not,
// and nothing is lost.
func TestTooManyLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := WithMaxLanes(10)
		results, sum, err := proved(t.Context(), t, numbers(1<<40), takes(time.Second), most,
			WithPoolOf(func(i int) string { return fmt.Sprintf("item-%d", i) }), WithConcurrency(4))
		if !errors.Is(err, ErrTooManyLanes) || errors.Is(err, ErrStopped) || errors.Is(err, ErrDrained) || !strings.Contains(err.Error(), `lane "item-10" would be one more than 10`) {
			t.Fatal(err)
		}
		if sum.Succeeded != 10 || sum.Failed != 0 || sum.NotRun != len(results)-10 || sum.NotRun == 0 {
			t.Errorf("%d results, %+v", len(results), sum)
		}
		for i, r := range results {
			if well := i < 10; well != (r.Err == nil) || !well && (!errors.Is(r.Err, ErrNotRun) || !errors.Is(r.Err, ErrTooManyLanes)) {
				t.Fatalf("item %d: %v", i, r.Err)
			}
		}
	})
}

// The call knows which of its item's it is.
func TestCallFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		fn := func(ctx context.Context, _ int) (int, error) {
			calls = append(calls, CallFrom(ctx))
			if len(calls) < 3 {
				return 0, errors.New("broken")
			}
			return 0, nil
		}
		_, _, err := proved(t.Context(), t, numbers(2), fn, WithConcurrency(1))
		if slices.Sort(calls); err != nil || !slices.Equal(calls, []int{1, 1, 2, 2}) && !slices.Equal(calls, []int{1, 1, 2, 3}) {
			t.Errorf("%v, %v", calls, err)
		}
		if CallFrom(t.Context()) != 0 {
			t.Error("a context that is not a call's has a number")
		}
	})
}

// A snapshot shows as many lanes as package observe keeps apart by name.
func TestPictureShowsManyLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shown := 0
		_, _, err := proved(t.Context(), t, numbers(400), func(ctx context.Context, i int) (int, error) { return i, pause(ctx, time.Second) },
			WithConcurrency(100), WithPoolOf(func(i int) string { return fmt.Sprint("lane ", i%40) }),
			WithObserver(func(e Event) {
				if e.Status != nil {
					shown = max(shown, len(e.Status.Lanes))
				}
			}), WithProgressEvery(100*time.Millisecond))
		if err != nil || shown != busiestLanes || shown < 32 {
			t.Errorf("%d lanes, %v", shown, err)
		}
	})
}

// A lane that is named has what was said of it, the others have not.
func TestWithLaneIsAboutThatLane(t *testing.T) {
	for lane, most := range map[string]time.Duration{"told": 3 * time.Minute, "other": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			fn := func(_ context.Context, i int) (int, error) { return i, nil }
			pool := WithPoolOf(func(int) string { return lane })
			_, sum, err := proved(t.Context(), t, numbers(4), fn, pool, WithLane("told", LaneConfig{Limits: Limits{RPM: 1}}))
			if err != nil || sum.Succeeded != 4 || sum.Elapsed > 2*most || sum.Elapsed < most/2 && lane == "told" {
				t.Errorf("%s: %v in %v", lane, err, sum.Elapsed)
			}
		})
	}
}

// A server of one's own whose answers take the longer the more it is asked at once is asked
// no more at once than its target of latency allows.
func TestLocalServerIsPacedByLatency(t *testing.T) {
	most := func(t *testing.T, opts ...Option) (most int) {
		synctest.Test(t, func(t *testing.T) {
			type book struct{ begun, flying, most int }
			books := make(chan book, 1)
			books <- book{}
			fn := func(ctx context.Context, i int) (int, error) {
				b := <-books
				b.begun, b.flying = b.begun+1, b.flying+1
				if b.begun > 1000 { // when it has had time to settle
					b.most = max(b.most, b.flying)
				}
				books <- b
				err := pause(ctx, time.Duration(b.flying)*100*time.Millisecond)
				b = <-books
				b.flying--
				books <- b
				return i, err
			}
			if _, err := Run(t.Context(), numbers(2000), fn, append(opts, WithConcurrency(64))...); err != nil {
				t.Error(err)
			}
			most = (<-books).most
		})
		return most
	}
	local, other := most(t, WithLocalServer(time.Second)), most(t)
	if local > 20 || other < 40 {
		t.Errorf("%d calls at once to your own server, %d to another", local, other)
	}
}

// A run that made a hundred calls a second before a ramp makes as many right after it, and
// by the first of them the concurrency is used in full.
func TestNoLimitOutsideARamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		began, over := time.Now(), time.Time{}
		fn := func(ctx context.Context, i int) (int, error) {
			n := log.add("")
			err := pause(ctx, 100*time.Millisecond)
			if n == 500 {
				over = time.Now().Add(time.Second + 10*time.Second) // the wait, and the ramp
				return i, RetryAfter(time.Second, errors.New("busy"))
			}
			return i, err
		}
		_, sum, err := proved(t.Context(), t, numbers(2000), fn, exact, WithRamp(5, 20, 10*time.Second), WithConcurrency(10))
		if err != nil || sum.Succeeded != 2000 {
			t.Fatal(err, sum)
		}
		before, within := log.until(began.Add(4*time.Second)), log.until(over)
		after := log.until(over.Add(2*time.Second)) - within
		if before < 390 || within < 600 || within > 640 || after < 190 {
			t.Errorf("%d calls in four seconds before, %d until the ramp's end, and %d in two seconds after it", before, within, after)
		}
	})
}

// Chance is the seed's: with the same one the same waits follow, with another others.
func TestSeedDecidesTheWaits(t *testing.T) {
	took := func(seed uint64) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			fn := func(context.Context, int) (int, error) { return 0, &Error{Kind: Server} }
			_, sum, err := proved(t.Context(), t, numbers(1), fn, WithSeed(seed))
			if d = sum.Elapsed; err != nil || sum.Failed != 1 || d == 0 {
				t.Errorf("%v: %+v", err, sum)
			}
		})
		return d
	}
	if a, b, c := took(1), took(1), took(2); a != b || a == c {
		t.Errorf("seed 1 took %v and %v, seed 2 %v", a, b, c)
	}
}

// A run keeps the mean latency of a server that answers one call in a tenth of a second
// near its target, under either law; and without a target it takes what it gets.
func TestLatencyTarget(t *testing.T) {
	const each, calls = 100 * time.Millisecond, 600
	for name, c := range map[string]struct {
		opts []Option
		most time.Duration
	}{
		"model":        {[]Option{WithLatencyTarget(time.Second)}, 1250 * time.Millisecond},
		"plain":        {[]Option{WithPlainLaw(), WithLatencyTarget(time.Second)}, 1250 * time.Millisecond},
		"order":        {[]Option{WithLatencyTarget(time.Second), WithPlainLaw()}, 1250 * time.Millisecond},
		"plain, at no": {[]Option{WithPlainLaw(), WithLatencyTarget(0)}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			turn := make(chan struct{}, 1) // the call that holds it is served
			call := func(context.Context, int) (time.Duration, error) {
				came := time.Now()
				turn <- struct{}{}
				time.Sleep(each)
				<-turn
				return time.Since(came), nil
			}
			began := time.Now()
			results := must.Get(Run(t.Context(), numbers(calls), call, c.opts...))(t)
			var sum time.Duration
			for _, r := range results {
				sum += r.Value
			}
			switch mean, took := sum/calls, time.Since(began); {
			case c.most > 0 && mean > c.most:
				t.Errorf("%s: a mean of %v for a target of a second", name, mean)
			case c.most == 0 && mean < 3*time.Second:
				t.Errorf("%s: a mean of %v", name, mean)
			case took > calls*each*11/10:
				t.Errorf("%s: it took %v, and could in %v", name, took, calls*each)
			}
		})
	}
}

// A target below nothing is none.
func TestLatencyTargetIsNotNegative(t *testing.T) {
	if _, err := Run(t.Context(), numbers(1), never(t), WithLatencyTarget(-1)); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

// The first key says that its account has no money left: neither of its lanes makes a call any
// more once that was handed over. The lanes of the other key finish the run. If that account is
// empty, too, the run stops, and its error names the account.
func TestAccountsStopAsAWhole(t *testing.T) {
	empty := provider.Classify(429, nil, []byte(`{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}`))
	if !empty.Account {
		t.Fatal("the words of an empty account are taken for one lane's")
	}
	opts := []Option{WithPoolOf(func(int) string { return "p" }), WithPool("p", "a1", "a2", "b1", "b2", "b3"), WithConcurrency(1)}
	for _, lane := range []string{"a1", "a2", "b1", "b2", "b3"} {
		opts = append(opts, WithLane(lane, LaneConfig{Account: lane[:1]}))
	}
	for name, c := range map[string]struct {
		moneyOfB, succeed int
		want              error
	}{"one account": {1 << 20, 3000, nil}, "all accounts": {700, 1200, ErrStopped}} {
		money := map[string]int{"a": 500, "b": c.moneyOfB}
		after := 0
		fn := func(ctx context.Context, _ int) (int, error) {
			account := LaneFrom(ctx)[:1]
			if money[account]--; money[account] < 0 {
				after++
				return 0, empty
			}
			return 0, nil
		}
		_, sum, err := proved(t.Context(), t, numbers(3000), fn, opts...)
		if !errors.Is(err, c.want) || sum.Succeeded != c.succeed {
			t.Errorf("%s: %v, %+v", name, err, sum)
		}
		if refused := 1; c.want == nil && after != refused || c.want != nil && after != 2 {
			t.Errorf("%s: %d calls were refused", name, after)
		}
		if c.want != nil && !strings.Contains(err.Error(), "account ") {
			t.Errorf("%s: does not name the account: %v", name, err)
		}
	}
}

// The quota of one lane is used up: the other lane of its account goes on, as the words are not about the account.
func TestAQuotaStopsItsLaneAlone(t *testing.T) {
	quota := &provider.Error{Kind: provider.QuotaExhausted, Status: 429, Message: "the quota of this model is used up"}
	fn := func(ctx context.Context, _ int) (int, error) {
		if LaneFrom(ctx) == "a1" {
			return 0, quota
		}
		return 0, nil
	}
	_, sum, err := proved(t.Context(), t, numbers(100), fn, WithPool("", "a1", "a2"), WithConcurrency(1),
		WithLane("a1", LaneConfig{Account: "a"}), WithLane("a2", LaneConfig{Account: "a"}))
	if err != nil || sum.Succeeded != 100 {
		t.Errorf("%d of 100 answered, %v", sum.Succeeded, err)
	}
}
