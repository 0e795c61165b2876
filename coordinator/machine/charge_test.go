package machine

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/headrace/headrace/limiter"
)

// An earLaw records the costs that it hears of.
type earLaw struct {
	limiter.Law
	waits, sent []limiter.Cost
	news        []limiter.News
}

func (l *earLaw) Wait(now time.Time, c limiter.Cost) (time.Duration, limiter.Bound) {
	l.waits = append(l.waits, c)
	return l.Law.Wait(now, c)
}

func (l *earLaw) Sent(now time.Time, c limiter.Cost, beside int) limiter.Ticket {
	l.sent = append(l.sent, c)
	return l.Law.Sent(now, c, beside)
}

func (l *earLaw) Answered(now time.Time, n limiter.News) {
	l.news = append(l.news, n)
	l.Law.Answered(now, n)
}

// rules are lanes of one pool that charge each in its own way.
var rules = map[string]limiter.Charge{
	"told":    {},
	"greater": {Rule: limiter.ChargeGreater},
	"both":    {Rule: limiter.ChargeBoth, OutputFactor: 5},
	"prompt":  {Rule: limiter.ChargePromptOnly, CachedFree: true},
}

// chargedBed is one pool over lanes of those names.
func chargedBed(names ...string) (*bed, map[string]*earLaw) {
	b := &bed{Machine: New(Config{}), now: storyStart}
	for _, name := range names {
		b.Step(b.now, LaneDefined(name, LaneConfig{Charge: rules[name], Window: 1, Limits: limiter.Limits{TPM: 6e6, Burst: time.Second}}))
	}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: names}}}))
	b.offer(0, "p", 0)
	ears := map[string]*earLaw{}
	for _, name := range names {
		l := b.laneNamed(b.now, name)
		ears[name] = &earLaw{Law: l.law}
		l.law = ears[name]
	}
	return b, ears
}

var estimated = limiter.Cost{Requests: 1, Input: 1000, Output: 300}

// Each lane of a pool charges an item by its own rule: when it is let in, when it leaves,
// and when it has ended; and what is free, or counts for more, shows there.
func TestEachLaneChargesByItsOwnRule(t *testing.T) {
	b, ears := chargedBed("told", "greater", "both", "prompt")
	for range 4 {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: "p", Cost: estimated}}))
		b.seq++
	}
	b.decide()
	for _, g := range b.calls {
		if g.Config == nil || g.Config.Charge != rules[g.Lane] {
			t.Errorf("%v: its lane is said to be like %+v", g, g.Config)
		}
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 900, Output: 50}, Cached: 400}))
	}
	for name, want := range map[string]struct{ drawn, settled limiter.Cost }{
		"told":    {estimated, limiter.Cost{Requests: 1, Input: 900, Output: 50}},
		"greater": {limiter.Cost{Requests: 1, Input: 1000}, limiter.Cost{Requests: 1, Input: 900, Output: 50}},
		"both":    {limiter.Cost{Requests: 1, Input: 1000, Output: 1500}, limiter.Cost{Requests: 1, Input: 900, Output: 250}},
		"prompt":  {limiter.Cost{Requests: 1, Input: 1000}, limiter.Cost{Requests: 1, Input: 500}},
	} {
		ear := ears[name]
		if len(ear.sent) != 1 || ear.sent[0] != want.drawn || ear.waits[0] != want.drawn {
			t.Errorf("%s: asked of %+v and sent %+v, want %+v", name, ear.waits, ear.sent, want.drawn)
		}
		if len(ear.news) != 1 || ear.news[0].Cost != want.drawn || ear.news[0].Actual != want.settled {
			t.Errorf("%s: %+v, want %+v", name, ear.news, want)
		} else if free := ear.news[0].Cached; free != 900-want.settled.Input {
			t.Errorf("%s: %v tokens were free", name, free)
		}
	}
}

