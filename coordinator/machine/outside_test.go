package machine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A maker makes laws that are led from outside, and keeps them.
type maker struct{ made []*permitLaw }

func (m *maker) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law {
	l := &permitLaw{}
	m.made = append(m.made, l)
	return l
}

// law is the latest.
func (m *maker) law() *permitLaw { return m.made[len(m.made)-1] }

// A permitLaw lets a call leave for each permit that it was told, and says every tenth of
// a second what it was told to be waiting for.
type permitLaw struct {
	limiter.Unlimited
	permits int
	probes  int // of the next calls
	rests   bool
	number  uint64
	left    map[uint64]limiter.Cost // calls that left and have not ended
	ended   []Outcome
	strange int // ends of calls that it did not let go

	next  time.Time
	asked []asking
}

type asking struct {
	at    time.Time
	up    limiter.Upcoming
	costs []limiter.Cost
}

// Words that it is told, beside numbers of permits.
type (
	probeWord struct{}
	restWord  struct{ rests bool }
)

func (l *permitLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Holdup) {
	switch {
	case l.rests:
		return limiter.UntilTold, limiter.Holdup{By: limiter.ByHold}
	case l.permits == 0:
		return limiter.UntilTold, limiter.Holdup{By: limiter.ByRequests}
	}
	return 0, limiter.Holdup{}
}

func (l *permitLaw) Sent(_ time.Time, c limiter.Cost, _ int) limiter.Ticket {
	l.permits--
	l.number++
	if l.left == nil {
		l.left = map[uint64]limiter.Cost{}
	}
	l.left[1000+l.number] = c
	k := limiter.Ticket{Number: 1000 + l.number, Probe: l.probes > 0}
	l.probes = max(0, l.probes-1)
	return k
}

func (l *permitLaw) Hear(_ time.Time, word any) limiter.Reply {
	switch w := word.(type) {
	case int:
		l.permits += w
	case probeWord:
		l.permits++
		l.probes++
	case restWord:
		l.rests = w.rests
	case limiter.Reply:
		return w
	}
	return limiter.Reply{}
}

func (l *permitLaw) Ended(_ time.Time, k limiter.Ticket, o Outcome) {
	if _, left := l.left[k.Number]; !left {
		l.strange++
	}
	delete(l.left, k.Number)
	l.ended = append(l.ended, o)
}

const permitAsks = 100 * time.Millisecond

func (l *permitLaw) Say(now time.Time, up limiter.Upcoming) (word any, next time.Time) {
	a := asking{at: now, up: up}
	up.Costs(func(c limiter.Cost) bool { a.costs = append(a.costs, c); return true })
	a.up.Costs = nil
	l.asked = append(l.asked, a)
	if now.Before(l.next) || up.Waiting == 0 {
		return nil, l.next
	}
	l.next = now.Add(permitAsks)
	return up.Waiting, l.next
}

func (l *permitLaw) latest() asking { return l.asked[len(l.asked)-1] }

// The laws that a led lane's law is not asked or told as.
func (l *permitLaw) Answered(time.Time, limiter.News) { l.strange++ }
func (l *permitLaw) Failed(time.Time, limiter.News)   { l.strange++ }
func (l *permitLaw) Vanished(time.Time, limiter.News) { l.strange++ }
func (l *permitLaw) Broken(time.Time)                 { l.strange++ }
func (l *permitLaw) Refused(time.Time, limiter.News) limiter.Refusal {
	l.strange++
	return limiter.Refusal{}
}

// Escalation is none: see the book.
func (l *permitLaw) Escalation() int { return 0 }

// ledBed is a bed whose lanes are led.
func ledBed(c LaneConfig, r RunConfig) (*bed, *maker) {
	by := &maker{}
	c.Maker = by
	return newBed(c, r), by
}

func (b *bed) tell(word any) { b.Step(b.now, Told(DefaultPool, word)); b.decide() }

// A lane follows the law that its maker makes, with the words by which the named one would
// be made; another maker is another law, the same one is not.
func TestMakerMakesALanesLaw(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{})
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

