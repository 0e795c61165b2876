package machine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

var (
	errReset = errors.New("connection reset")
	broken   = Outcome{Signal: Failed, Cause: errReset}
	lastTime = Outcome{Signal: Failed, Last: true, Cause: errReset}
	answered = Outcome{Signal: Succeeded}
)

// A named payload says its key.
type named string

func (n named) ItemKey() string { return string(n) }

// offerNamed offers items by their keys.
func (b *bed) offerNamed(keys ...string) {
	for _, key := range keys {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Payload: named(key)}}))
		b.seq++
	}
	b.decide()
}

// newAnsweredBed is a bed on whose lane an earlier run was answered.
func newAnsweredBed(c LaneConfig) *bed {
	c.Law, c.Cooldown.Jitter = limiter.Plain, -1
	b := &bed{Machine: New(Config{Lane: c, AnsweredBefore: true}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	return b
}

// endOfItem ends the call of the item, after so long.
func (b *bed) endOfItem(seq uint64, after time.Duration, o Outcome) {
	b.now = b.now.Add(after)
	b.decide()
	for i, g := range b.calls {
		if g.Item.Seq == seq && g.Verdict == Call {
			b.calls = append(b.calls[:i:i], b.calls[i+1:]...)
			o.Latency = b.now.Sub(g.Item.Sent)
			end := HandedOver
			if o.Signal == Succeeded {
				end = Settled
			}
			b.Step(b.now, end(g, o))
			b.decide()
			return
		}
	}
	panic(fmt.Sprintf("item %d has no call under way", seq))
}

// verdicts returns the ends of items, by number.
func (b *bed) verdicts() map[uint64]Verdict {
	all := map[uint64]Verdict{}
	for _, g := range b.calls {
		if g.Verdict != Call {
			all[g.Item.Seq] = g.Verdict
		}
	}
	return all
}

func (b *bed) phase() Phase { return b.Status(b.now, 1).Lanes[0].Phase }

// A row of failures is as long as chance makes it once in ten million rows: sixteen over
// minus the logarithm of the share of bad items.
func TestRowIsLongerThanChanceMakesIt(t *testing.T) {
	for _, c := range []struct {
		good, bad uint32
		want      int
	}{
		{0, 0, 0}, {100, 0, 0}, {989, 10, 4}, {899, 100, 7}, {699, 300, 14}, {500, 499, 24}, {0, 9, 152},
	} {
		b := &blame{good: c.good, bad: c.bad}
		got := b.rowNeeded(1)
		if got != c.want {
			t.Errorf("%d good, %d bad: a row of %d, want %d", c.good, c.bad, got, c.want)
		}
		if share := float64(c.bad) / float64(c.good+c.bad+1); c.bad > 0 && math.Pow(share, float64(got)) > 2e-7 {
			t.Errorf("%d good, %d bad: chance makes such a row %.1g of the time", c.good, c.bad, math.Pow(share, float64(got)))
		}
	}
}

// Answers during a row of failures say that chance may explain it, if they are at least a third
// as many as the failures.
func TestAnswersBesideARowMakeItLonger(t *testing.T) {
	for _, c := range []struct {
		good, bad, beside uint32
		row, want         int
	}{
		{100, 0, 0, 10, 0},
		{100, 0, 3, 10, 0},
		{100, 0, 4, 10, 48},
		{100, 0, 10, 10, 24},
		{0, 0, 20, 10, 15},
		{500, 499, 40, 10, 24}, // what was seen before is worse
		{989, 10, 10, 10, 24},
	} {
		b := &blame{good: c.good, bad: c.bad, answeredSince: c.beside}
		if got := b.rowNeeded(c.row); got != c.want {
			t.Errorf("%d good, %d bad, %d beside a row of %d: %d, want %d", c.good, c.bad, c.beside, c.row, got, c.want)
		}
	}
}

// The share of bad items is that of the latest thousand or so.
func TestShareOfBadItemsFades(t *testing.T) {
	b := &blame{}
	for range 10_000 {
		b.countFirstCalls(0, 1)
	}
	for range 2_000 {
		b.countFirstCalls(1, 0)
	}
	if share := float64(b.bad) / float64(b.good+b.bad); share > 0.3 || b.good+b.bad > firstEnds {
		t.Errorf("%d good, %d bad", b.good, b.bad)
	}
}

// A tally counts what it says it does.
func TestTallyCounts(t *testing.T) {
	b := &blame{}
	if b.countFirstCalls(3, 2); b.good != 3 || b.bad != 2 {
		t.Errorf("%d good, %d bad, want 3 and 2", b.good, b.bad)
	}
	if b.countFirstCalls(firstEnds-5, 0); b.good != firstEnds-2 || b.bad != 2 {
		t.Errorf("%d good, %d bad: it fades before there are %d", b.good, b.bad, firstEnds)
	}
	if b.countFirstCalls(0, 2); b.good != firstEnds/2-1 || b.bad != 2 {
		t.Errorf("%d good, %d bad, want half of each", b.good, b.bad)
	}
}

// An item's last attempt is not its last where a witness makes fewer of those before: four
// failures that nobody witnessed are one.
func TestWitnessMakesFewerAttempts(t *testing.T) {
	b := newAnsweredBed(LaneConfig{})
	b.offer(1, "", 0)
	for range 4 {
		b.endOfItem(0, 40*time.Second, broken)
	}
	b.wait(40 * time.Second)
	b.offer(1, "", 0)
	b.endOfItem(0, time.Second, lastTime)
	b.offer(1, "", 0)
	b.endOfItem(2, time.Second, answered)
	if v := b.verdicts(); len(v) > 0 {
		t.Fatalf("it has failed, of a failure that was witnessed once: %v", v)
	}
	if b.wait(time.Minute); b.calls[len(b.calls)-1].Item.Attempts != 1 {
		t.Errorf("%d attempts, want 1", b.calls[len(b.calls)-1].Item.Attempts)
	}
}

// An item that is withdrawn while it waits for a decision is kept by nobody.
func TestWithdrawnItemIsNotKept(t *testing.T) {
	b := newAnsweredBed(LaneConfig{})
	b.offer(3, "", 0)
	it := b.calls[0].Item
	b.endOfItem(0, time.Second, lastTime)
	b.Step(b.now, Withdrawn(it))
	b.decide()
	b.endOfItem(1, time.Second, answered)
	if l := b.lanes[DefaultPool]; l.blame.undecided != nil || len(b.accused) != 0 {
		t.Errorf("%d undecided, %d lanes accused", len(l.blame.undecided), len(b.accused))
	}
}

// A refusal that says that its item is to blame counts also while the run drains; of one that
// leaves it open, the item is asked again.
func TestRefusalWhileDraining(t *testing.T) {
	for want, o := range map[Verdict]Outcome{
		EndFailed:  {Signal: Answered, Alike: 400, First: 20},
		EndDrained: {Signal: Exhausted, Alike: 403, First: 3, Later: 5},
	} {
		b := newAnsweredBed(LaneConfig{})
		b.offer(2, "", 0)
		b.Step(b.now, Drained(1))
		b.endOfItem(0, time.Second, o)
		if v := b.verdicts(); v[0] != want {
			t.Errorf("%+v: %v, want %v", o, v, want)
		}
	}
}

// An item counts once for the breaker, however often it fails.
func TestItemCountsOnceForTheBreaker(t *testing.T) {
	b := newAnsweredBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 3}})
	b.offer(3, "", 0)
	b.endOfItem(1, time.Second, broken)
	b.endOfItem(2, 0, broken)
	for range 4 {
		b.endOfItem(1, 40*time.Second, broken)
		b.endOfItem(2, 0, broken)
	}
	if b.phase() != Flowing {
		t.Fatal("two items opened a breaker that asks for three")
	}
	b.endOfItem(0, time.Second, broken)
	if b.phase() != Cooling {
		t.Error("the third item did not open it")
	}
}