// Another rule holds from the next law on: a call is settled by the one by which it was
// charged, and the sums of those that wait are made anew.
func TestAnotherRuleHoldsFromTheNextLawOn(t *testing.T) {
	b, ears := chargedBed("both")
	for range 3 {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: "p", Cost: estimated}}))
		b.seq++
	}
	b.decide()
	b.Step(b.now, LaneDefined("both", LaneConfig{Charge: rules["prompt"], Window: 1}))
	l := b.lanes["both"]
	if draw := b.Status(b.now, 1).Lanes[0].Draw; draw.Output != 1500 {
		t.Errorf("one of those that wait draws %+v before the law has changed", draw)
	}
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 900, Output: 50}, Cached: 400}))
	if n := ears["both"].news[0]; n.Cost.Output != 1500 || n.Actual.Output != 250 || n.Cached != 0 {
		t.Errorf("it is settled by another rule: %+v", n)
	}
	b.Step(b.now, LaneReset("both"))
	if draw := b.Status(b.now, 1).Lanes[0].Draw; draw != (limiter.Cost{Requests: 1, Input: 1000}) {
		t.Errorf("one of those that wait draws %+v", draw)
	}
	if p := l.pools[0]; p.cost != (limiter.Cost{Requests: 2, Input: 2000}) {
		t.Errorf("those that wait draw %+v", p.cost)
	}
}

// The picture of each lane says what those that wait for it draw there.
func TestThePictureChargesByTheLane(t *testing.T) {
	b, _ := chargedBed("greater", "both")
	for range 4 {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: "p", Cost: estimated}}))
		b.seq++
	}
	b.decide()
	for _, l := range b.Status(b.now, 2).Lanes {
		want := rules[l.Name]
		if c := want.Of(estimated); l.Draw != c {
			t.Errorf("%s: %+v, want %+v", l.Name, l.Draw, c)
		}
	}
}

// A lane that takes another rule changes what is summed up of the pools that it is first of,
// and of no others.
func TestAnotherRuleIsTheFirstLanes(t *testing.T) {
	b, _ := chargedBed("both", "told")
	for range 5 {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: "p", Cost: estimated}}))
		b.seq++
	}
	b.decide()
	b.Step(b.now, LaneDefined("told", LaneConfig{Charge: rules["prompt"], Window: 1}))
	b.Step(b.now, LaneReset("told"))
	p, both := b.lanes["both"].pools[0], rules["both"]
	want := both.Of(estimated)
	n := float64(p.waiting.n + p.returned.len() + p.delayed.len())
	if want = (limiter.Cost{Requests: n, Input: n * want.Input, Output: n * want.Output}); n == 0 || p.cost != want || !p.hasChargeRule {
		t.Errorf("the %v that wait draw %+v, want %+v", n, p.cost, want)
	}
	b.Step(b.now, LaneDefined("told", LaneConfig{Window: 1}))
	b.Step(b.now, LaneReset("told"))
	if p.cost != want || !p.hasChargeRule {
		t.Errorf("the %v that wait draw %+v by the second lane's rule", n, p.cost)
	}
}

// An item is not larger than its time on the way is worth: with its neighbours it makes
// up most of what a run holds. Nor is a grant, which goes through a channel.
func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(Item{}); got > itemBytes {
		t.Errorf("an item takes %d bytes, want %d at most", got, itemBytes)
	}
	if got := unsafe.Sizeof(Grant{}); got > 72 {
		t.Errorf("a grant takes %d bytes", got)
	}
}

const itemBytes = 352

// soldOut is the sighting of a daily limit of which nothing is left.
var soldOut = limiter.Sighting{Dimension: limiter.Requests, Limit: 14400, Window: 24 * time.Hour, Remaining: 0, Reset: 23 * time.Hour, HasReset: true}

