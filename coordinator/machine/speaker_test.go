package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A word reaches the law of the lane that it is for, if that listens, and no lane is made
// for it.
func TestMessagesReachListeners(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{})
	b.Step(b.now, Delivered("nowhere", 1))
	b.Step(b.now, Delivered(DefaultPool, 1))
	if len(b.lanes) != 0 {
		t.Errorf("%d lanes are known", len(b.lanes))
	}
	b.offer(1, "", 0)
	b.Step(b.now, Delivered(DefaultPool, 1)) // to a law that does not listen
	if b.decide(); len(b.calls) != 1 {
		t.Errorf("%v", b.calls)
	}
}

// The machine asks a law for its words after each change of its lane, and when the law wants
// it. It passes the calls to come: those that wait, in the order in which they would leave.
func TestSpeakerIsAsked(t *testing.T) {
	b, by := remoteBed(LaneConfig{}, RunConfig{Concurrency: 5})
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
			a.up.Free != want.Free || a.up.InFlight != want.InFlight || a.up.Busy != inFlight || !slices.Equal(got, costs) || !a.at.Equal(b.now) {
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
		b.Step(b.now, Delivered(DefaultPool, 1))
	}
	if b.decide(); law.asked != 2 {
		t.Errorf("asked %d times in two decisions", law.asked)
	}
	for _, c := range []struct{ next, wake time.Duration }{{time.Hour, time.Hour}, {0, -1}, {time.Minute, time.Minute}, {-time.Minute, -1}} {
		law.next = b.now.Add(c.next)
		b.Step(b.now, Delivered(DefaultPool, 1))
		n := law.asked
		ready := b.decide()
		if wake := ready.WakeAt.Sub(b.now); law.asked != n+1 || (c.wake > 0) != (!ready.WakeAt.IsZero()) || c.wake > 0 && wake != c.wake {
			t.Errorf("to be asked again in %v: asked %d times, to be woken in %v", c.next, law.asked-n, wake)
		}
	}
}

// A remote lane has waited for long when its law has let nothing go for so long; the
// wait is over when a call was let in, and what comes then is another.
func TestRemoteLaneWaitsForLong(t *testing.T) {
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
	b, by := remoteBed(LaneConfig{}, RunConfig{Concurrency: 5})
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
		b.Step(b.now, RunOpened(1, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"led", "second"}, Tiers: each(2)}}}))
		b.offer(1, "p", 0)
		b.Step(b.now, Delivered("led", restMessage{rests}))
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
	b, by := remoteBed(LaneConfig{}, RunConfig{})
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

// Pools that share a lane each have their turn among the costs, and there are at most
// limiter.MostUpcoming costs. Those of one pool are in order, however they came back.
func TestCostsOfMany(t *testing.T) {
	by := &maker{}
	m := New(Config{Lane: LaneConfig{Maker: by, Charge: limiter.Charge{Rule: limiter.ChargeBoth, OutputFactor: 2}}})
	b := &bed{Machine: m, now: storyStart}
	pools := []PoolConfig{{Name: "a", Lanes: []string{"l"}}, {Name: "b", Lanes: []string{"l", "other"}}, {Name: "c", Lanes: []string{"l"}}}
	b.Step(b.now, RunOpened(1, RunConfig{Concurrency: 500, Pools: pools}))
	b.Step(b.now, RunOpened(2, RunConfig{Concurrency: 7, Pools: pools}))
	say := func() asking { b.Step(b.now, Delivered("l", 0)); b.decide(); return by.made[0].latest() }
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
	b.Step(b.now, Delivered(DefaultPool, 0))
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
	b, _ := remoteBed(LaneConfig{}, RunConfig{Concurrency: most})
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

// A law that is gone wakes nobody: neither after a reset by hand, nor where its lane follows
// another one. Its alarm would end the lane's next cooldown.
func TestLawThatIsGoneWakesNobody(t *testing.T) {
	for what, event := range map[string]Event{
		"reset":       LaneReset(DefaultPool),
		"another law": LaneDefined(DefaultPool, LaneConfig{Law: limiter.Plain}),
	} {
		law := &scriptedLaw{next: storyStart.Add(time.Minute)}
		b := newBed(LaneConfig{Maker: law}, RunConfig{})
		b.offer(1, "", 0)
		law.next = time.Time{}
		b.Step(b.now, event)
		if wake := b.decide().WakeAt; !wake.IsZero() {
			t.Errorf("%s: woken after %v", what, wake.Sub(b.now))
		}
	}
}
