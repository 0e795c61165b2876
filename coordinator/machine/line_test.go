package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// offerTo offers n items of a run.
func (b *bed) offerTo(id RunID, n int, pool string, tokens float64) {
	for range n {
		b.Step(b.now, Offered(id, []*Item{{Seq: b.seq, Pool: pool, Cost: limiter.Cost{Requests: 1, Input: tokens}}}))
		b.seq++
	}
	b.decide()
}

// A run that has no room when its turn comes is passed over: the lane waits for nobody.
func TestRunWithoutRoomIsPassedOver(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{Concurrency: 2})
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.offer(2, "", 0) // the second is the first in the line
	b.offerTo(2, 1, "", 0)
	b.Step(b.now, LaneDefined("other", LaneConfig{Law: limiter.Plain}))
	first := b.calls[0]
	b.calls = nil
	b.Step(b.now, Settled(first, Outcome{Signal: Succeeded}))
	b.offer(2, "other", 0) // take the run's places before the line is asked
	if len(b.calls) != 3 || b.calls[2].Run != 2 {
		t.Errorf("granted %v, want two of run 1 on the other lane and one of run 2", b.calls)
	}
}

// Who joins a line waits behind those that sleep there, also where the lane has room at that
// moment, and also with an item that is smaller.
func TestNobodyPassesTheLine(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{})
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.Step(b.now, RunOpened(3, RunConfig{}))
	b.offer(1, "", 0)
	b.offerTo(2, 1, "", 500)
	first := b.calls[0]
	b.calls = nil
	b.Step(b.now, Settled(first, Outcome{Signal: Succeeded}))
	b.offerTo(3, 1, "", 1)
	if len(b.calls) != 1 || b.calls[0].Run != 2 {
		t.Errorf("granted %v, want one of run 2", b.calls)
	}
}

// A pool that sleeps on a lane that becomes ill, and may use another meanwhile, does so at once,
// and comes back once it is well.
func TestAllInLineFallBack(t *testing.T) {
	pools := []PoolConfig{{Name: "p", Lanes: []string{"first", "second"}, Tiers: each(2)}}
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{Pools: pools})
	b.Step(b.now, LaneDefined("second", LaneConfig{Law: limiter.Plain, Window: 3}))
	for id := RunID(2); id <= 4; id++ {
		b.Step(b.now, RunOpened(id, RunConfig{Pools: pools}))
	}
	for id := RunID(1); id <= 4; id++ {
		b.offerTo(id, 5, "p", 0)
	}
	b.end(0, Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute})
	settle := func(n int) {
		for range n {
			b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
			b.calls = b.calls[1:]
		}
		b.decide()
	}
	for _, want := range []string{"1second 2second 3second", "4second 1second 2second"} {
		var served []string
		for _, g := range b.calls {
			served = append(served, fmt.Sprintf("%d%s", g.Run, g.Lane))
		}
		if got := strings.Join(served, " "); got != want {
			t.Errorf("granted %s, want %s", got, want)
		}
		settle(3)
	}
	b.wait(2 * time.Minute) // the first lane is probed
	for len(b.calls) > 0 {
		settle(1)
	}
	if q := b.lanes["second"].line; q.first() != nil {
		t.Errorf("%s of run %d waits for the second lane while the first is well", q.first().name, q.first().run.id)
	}
}

// What holds a lane back holds each run that sleeps in its line, from the same moment on, though
// only the first is asked.
func TestLedgerOfThoseInLine(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{})
	for id := RunID(2); id <= 5; id++ {
		b.Step(b.now, RunOpened(id, RunConfig{}))
	}
	for id := RunID(1); id <= 5; id++ {
		b.offerTo(id, 2, "", 0)
	}
	b.wait(3 * time.Second)
	b.end(0, Outcome{Signal: Throttled, Directed: true, RetryAfter: 20 * time.Second})
	b.wait(9 * time.Second)
	for id := RunID(1); id <= 5; id++ {
		s := b.RunStatus(id)
		if s.Bound != BoundCooldown || s.Ledger[BoundWindow] != 3*time.Second || s.Ledger[BoundCooldown] != 9*time.Second {
			t.Errorf("run %d: %q; %v by the window, %v by the cooldown", id, s.Bound, s.Ledger[BoundWindow], s.Ledger[BoundCooldown])
		}
	}
}

// What befalls a lane counts once for each run that draws on it then, however many of its pools
// do, and stays when the run's pool is closed; not for one that is opened later.
func TestWhatBefallsALaneCountsForEachRun(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Pools: drawingOnX("p", "q").Pools})
	b.Step(b.now, RunOpened(2, drawingOnX("p")))
	b.offer(1, "p", 0)
	b.offer(1, "q", 0)
	b.offerTo(2, 1, "p", 0)
	b.end(0, Outcome{Signal: Throttled})
	b.Step(b.now, RunOpened(3, drawingOnX("p")))
	b.offerTo(3, 1, "p", 0)
	b.Step(b.now, RunOpened(4, RunConfig{}))
	b.Step(b.now, Settled(b.calls[1], Outcome{Signal: Succeeded}))
	b.Step(b.now, InputEnded(2))
	over := b.decide().Finished
	if len(over) != 1 || over[0].Counters.Cooldowns != 1 {
		t.Errorf("at its end: %+v", over)
	}
	for id, want := range map[RunID]uint64{1: 1, 3: 0, 4: 0} {
		for range 2 { // asking changes nothing
			if got := b.RunCounters(id).Cooldowns; got != want {
				t.Errorf("run %d: %d cooldowns, want %d", id, got, want)
			}
		}
	}
}