// A call that never left counts each time: it says nothing of its item.
func TestUnsentCallCountsEachTime(t *testing.T) {
	b := newAnsweredBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 3}})
	b.offer(1, "", 0)
	for i := range 3 {
		if b.phase() != Flowing {
			t.Fatalf("the breaker is open after %d", i)
		}
		b.endOfItem(0, 40*time.Second, Outcome{Signal: Failed, Unsent: true, Cause: errReset})
	}
	if b.phase() != Cooling {
		t.Errorf("the lane is %v, want it to cool", b.phase())
	}
	if b.wait(time.Minute); b.calls[0].Item.Attempts != 0 {
		t.Errorf("%d attempts were used", b.calls[0].Item.Attempts)
	}
}

// An answer of a call that was under way when another failed is no witness: a server that
// goes down still answers many of those.
func TestAnswerOfAnEarlierCallIsNoWitness(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(3, "", 0)
	b.endOfItem(0, time.Second, lastTime)
	b.endOfItem(1, time.Second, answered)
	if v := b.verdicts(); len(v) > 0 {
		t.Fatalf("an earlier call spoke: %v", v)
	}
	b.offer(1, "", 0)
	b.endOfItem(3, time.Second, answered)
	if v := b.verdicts(); v[0] != EndFailed {
		t.Errorf("a later call did not: %v", v)
	}
}

