package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// newTieredBed is a bed with a pool of two tiers, a lane in each. Neither lane has a limit.
func newTieredBed(c PoolConfig, own LaneConfig) *bed {
	if own.Maker == nil {
		own.Law = limiter.Plain
	}
	own.Cooldown.Jitter = -1
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"own": own, "hosted": {Law: limiter.Plain}}}), now: storyStart}
	c.Name, c.Lanes, c.Tiers = "p", []string{"own", "hosted"}, []int{0, 1}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{c}}))
	return b
}

// settle ends the oldest call well, after so long.
func (b *bed) settle(after time.Duration) {
	b.wait(after)
	g := b.calls[0]
	b.calls = b.calls[1:]
	b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: b.now.Sub(g.Item.Sent)}))
	b.decide()
}

// The wait of a pool's head ends with the head. An item that comes later waits by itself before
// it spills, also where the one before it was withdrawn.
func TestTheWaitForSpillEndsWithItsHead(t *testing.T) {
	for name, end := range map[string]func(b *bed, waits *Item){
		"sent":      func(b *bed, _ *Item) { b.settle(5 * time.Second) },
		"withdrawn": func(b *bed, waits *Item) { b.Step(b.now, Withdrawn(waits)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newTieredBed(PoolConfig{Spill: 10 * time.Second}, LaneConfig{Window: 1})
			items := []*Item{{Seq: 0, Pool: "p"}, {Seq: 1, Pool: "p"}, {Seq: 2, Pool: "p"}}
			b.Step(b.now, Offered(1, items[:2]))
			b.decide()
			end(b, items[1])
			b.decide()
			b.calls = nil
			b.wait(15 * time.Second)
			b.Step(b.now, Offered(1, items[2:]))
			if b.decide(); len(b.calls) > 0 {
				t.Fatalf("it spills after a wait of nothing: %+v", b.calls)
			}
			b.wait(10 * time.Second)
			if n := len(b.calls); n != 1 || b.calls[0].Lane != "hosted" {
				t.Errorf("%d calls after a wait of ten seconds: %+v", n, b.calls)
			}
		})
	}
}

// An illness is over once a call that left since then was answered, also where that takes longer
// than the cooldowns: each would begin an epoch, and none of its calls be answered in it.
func TestSlowAnswersEndAnIllness(t *testing.T) {
	b := newTieredBed(PoolConfig{After: time.Minute}, LaneConfig{Window: 4})
	call := func() Grant {
		b.calls = nil
		for b.offer(1, "p", 0); len(b.calls) == 0; { // a lane that climbs lets it wait
			b.wait(time.Second)
		}
		if b.calls[0].Lane != "own" {
			t.Fatalf("after %v: %+v", b.now.Sub(storyStart), b.calls)
		}
		return b.calls[0]
	}
	refuse := func(g Grant) {
		b.Step(b.now, Settled(g, Outcome{Signal: Throttled, Directed: true, RetryAfter: 2 * time.Second}))
		b.decide()
	}
	answer := func(g Grant) {
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: b.now.Sub(g.Item.Sent)}))
		b.decide()
	}
	answer(call()) // or a probe would not pass before it is answered
	refuse(call())
	var before Grant
	for i := range 5 {
		b.wait(3 * time.Second)
		probe := call()
		b.wait(10 * time.Second) // it passes, as it was not refused
		if i > 0 {
			answer(before) // of the epoch before
		}
		before = probe
		refuse(call())
	}
	b.wait(3 * time.Second)
	call()
	b.wait(10 * time.Second)
	answer(before)
	refuse(call())
	b.calls = nil
	b.offer(1, "p", 0)
	if len(b.calls) > 0 {
		t.Errorf("a lane that fell ill just now is passed over: %+v", b.calls)
	}
}

// An item whose run has no money left keeps the failures that it had.
func TestUnpaidItemsAreRemembered(t *testing.T) {
	b := &bed{Machine: New(Config{Lane: LaneConfig{Law: limiter.Plain}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Budget: 10, Price: func(*Item, string, float64) (limiter.Money, bool) { return 6, true }}))
	b.Step(b.now, Offered(1, []*Item{{Payload: named("k")}}))
	b.decide()
	b.end(time.Second, Outcome{Signal: Failed, Spent: 6})
	b.wait(time.Minute)
	if n := len(b.calls); n != 1 || b.calls[0].Verdict != EndUnpaid {
		t.Fatalf("%d grants: %+v", n, b.calls)
	}
	if k := b.SaveItems()["k"]; k.Failures != 1 {
		t.Errorf("remembered: %+v", k)
	}
}

// A lane that had stopped by itself, and joins an account that is of no use, stops for the account:
// another run does not try it again.
func TestAStoppedLaneSharesItsAccountsFate(t *testing.T) {
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"a": {Law: limiter.Plain, Account: "x"}, "b": {Law: limiter.Plain}}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	for _, lane := range []string{"a", "b"} {
		b.offer(1, lane, 0)
		b.Step(b.now, HandedOver(b.calls[len(b.calls)-1], Outcome{Signal: Exhausted, Account: lane == "a", Cause: errors.New(lane)}))
		b.decide()
	}
	b.Step(b.now, LaneDefined("b", LaneConfig{Law: limiter.Plain, Account: "x"}))
	b.decide()
	var why *AccountError
	if l := b.lanes["b"]; l.phase != Stopped || !errors.As(l.cause, &why) {
		t.Errorf("%v, %v", l.phase, l.cause)
	}
}

