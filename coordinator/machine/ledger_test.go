package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// bound returns the bound that holds the run back.
func (b *bed) bound() Bound { return b.RunStatus(1).Bound }

// settleAll settles what is in flight.
func (b *bed) settleAll() {
	calls := b.calls
	b.calls = nil
	for _, g := range calls {
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
	}
	b.decide()
}

// refuseAll hands back what is in flight.
func (b *bed) refuseAll(o Outcome) {
	calls := b.calls
	b.calls = nil
	for _, g := range calls {
		b.Step(b.now, HandedOver(g, o))
	}
	b.decide()
}

// Each word, where it is true.
func TestEachBound(t *testing.T) {
	plain := LaneConfig{Law: limiter.Plain}
	configured := LaneConfig{Limits: limiter.Limits{RPM: 60}}
	two := RunConfig{Concurrency: 2}
	wide := RunConfig{Concurrency: 1000}
	for _, c := range []struct {
		want Bound
		lane LaneConfig
		run  RunConfig
		do   func(*bed)
	}{
		{BoundInput, plain, wide, func(*bed) {}},
		{BoundInput, plain, wide, func(b *bed) { b.offer(3, "", 0) }},
		{BoundTail, plain, wide, func(b *bed) { b.offer(3, "", 0); b.Step(b.now, InputEnded(1)); b.decide() }},
		{BoundConcurrency, plain, two, func(b *bed) { b.offer(9, "", 0) }},
		{BoundWindow, LaneConfig{Law: limiter.Plain, Window: 1}, wide, func(b *bed) { b.offer(9, "", 0) }},
		{BoundRequests, configured, wide, func(b *bed) { b.offer(200, "", 0) }},
		{BoundRequests, LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60}}, wide, func(b *bed) { b.offer(200, "", 0) }},
		{BoundTokens, LaneConfig{Limits: limiter.Limits{TPM: 6000}}, wide, func(b *bed) { b.offer(200, "", 500) }},
		{BoundInputTokens, LaneConfig{Limits: limiter.Limits{InputTPM: 6000}}, wide, func(b *bed) { b.offer(200, "", 500) }},
		{BoundSearch, LaneConfig{}, wide, func(b *bed) { b.offer(200, "", 0) }},
		{BoundPaused, plain, wide, func(b *bed) { b.offer(3, "", 0); b.Step(b.now, Paused(1)); b.decide() }},
		{BoundDraining, plain, wide, func(b *bed) { b.offer(3, "", 0); b.Step(b.now, Drained(1)); b.decide() }},
		{BoundCooldown, plain, wide, func(b *bed) {
			b.offer(9, "", 0)
			b.refuseAll(Outcome{Signal: Throttled, Directed: true, RetryAfter: 9 * time.Second})
		}},
		{BoundOverload, plain, wide, func(b *bed) {
			b.offer(9, "", 0)
			b.refuseAll(Outcome{Signal: Overloaded, Directed: true, RetryAfter: 9 * time.Second})
		}},
		{BoundBreaker, plain, RunConfig{Concurrency: 15}, func(b *bed) { b.offer(20, "", 0); b.refuseAll(Outcome{Signal: Failed}) }},
		{BoundBackoff, plain, wide, func(b *bed) { b.offer(3, "", 0); b.refuseAll(Outcome{Signal: Failed}) }},
		{BoundRecovery, plain, wide, func(b *bed) {
			b.offer(9, "", 0)
			b.refuseAll(Outcome{Signal: Throttled, Directed: true, RetryAfter: 9 * time.Second})
			b.until(10 * time.Second)
		}},
		{BoundStopped, plain, wide, func(b *bed) {
			b.offer(2, "", 0)
			b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Exhausted}))
			b.calls = b.calls[1:]
			b.decide()
		}},
	} {
		b := newBed(c.lane, c.run)
		c.do(b)
		if got := b.bound(); got != c.want {
			t.Errorf("held back by %q, want %q", got, c.want)
		}
	}
}