// A call that begins at the very moment at which another failed is a witness.
func TestWitnessOfTheSameMoment(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 2}, RunConfig{})
	b.offer(3, "", 0)
	b.endOfItem(0, time.Second, lastTime) // item 2 leaves now
	b.endOfItem(2, time.Second, answered)
	if v := b.verdicts(); v[0] != EndFailed {
		t.Errorf("%v", v)
	}
}

// An item that waits for a decision keeps the turn of no other, and is seen in the status.
func TestUndecidedItemsAreCounted(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Concurrency: 2})
	b.offer(3, "", 0)
	b.endOfItem(0, time.Second, lastTime)
	if got := b.Status(b.now, 1).Lanes[0]; got.InFlight != 2 || got.Delayed != 1 {
		t.Errorf("%d in flight, %d delayed, want 2 and 1", got.InFlight, got.Delayed)
	}
}

// A person who resets a lane vouches for it: what was in doubt is nobody's failure, and an
// item that waited for a decision goes again.
func TestResetDecidesForTheItems(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(2, "", 0)
	b.endOfItem(0, time.Second, lastTime)
	b.Step(b.now, LaneReset(DefaultPool))
	b.wait(40 * time.Second)
	if v := b.verdicts(); len(v) > 0 {
		t.Fatalf("%v", v)
	}
	b.endOfItem(0, time.Second, broken)
	if v := b.verdicts(); len(v) > 0 {
		t.Errorf("its next failure counts as the last: %v", v)
	}
}

// An item that waited for a decision carries nothing to another lane after a reset.
func TestResetClearsItemsForOtherLanes(t *testing.T) {
	pools := []PoolConfig{{Name: "both", Lanes: []string{"a", "b"}}}
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Pools: pools})
	b.offer(2, "both", 0)
	b.endOfItem(0, time.Second, lastTime)
	var it *Item
	for _, u := range b.lanes["a"].blame.undecided {
		it = u.it
	}
	if it == nil || it.Attempts != 1 {
		t.Fatalf("no item is in doubt: %+v", it)
	}
	b.Step(b.now, LaneReset("a"))
	if it.Attempts != 0 || it.doubts != 0 {
		t.Errorf("after the reset the item has %d attempts, %d in doubt", it.Attempts, it.doubts)
	}
}

// A lane waits a moment for more items before the last one fails. Where the pool that might
// bring them is forgotten in that moment, the item is decided about at once.
func TestForgottenPoolBringsNoMoreItems(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Pools: []PoolConfig{{Name: "both", Lanes: []string{"idle", DefaultPool}}}})
	b.Step(b.now, RunOpened(2, RunConfig{Pools: []PoolConfig{{Name: "both", Lanes: []string{"idle", DefaultPool}}}}))
	b.Step(b.now, Offered(2, []*Item{{Seq: 7, Pool: "both"}}))
	b.decide()
	b.endOfItem(7, time.Second, answered)
	b.now = b.now.Add(DefaultIdleTTL - 1500*time.Millisecond)
	b.offer(1, "", 0)
	b.Step(b.now, InputEnded(1))
	b.endOfItem(0, time.Second, Outcome{Signal: Failed, Cause: errReset, Last: true})
	if v := b.verdicts(); len(v) > 0 {
		t.Fatalf("another run may bring more: %v", v)
	}
	b.wait(600 * time.Millisecond) // the idle lane is forgotten, and the other run's pool with it
	if v := b.verdicts(); b.lanes["idle"] != nil || v[0] != EndFailed {
		t.Errorf("%v, and the next look is at %v", v, b.decidesAt())
	}
}

