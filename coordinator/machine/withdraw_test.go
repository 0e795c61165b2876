package machine

import (
	"slices"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// A withdrawal that comes before the offer is remembered: the item ends without a call once it
// is offered, and the items offered with it do not notice.
func TestWithdrawnBeforeItIsOffered(t *testing.T) {
	m, now := New(Config{Lane: LaneConfig{Law: limiter.Plain}}), storyStart
	m.Step(now, RunOpened(1, RunConfig{}))
	items := []*Item{{Seq: 0}, {Seq: 1}, {Seq: 2}}
	m.Step(now, Withdrawn(items[1]))
	if ready := m.Ready(now); len(ready.Grants) > 0 {
		t.Fatalf("granted before it was offered: %v", ready.Grants)
	}
	m.Step(now, Offered(1, items))
	m.Step(now, InputEnded(1))
	verdicts := map[uint64]Verdict{}
	for _, g := range slices.Clone(m.Ready(now).Grants) {
		verdicts[g.Item.Seq] = g.Verdict
		m.Step(now, Settled(g, Outcome{Signal: Succeeded}))
	}
	if verdicts[0] != Call || verdicts[1] != EndWithdrawn || verdicts[2] != Call {
		t.Errorf("%v", verdicts)
	}
	f := m.Ready(now).Finished
	if len(f) != 1 || !f[0].Counters.Proves() || f[0].Counters.Released != 1 || f[0].Counters.Calls != 2 {
		t.Errorf("%+v", f)
	}
}

// An item that another machine has is not touched, in whatever place it is there: its
// owner would write it at the same time.
func TestWithdrawnOfAnotherMachine(t *testing.T) {
	plain := Config{Lane: LaneConfig{Law: limiter.Plain}}
	ours, theirs, now := New(plain), New(plain), storyStart
	for _, m := range []*Machine{ours, theirs} {
		m.Step(now, RunOpened(1, RunConfig{Concurrency: 1}))
	}
	items := []*Item{{Seq: 0}, {Seq: 1}}
	theirs.Step(now, Offered(1, items))
	flies := theirs.Ready(now).Grants[0]
	before := []Item{*items[0], *items[1]}
	for _, it := range items {
		ours.Step(now, Withdrawn(it))
	}
	if *items[0] != before[0] || *items[1] != before[1] || ours.Waiting() != 0 || theirs.Waiting() != 1 {
		t.Errorf("they were touched: %+v", items)
	}
	theirs.Step(now, HandedOver(flies, Outcome{}))
	if g := theirs.Ready(now).Grants; len(g) != 1 || g[0].Verdict != Call {
		t.Errorf("%v", g)
	}
}

// What is over cannot be withdrawn.
func TestWithdrawnWhenItIsOver(t *testing.T) {
	m, now := New(Config{Lane: LaneConfig{Law: limiter.Plain}}), storyStart
	m.Step(now, RunOpened(1, RunConfig{}))
	it := &Item{}
	m.Step(now, Offered(1, []*Item{it}))
	m.Step(now, Settled(m.Ready(now).Grants[0], Outcome{Signal: Succeeded}))
	m.Step(now, Withdrawn(it))
	if ready := m.Ready(now); len(ready.Grants) > 0 || it.place != Over || it.unwanted {
		t.Errorf("%v %+v", ready.Grants, it)
	}
}
