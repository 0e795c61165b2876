package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Of a refusal that may mean a limit by the day two are waited for, and the third in a row
// stops the lane; an answer in between begins the count anew.
func TestThirdUnclearRefusalMeansTheDay(t *testing.T) {
	for _, answered := range []bool{false, true} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(9, "", 0)
		l := b.lanes[DefaultPool]
		next := func(how func(Grant, Outcome) Event, o Outcome) {
			b.calls = nil
			for i := 0; len(b.calls) == 0 && i < 100; i++ { // until the lane has cooled, and a call leaves
				b.offer(1, "", 0)
				b.wait(time.Second)
			}
			if len(b.calls) == 0 {
				t.Fatalf("answered %v: no call leaves, the lane is %v", answered, l.phase)
			}
			b.endOf(t, b.calls[0].Item.Seq, how, o)
		}
		for range 2 { // two holds of a minute outlast a limit by the minute
			next(HandedOver, Outcome{Signal: Throttled, Unclear: true})
		}
		if l.phase == Stopped {
			t.Fatal("two have stopped the lane")
		}
		if answered {
			next(Settled, Outcome{Signal: Succeeded})
		}
		next(HandedOver, Outcome{Signal: Throttled, Unclear: true})
		if (l.phase == Stopped) == answered {
			t.Errorf("answered %v: the lane is %v after three", answered, l.phase)
		}
	}
}

// The idle list is in the order of use: a lane that was made early and is used all the time
// does not keep those behind it from being forgotten.
func TestBusyLaneKeepsNobodyFromBeingForgotten(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(1, "busy", 0)
	b.offer(1, "idle", 0)
	for range 2 {
		b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
		b.calls = b.calls[1:]
	}
	for range 20 {
		b.wait(DefaultIdleTTL / 10)
		b.offer(1, "busy", 0)
		b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
		b.calls = b.calls[1:]
	}
	if b.lanes["idle"] != nil || b.lanes["busy"] == nil {
		t.Errorf("%d lanes are known, the idle one: %v", len(b.lanes), b.lanes["idle"] != nil)
	}
}

// A lane for which items wait is kept, however long they have to: here behind a pause.
func TestLaneOfWaitingItemsIsKept(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.Step(b.now, Paused(1))
	b.offer(1, "", 0)
	b.wait(2 * DefaultIdleTTL)
	if b.lanes[DefaultPool] == nil {
		t.Fatal("it was forgotten")
	}
	b.Step(b.now, Resumed(1))
	if b.decide(); len(b.calls) != 1 {
		t.Errorf("%d calls once the run goes on", len(b.calls))
	}
}

// A run may have as many calls in flight as the bound says, and no more.
func TestMostConcurrency(t *testing.T) {
	for n, valid := range map[int]bool{0: true, MaxConcurrency: true, MaxConcurrency + 1: false, -1: false} {
		if err := (RunConfig{Concurrency: n}).Validate(); (err == nil) != valid {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// Once the input has ended and the rest of it fits what is left, nothing is kept back for
// later: it leaves sooner than as much of an input that goes on. Where another pool draws on
// the lane nobody knows what is still to come.
func TestNoReserveAtTheEndOfAnInput(t *testing.T) {
	const rest = 40
	sent := func(ended, alone bool) int {
		b := newBed(LaneConfig{Limits: limiter.Limits{RPM: 600, Burst: 5 * time.Second}}, RunConfig{
			Pools: []PoolConfig{{Name: "a", Lanes: []string{"x"}}, {Name: "b", Lanes: []string{"x"}}},
		})
		if !alone {
			b.offer(1, "b", 0)
		}
		b.offer(rest, "a", 0)
		if ended {
			b.Step(b.now, InputEnded(1))
		}
		for range 250 {
			b.wait(10 * time.Millisecond)
		}
		return len(b.calls)
	}
	ended, going, shared := sent(true, true), sent(false, true), sent(true, false)
	if ended <= going || shared > going {
		t.Errorf("%d calls left at the end, %d while more may come, %d with another pool", ended, going, shared)
	}
}

// An offer that has a lane forgotten closes the pools that drew on it and opens them again. A
// silent lane next to it is then waited for anew, as nobody drew on it in between.
func TestSilentLaneNextToForgottenOneIsWaitedForAnew(t *testing.T) {
	b := &bed{Machine: New(Config{IdleTTL: time.Minute, MaxLanes: 4, Lane: LaneConfig{Law: limiter.Plain}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{
		{Name: "both", Lanes: []string{"silent", "idle"}, Tiers: []int{0, 1}, After: time.Hour},
	}}))
	b.offer(1, "both", 0)
	b.wait(50 * time.Second)
	b.endOf(t, 0, Settled, Outcome{Signal: Failed})
	if s := b.lanes["silent"].silence; s == nil || s.tries != 1 {
		t.Fatalf("its silence is %+v", s)
	}
	b.now = b.now.Add(20 * time.Second)
	if b.offer(1, "both", 0); b.lanes["silent"].silence != nil || b.lanes["silent"].answers != 0 {
		t.Errorf("its silence is still %+v", b.lanes["silent"].silence)
	}
	if b.calls[len(b.calls)-1].Lane != "silent" || b.lanes["silent"].counts[calls] != 2 {
		t.Error("it is another lane")
	}
}