// What is known of items that have failed outlives a restart: a failure that was witnessed
// is an attempt still, and one in doubt is in doubt.
func TestItemsAreRemembered(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offerNamed("poison", "good", "unlucky", "")
	b.endOfItem(0, time.Second, broken)
	b.endOfItem(3, 0, broken)
	b.offerNamed("witness")
	b.endOfItem(4, time.Second, answered)
	b.endOfItem(2, time.Second, broken)
	b.endOfItem(0, 40*time.Second, broken)
	saved := b.SaveItems()
	want := map[string]ItemMemory{"poison": {Failures: 2, Doubts: 1}, "unlucky": {Failures: 1, Doubts: 1}}
	if !maps.Equal(saved, want) {
		t.Fatalf("saved %v, want %v", saved, want)
	}

	next := &bed{Machine: New(Config{Items: saved, AnsweredBefore: true, Lane: LaneConfig{Law: limiter.Plain}}), now: b.now.Add(time.Hour)}
	next.Step(next.now, RunOpened(1, RunConfig{}))
	if got := next.SaveItems(); !maps.Equal(got, want) {
		t.Errorf("before any was offered: %v", got)
	}
	next.offerNamed("good", "poison", "unlucky")
	if got := next.SaveItems(); !maps.Equal(got, want) {
		t.Errorf("while they are in flight: %v", got)
	}
	next.endOfItem(0, time.Second, answered)
	next.endOfItem(1, time.Second, broken)
	next.offerNamed("later")
	next.endOfItem(3, time.Second, answered)
	if got := next.SaveItems()["poison"]; got != (ItemMemory{Failures: 2}) {
		t.Errorf("a witness has spoken: %v, want what was in doubt to be one attempt", got)
	}
	next.endOfItem(2, time.Second, answered)
	if _, is := next.SaveItems()["unlucky"]; is {
		t.Error("an item that was answered is remembered")
	}
}

// An item that was let go before its next call is remembered: it will be asked again.
func TestItemsLetGoAreRemembered(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offerNamed("poison", "good")
	b.endOfItem(0, time.Second, broken)
	b.Step(b.now, Drained(1))
	b.decide()
	if got, want := b.SaveItems(), (map[string]ItemMemory{"poison": {Failures: 1, Doubts: 1}}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// At most ten thousand items are remembered.
func TestMemoryOfItemsIsBounded(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Breaker: limiter.BreakerConfig{Consecutive: math.MaxInt32}}, RunConfig{Concurrency: 20_000})
	for i := range MostItemMemories + 500 {
		b.offerNamed(fmt.Sprint(i))
	}
	for i := range uint64(MostItemMemories + 500) {
		b.Step(b.now, HandedOver(b.calls[i], broken))
	}
	b.decide()
	if n := len(b.SaveItems()); n != MostItemMemories {
		t.Errorf("%d items are remembered, want %d", n, MostItemMemories)
	}
}

