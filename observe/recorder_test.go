package observe

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// numbers are 0 to n-1.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// trouble is a call that now and then is refused, breaks, is wrong or cut off, and tells
// what it used.
func trouble() batch.Func[int, int] {
	var mu sync.Mutex
	calls := map[int]int{}
	return func(ctx context.Context, i int) (int, error) {
		time.Sleep(time.Duration(50+i%7*40) * time.Millisecond)
		rec := provider.RecorderFrom(ctx)
		rec.Usage(provider.Usage{InputTokens: 100, OutputTokens: int64(i % 5), CachedTokens: 3})
		mu.Lock()
		calls[i]++
		first := calls[i] == 1
		mu.Unlock()
		switch {
		case i%31 == 30:
			return 0, &provider.Error{Kind: provider.Invalid, Status: 400, Message: fmt.Sprintf("item %d is %q", i, "bad")}
		case i%13 == 12 && first:
			return 0, batch.RetryAfter(300*time.Millisecond, errors.New("slow down"))
		case i%11 == 10 && first:
			return 0, &provider.Error{Kind: provider.Server, Status: 500}
		case i%17 == 16 && first:
			return 0, &provider.Error{Kind: provider.TransportFault}
		}
		return i, nil
	}
}

// A recorder's counts equal the run's own summary and results, whatever looks at it meanwhile.
func TestRecorderCountsWhatTheRunDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		var (
			sum     batch.Summary
			samples []Sample
		)
		rec := New(Config{
			Total: n + 7, Before: 7, Work: []Work{{Lane: batch.DefaultLane, Items: n + 3, Bytes: 10*n + 33}},
			Size:     func(in any) int64 { _ = in.(*int); return 10 },
			Price:    func(_ any, _ string, u provider.Usage) (float64, bool) { return float64(u.InputTokens) / 1e6, true },
			OnSample: func(s Sample) { samples = append(samples, s) },
		})
		over := startSnapshots(rec)
		results, err := batch.Run(t.Context(), numbers(n), trouble(), append(rec.Options(),
			batch.WithSummary(&sum), batch.WithPlainLaw(), batch.WithConcurrency(11))...)
		close(over)
		if err != nil || len(results) != n {
			t.Fatal(len(results), err)
		}
		p := rec.Snapshot(time.Now())
		var (
			usage provider.Usage
			doubt provider.Doubtful
		)
		for _, r := range results {
			usage, doubt = usage.Add(r.Usage), doubt.Add(r.Doubtful())
		}
		if p.Spent.Doubtful != doubt || doubt.Calls < 10 || doubt.Usage.InputTokens != int64(100*doubt.Calls) {
			t.Errorf("doubtful: %+v, want %+v", p.Spent.Doubtful, doubt)
		}
		if p.State != Over || p.Answered != sum.Succeeded || p.Failed != sum.Failed || p.NotRun != 0 || p.Total != n+7 || p.Before != 7 {
			t.Errorf("%+v\n%+v", p, sum)
		}
		if p.Calls != int(sum.Counters.Calls) || p.Throttled != int(sum.Counters.Throttled) || p.Broke == 0 || p.Throttled == 0 {
			t.Errorf("%d calls, %d throttled, %d broke; %+v", p.Calls, p.Throttled, p.Broke, sum.Counters)
		}
		if p.Spent.Usage != usage || !near(p.Spent.USD, float64(usage.InputTokens)/1e6) || p.Spent.Priced != n || p.Spent.Unpriced != 0 {
			t.Errorf("%+v, want %+v", p.Spent, usage)
		}
		if len(p.Failures) != 1 || p.Failures[0].Count != sum.Failed || p.Failures[0].Message != "item … is …" || p.Failures[0].Kind != "invalid" || p.Failures[0].Code != "400" {
			t.Errorf("%+v", p.Failures)
		}
		if len(p.Lanes) != 1 || p.Lanes[0].Answered != p.Answered || p.Lanes[0].Left != 3 || p.Lanes[0].LeftBytes != 33 || p.Lanes[0].Spent != p.Spent || p.InFlight+p.Waiting != 0 {
			t.Errorf("%+v", p.Lanes)
		}
		if p.Slowest != 290*time.Millisecond || p.P50 < 100*time.Millisecond || p.P95 > 320*time.Millisecond {
			t.Errorf("slowest %v, p50 %v, p95 %v", p.Slowest, p.P50, p.P95)
		}
		if got, summed := p.At.Sub(p.Began), sumOf(p.Ledger); got != sum.Ran || summed != sum.Ran || p.Ledger[limiter.BoundTail] == 0 || p.Ledger[limiter.BoundConcurrency] == 0 {
			t.Errorf("the run took %v, the snapshot says %v, of which %v were held back: %v", sum.Ran, got, summed, p.Ledger)
		}
		addsUp(t, samples, &p)
	})
}

