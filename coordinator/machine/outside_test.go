package machine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/laws"
)

// A lane follows the law that its maker makes, with the words by which the named one would
// be made; another maker is another law, the same one is not.
func TestMakerMakesALanesLaw(t *testing.T) {
	b, by := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(3, "", 0)
	if len(by.made) != 1 || len(b.calls) != 0 {
		t.Fatalf("%d laws are made, %d calls left", len(by.made), len(b.calls))
	}
	b.tell(2)
	if len(b.calls) != 2 {
		t.Fatalf("%d calls left by two permits", len(b.calls))
	}
	b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{Maker: by, Window: 7}))
	if len(by.made) != 1 {
		t.Error("the same maker has made another law")
	}
	other := &maker{}
	b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{Maker: other}))
	b.decide()
	if len(by.made) != 1 || len(other.made) != 1 || len(b.calls) != 2 {
		t.Errorf("%d and %d laws are made, %d calls left", len(by.made), len(other.made), len(b.calls))
	}
	b.end(0, Outcome{Signal: Succeeded})
	if n := len(by.law().ended) + len(other.law().ended) + other.law().strange; n != 0 {
		t.Errorf("the end of a call of the law before is told to %d", n)
	}
	b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{}))
	if b.decide(); len(b.calls) != 2 {
		t.Errorf("%d calls left by a law of the usual kind", len(b.calls))
	}
}

// A maker that cannot be compared would have the comparison of two configs panic.
func TestMakerMustBeComparable(t *testing.T) {
	if err := (LaneConfig{Maker: sliceMaker{nil}}).Validate(); err == nil {
		t.Error("a maker that cannot be compared is fine")
	}
	if err := (LaneConfig{Maker: &maker{}, Law: limiter.Plain, Ramp: limiter.RampConfig{Initial: 1}}).Validate(); err != nil {
		t.Errorf("what the named law uses is the maker's to use: %v", err)
	}
}

type sliceMaker struct{ all []int }

func (sliceMaker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return nil }

// The law of a remote lane alone hears how a call ended, in the caller's words. The lane flows,
// and a refused item goes first when there is a permit again.
func TestRemoteLaneDrawsNoConclusions(t *testing.T) {
	for what, o := range map[string]Outcome{
		"refused":          {Signal: Throttled, Directed: true, RetryAfter: time.Minute},
		"refused for long": {Signal: Throttled, Directed: true, RetryAfter: 5 * time.Hour},
		"refused by day":   {Signal: Throttled, Unclear: true},
		"busy":             {Signal: Overloaded},
		"for good":         {Signal: Exhausted, Cause: errors.New("no money")},
		"used up":          {Signal: Throttled, Sightings: []limiter.Sighting{{Dimension: limiter.Requests, Limit: 10, Window: 24 * time.Hour, Reset: 10 * time.Hour, HasReset: true}}},
		"broken":           {Signal: Failed, Way: 1, Cause: errors.New("refused")},
		"never sent":       {Signal: Failed, Unsent: true},
		"cancelled":        {},
		"not to its taste": {Signal: Answered},
	} {
		b, by := remoteBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 2}}, RunConfig{})
		b.offer(1, "", 0)
		for range 2 * unclearMost {
			b.tell(1)
			b.end(time.Minute, o)
			b.now = b.now.Add(time.Minute) // a backoff is over
			b.decide()
		}
		l, law := b.lanes[DefaultPool], by.law()
		if l.phase != Flowing || len(b.said) > 0 || len(b.calls) > 0 || b.Waiting() != 1 || len(by.made) != 1 {
			t.Errorf("%s: the lane is %v, %v, %d calls, %d held", what, l.phase, b.said, len(b.calls), b.Waiting())
		}
		if len(law.ended) != 2*unclearMost || len(law.left) != 0 || law.strange > 0 {
			t.Errorf("%s: %d ends were told, %d calls are out, %d were told otherwise", what, len(law.ended), len(law.left), law.strange)
		}
		for _, got := range law.ended {
			got.Latency = 0
			if got.Signal != o.Signal || got.Alike != o.Alike || got.RetryAfter != o.RetryAfter || !errors.Is(got.Cause, o.Cause) || len(got.Sightings) != len(o.Sightings) {
				t.Errorf("%s: told as %+v", what, got)
			}
		}
	}
}