// Numbers that no item can have are refused.
func TestItemMemoryIsValidated(t *testing.T) {
	for k, ok := range map[ItemMemory]bool{
		{Failures: 1}: true, {Failures: 4, Doubts: 4}: true, {}: false, {Failures: -1}: false,
		{Failures: 1, Doubts: 2}: false, {Failures: 3, Doubts: -1}: false, {Failures: 999, Doubts: 256}: false,
	} {
		if err := k.Validate(); (err == nil) != ok {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

// On a remote lane an item that was refused alike comes back once, for its leader to
// judge; then it fails.
func TestRemoteItemComesBackOnce(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Model, Maker: remoteMaker}, RunConfig{})
	b.offer(1, "", 0)
	forbidden := Outcome{Signal: Exhausted, Alike: 403, First: 3, Later: 5, Cause: errors.New("forbidden")}
	b.Step(b.now, Delivered(DefaultPool, 5))
	b.decide()
	b.endOfItem(0, time.Second, forbidden)
	if v := b.verdicts(); len(v) > 0 {
		t.Fatalf("it failed at once: %v", v)
	}
	forbidden.Again = true
	b.Step(b.now, Delivered(DefaultPool, 5))
	b.wait(10 * time.Second)
	b.endOfItem(0, time.Second, forbidden)
	if v := b.verdicts(); v[0] != EndFailed {
		t.Errorf("it did not fail: %v", v)
	}
}

// A refusal for good in words that say whom they concern, of a lane that answered, needs no
// other item: five 401 are needed where an answer came, and one where none did.
func TestRowsOfRefusals(t *testing.T) {
	for _, c := range []struct {
		name        string
		before      bool
		first       uint8
		later       uint8
		stopsAfter  int
		failsAtOnce bool
	}{
		{"401, never answered", false, 1, 5, 1, false},
		{"401, answered", true, 1, 5, 5, false},
		{"403, never answered", false, 3, 5, 3, false},
		{"403, answered", true, 3, 5, 5, false},
		{"400, never answered, asked for", false, 20, 0, 20, false},
		{"400, answered", true, 20, 0, 0, true},
		{"400, never answered, not asked for", false, 0, 0, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bed{Machine: New(Config{AnsweredBefore: c.before, Lane: LaneConfig{Law: limiter.Plain}}), now: storyStart}
			b.Step(b.now, RunOpened(1, RunConfig{}))
			b.offer(30, "", 0)
			stoppedAfter := 0
			for i := range uint64(30) {
				b.endOfItem(i, time.Millisecond, Outcome{Signal: Answered, Alike: 7, First: c.first, Later: c.later})
				if b.phase() == Stopped {
					stoppedAfter = int(i) + 1
					break
				}
			}
			if stoppedAfter != c.stopsAfter {
				t.Errorf("the lane stopped after %d, want %d", stoppedAfter, c.stopsAfter)
			}
			failed := 0
			for _, v := range b.verdicts() {
				if v == EndFailed {
					failed++
				}
			}
			if want := map[bool]int{true: 30}[c.failsAtOnce]; failed != want {
				t.Errorf("%d items failed, want %d", failed, want)
			}
		})
	}
}

// An answer as hoped ends a row of refusals; one that leaves open whom it concerns does not.
func TestOnlyAnAnswerAsHopedEndsARow(t *testing.T) {
	for _, hoped := range []bool{false, true} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(6, "", 0)
		forbidden := Outcome{Signal: Exhausted, Alike: 403, First: 3, Later: 5, Cause: errors.New("forbidden")}
		between := Outcome{Signal: Answered, Alike: 400, First: 20}
		if hoped {
			between = answered
		}
		b.endOfItem(0, time.Second, forbidden)
		b.endOfItem(1, 0, forbidden)
		b.endOfItem(2, 0, between)
		b.endOfItem(3, 0, forbidden)
		if stopped := b.phase() == Stopped; stopped == hoped {
			t.Errorf("an answer as hoped between: %v, and stopped: %v", hoped, stopped)
		}
	}
}

// A memory says whether its lane was ever answered, also where its law's part is of another law.
// Items that all fail alike are then to blame, and not the lane.
func TestAnsweredIsRemembered(t *testing.T) {
	for answered, stops := range map[bool]bool{true: false, false: true} {
		earlier := newBed(LaneConfig{}, RunConfig{}) // the model law
		earlier.offer(1, "", 0)
		earlier.Step(earlier.now, Settled(earlier.calls[0], Outcome{Signal: Failed}))
		saved := earlier.SaveLanes(earlier.now)
		k := saved[DefaultPool]
		k.Answered = answered
		saved[DefaultPool] = k

		b := &bed{Machine: New(Config{Memory: saved, Lane: LaneConfig{Law: limiter.Plain}}), now: storyStart}
		b.Step(b.now, RunOpened(1, RunConfig{}))
		b.offer(20, "", 0)
		for i := range uint64(20) {
			if b.phase() != Stopped {
				b.endOfItem(i, time.Millisecond, Outcome{Signal: Answered, Alike: 7, First: 20})
			}
		}
		if got := b.phase() == Stopped; got != stops {
			t.Errorf("answered before: %t: the lane stopped: %t, want %t", answered, got, stops)
		}
	}
}