func sumOf(l Ledger) (sum time.Duration) {
	for _, d := range l {
		sum += d
	}
	return sum
}

// startSnapshots has two goroutines look at the recorder until the channel is closed.
func startSnapshots(rec *Recorder) (over chan struct{}) {
	over = make(chan struct{})
	for range 2 {
		go func() {
			tick := time.NewTicker(170 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case now := <-tick.C:
					rec.Snapshot(now)
					rec.Speeds(30)
				case <-over:
					return
				}
			}
		}()
	}
	return over
}

// addsUp fails the test unless samples come to what the snapshot says.
func addsUp(t *testing.T, samples []Sample, p *Snapshot) {
	t.Helper()
	var all Sample
	for _, s := range samples {
		all = all.Merge(s)
	}
	if all.Answered != p.Answered || all.Failed != p.Failed || all.Calls != p.Calls || all.Throttled != p.Throttled || all.Broke != p.Broke {
		t.Errorf("samples come to %+v, and the run to %+v", all, p)
	}
	if all.InputTokens != p.Spent.InputTokens || all.CachedTokens != p.Spent.CachedTokens || !near(all.USD, p.Spent.USD) || all.Latency.Count() != p.Answered {
		t.Errorf("samples used %+v, and the run %+v", all, p.Spent)
	}
	if !near(all.Span, p.At.Sub(p.Began).Seconds()) || !all.At.Equal(p.At) {
		t.Errorf("samples end at %v after %v s; the run at %v after %v", all.At, all.Span, p.At, p.At.Sub(p.Began))
	}
	for b, d := range p.Ledger {
		if all.Bounds[b] != d {
			t.Errorf("%s: samples say %v, the run %v", limiter.Bound(b), all.Bounds[b], d)
		}
	}
}

// near reports whether two numbers differ by no more than rounding.
func near(a, b float64) bool { return a == b || max(a-b, b-a) <= 1e-9*max(a, b, -a, -b) }

// Samples come a second apart.
func TestSamplesASecondApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var samples []Sample
		rec := New(Config{Every: 300 * time.Millisecond, OnSample: func(s Sample) { samples = append(samples, s) }})
		steady := func(context.Context, int) (int, error) { time.Sleep(100 * time.Millisecond); return 0, nil }
		_, err := batch.Run(t.Context(), numbers(1000), steady, append(rec.Options(), batch.WithPlainLaw(), batch.WithConcurrency(10))...)
		if err != nil || len(samples) < 10 || len(samples) > 11 {
			t.Fatal(len(samples), err)
		}
		for k, s := range samples[:len(samples)-1] {
			if s.Span < 0.7 || s.Span > 1.3 || int(s.Elapsed) != k+1 {
				t.Errorf("sample %d: %v s, at %v", k, s.Span, s.Elapsed)
			}
		}
	})
}

// The same run makes the same calls at the same moments, with a recorder and without one,
// and however often one looks.
func TestRecordingChangesNothing(t *testing.T) {
	run := func(every time.Duration, looks bool) (calls []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var mu sync.Mutex
			fn := trouble()
			noted := func(ctx context.Context, i int) (int, error) {
				mu.Lock()
				calls = append(calls, time.Since(begun))
				mu.Unlock()
				return fn(ctx, i)
			}
			opts := []batch.Option{batch.WithConcurrency(1), batch.WithSeed(7)}
			if every > 0 {
				rec := New(Config{Every: every})
				opts = append(opts, rec.Options()...)
				if looks {
					defer close(startSnapshots(rec))
				}
			}
			must.Get(batch.Run(t.Context(), numbers(80), noted, opts...))(t)
		})
		return calls
	}
	bare := fmt.Sprint(run(0, false))
	for _, got := range []string{fmt.Sprint(run(time.Second, false)), fmt.Sprint(run(200*time.Millisecond, true))} {
		if got != bare {
			t.Errorf("recorded: %s\nwithout:  %s", got, bare)
		}
	}
}