// What was refused on a remote lane goes first, and what was there before it.
func TestRemoteLaneTakesRefusedItemsFirst(t *testing.T) {
	b, _ := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(3, "", 0)
	b.tell(1)
	b.end(0, Outcome{Signal: Throttled})
	b.tell(2)
	if got := []uint64{b.calls[0].Item.Seq, b.calls[1].Item.Seq}; !slices.Equal(got, []uint64{0, 1}) || b.calls[0].Item.Throttled != 1 {
		t.Errorf("items %v leave", got)
	}
}

// The law stops the lane for a reason of its own, and has it flow again.
func TestRemoteLaneStopsByMessage(t *testing.T) {
	b, by := remoteBed(LaneConfig{}, RunConfig{})
	reason := errors.New("the account is empty, elsewhere")
	b.offer(2, "", 0)
	b.tell(1)
	b.tell(limiter.Reply{Stop: reason, Resume: true})
	if l := b.lanes[DefaultPool]; l.phase != Stopped || !errors.Is(l.cause, reason) || len(b.said) != 1 || !errors.Is(b.said[0].Cause, reason) {
		t.Fatalf("the lane is %v: %v, %v", l.phase, l.cause, b.said)
	}
	if g := b.calls[1]; g.Verdict != EndStopped || !errors.Is(g.Cause, reason) {
		t.Errorf("%v: %v", g, g.Cause)
	}
	b.end(0, Outcome{Signal: Succeeded})
	b.tell(limiter.Reply{Resume: true})
	b.tell(1)
	if b.offer(1, "", 0); b.lanes[DefaultPool].phase != Flowing || len(b.calls) != 3 || b.calls[2].Verdict != Call {
		t.Errorf("the lane is %v, %v", b.lanes[DefaultPool].phase, b.calls)
	}
	epoch := b.lanes[DefaultPool].epoch
	if b.tell(limiter.Reply{Resume: true}); b.lanes[DefaultPool].epoch != epoch || len(by.made) != 1 || len(by.law().ended) != 1 {
		t.Error("a lane that flows is made to flow")
	}
}

// A model that is not found is the item's own fault where somebody else was answered.
func TestRemoteLaneHearsOfAnswers(t *testing.T) {
	b, _ := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	b.tell(1)
	notFound := Outcome{Signal: Exhausted, Alike: 404, First: 1, Later: 5}
	b.end(0, notFound)
	if b.Waiting() != 1 || len(b.calls) != 0 {
		t.Fatalf("%d held, %v", b.Waiting(), b.calls)
	}
	b.tell(limiter.Reply{Answered: true})
	b.tell(1)
	b.now = b.now.Add(HeardWithin)
	b.decide()
	b.end(0, notFound)
	if len(b.calls) != 1 || b.calls[0].Verdict != EndFailed {
		t.Errorf("%v", b.calls)
	}
}

// A server that refuses for good was heard, also on a remote lane: under another law such a lane
// is not given up because nothing was ever answered.
func TestRemoteLaneThatRefusesForGoodWasHeard(t *testing.T) {
	b, _ := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	b.tell(1)
	b.end(0, Outcome{Signal: Exhausted, Alike: 404, First: 1, Later: 5})
	b.redefined(func(c *LaneConfig) { c.Maker = nil })
	if l := b.lanes[DefaultPool]; l.remote() || !l.heard() {
		t.Errorf("remote: %v, heard: %v", l.remote(), l.heard())
	}
}