// The time goes to what held the run back while it passed, and the whole of it to something.
func TestLedger(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 2})
	b.wait(3 * time.Second)
	b.offer(3, "", 0)
	b.wait(5 * time.Second)
	b.settleAll()
	b.wait(7 * time.Second)
	b.Step(b.now, InputEnded(1))
	b.decide()
	b.wait(11 * time.Second)
	for at, want := range map[Bound]time.Duration{BoundInput: 10 * time.Second, BoundConcurrency: 5 * time.Second, BoundTail: 11 * time.Second} {
		if got := b.RunStatus(1).Ledger[at]; got != want {
			t.Errorf("%q: %v, want %v", at, got, want)
		}
	}
	b.Step(b.now.Add(time.Second), Settled(b.calls[0], Outcome{Signal: Succeeded}))
	over := b.Ready(b.now.Add(time.Second)).Finished
	if len(over) != 1 || over[0].Ran != 27*time.Second || over[0].Held.Sum() != over[0].Ran || over[0].Held[BoundTail] != 12*time.Second {
		t.Errorf("at its end: %+v", over)
	}
}

// Of several pools the one counts that most items wait in; while its lane lets none go, who
// waits elsewhere waits for something else.
func TestBoundOfSeveralPools(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{Concurrency: 100})
	b.Step(b.now, LaneDefined("told", LaneConfig{Limits: limiter.Limits{RPM: 60}}))
	b.offer(4, "narrow", 0)
	b.offer(9, "told", 0)
	if got := b.bound(); got != BoundRequests {
		t.Errorf("nine of twelve wait for %q", got)
	}
	b.offer(9, "narrow", 0)
	if got := b.bound(); got != BoundWindow {
		t.Errorf("twelve of twenty wait for %q", got)
	}
	b.offer(1, "free", 0) // which waits for nothing
	if got := b.bound(); got != BoundWindow {
		t.Errorf("and now for %q", got)
	}
}

// The call that has been under way for longest is known, whichever others have ended.
func TestOldestCall(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 9})
	for range 3 {
		b.offer(1, "", 0)
		b.wait(time.Second)
	}
	ended := func(n int) (time.Duration, int) {
		b.Step(b.now, Settled(b.calls[n], Outcome{Signal: Succeeded}))
		b.calls = append(b.calls[:n:n], b.calls[n+1:]...)
		b.decide()
		s := b.RunStatus(1)
		return b.now.Sub(s.Oldest), s.InFlight
	}
	for i, want := range []struct {
		n, left int
		age     time.Duration
	}{{1, 2, 3 * time.Second}, {0, 1, time.Second}} {
		if age, left := ended(want.n); age != want.age || left != want.left {
			t.Errorf("%d: %v old, of %d", i, age, left)
		}
	}
	b.offer(1, "", 0)
	if s := b.RunStatus(1); b.now.Sub(s.Oldest) != time.Second || s.InFlight != 2 {
		t.Errorf("one more: %v old, of %d", b.now.Sub(s.Oldest), s.InFlight)
	}
}

// What of its own holds a lane back is known of each, and what its items draw.
func TestLaneNamesItsBound(t *testing.T) {
	b := newBed(LaneConfig{Limits: limiter.Limits{RPM: 60}, Window: 7}, RunConfig{Concurrency: 100})
	b.offer(50, "", 300)
	if l := b.lane(); l.Local || l.Bound != BoundRequests || l.Draw.Requests != 1 || l.Draw.Input != 300 || l.Window != 7 {
		t.Errorf("%q, draws %+v, window %d", l.Bound, l.Draw, l.Window)
	}
	b.Step(b.now, LaneDefined("wide", LaneConfig{Local: true}))
	b.offer(1, "wide", 0)
	for _, l := range b.Status(b.now, 9).Lanes {
		if l.Name == "wide" && (!l.Local || l.Bound != BoundNone || l.Draw != (limiter.Cost{})) {
			t.Errorf("%q, draws %+v, though nothing waits", l.Bound, l.Draw)
		}
	}
}

