package observe

import (
	"context"
	"errors"
	"iter"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// aSecond is a call of one second, that uses what was estimated.
func aSecond(ctx context.Context, _ int) (int, error) {
	time.Sleep(time.Second)
	provider.RecorderFrom(ctx).Usage(provider.Usage{InputTokens: 700, OutputTokens: 300})
	return 0, nil
}

// slowly are numbers that come one each d.
func slowly(n int, d time.Duration) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			time.Sleep(d)
			if !yield(i) {
				return
			}
		}
	}
}

// A real run, in a world of which all is known: what holds it back is named, with what
// would next, and the ledger is nearly all of it.
func TestScenes(t *testing.T) {
	cost := batch.WithCostOf(func(int) batch.Cost { return batch.Cost{Requests: 1, Input: 700, Output: 300} })
	limits := func(rpm, tpm float64) batch.Option { return batch.WithLimits(batch.Limits{RPM: rpm, TPM: tpm}) }
	for _, c := range []struct {
		name     string
		items    iter.Seq[int]
		opts     []batch.Option
		by, next limiter.Bound
		factor   float64
		allowed  float64
	}{
		{"requests", numbers(900), []batch.Option{limits(600, 1.2e6), batch.WithConcurrency(64)}, limiter.BoundRequests, limiter.BoundTokens, 2, 10},
		{"tokens", numbers(900), []batch.Option{limits(2400, 6e5), batch.WithConcurrency(64)}, limiter.BoundTokens, limiter.BoundRequests, 4, 10},
		{"-c", numbers(900), []batch.Option{limits(1200, 6e6), batch.WithConcurrency(10)}, limiter.BoundConcurrency, limiter.BoundRequests, 2, 10},
		{"a window", numbers(900), []batch.Option{
			batch.WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Window: 10}), batch.WithConcurrency(40),
		}, limiter.BoundWindow, limiter.BoundConcurrency, 4, 10},
		{"input", slowly(900, 100*time.Millisecond), []batch.Option{limits(3000, 6e6), batch.WithConcurrency(64)}, limiter.BoundInput, limiter.BoundRequests, 5, 50},
		{"output", numbers(900), []batch.Option{batch.WithConcurrency(40), batch.WithGate(func(context.Context) { time.Sleep(3 * time.Second) })}, limiter.BoundOutput, limiter.BoundConcurrency, 4, 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			rec := New(Config{})
			looked := make(chan Snapshot, 1)
			// Between whole seconds, at which most calls end and others begin.
			timer := time.AfterFunc(45700*time.Millisecond, func() { looked <- rec.Snapshot(time.Now()) })
			defer timer.Stop()
			var sum batch.Summary
			opts := append([]batch.Option{batch.WithPlainLaw(), cost, batch.WithSummary(&sum)}, c.opts...)
			must.Get(batch.Run(t.Context(), c.items, aSecond, append(opts, rec.Options()...)...))(t)
			p := <-looked
			if h := p.Bottleneck; h.By != c.by || h.Next != c.next || math.Abs(h.Factor/c.factor-1) > 0.1 || h.Lane != "" {
				t.Errorf("%s: %+v", c.name, h)
			}
			if math.Abs(p.Allowed/c.allowed-1) > 0.1 || math.Abs(p.Speed/10-1) > 0.25 || p.InFlight == 0 || p.Oldest == 0 {
				t.Errorf("%s: %v allowed, %v a second, %d in flight, the oldest for %v", c.name, p.Allowed, p.Speed, p.InFlight, p.Oldest)
			}
			end := rec.Snapshot(time.Now())
			share := end.Ledger[c.by].Seconds() / sum.Ran.Seconds()
			if sumOf(end.Ledger) != sum.Ran || share < 0.65 {
				t.Errorf("%s has %.2f of the time: %v", c.name, share, end.Ledger)
			}
			if want := 900 / sum.Ran.Seconds() / c.allowed; math.Abs(end.Efficiency-want) > 0.1 {
				t.Errorf("%s: efficiency %v, about %v", c.name, end.Efficiency, want)
			}
		})
	}
}

// A run that is paused, drained, or has no lane left says so, and when it is over that.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{})
		ctl := batch.NewControl()
		looks := map[time.Duration]State{5 * time.Second: Running, 15 * time.Second: Paused, 25 * time.Second: Running, 30700 * time.Millisecond: Draining}
		seen := make(chan string, len(looks))
		for at, want := range looks {
			time.AfterFunc(at, func() {
				if p := rec.Snapshot(time.Now()); p.State != want || (want != Running) != (p.Bottleneck.By == limiter.ParseBound(want.String())) {
					seen <- want.String() + " is " + p.State.String() + ", held by " + string(p.Bottleneck.By)
					return
				}
				seen <- ""
			})
		}
		time.AfterFunc(10*time.Second, func() { _ = ctl.Pause(t.Context()) })
		time.AfterFunc(20*time.Second, func() { _ = ctl.Resume(t.Context()) })
		time.AfterFunc(30200*time.Millisecond, func() { ctl.Drain() })
		_, err := batch.Run(t.Context(), numbers(5000), aSecond, append(rec.Options(), batch.WithControl(ctl), batch.WithPlainLaw(), batch.WithConcurrency(4))...)
		for range looks {
			if fault := <-seen; fault != "" {
				t.Error(fault)
			}
		}
		if p := rec.Snapshot(time.Now()); p.State != Over || err == nil {
			t.Errorf("%v, %v", p.State, err)
		}
	})
}

// An item for which there is no lane ends the reading, and not the work: the run goes on with
// what it has read, by what holds that back, and ends when that has ended.
func TestRunThatReadsNoMore(t *testing.T) {
	const tooMany, perMinute = 120, 6
	synctest.Test(t, func(t *testing.T) {
		rec := New(Config{Work: []Work{{Lane: "slow", Items: 9999}, {Lane: "one too many", Items: 1}}, Total: 10_000})
		looked := make(chan Snapshot, 1)
		timer := time.AfterFunc(10*time.Minute, func() { looked <- rec.Snapshot(time.Now()) })
		defer timer.Stop()
		pool := batch.WithPoolOf(func(i int) string {
			if i == tooMany {
				return "one too many"
			}
			return "slow"
		})
		slow := batch.WithLane("slow", batch.LaneConfig{Law: limiter.Model, Limits: batch.Limits{RPM: perMinute}})
		var sum batch.Summary
		_, err := batch.Run(t.Context(), numbers(10_000), aSecond, append(rec.Options(), pool, slow, batch.WithMaxLanes(1), batch.WithSummary(&sum))...)
		if !errors.Is(err, batch.ErrTooManyLanes) {
			t.Error(err)
		}
		p := <-looked
		left := float64(sum.Succeeded-p.Answered) / perMinute // how much was read varies
		near := max(1, left/30)                               // a call more or less of the sixty that were seen
		if p.State != Running || p.Bottleneck.By != limiter.BoundRequests || math.Abs(p.Ends.Likely.Minutes()-left) > near || left < 5 {
			t.Errorf("%v, held by %q, %d answered, ends in %v, want %.1f minutes (%+v)", p.State, p.Bottleneck.By, p.Answered, p.Ends.Likely, left, p.Ends)
		}
	})
}