// An item that a key is refused for does not meet that key again before its lane has heard whether the key is to blame. If it is,
// the item begins anew on another lane: a refusal there counts against that one, and is no second one of the item.
func TestRemoteLaneRefusesAnItemTwice(t *testing.T) {
	refused := Outcome{Signal: Exhausted, Alike: 401, First: 1, Later: 5, Cause: errors.New("no such key")}
	for name, clears := range map[string]func(b *bed){
		"the lane stops": func(b *bed) { b.Step(b.now, Delivered("first", limiter.Reply{Stop: refused.Cause})) },
		"the lane stops, and a person resets it": func(b *bed) {
			b.Step(b.now, Delivered("first", limiter.Reply{Stop: refused.Cause}))
			b.Step(b.now, Delivered("first", limiter.Reply{Resume: true}))
		},
		"nothing": func(*bed) {},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := &maker{}, &maker{}
			b := &bed{now: storyStart, Machine: New(Config{Lanes: map[string]LaneConfig{"first": {Maker: first}, "second": {Maker: second}}})}
			b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"first", "second"}}}}))
			b.offer(1, "p", 0)
			b.Step(b.now, Delivered("first", 1))
			b.decide()
			b.end(0, refused)
			for _, lane := range []string{"first", "second"} { // permits that were on their way
				b.Step(b.now, Delivered(lane, 1))
			}
			b.now = b.now.Add(HeardWithin - 1)
			if b.decide(); len(b.calls) != 0 {
				t.Fatalf("%v, before the lane can have heard of the refusal", b.calls)
			}
			clears(b)
			first.law().permits = 0
			b.now = b.now.Add(1)
			if b.decide(); len(b.calls) != 1 || b.calls[0].Lane != "second" || b.calls[0].Verdict != Call {
				t.Fatalf("%v", b.calls)
			}
			b.end(0, refused)
			if known := len(b.calls) > 0; known != (name == "nothing") || second.law().ended[0].Again != known {
				t.Errorf("%v, and its lane hears %+v", b.calls, second.law().ended[0])
			}
			if len(b.calls) > 0 && b.calls[0].Verdict != EndFailed {
				t.Errorf("%v", b.calls)
			}
		})
	}
}

// A call that its law sends to see uses up no attempt of its item.
func TestRemoteLaneProbes(t *testing.T) {
	b, _ := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	for _, message := range []any{probeMessage{}, probeMessage{}, 1} {
		b.tell(message)
		g := b.calls[0]
		if probe := message == any(probeMessage{}); g.Item.Probe != probe {
			t.Errorf("%v: a probe: %v", message, g.Item.Probe)
		}
		b.end(0, Outcome{Signal: Failed})
		b.now = b.now.Add(time.Minute)
		b.decide()
		if want := map[any]int{1: 1}[message]; g.Item.Attempts != want {
			t.Errorf("%v: %d attempts are used up", message, g.Item.Attempts)
		}
	}
}

// A pool falls back while a remote lane cools outside, and not while the lane has no permit.
func TestFallbackFromARemoteLane(t *testing.T) {
	by := &maker{}
	m := New(Config{Lanes: map[string]LaneConfig{"led": {Maker: by}, "second": {}}})
	b := &bed{Machine: m, now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"led", "second"}, Tiers: each(2)}}}))
	b.offer(2, "p", 0)
	if len(b.calls) != 0 {
		t.Fatalf("%v, for want of a permit", b.calls)
	}
	b.Step(b.now, Delivered("led", restMessage{true}))
	if b.decide(); len(b.calls) != 1 || b.calls[0].Lane != "second" {
		t.Fatalf("%v, while the first lane cools outside", b.calls)
	}
	b.Step(b.now, Delivered("led", restMessage{false}))
	b.Step(b.now, Delivered("led", 1))
	b.now = b.now.Add(time.Second)
	if b.decide(); len(b.calls) != 2 || b.calls[1].Lane != "led" {
		t.Errorf("%v", b.calls)
	}
}

