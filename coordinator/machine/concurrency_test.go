package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// runsTogether has runs of these priorities, each with n items on a lane of its own, under a
// bound on all calls. Calls end one by one, a second apart, and it tells whose calls left.
func runsTogether(t *testing.T, bound, n int, priorities ...int) *bed {
	t.Helper()
	b := &bed{Machine: New(Config{Concurrency: bound, Lane: LaneConfig{Law: limiter.Plain}}), now: storyStart}
	for i, p := range priorities {
		id := RunID(i + 1)
		b.Step(b.now, RunOpened(id, RunConfig{Concurrency: n, Priority: p}))
		for k := range n {
			b.Step(b.now, Offered(id, []*Item{{Seq: uint64(k), Pool: fmt.Sprintf("lane-%d", id)}}))
		}
	}
	b.decide()
	return b
}

// The calls of all runs together stay within the machine's bound, and the runs take turns for
// the places that come free, by their priorities.
func TestConcurrencyOfAllRuns(t *testing.T) {
	b := runsTogether(t, 4, 40, 3, 1)
	var served []string
	left := 0
	for range 40 {
		for _, g := range b.calls[left:] {
			served = append(served, fmt.Sprint(g.Run))
		}
		if len(b.calls) != 4 {
			t.Fatalf("%d calls are in flight, of 4 that may be", len(b.calls))
		}
		b.now = b.now.Add(time.Second)
		g := b.calls[0]
		b.calls = b.calls[1:]
		left = len(b.calls)
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
		b.decide()
	}
	if got, want := strings.Join(served[:12], " "), "1 1 1 2 1 1 1 2 1 1 1 2"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

// Runs that sleep in the line of a lane get their share of the places, and so do those that
// wait for nothing else: here five of each, and places for four calls.
func TestConcurrencyOfAllRunsIsSharedWithSleepers(t *testing.T) {
	b := &bed{Machine: New(Config{Concurrency: 4, Lane: LaneConfig{Law: limiter.Plain, Window: 3}}), now: storyStart}
	const runs, items = 10, 40
	for id := RunID(1); id <= runs; id++ {
		pool := "shared"
		if id > runs/2 {
			pool = fmt.Sprintf("lane-%d", id)
		}
		b.Step(b.now, RunOpened(id, RunConfig{Concurrency: items}))
		for k := range items {
			b.Step(b.now, Offered(id, []*Item{{Seq: uint64(k), Pool: pool}}))
		}
	}
	b.decide()
	served := make([]int, runs+1)
	for range 200 {
		b.now = b.now.Add(time.Second)
		g := b.calls[0]
		b.calls = b.calls[1:]
		served[g.Run]++
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
		b.decide()
	}
	if least, most := slices.Min(served[1:]), slices.Max(served[1:]); most > 2*least {
		t.Errorf("the runs had %v calls, want no more than twice as many as another", served[1:])
	}
}

// An item that ends without a call needs no place.
func TestConcurrencyOfAllRunsHoldsNoReleases(t *testing.T) {
	b := runsTogether(t, 2, 10, 1, 1)
	b.Step(b.now, Drained(1))
	if ready := b.decide(); len(ready.Grants) != 9 {
		t.Errorf("%d items of 9 are released", len(ready.Grants))
	}
}

// A run that waits for a place is said to be held back by concurrency, and its ceiling is the
// smaller of its own and that of all. One that waits for its lane is held back by that.
func TestConcurrencyOfAllRunsIsSaid(t *testing.T) {
	b := runsTogether(t, 2, 10, 1, 1)
	for id := RunID(1); id <= 2; id++ {
		if s := b.RunStatus(id); s.Bound != BoundConcurrency || s.Concurrency != 2 {
			t.Errorf("run %d is held back by %v, under a ceiling of %d", id, s.Bound, s.Concurrency)
		}
	}
	b.Step(b.now, RunOpened(3, RunConfig{Concurrency: 1}))
	if s := b.RunStatus(3); s.Concurrency != 1 {
		t.Errorf("its own ceiling is 1, and it is said to be %d", s.Concurrency)
	}
	g := b.calls[0]
	b.calls = nil
	b.Step(b.now, HandedOver(g, Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute}))
	b.decide()
	if s := b.RunStatus(g.Run); s.Bound != BoundCooldown {
		t.Errorf("the lane of run %d cools, and it is held back by %v", g.Run, s.Bound)
	}
}

// A law that speaks hears of no more places than all runs together have.
func TestConcurrencyOfAllRunsBoundsWhatIsFree(t *testing.T) {
	by := &maker{}
	b := &bed{Machine: New(Config{Concurrency: 3, Lane: LaneConfig{Maker: by}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Concurrency: 10}))
	b.offer(5, "", 0)
	if up := by.law().latest().up; up.Free != 3 {
		t.Errorf("%d places are free, of 3", up.Free)
	}
	b.tell(2)
	if up := by.law().latest().up; up.Free != 1 || up.InFlight != 2 {
		t.Errorf("%d places are free with %d in flight, of 3", up.Free, up.InFlight)
	}
	b.Step(b.now, ConcurrencyChanged(0, 1))
	b.decide()
	if up := by.law().latest().up; up.Free != 0 || up.InFlight != 2 {
		t.Errorf("%d places are free with %d in flight, of 1", up.Free, up.InFlight)
	}
}

// A bound that cannot be meant is refused.
func TestConcurrencyOfAllRunsIsChecked(t *testing.T) {
	for n, ok := range map[int]bool{-1: false, 0: true, 1: true, MaxConcurrency: true, MaxConcurrency + 1: false} {
		if err := (Config{Concurrency: n}).Validate(); (err == nil) != ok {
			t.Errorf("%d: %v", n, err)
		}
	}
}