// Whatever a call meets on a lane that is led is told to its law alone, as it was said: the
// lane flows, and what was refused goes first when there is a permit again.
func TestLedLaneDrawsNoConclusions(t *testing.T) {
	for what, o := range map[string]Outcome{
		"refused":          {Signal: Throttled, Directed: true, RetryAfter: time.Minute},
		"refused for long": {Signal: Throttled, Directed: true, RetryAfter: 5 * time.Hour},
		"refused by day":   {Signal: Throttled, Unclear: true},
		"busy":             {Signal: Overloaded},
		"for good":         {Signal: Exhausted, Cause: errors.New("no money")},
		"no such model":    {Signal: Exhausted, OnlyIfFirst: true},
		"used up":          {Signal: Throttled, Sightings: []limiter.Sighting{{Dimension: limiter.Requests, Limit: 10, Window: 24 * time.Hour, Reset: 10 * time.Hour, HasReset: true}}},
		"broken":           {Signal: Failed, Way: 1, Cause: errors.New("refused")},
		"never sent":       {Signal: Failed, Unsent: true},
		"cancelled":        {},
		"not to its taste": {Signal: Answered},
	} {
		b, by := ledBed(LaneConfig{Breaker: limiter.BreakerConfig{Consecutive: 2}}, RunConfig{})
		b.offer(1, "", 0)
		for range 2 * unclearMost {
			b.tell(1)
			b.end(time.Minute, o)
			b.now = b.now.Add(time.Minute) // a backoff is over
			b.decide()
		}
		l, law := b.lanes[DefaultPool], by.law()
		if l.phase != Flowing || len(b.said) > 0 || len(b.calls) > 0 || b.Held() != 1 || len(by.made) != 1 {
			t.Errorf("%s: the lane is %v, %v, %d calls, %d held", what, l.phase, b.said, len(b.calls), b.Held())
		}
		if len(law.ended) != 2*unclearMost || len(law.left) != 0 || law.strange > 0 {
			t.Errorf("%s: %d ends were told, %d calls are out, %d were told otherwise", what, len(law.ended), len(law.left), law.strange)
		}
		for _, got := range law.ended {
			got.Latency = 0
			if got.Signal != o.Signal || got.OnlyIfFirst != o.OnlyIfFirst || got.RetryAfter != o.RetryAfter || !errors.Is(got.Cause, o.Cause) || len(got.Sightings) != len(o.Sightings) {
				t.Errorf("%s: told as %+v", what, got)
			}
		}
	}
}

// What was refused on a lane that is led goes first, and what was there before it.
func TestLedLaneTakesRefusedItemsFirst(t *testing.T) {
	b, _ := ledBed(LaneConfig{}, RunConfig{})
	b.offer(3, "", 0)
	b.tell(1)
	b.end(0, Outcome{Signal: Throttled})
	b.tell(2)
	if got := []uint64{b.calls[0].Item.Seq, b.calls[1].Item.Seq}; !slices.Equal(got, []uint64{0, 1}) || b.calls[0].Item.Throttled != 1 {
		t.Errorf("items %v leave", got)
	}
}

// The law stops the lane for a reason of its own, and has it flow again.
func TestLedLaneStopsWhenItIsTold(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{})
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
func TestLedLaneHearsOfAnswers(t *testing.T) {
	b, _ := ledBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	b.tell(1)
	notFound := Outcome{Signal: Exhausted, OnlyIfFirst: true}
	b.end(0, notFound)
	if b.Held() != 1 || len(b.calls) != 0 {
		t.Fatalf("%d held, %v", b.Held(), b.calls)
	}
	b.tell(limiter.Reply{Answered: true})
	b.tell(1)
	b.end(0, notFound)
	if len(b.calls) != 1 || b.calls[0].Verdict != EndFailed {
		t.Errorf("%v", b.calls)
	}
}