// The law of a remote lane of a later tier hears of no item until the better tier has cooled outside for
// as long as the pool waits. A probe of the better one does not begin that time anew; a call that is let go
// ends it, and the law of the later tier is asked for nothing again.
func TestLaterTierAsksForNothingBefore(t *testing.T) {
	const after = 10 * time.Second
	first, second := &maker{}, &maker{}
	m := New(Config{Lanes: map[string]LaneConfig{"first": {Maker: first}, "second": {Maker: second}}})
	b := &bed{Machine: m, now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"first", "second"}, Tiers: each(2), After: after}}}))
	b.offer(3, "p", 0)
	wants := func(what string, want int) {
		t.Helper()
		if got := second.law().latest(); got.up.Waiting != want || len(got.costs) != want {
			t.Errorf("%s: the law of the later tier hears of %d items, and of %d costs; want %d", what, got.up.Waiting, len(got.costs), want)
		}
		if got := first.law().latest(); got.up.Waiting == 0 {
			t.Errorf("%s: that of the better tier hears of none", what)
		}
	}
	wait := func(d time.Duration) {
		for end := b.now.Add(d); b.now.Before(end); {
			b.now = b.now.Add(permitAsks)
			b.decide()
		}
	}
	wait(time.Minute)
	wants("while the better one only has no permit", 0)
	b.Step(b.now, Delivered("first", restMessage{true}))
	b.decide()
	wait(after / 2)
	wants("while it has not cooled for long", 0)
	b.Step(b.now, Delivered("first", probeMessage{}))
	if b.decide(); len(b.calls) != 1 || b.calls[0].Lane != "first" {
		t.Fatalf("%v: want a probe", b.calls)
	}
	wait(after/2 + permitAsks)
	wants("once it has", 2)
	b.Step(b.now, Delivered("second", 1))
	if b.decide(); len(b.calls) != 2 || b.calls[1].Lane != "second" {
		t.Fatalf("%v: want a call of the later tier", b.calls)
	}
	b.offer(2, "p", 3)
	b.Step(b.now, Delivered("first", restMessage{false}))
	b.Step(b.now, Delivered("first", 1))
	if b.decide(); len(b.calls) != 3 || b.calls[2].Lane != "first" {
		t.Fatalf("%v: want a call of the better tier", b.calls)
	}
	wait(time.Second)
	wants("once the better one lets calls go", 0)
}

// When the better tier falls ill, the law of the later one hears of items that wait for money: they may use its lane from
// then on.
func TestLaterTierHearsOfAnIllness(t *testing.T) {
	second := &maker{}
	m := New(Config{Lanes: map[string]LaneConfig{"first": {Law: limiter.Plain}, "second": {Maker: second}}})
	b := &bed{Machine: m, now: storyStart}
	price := func(*Item, string, float64) (limiter.Money, bool) { return limiter.USD(0.6), true }
	b.Step(b.now, RunOpened(1, RunConfig{Budget: limiter.USD(1), Price: price, Pools: []PoolConfig{{Name: "p", Lanes: []string{"first", "second"}, Tiers: each(2)}}}))
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.offer(3, "p", 0)
	b.decide()
	b.Step(b.now, Offered(2, []*Item{{Pool: "first"}}))
	if b.decide(); len(b.calls) != 2 || b.calls[0].Lane != "first" || b.calls[1].Lane != "first" {
		t.Fatalf("%v: want a call of each run", b.calls)
	}
	if got := second.law().latest(); got.up.Waiting != 0 {
		t.Fatalf("the later tier hears of %d items while the better one is well", got.up.Waiting)
	}
	b.Step(b.now, HandedOver(b.calls[1], Outcome{Signal: Throttled, Directed: true, RetryAfter: time.Minute}))
	if b.decide(); m.lanes["first"].phase != Cooling {
		t.Fatalf("the better lane is %v", m.lanes["first"].phase)
	}
	if got := second.law().latest(); got.up.Waiting != 2 {
		t.Errorf("the later tier hears of %d items, want 2", got.up.Waiting)
	}
}