// A lane of whose day nothing is left stops at once, whatever its call's end was, and says
// when the limit is whole again. What waits is released.
func TestUsedUpLaneStops(t *testing.T) {
	for _, signal := range []Signal{Succeeded, Answered, Throttled, Overloaded, Failed, Nothing} {
		for _, c := range []LaneConfig{{}, {Law: limiter.Plain}} {
			b := newBed(c, RunConfig{Concurrency: 1})
			b.offer(3, "", 0)
			b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: signal, Sightings: []limiter.Sighting{{Dimension: limiter.Tokens, Limit: 6000, Window: time.Minute, Reset: time.Hour, HasReset: true}, soldOut}}))
			ready := b.decide()
			var wait *WaitError
			var used *UsedUpError
			l := b.Status(b.now, 1).Lanes[0]
			if l.Phase != Stopped || !errors.As(l.Cause, &wait) || !errors.As(l.Cause, &used) || !errors.Is(l.Cause, ErrWaitTooLong) {
				t.Fatalf("%v: the lane is %v by %v", signal, l.Phase, l.Cause)
			}
			if wait.Until != b.now.Add(23*time.Hour) || used.Limit != 14400 || !strings.Contains(l.Cause.Error(), "all 14400 requests of the day are used") {
				t.Errorf("%v: %v", signal, l.Cause)
			}
			if len(ready.Stranded) != 1 || len(ready.Grants) == 0 || ready.Grants[0].Verdict != EndStopped {
				t.Errorf("%v: %+v", signal, ready)
			}
			if n := l.InFlight; n != 0 {
				t.Errorf("%v: %d in flight", signal, n)
			}
		}
	}
}

// What does not say that a day's is gone stops nothing.
func TestUsedUpIsMeantStrictly(t *testing.T) {
	for name, spoil := range map[string]func(*limiter.Sighting){
		"one is left":           func(s *limiter.Sighting) { s.Remaining = 1 },
		"it is by the hour":     func(s *limiter.Sighting) { s.Window = time.Hour },
		"nobody knows by what":  func(s *limiter.Sighting) { s.Window = 0 },
		"it is whole in ten":    func(s *limiter.Sighting) { s.Reset = 10 * time.Minute },
		"nobody knows when":     func(s *limiter.Sighting) { s.HasReset = false },
		"there never was a one": func(s *limiter.Sighting) { s.Limit = 0 },
	} {
		b, s := newBed(LaneConfig{}, RunConfig{}), soldOut
		spoil(&s)
		b.offer(2, "", 0)
		b.end(time.Second, Outcome{Signal: Succeeded, Sightings: []limiter.Sighting{s}})
		if phase := b.Status(b.now, 1).Lanes[0].Phase; phase != Flowing {
			t.Errorf("%s: the lane is %v", name, phase)
		}
	}
	b := newBed(LaneConfig{}, RunConfig{})
	b.offer(2, "", 0)
	b.Step(b.now, LaneReset(DefaultPool)) // somebody has bought more
	b.end(time.Second, Outcome{Signal: Succeeded, Sightings: []limiter.Sighting{soldOut}})
	if phase := b.Status(b.now, 1).Lanes[0].Phase; phase != Flowing {
		t.Errorf("after a reset: the lane is %v", phase)
	}
}

// Nothing is lost where another lane of the pool has its day left.
func TestUsedUpLaneLeavesItsItemsToOthers(t *testing.T) {
	b, _ := chargedBed("told", "greater")
	for range 6 {
		b.Step(b.now, Offered(1, []*Item{{Seq: b.seq, Pool: "p", Cost: estimated}}))
		b.seq++
	}
	b.Step(b.now, InputEnded(1))
	b.decide()
	answered := map[string]int{}
	for len(b.calls) > 0 {
		g := b.calls[0]
		b.calls = b.calls[1:]
		if g.Verdict != Call {
			t.Fatalf("%v", g)
		}
		o := Outcome{Signal: Succeeded}
		if g.Lane == "told" {
			o.Sightings = []limiter.Sighting{soldOut}
		}
		answered[g.Lane]++
		b.now = b.now.Add(time.Second)
		b.Step(b.now, Settled(g, o))
		b.decide()
	}
	if answered["told"] != 1 || answered["greater"] != 5 {
		t.Errorf("%v", answered)
	}
}

// A server of one's own is held to half of its lane's own time for a call, where it has one.
func TestLocalTargetIsHalfOfTheAttempt(t *testing.T) {
	for want, c := range map[time.Duration]LaneConfig{
		limiter.DefaultLocalTarget: {Local: true},
		15 * time.Second:           {Local: true, AttemptTimeout: 30 * time.Second},
		time.Second:                {Local: true, AttemptTimeout: 30 * time.Second, Target: time.Second},
	} {
		if got := c.law().Target; got != want {
			t.Errorf("%+v: %v, want %v", c, got, want)
		}
	}
	if c := (LaneConfig{AttemptTimeout: time.Minute}); c.law().Target != 0 {
		t.Error("a hosted lane has no target")
	}
}