// A call that its law sends to see uses up no attempt of its item.
func TestLedLaneProbes(t *testing.T) {
	b, _ := ledBed(LaneConfig{}, RunConfig{})
	b.offer(1, "", 0)
	for _, word := range []any{probeWord{}, probeWord{}, 1} {
		b.tell(word)
		g := b.calls[0]
		if probe := word == any(probeWord{}); g.Item.Probe != probe {
			t.Errorf("%v: a probe: %v", word, g.Item.Probe)
		}
		b.end(0, Outcome{Signal: Failed})
		b.now = b.now.Add(time.Minute)
		b.decide()
		if want := map[any]int{1: 1}[word]; g.Item.Attempts != want {
			t.Errorf("%v: %d attempts are used up", word, g.Item.Attempts)
		}
	}
}

// Whoever falls back does so while a led lane cools outside, and not while it has no permit.
func TestFallbackFromALedLane(t *testing.T) {
	by := &maker{}
	m := New(Config{Lanes: map[string]LaneConfig{"led": {Maker: by}, "second": {}}})
	b := &bed{Machine: m, now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"led", "second"}, Fallback: true}}}))
	b.offer(2, "p", 0)
	if len(b.calls) != 0 {
		t.Fatalf("%v, for want of a permit", b.calls)
	}
	b.Step(b.now, Told("led", restWord{true}))
	if b.decide(); len(b.calls) != 1 || b.calls[0].Lane != "second" {
		t.Fatalf("%v, while the first lane cools outside", b.calls)
	}
	b.Step(b.now, Told("led", restWord{false}))
	b.Step(b.now, Told("led", 1))
	b.now = b.now.Add(time.Second)
	if b.decide(); len(b.calls) != 2 || b.calls[1].Lane != "led" {
		t.Errorf("%v", b.calls)
	}
}

// When a person resets a lane that is led, what stopped it here is gone, and it keeps its
// law: that knows which calls are out, and what is held against the lane outside.
func TestLedLaneKeepsItsLaw(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{})
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

// A ledModel remembers as the model does, and leads its lane.
type ledModel struct{ limiter.Law }

func (*ledModel) NewLaw(c limiter.LawConfig, now time.Time, rng *rand.Rand) limiter.Law {
	return &ledModel{limiter.NewLaw(c, now, rng)}
}

func (*ledModel) Ended(time.Time, limiter.Ticket, Outcome) {}

// A law that leads its lane takes up what is remembered, and that holds the lane back only
// as far as the law says so.
func TestLedLaneIsRemembered(t *testing.T) {
	k := LaneMemory{
		Version: 1, Until: storyStart.Add(time.Minute), Breaker: limiter.BreakerMemory{State: "open", At: storyStart, Failures: 10, Until: storyStart.Add(2 * time.Second)},
		Law: limiter.Memory{Version: 1, Law: "model", At: storyStart, Hold: storyStart.Add(30 * time.Second), Latency: 7},
	}
	m := New(Config{Lane: LaneConfig{Maker: &ledModel{}}, Memory: map[string]LaneMemory{DefaultPool: k}})
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

// What holds a lane back is gone where its next law leads it, but for a stop.
func TestLedLaneBeginsFlowing(t *testing.T) {
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
		b.tell(limiter.Reply{Resume: true})
		if l := b.lanes[DefaultPool]; l.phase != Flowing || l.breaker.State(b.now) != limiter.Closed {
			t.Errorf("%s: the lane is %v after all", what, l.phase)
		}
	}
}

// A word reaches the law of the lane that it is for, if that listens, and no lane is made
// for it.
func TestToldReachesWhoListens(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{})
	b.Step(b.now, Told("nowhere", 1))
	b.Step(b.now, Told(DefaultPool, 1))
	if len(b.lanes) != 0 {
		t.Errorf("%d lanes are known", len(b.lanes))
	}
	b.offer(1, "", 0)
	b.Step(b.now, Told(DefaultPool, 1)) // to a law that does not listen
	if b.decide(); len(b.calls) != 1 {
		t.Errorf("%v", b.calls)
	}
}