// When a person resets a remote lane, what stopped it here is gone, and it keeps its
// law: that knows which calls are out, and what is held against the lane outside.
func TestRemoteLaneKeepsItsLaw(t *testing.T) {
	b, by := remoteBed(LaneConfig{}, RunConfig{})
	b.offer(2, "", 0)
	b.tell(1)
	b.tell(limiter.Reply{Stop: errors.New("no")})
	b.Step(b.now, LaneReset(DefaultPool))
	b.end(0, Outcome{Signal: Succeeded})
	if l := b.lanes[DefaultPool]; l.phase != Flowing || l.cause != nil || len(by.made) != 1 || len(by.law().ended) != 1 {
		t.Errorf("the lane is %v, %d laws, %d ends were told", l.phase, len(by.made), len(by.law().ended))
	}
	if _, known := b.SaveLane(b.now, DefaultPool); known {
		t.Error("something is saved of a lane whose law remembers nothing")
	}
}

// A remoteModel remembers as the model does, and leads its lane.
type remoteModel struct{ limiter.Law }

func (*remoteModel) NewLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	return &remoteModel{laws.New(c, now, rng)}
}

func (*remoteModel) Ended(time.Time, limiter.Ticket, Outcome) {}

// A law that leads its lane takes up what is remembered, and that holds the lane back only
// as far as the law says so.
func TestRemoteLaneIsRemembered(t *testing.T) {
	k := LaneMemory{
		Version: 1, Until: storyStart.Add(time.Minute), Breaker: limiter.BreakerMemory{State: "open", At: storyStart, Until: storyStart.Add(2 * time.Second)},
		Law: limiter.Memory{Version: 1, Law: "model", At: storyStart, Hold: storyStart.Add(30 * time.Second), Latency: 7},
	}
	m := New(Config{Lane: LaneConfig{Maker: &remoteModel{}}, Memory: map[string]LaneMemory{DefaultPool: k}})
	b := &bed{Machine: m, now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	b.offer(1, "", 0)
	l := b.lanes[DefaultPool]
	if l.phase != Flowing || l.breaker.State(b.now) != limiter.Closed || l.alarm.pos >= 0 || len(b.calls) != 0 {
		t.Errorf("the lane is %v, its breaker %v, %d calls left", l.phase, l.breaker.State(b.now), len(b.calls))
	}
	if saved, known := b.SaveLane(b.now, DefaultPool); !known || saved.Law.Latency != 7 {
		t.Errorf("%+v", saved.Law)
	}
	b.now = b.now.Add(31 * time.Second)
	if b.decide(); len(b.calls) != 1 {
		t.Error("nothing leaves after the hold")
	}
}

// What holds a lane back is gone where its next law leads it, but for a stop; and that is gone, with whatever else was held
// against the lane, when its law resumes it, or a person does.
func TestRemoteLaneBeginsFlowing(t *testing.T) {
	for _, resumed := range []Event{Delivered(DefaultPool, limiter.Reply{Resume: true}), LaneReset(DefaultPool)} {
		remoteLaneBeginsFlowing(t, resumed)
	}
}

func remoteLaneBeginsFlowing(t *testing.T, resumed Event) {
	for what, signals := range map[string][]Signal{"cooling": {Throttled}, "broken": {Failed}, "stopped": {Exhausted}, "broken, and stopped": {Failed, Exhausted}} {
		b := newBed(LaneConfig{Law: limiter.Plain, Breaker: limiter.BreakerConfig{Consecutive: 1}}, RunConfig{})
		b.offer(2, "", 0)
		for _, s := range signals {
			b.end(0, Outcome{Signal: s})
		}
		was := b.lanes[DefaultPool].phase
		by := &maker{}
		b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{Maker: by}))
		want := Flowing
		if was == Stopped {
			want = Stopped
		}
		if l := b.lanes[DefaultPool]; was == Flowing || l.phase != want || l.breaker.State(b.now) != limiter.Closed && want == Flowing || l.alarm.pos >= 0 {
			t.Errorf("%s: the lane was %v and is %v", what, was, l.phase)
		}
		b.Step(b.now, resumed)
		if l := b.lanes[DefaultPool]; l.phase != Flowing || l.breaker.State(b.now) != limiter.Closed {
			t.Errorf("%s: after %v the lane is %v, its breaker %v", what, resumed, l.phase, l.breaker.State(b.now))
		}
	}
}