// A person vouches for a lane that rests by its leader's word. Its pool gives the lane a new start: it uses the next tier once the lane
// has rested for as long again.
func TestAResetLaneOfALeaderRecovers(t *testing.T) {
	remote := &maker{}
	b := newTieredBed(PoolConfig{After: time.Minute}, LaneConfig{Maker: remote})
	b.offer(1, "p", 0)
	b.Step(b.now, Delivered("own", restMessage{true}))
	b.decide()
	b.wait(30 * time.Second)
	b.Step(b.now, LaneReset("own"))
	b.decide()
	if b.wait(50 * time.Second); len(b.calls) > 0 {
		t.Fatalf("50 seconds after the reset: %+v", b.calls)
	}
	if b.wait(11 * time.Second); len(b.calls) != 1 || b.calls[0].Lane != "hosted" {
		t.Errorf("a minute after it: %+v", b.calls)
	}
}

// A pool that has spilled keeps its place in the lines of its lanes while items of its own come due.
// Otherwise a pool with many backoffs would never have its turn next to another one.
func TestAPoolThatSpillsKeepsItsTurnThroughBackoffs(t *testing.T) {
	patient := LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 1000}, Errors: limiter.ErrorWindowConfig{MinSamples: 1000}}
	b := newTieredBed(PoolConfig{Spill: time.Second}, patient)
	b.Step(b.now, RunOpened(2, RunConfig{Pools: []PoolConfig{{Name: "q", Lanes: []string{"hosted"}}}}))
	b.offer(41, "p", 0) // the first one holds the better lane for good, the others fail
	for i := range 40 {
		b.Step(b.now, HandedOver(b.calls[i+1], Outcome{Signal: Failed, Directed: true, RetryAfter: 10*time.Second + time.Duration(i)*400*time.Millisecond}))
	}
	b.calls = nil
	for _, lane := range []string{"own", "hosted"} {
		b.Step(b.now, LaneDefined(lane, LaneConfig{Law: limiter.Plain, Window: 1}))
	}
	for i := range 50 {
		b.Step(b.now, Offered(1, []*Item{{Seq: uint64(100 + i), Pool: "p"}}))
		b.Step(b.now, Offered(2, []*Item{{Seq: uint64(i), Pool: "q"}}))
	}
	b.decide()
	served := map[RunID]int{}
	for range 25 {
		for range 10 { // its alarm may ring at each
			b.wait(100 * time.Millisecond)
		}
		g := b.calls[0]
		b.calls = nil
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
		if b.decide(); b.now.Sub(storyStart) > 10*time.Second {
			served[g.Run]++
		}
	}
	if served[1] < 6 || served[2] < 6 {
		t.Errorf("while backoffs of the first run end, the runs had %v calls: want half of them for each", served)
	}
}

// A pool that is awake waits for a place of its run, and not for lanes: that time does not count
// before it spills. Here it is awake as one of its lanes has stopped, and its run is full for 25 s.
func TestTheWaitForAPlaceIsNoWaitForLanes(t *testing.T) {
	one := LaneConfig{Law: limiter.Plain, Window: 1}
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"own": one, "other": one, "hosted": one}, Lane: one}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Concurrency: 3, Pools: []PoolConfig{
		{Name: "p", Lanes: []string{"own", "other", "hosted"}, Tiers: []int{0, 0, 1}, Spill: 10 * time.Second},
	}}))
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.Step(b.now, Offered(2, []*Item{{Pool: "other"}}))
	b.decide()
	b.offer(2, "p", 0) // one of them leaves on the better lane that is free
	b.wait(5 * time.Second)
	b.offer(1, "q", 0)
	b.offer(1, "r", 0) // now the run is full
	if len(b.calls) != 4 {
		t.Fatalf("%d calls are in flight, and 4 could be", len(b.calls))
	}
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Exhausted}))
	b.decide()
	b.wait(25 * time.Second)
	g := b.calls[2]
	b.calls = nil
	b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
	b.decide()
	if b.wait(4900 * time.Millisecond); len(b.calls) > 0 {
		t.Fatalf("after 5 and 4.9 seconds in the line of its lane it spills: %+v", b.calls)
	}
	if b.wait(100 * time.Millisecond); len(b.calls) != 1 || b.calls[0].Lane != "hosted" {
		t.Errorf("after ten seconds: %+v", b.calls)
	}
}

// A lane that rested by its leader's word is well once it follows a law of its own: what befalls it then
// is a new illness.
func TestALaneThatLosesItsLeaderIsWell(t *testing.T) {
	remote := &maker{}
	b := newTieredBed(PoolConfig{After: time.Minute}, LaneConfig{Maker: remote})
	b.offer(1, "p", 0)
	b.Step(b.now, Delivered("own", restMessage{true}))
	b.decide()
	b.wait(50 * time.Second)
	b.Step(b.now, LaneDefined("own", LaneConfig{Law: limiter.Plain}))
	b.decide()
	if len(b.calls) != 1 || b.calls[0].Lane != "own" {
		t.Fatalf("after its new law: %+v", b.calls)
	}
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Minute}))
	b.decide()
	b.calls = nil
	if b.wait(50 * time.Second); len(b.calls) > 0 {
		t.Fatalf("after 50 seconds of its cooldown: %+v", b.calls)
	}
	if b.wait(11 * time.Second); len(b.calls) != 1 || b.calls[0].Lane != "hosted" {
		t.Errorf("a minute after it: %+v", b.calls)
	}
}