// panicky is an error that panics whatever it is asked.
type panicky struct{}

func (panicky) Error() string  { panic("Error") }
func (panicky) Is(error) bool  { panic("Is") }
func (panicky) Unwrap() error  { return nil }
func (panicky) As(any) bool    { panic("As") }
func explode[T any]() (zero T) { panic("boom") }
func anything(context.Context, int) (int, error) {
	time.Sleep(time.Second)
	return 0, &provider.Error{Kind: provider.Invalid, Message: "no"}
}

// Whatever a function of the Config's does, the run has all its results, the recorder
// counts on, and the run's error says who panicked.
func TestFunctionsThatPanic(t *testing.T) {
	for name, cfg := range map[string]Config{
		"Price":    {Price: func(any, string, provider.Usage) (float64, bool) { panic("boom") }},
		"Size":     {Size: func(any) int64 { panic("boom") }},
		"Describe": {Describe: func(any) (string, int) { panic("boom") }},
		"Code":     {Code: func(error) (string, string) { panic("boom") }},
		"Redact":   {Redact: func(string) string { return explode[string]() }},
		"OnSample": {OnSample: func(Sample) { panic("boom") }},
		"Observer": {Observer: func(batch.Event) { panic("boom") }},
		"OnCall":   {OnCall: func(batch.Call) { panic("boom") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			rec := New(cfg)
			fn := anything
			if name == "Price" {
				fn = func(context.Context, int) (int, error) { time.Sleep(time.Second); return 0, nil }
			}
			results, err := batch.Run(t.Context(), numbers(20), fn, append(rec.Options(), batch.WithConcurrency(2))...)
			p := rec.Snapshot(time.Now())
			if len(results) != 20 || !errors.Is(err, batch.ErrObserver) || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %d results, %v", name, len(results), err)
			}
			if p.Answered+p.Failed != 20 || p.State != Over {
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}

// Errors that panic when they are asked what they are do not keep an item from being
// counted.
func TestErrorsThatPanic(t *testing.T) {
	rec := New(Config{})
	rec.countCall(&batch.Call{Err: panicky{}, Lane: "l"})
	rec.countEnd(&batch.End{Err: panicky{}, Lane: "l", Item: 4})
	rec.event(batch.Event{Status: &batch.Status{At: time.Unix(9, 0)}})
	p := rec.Snapshot(time.Unix(9, 0))
	if p.Failed != 1 || p.Calls != 1 || len(p.Failures) != 1 || p.Failures[0].Examples[0].Line != 5 {
		t.Errorf("%+v", p)
	}
}

// Broken are calls that came to harm: not those that were refused, told what is wrong with
// them, or cut off because the run ended.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		kind             batch.Kind
		err              error
		broke, throttled int
	}{
		{provider.Unknown, errTest, 1, 0},
		{provider.Server, provider.Server, 1, 0},
		{provider.Timeout, provider.Timeout, 1, 0},
		{provider.EmptyAnswer, provider.EmptyAnswer, 1, 0},
		{provider.Unknown, fmt.Errorf("%w: %w", batch.ErrNotRun, context.Canceled), 0, 0},
		{provider.Canceled, provider.Canceled, 0, 0},
		{provider.Invalid, provider.Invalid, 0, 0},
		{provider.Throttled, provider.Throttled, 0, 1},
		{provider.Overloaded, provider.Overloaded, 0, 1},
		{provider.Unknown, nil, 0, 0},
	} {
		rec := New(Config{})
		rec.countCall(&batch.Call{Lane: "l", Kind: c.kind, Err: c.err})
		rec.event(batch.Event{Status: &batch.Status{At: start}})
		if p := rec.Snapshot(start); p.Broke != c.broke || p.Throttled != c.throttled || p.Calls != 1 {
			t.Errorf("%v: %d broke, %d throttled", c.err, p.Broke, p.Throttled)
		}
	}
}

// Nothing that a run may tell makes the recorder panic.
func TestOddNews(t *testing.T) {
	rec := New(Config{Work: []Work{{}, {Lane: "x", Items: -4}}})
	readAll := func() { rec.Snapshot(time.Time{}); rec.Speeds(-1); rec.Speeds(1 << 20) }
	readAll()
	rec.countCall(&batch.Call{Worker: -9, Latency: -time.Hour, Gated: -1, Kind: 200, Err: errors.New("")})
	rec.countCall(&batch.Call{Worker: 1 << 40, Latency: 1 << 62})
	rec.countEnd(&batch.End{Worker: -1, Usage: provider.Usage{InputTokens: -1}})
	rec.event(batch.Event{})
	rec.event(batch.Event{Status: &batch.Status{}})
	readAll()
	late := batch.Status{At: time.Unix(1e9, 0), Lanes: make([]machine.LaneStatus, 40)}
	late.Run.Bound = 250
	rec.event(batch.Event{Status: &late})
	rec.event(batch.Event{Status: &batch.Status{At: time.Unix(1e8, 0)}})
	readAll()
	rec.event(batch.Event{Status: &late})
	rec.event(batch.Event{Summary: &batch.Summary{Elapsed: -1}})
	rec.event(batch.Event{Summary: &batch.Summary{}})
	readAll()
}

// A run that calls nothing is over all the same.
func TestRunWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{})
		must.Get(batch.Run(t.Context(), numbers(0), anything, rec.Options()...))(t)
		if p := rec.Snapshot(time.Now()); p.State != Over || p.Total != 0 || !p.At.Equal(time.Now()) {
			t.Errorf("%+v", p)
		}
	})
}

