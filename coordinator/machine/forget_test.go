package machine

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/headrace/headrace/limiter"
)

// A remembrance is what a machine may not keep alive of a run that is over.
type remembrance struct {
	run   weak.Pointer[run]
	pools []weak.Pointer[pool]
	items []weak.Pointer[Item]
}

// live opens a run on two lanes that all share, and one of its own that dies, and lets its
// first calls leave.
func (b *bed) live(id RunID) (r remembrance) {
	own := fmt.Sprintf("own-%d", id)
	b.Step(b.now, RunOpened(id, RunConfig{Concurrency: 8, ItemTimeout: time.Hour, Pools: []PoolConfig{{Name: "both", Lanes: []string{"a", "b"}}}}))
	for i, name := range []string{own, own, "both", "both", "both", "both", "a", "b"} {
		it := &Item{Seq: uint64(i), Pool: name}
		r.items = append(r.items, weak.Make(it))
		b.Step(b.now, Offered(id, []*Item{it}))
	}
	b.decide()
	r.run = weak.Make(b.runs[id])
	for _, p := range b.runs[id].opened {
		r.pools = append(r.pools, weak.Make(p))
	}
	return r
}

// endAll ends every call that is under way: those on a lane of a run's own for good, one
// in so many of the others by a refusal or a failure, after which their items come back.
func (b *bed) endAll(id RunID) {
	b.Step(b.now, InputEnded(id))
	for b.runs[id] != nil {
		calls := b.calls
		b.calls = nil
		for _, g := range calls {
			b.endAsItDoes(g)
		}
		b.wait(2 * time.Second)
	}
}

func (b *bed) endAsItDoes(g Grant) {
	switch own := g.Lane != "a" && g.Lane != "b"; {
	case g.Verdict != Call:
		b.Step(b.now, Settled(g, Outcome{}))
	case own:
		b.Step(b.now, HandedOver(g, Outcome{Signal: Exhausted, Cause: errors.New("no money")}))
	case g.Item.Seq == 3 && g.Item.Calls == 1:
		b.Step(b.now, HandedOver(g, Outcome{Signal: Throttled}))
	case g.Item.Seq == 4 && g.Item.Calls == 1:
		b.Step(b.now, HandedOver(g, Outcome{Signal: Failed}))
	default:
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
	}
}

// Nothing of a run that is over is kept alive: not by its lanes, which others share, nor
// by what the machine has answered. Lanes that have stopped are forgotten too.
func TestRunsThatAreOverAreNotKept(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.Step(b.now, InputEnded(1))
	b.decide()
	var all []remembrance
	for id := RunID(2); id < 40; id += 3 { // three at a time, so that lanes have several pools
		for i := range RunID(3) {
			all = append(all, b.live(id+i))
		}
		for i := range RunID(3) {
			b.endAll(id + i)
		}
	}
	b.wait(0) // the answer before it may be read until then
	runtime.GC()
	runs, pools, items := 0, 0, 0
	for _, r := range all {
		if r.run.Value() != nil {
			runs++
		}
		for _, p := range r.pools {
			if p.Value() != nil {
				pools++
			}
		}
		for _, it := range r.items {
			if it.Value() != nil {
				items++
			}
		}
	}
	if runs+pools+items > 0 {
		t.Errorf("%d runs, %d pools and %d items are kept of %d runs that are over", runs, pools, items, len(all))
	}
	if b.wait(DefaultIdleTTL); len(b.lanes) != 0 {
		t.Errorf("%d lanes are known that nobody has used for %v", len(b.lanes), DefaultIdleTTL)
	}
	runtime.KeepAlive(b)
}

// A lane that has stopped is remembered while a run draws on it; once it is forgotten, its
// provider is asked again.
func TestStoppedLaneIsForgottenWithItsRun(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	ends := func(id RunID, g Grant) {
		b.Step(b.now, HandedOver(g, Outcome{Signal: Exhausted}))
		b.decide()
		b.Step(b.now, Settled(b.calls[len(b.calls)-1], Outcome{}))
		b.decide()
	}
	b.offer(1, "", 0)
	ends(1, b.calls[0])
	b.wait(DefaultIdleTTL)
	if b.wait(DefaultIdleTTL); b.lanes[DefaultPool] == nil {
		t.Fatal("the lane was forgotten while a run draws on it")
	}
	b.Step(b.now, InputEnded(1))
	b.decide()
	if b.wait(DefaultIdleTTL); b.lanes[DefaultPool] != nil {
		t.Fatal("the lane is remembered, and nobody draws on it")
	}
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.Step(b.now, Offered(2, []*Item{{}}))
	if b.decide(); b.calls[len(b.calls)-1].Verdict != Call {
		t.Error("who comes after that is not served")
	}
}

// An item that would need one lane too many is released with the reason, and its run is
// told once; what has a lane goes on, and there is room again when lanes are forgotten.
func TestTooManyLanes(t *testing.T) {
	b := &bed{Machine: New(Config{Lane: LaneConfig{Law: limiter.Plain}, MaxLanes: 3}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "two", Lanes: []string{"a", "b"}}, {Name: "more", Lanes: []string{"b", "c", "d"}}}}))
	offer := func(pool string) Ready {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: pool}}))
		b.seq++
		return b.decide()
	}
	offer("two")
	if r := offer("more"); len(r.Grants) != 1 || r.Grants[0].Verdict != EndStopped || !errors.Is(r.Grants[0].Cause, ErrTooManyLanes) ||
		len(r.Stranded) != 1 || !errors.Is(r.Stranded[0].Cause, ErrTooManyLanes) || len(b.lanes) != 2 {
		t.Errorf("a pool that needs one too many: %+v, %d lanes", r, len(b.lanes))
	}
	if r := offer("e"); len(r.Grants) != 1 || r.Grants[0].Verdict != Call || len(b.lanes) != 3 {
		t.Errorf("a lane for which there is room: %+v", r)
	}
	if r := offer("two"); r.Grants[0].Verdict != Call {
		t.Errorf("a lane that is known: %+v", r)
	}
	if r := offer("f"); r.Grants[0].Verdict != EndStopped || len(r.Stranded) != 0 {
		t.Errorf("told twice: %+v", r)
	}
	for _, g := range b.calls {
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
	}
	b.now = b.now.Add(DefaultIdleTTL)
	if r := offer("f"); r.Grants[0].Verdict != Call || len(b.lanes) != 1 {
		t.Errorf("there is room again: %+v, %d lanes", r, len(b.lanes))
	}
	b.Step(b.now, Settled(b.calls[len(b.calls)-1], Outcome{Signal: Succeeded}))
	b.Step(b.now, InputEnded(1))
	if r := b.decide(); len(r.Finished) != 1 || !r.Finished[0].Counters.Proves() || !errors.Is(r.Finished[0].Stopped, ErrTooManyLanes) {
		t.Errorf("%+v", r.Finished)
	}
}

// What cannot be meant is found before anything is run.
func TestConfigValidates(t *testing.T) {
	for _, c := range []Config{{MaxLanes: -1}, {IdleTTL: -1}, {Lane: LaneConfig{Window: -1}}, {Lanes: map[string]LaneConfig{"a": {Window: -1}}}} {
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}