// A run knows what it has parked and delayed, and which of its items may go first, over all
// of its pools.
func TestRunStatusOfWaits(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 9})
	var dues []time.Time
	for k, wait := range []time.Duration{20 * time.Minute, 10 * time.Minute, 15 * time.Minute} {
		b.offer(1, string(rune('a'+k)), 1)
		b.end(time.Second, Outcome{Signal: Failed, Directed: true, RetryAfter: wait})
		dues = append(dues, b.now.Add(wait))
	}
	s := b.RunStatus(1)
	if s.Delayed != 3 || s.Parked != 0 || !s.FirstDue.Equal(dues[1]) {
		t.Errorf("%d delayed, %d parked, the first until %v, want %v", s.Delayed, s.Parked, s.FirstDue, dues[1])
	}
	b.offer(2, "d", 1)
	b.end(time.Second, Outcome{Signal: Throttled})
	if s := b.RunStatus(1); s.Parked != 1 || s.Delayed != 3 || s.Held != 4 {
		t.Errorf("%d parked, %d delayed of %d", s.Parked, s.Delayed, s.Held)
	}
}

// A pool that has a lane which lives waits for that one, and not for one that has stopped.
func TestBoundOfTwoLanes(t *testing.T) {
	for _, first := range []string{"x", "y"} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 9, Pools: []PoolConfig{{Name: "p", Lanes: []string{"x", "y"}}}})
		b.offer(4, "p", 0)
		calls := b.calls
		b.calls = nil
		for _, g := range calls {
			o := Outcome{Signal: Exhausted}
			if g.Lane == first {
				o = Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute}
			}
			b.Step(b.now, HandedOver(g, o))
		}
		b.decide()
		if by := b.bound(); by != BoundCooldown {
			t.Errorf("%s cools and the other has stopped: %q", first, by)
		}
	}
}

// A run that lost its last lane may have read items of another pool by then. They are what it
// waits for; it has stopped when none of them waits any more.
func TestBoundBesideAStoppedPool(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 9})
	b.Step(b.now, LimitsChanged("slow", limiter.Limits{RPM: 1}))
	b.offer(1, "dead", 0)
	b.refuseAll(Outcome{Signal: Exhausted})
	if by := b.bound(); by != BoundStopped {
		t.Errorf("nothing waits: %q", by)
	}
	b.offer(2, "slow", 0)
	if by := b.bound(); by != BoundRequests {
		t.Errorf("an item waits for its limit: %q", by)
	}
	b.until(2 * time.Minute)
	if by := b.bound(); by != BoundStopped {
		t.Errorf("the last call is under way: %q", by)
	}
}

// Items that were taken out wait for nothing: what the run is held by is what the others
// wait for.
func TestBoundOfWithdrawn(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 9})
	b.Step(b.now, LimitsChanged("told", limiter.Limits{RPM: 1}))
	b.offer(1, "cools", 0)
	b.refuseAll(Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute})
	var items []*Item
	for range 5 {
		items = append(items, &Item{Seq: b.seq, Pool: "cools"})
		b.seq++
	}
	b.Step(b.now, Offered(1, items))
	b.offer(3, "told", 0)
	if by := b.bound(); by != BoundCooldown {
		t.Fatalf("%q while most wait for a cooldown", by)
	}
	for _, it := range append(items, b.parkedOf("cools")) {
		b.Step(b.now, Withdrawn(it))
	}
	b.decide()
	if by := b.bound(); by != BoundRequests {
		t.Errorf("%q, and nothing waits for that", by)
	}
}

// parkedOf is the first item that came back to a pool.
func (b *bed) parkedOf(pool string) *Item { return b.runs[1].pools[pool].returned.top() }

// A ledger prints the word of each bound that held the run back, and for how long; of time
// in which nothing did that it flowed. So does whatever has a ledger in it.
func TestLedgerPrintsWords(t *testing.T) {
	var l Ledger
	if got := l.String(); got != "nothing" {
		t.Errorf("of an empty one: %q", got)
	}
	l[BoundNone], l[BoundTokens], l[BoundTail] = time.Second, 2*time.Minute, 3*time.Millisecond
	const want = "none 1s, tokens 2m0s, tail 3ms"
	if got := l.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := fmt.Sprintf("%+v", struct{ Held Ledger }{l}); got != "{Held:"+want+"}" {
		t.Error(got)
	}
}