// A law is asked what it has to say after whatever changes its lane, and when it wants to
// be; and it is told what is to come: what waits, in the order in which it would leave.
func TestSpeakerIsAsked(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{Concurrency: 5})
	b.offer(1, "", 7)
	law := by.law()
	expect := func(what string, waiting, delayed, free, inFlight int, costs ...float64) {
		t.Helper()
		a := law.latest()
		var got []float64
		for _, c := range a.costs {
			got = append(got, c.Input)
		}
		if want := (limiter.Upcoming{Waiting: waiting, Delayed: delayed, Free: free, InFlight: inFlight}); a.up.Waiting != want.Waiting || a.up.Delayed != want.Delayed ||
			a.up.Free != want.Free || a.up.InFlight != want.InFlight || !slices.Equal(got, costs) || !a.at.Equal(b.now) {
			t.Errorf("%s: at %v %+v, %v", what, a.at.Sub(storyStart), a.up, got)
		}
	}
	expect("offered", 1, 0, 5, 0, 7)
	b.offer(2, "", 8)
	b.tell(2)
	expect("two permits", 1, 0, 3, 2, 8)
	b.end(time.Second, Outcome{Signal: Throttled})
	expect("the first is refused", 2, 0, 4, 1, 7, 8)
	b.end(time.Second, Outcome{Signal: Failed})
	expect("the second breaks", 2, 1, 5, 0, 7, 8)
	b.Step(b.now, Paused(1))
	b.now = b.now.Add(1)
	b.decide()
	expect("the run is paused", 0, 0, 0, 0)
	b.Step(b.now, Resumed(1))
	b.now = b.now.Add(1)
	b.decide()
	expect("and resumed", 2, 1, 5, 0, 7, 8)
	n := len(law.asked)
	b.now = b.Ready(b.now).WakeAt
	if b.decide(); len(law.asked) == n {
		t.Error("it is not asked when it wants to be")
	}
	b.Step(b.now, Drained(1))
	b.now = b.now.Add(1)
	b.decide()
	expect("the run drains", 0, 0, 0, 0)
}

// A scriptedLaw wants to be asked again when its script says, and counts how often it is.
type scriptedLaw struct {
	limiter.Unlimited
	next  time.Time
	asked int
}

func (l *scriptedLaw) Say(time.Time, limiter.Upcoming) (any, time.Time) {
	l.asked++
	return nil, l.next
}

func (*scriptedLaw) Hear(time.Time, any) (r limiter.Reply)                         { return r }
func (l *scriptedLaw) NewLaw(limiter.LawConfig, time.Time, *rand.Rand) limiter.Law { return l }

// A law is asked once in each decision, however much has changed, also where nothing waits;
// and when it wants to be, if that is to come.
func TestSpeakerIsAskedOnce(t *testing.T) {
	law := &scriptedLaw{}
	b := newBed(LaneConfig{Maker: law}, RunConfig{})
	b.offer(5, "", 0)
	for _, g := range b.calls {
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
		b.Step(b.now, Told(DefaultPool, 1))
	}
	if b.decide(); law.asked != 2 {
		t.Errorf("asked %d times in two decisions", law.asked)
	}
	for _, c := range []struct{ next, wake time.Duration }{{time.Hour, time.Hour}, {0, -1}, {time.Minute, time.Minute}, {-time.Minute, -1}} {
		law.next = b.now.Add(c.next)
		b.Step(b.now, Told(DefaultPool, 1))
		n := law.asked
		ready := b.decide()
		if wake := ready.WakeAt.Sub(b.now); law.asked != n+1 || (c.wake > 0) != (!ready.WakeAt.IsZero()) || c.wake > 0 && wake != c.wake {
			t.Errorf("to be asked again in %v: asked %d times, to be woken in %v", c.next, law.asked-n, wake)
		}
	}
}

// A lane that is led has waited for long when its law has let nothing go for so long; the
// wait is over when a call was let in, and what comes then is another.
func TestLedLaneWaitsForLong(t *testing.T) {
	for _, end := range []Signal{Succeeded, Failed} {
		by := &maker{}
		b := &bed{Machine: New(Config{Lane: LaneConfig{Maker: by}, LongWait: time.Minute}), now: storyStart}
		b.Step(b.now, RunOpened(1, RunConfig{}))
		b.offer(5, "", 0)
		said := 0
		wait := func() {
			for range 150 {
				b.now = b.now.Add(time.Second)
				said += len(b.decide().LongWaits)
			}
		}
		if wait(); said != 1 {
			t.Fatalf("said %d times", said)
		}
		b.tell(1)
		b.end(0, Outcome{Signal: end})
		if wait(); said != 2 {
			t.Errorf("a call has %v, and then nothing leaves: said %d times", end, said)
		}
	}
}