// The money of a run that is over is that of its summary: nothing is reserved any more.
func TestMoneyAtTheEnd(t *testing.T) {
	rec := New(Config{})
	status := batch.Status{At: time.Unix(1e9, 0)}
	status.Run.Money = batch.Spending{Cap: 100, Spent: 10, Reserved: 40}
	rec.event(batch.Event{Status: &status})
	end := batch.Spending{Cap: 100, Spent: 30, Doubtful: 5}
	rec.event(batch.Event{Summary: &batch.Summary{Money: end}})
	if p := rec.Snapshot(status.At); p.Money != end {
		t.Errorf("%+v, want %+v", p.Money, end)
	}
}

// An item whose Pool panics fails without a word to the recorder, until the summary.
func TestItemsThatNobodyTellsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{})
		pool := batch.WithPoolOf(func(i int) string {
			if i%5 == 4 {
				panic("no pool")
			}
			return ""
		})
		var sum batch.Summary
		_, _ = batch.Run(t.Context(), numbers(20), aSecond, append(rec.Options(), pool, batch.WithSummary(&sum))...)
		p := rec.Snapshot(time.Now())
		if p.Failed != 4 || p.Failed != sum.Failed || p.Answered != 16 || p.Total != 20 {
			t.Errorf("%d failed, %d answered of %d; %+v", p.Failed, p.Answered, p.Total, sum)
		}
	})
}

// Items that a run lets go are neither answered nor failed.
func TestItemsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain := make(chan struct{})
		rec := New(Config{})
		var n atomic.Int64
		fn := func(context.Context, int) (int, error) {
			if time.Sleep(time.Second); n.Add(1) == 10 {
				close(drain)
			}
			return 0, nil
		}
		var sum batch.Summary
		_, err := batch.Run(t.Context(), numbers(200), fn, append(rec.Options(),
			batch.WithDrain(drain), batch.WithSummary(&sum), batch.WithPlainLaw(), batch.WithConcurrency(4))...)
		p := rec.Snapshot(time.Now())
		if !errors.Is(err, batch.ErrDrained) || p.NotRun == 0 || p.NotRun != sum.NotRun || p.Answered != sum.Succeeded || p.Failed != 0 {
			t.Errorf("%v: %+v", err, p)
		}
		if p.Spent.Unpriced != p.Answered {
			t.Errorf("without prices %d of %d have none", p.Spent.Unpriced, p.Answered)
		}
	})
}