// A run that is over has no places any more, and one that begins to draw on a lane has some,
// also where nothing else has changed there.
func TestSpeakerHearsOfRunsThatAreOver(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{Concurrency: 5})
	b.Step(b.now, RunOpened(2, RunConfig{Concurrency: 7}))
	b.Step(b.now, Offered(2, []*Item{{}}))
	b.offer(1, "", 0)
	b.tell(2)
	for _, g := range b.calls {
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
	}
	b.decide()
	was := by.law().latest().up.Free
	b.Step(b.now, InputEnded(2))
	if b.decide(); was != 12 || by.law().latest().up.Free != 5 {
		t.Errorf("%d places, and %d when a run is over", was, by.law().latest().up.Free)
	}
	b.Step(b.now, LaneDefined("second", LaneConfig{Law: limiter.Plain}))
	b.Step(b.now, RunOpened(3, RunConfig{Concurrency: 9, Pools: []PoolConfig{{Name: "p", Lanes: []string{"second", DefaultPool}}}}))
	b.Step(b.now, Offered(3, []*Item{{Pool: "p"}}))
	if b.decide(); by.law().latest().up.Free != 13 {
		t.Errorf("%d places when another run draws on the lane", by.law().latest().up.Free)
	}
}

// Items wait for the lane behind one that is led and rests, and that is said.
func TestWaitsBehindALaneThatRests(t *testing.T) {
	for _, rests := range []bool{true, false} {
		b := &bed{Machine: New(Config{LongWait: time.Minute, Lane: LaneConfig{Maker: &maker{}}}), now: storyStart}
		b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"led", "second"}, Fallback: true}}}))
		b.offer(1, "p", 0)
		b.Step(b.now, Told("led", restWord{rests}))
		said := map[string]bool{}
		for range 300 {
			b.now = b.now.Add(time.Second)
			for _, w := range b.decide().LongWaits {
				said[w.Lane] = true
			}
		}
		if !said["led"] || said["second"] != rests {
			t.Errorf("the first lane rests: %v; said to wait: %v", rests, said)
		}
	}
}

// A word goes out with the answer in which it was said, and once.
func TestWordsGoOut(t *testing.T) {
	b, by := ledBed(LaneConfig{}, RunConfig{})
	b.Step(b.now, Offered(1, []*Item{{}, {}}))
	got := b.Ready(b.now).Words
	if len(got) != 1 || got[0] != (Word{DefaultPool, 2}) {
		t.Fatalf("%v", got)
	}
	ready := b.Ready(b.now)
	if got[0] != (Word{}) {
		t.Errorf("the machine keeps %v alive", got)
	}
	if len(ready.Words) != 0 || !ready.WakeAt.Equal(b.now.Add(permitAsks)) {
		t.Errorf("%v, and to be woken in %v", ready.Words, ready.WakeAt.Sub(b.now))
	}
	n := len(by.law().asked)
	b.Ready(b.now.Add(permitAsks / 2))
	if len(by.law().asked) != n {
		t.Error("it is asked though nothing has changed")
	}
	if got := b.Ready(b.now.Add(permitAsks)).Words; len(got) != 1 || got[0].Said != 2 {
		t.Errorf("%v", got)
	}
	b.Step(b.now, LaneDefined(DefaultPool, LaneConfig{}))
	b.decide()
	if got := b.Ready(b.now.Add(time.Hour)); len(got.Words) != 0 || len(by.law().asked) != n+1 {
		t.Errorf("a law that is gone is asked: %v", got.Words)
	}
}

// Of pools that share a lane each has its turn among the costs, and no more are told than
// the most; those of one pool are in order, however they came back.
func TestCostsOfMany(t *testing.T) {
	by := &maker{}
	m := New(Config{Lane: LaneConfig{Maker: by, Charge: limiter.Charge{Rule: limiter.ChargeBoth, OutputFactor: 2}}})
	b := &bed{Machine: m, now: storyStart}
	pools := []PoolConfig{{Name: "a", Lanes: []string{"l"}}, {Name: "b", Lanes: []string{"l", "other"}}, {Name: "c", Lanes: []string{"l"}}}
	b.Step(b.now, RunOpened(1, RunConfig{Concurrency: 500, Pools: pools}))
	b.Step(b.now, RunOpened(2, RunConfig{Concurrency: 7, Pools: pools}))
	say := func() asking { b.Step(b.now, Told("l", 0)); b.decide(); return by.made[0].latest() }
	b.offer(300, "a", 1)
	if a := say(); a.up.Waiting != 300 || len(a.costs) != limiter.MostUpcoming || a.up.Free != 500 {
		t.Fatalf("%+v, %d costs", a.up, len(a.costs))
	}
	b.offer(300, "b", 2)
	b.Step(b.now, Offered(2, []*Item{{Seq: 1, Pool: "c", Cost: limiter.Cost{Input: 3, Output: 10}}}))
	a := say()
	if a.up.Waiting != 601 || a.up.Free != 507 || len(a.costs) > limiter.MostUpcoming || len(a.costs) < limiter.MostUpcoming/2 {
		t.Fatalf("%+v, %d costs", a.up, len(a.costs))
	}
	sum := map[float64]int{}
	for _, c := range a.costs[:3] {
		sum[c.Input]++
	}
	if sum[1] != 1 || sum[2] != 1 || sum[3] != 1 {
		t.Errorf("the first three: %v", a.costs[:3])
	}
	if i := slices.IndexFunc(a.costs, func(c limiter.Cost) bool { return c.Input == 3 }); a.costs[i].Output != 20 {
		t.Errorf("charged %+v", a.costs[i])
	}
}

// The first of a heap are its first, in order.
func TestFirstsOfAHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	h := heap[int]{before: func(a, b int) bool { return a < b }}
	var all []int
	for n := range 200 {
		for _, most := range []int{0, 1, 2, 7, 64, n, n + 1} {
			want := slices.Sorted(slices.Values(all))
			want = want[:min(most, len(want))]
			if got := h.firsts(most); !slices.Equal(got, want) {
				t.Fatalf("%d of %d: %v, want %v", most, n, got, want)
			}
		}
		x := rng.IntN(1000)
		all = append(all, x)
		h.push(x)
	}
}

// A lane is not asked any more when it was forgotten, however much it has to say.
func TestForgottenLaneSaysNothing(t *testing.T) {
	by := &maker{}
	b := &bed{Machine: New(Config{Lane: LaneConfig{Maker: by}, IdleTTL: time.Minute}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	b.offer(1, "", 0)
	b.tell(1)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
	b.decide()
	by.law().next = b.now.Add(time.Hour) // when it wants to be asked
	b.tell(0)
	b.now = b.now.Add(2 * time.Minute)
	b.Step(b.now, InputEnded(7)) // of a run that is over: nothing but a reason to decide
	b.decide()
	b.Step(b.now, Told(DefaultPool, 0))
	n := len(by.law().asked)
	if b.alarms.len() > 0 {
		t.Errorf("an alarm is set, of lanes %v", b.lanes)
	}
	b.now = b.now.Add(2 * time.Hour)
	if b.decide(); len(b.lanes) != 0 || len(by.law().asked) != n || b.alarms.len() != 0 {
		t.Errorf("%d lanes are known, it was asked %d times more, %d alarms are set", len(b.lanes), len(by.law().asked)-n, b.alarms.len())
	}
}

// More calls than a coordinator lets one run have may be in flight in a machine: those of an
// organisation.
func TestMachineTakesAnyConcurrency(t *testing.T) {
	const most = 2 * MaxConcurrency
	b, _ := ledBed(LaneConfig{}, RunConfig{Concurrency: most})
	items := make([]*Item, most+1)
	for i := range items {
		items[i] = &Item{Seq: uint64(i)}
	}
	b.Step(b.now, Offered(1, items))
	b.tell(most + 1)
	if len(b.calls) != most {
		t.Errorf("%d calls in flight, want %d", len(b.calls), most)
	}
}
