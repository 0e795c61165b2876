package permit

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/purity"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

func TestNothingLeavesWithoutAPermit(t *testing.T) {
	r := newRig(t, 10, 10)
	r.mustNotLeave("nothing was given")
	r.at(0).give(1, 0, 1, 10)
	r.mustLeave()
	r.mustNotLeave("the only permit was used")
}

func TestAPermitCoversNoDearerCall(t *testing.T) {
	r := newRig(t, 100, 10)
	r.at(0).give(1, 0, 1, 99, 10)
	r.mustNotLeave("the first in line draws more than any permit allows")
	r.waiting = r.waiting[1:]
	r.mustLeave()
	r.at(time.Second) // it tells which
	used := Number(0)
	for _, x := range r.last().Reports {
		if !x.Unused {
			used = x.Number
		}
	}
	if used != 2 {
		t.Errorf("permit %d was used, and not the smallest that covers the call", used)
	}
	two := Cost{Requests: 2, Input: 5}
	if (Cost{Input: 9}).covers(two) || !(Cost{Requests: 2, Input: 9}).covers(two) || (Cost{Input: 9, Output: 1}).covers(Cost{Output: 2}) {
		t.Error("a permit covers what is greater in one part")
	}
}

// Where sizes tie across parts the one that covers is found all the same.
func TestTheSmallestThatCovers(t *testing.T) {
	var h hand
	for i, c := range []Cost{{Input: 5, Output: 5}, {Input: 9, Output: 1}, {Input: 10}, {Input: 20}} {
		h.add(inHand{Permit: Permit{Number: Number(i + 1), Cost: c}, until: noon.Add(1)})
	}
	for _, c := range []struct {
		of   Cost
		want Number
	}{{Cost{Input: 9, Output: 1}, 2}, {Cost{Input: 10}, 3}, {Cost{Input: 4, Output: 5}, 1}, {Cost{Input: 11}, 4}, {Cost{Output: 6}, 0}} {
		got := Number(0)
		if i := h.find(noon, c.of); i >= 0 {
			got = h.permits[i].Number
		}
		if got != c.want {
			t.Errorf("%v: permit %d, want %d", c.of, got, c.want)
		}
	}
}

// A permit is good until Life after the ask that it answers was sent, however late it comes.
func TestPermitsExpire(t *testing.T) {
	r := newRig(t, 10, 10, 10)
	r.at(0)
	first := r.last().Seq
	r.at(1500 * time.Millisecond)
	r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: first, Permits: []Permit{{Number: 1, Cost: Cost{Input: 10}}, {Number: 2, Cost: Cost{Input: 10}}}})
	r.now = noon.Add(Life - 1)
	r.mustLeave()
	r.now = noon.Add(Life)
	r.mustNotLeave("its time is up")
	r.at(Life + AskEvery)
	if x := r.last().Reports; len(x) != 2 || x[0].Number != 1 || x[0].Unused || x[1].Number != 2 || !x[1].Unused {
		t.Errorf("it reports %+v", x)
	}
	r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: first, Permits: []Permit{{Number: 3, Cost: Cost{Input: 10}}}})
	r.mustNotLeave("it came when its time was up")
	r.at(Life + 2*AskEvery)
	if x := r.last().Reports; len(x) != 3 || x[2].Number != 3 || !x[2].Unused {
		t.Errorf("of a permit that came too late it reports %+v", x)
	}
}

// A holder that is no job says its weight in each ask, and shows the pace that it hears for as long as that is good.
func TestAHolderSaysItsWeight(t *testing.T) {
	r := newRig(t, 10)
	r.Law = NewWeighed("w", "serve/w", "l", 2.5)
	r.at(0)
	if a := r.last(); a.Weight != 2.5 || a.Validate() != nil {
		t.Errorf("%+v", a)
	}
	a := *r.last()
	if a.Weight = math.NaN(); !errors.Is(a.Validate(), ErrMessage) {
		t.Error("a weight that is no number passes")
	}
	hold := noon.Add(time.Second)
	r.Hear(noon, &Pace{PerSecond: 7, By: limiter.BoundTokens, Hold: hold, Good: noon.Add(3 * time.Second)})
	if v := r.View(noon, limiter.Cost{}); v.Rate != 7 || v.Binds.By != limiter.BoundTokens || !v.Hold.Equal(hold) || v.Pace != 0 || v.Search != 0 {
		t.Errorf("%+v", v)
	}
	r.Hear(noon, &Pace{PerSecond: 7, Searched: true, Good: noon.Add(3 * time.Second)})
	if v := r.View(noon, limiter.Cost{}); v.Search != 7 {
		t.Errorf("a search passes for a limit: %+v", v)
	}
	r.Hear(noon, &Pace{By: limiter.BoundCooldown, Hold: hold, Good: noon.Add(3 * time.Second)})
	if v := r.View(noon, limiter.Cost{}); !v.Hold.Equal(hold) || !math.IsInf(v.Rate, 1) || v.Search != 0 {
		t.Errorf("a limit that rests lets something leave: %+v", v)
	}
	if v := r.View(noon.Add(3*time.Second), limiter.Cost{}); !math.IsInf(v.Rate, 1) || !v.Hold.IsZero() {
		t.Errorf("an old pace counts: %+v", v)
	}
}

// Who is refused stops at once, gives up what it has, and says so without delay.
func TestARefusalStopsItsWorker(t *testing.T) {
	r := newRig(t, 10, 10, 10)
	r.at(0).give(1, 0, 1, 10, 10)
	k := r.mustLeave()
	r.at(AskEvery)
	asked := len(r.said)
	r.now = r.now.Add(AskSoonest)
	r.Ended(r.now, k, machine.Outcome{Signal: machine.Throttled})
	r.mustNotLeave("it was refused")
	if r.say() == nil {
		t.Fatal("it did not say so at once")
	}
	x := r.said[asked].Reports
	if len(x) < 2 || x[len(x)-1].Number != 2 || !x[len(x)-1].Unused || x[len(x)-2].Ended == nil || x[len(x)-2].Ended.Signal != "throttled" {
		t.Errorf("it reports %+v", x)
	}
}

// From a wave on the law says that its limit cools, also where a probe may leave, until permits come that are none.
func TestALimitCoolsUntilPermitsComeThatAreNoProbes(t *testing.T) {
	r := newRig(t, 10, 10)
	bound := func(what string, want limiter.Bound) {
		t.Helper()
		if _, by := r.Wait(r.now, limiter.Cost{Requests: 1, Input: 10}); by != want {
			t.Errorf("%s: the bound is %v, want %v", what, by, want)
		}
	}
	bound("before it has heard anything", limiter.BoundRequests)
	r.at(0).give(1, 0, 1, 10)
	bound("with a permit", limiter.BoundNone)
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1, For: time.Second})
	bound("after a wave", limiter.BoundCooldown)
	give := func(n Number, probe bool) {
		r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Wave: 1, Heard: r.last().Seq, Permits: []Permit{{Number: n, Cost: Cost{Input: 10}, Probe: probe}}})
	}
	r.at(AskAgain)
	give(2, true)
	bound("with the permit of a probe", limiter.BoundCooldown)
	r.mustLeave()
	bound("while the probe is out", limiter.BoundCooldown)
	r.at(2 * AskAgain)
	give(3, false)
	bound("with a permit of that wave", limiter.BoundNone)
	r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Wave: 2, Heard: r.last().Seq})
	bound("after a wave whose word was lost", limiter.BoundCooldown)
}

// A refusal of an older wave says nothing of what was given since.
func TestAStragglersRefusalStopsNobody(t *testing.T) {
	r := newRig(t, 10, 10)
	r.at(0).give(1, 0, 1, 10)
	k := r.mustLeave()
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1})
	r.give(1, 1, 2, 10)
	r.Ended(r.now, k, machine.Outcome{Signal: machine.Throttled})
	r.mustLeave()
}

// An end without a word of its beginning, as after a lane was given another law, is none.
func TestAnEndOfNoCall(t *testing.T) {
	r := newRig(t)
	r.Ended(noon, limiter.Ticket{Number: 3}, machine.Outcome{})
	if len(r.reports.list) > 0 {
		t.Errorf("it reports %+v", r.reports.list)
	}
}

// Nothing leaves any more, two seconds after the bus was lost, whatever was in hand.
func TestWithoutABusNothingLeaves(t *testing.T) {
	r := newRig(t, make([]float64, 200)...)
	r.at(0)
	for i := range 20 {
		r.at(time.Duration(i) * AskEvery)
		r.give(1, 0, Number(10*i+1), 0, 0, 0, 0, 0)
	}
	r.now = r.now.Add(Life)
	r.mustNotLeave("the bus is lost for that long")
}

// When an item that was refused for good is called once more, no permit from before its refusal is left.
func TestPermitsEndBeforeARefusedItemIsCalledOnceMore(t *testing.T) {
	if Life > machine.HeardWithin {
		t.Errorf("a permit is good for %v, and an item is called once more after %v", Life, machine.HeardWithin)
	}
}

// In the core's machine: the law leads its lane, and a probe uses up no attempt.
func TestInTheMachine(t *testing.T) {
	l := New("w", "j", "l")
	m := machine.New(machine.Config{Lanes: map[string]machine.LaneConfig{"l": {Maker: l}}})
	m.Step(noon, machine.RunOpened(1, machine.RunConfig{Concurrency: 4}))
	m.Step(noon, machine.Offered(1, []*machine.Item{{Pool: "l", Cost: limiter.Cost{Requests: 1, Input: 10}}, {Pool: "l", Cost: limiter.Cost{Requests: 1, Input: 20}}}))
	r := m.Ready(noon)
	if len(r.Grants) != 0 || len(r.Words) != 1 {
		t.Fatalf("%d grants and %d words", len(r.Grants), len(r.Words))
	}
	ask := r.Words[0].Said.(*Ask)
	if len(ask.Wants) != 2 || ask.Wants[1].Input != 20 {
		t.Fatalf("it wants %v", ask.Wants)
	}
	m.Step(noon, machine.Delivered("l", &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: ask.Seq, Permits: []Permit{{Number: 1, Cost: Cost{Input: 10}, Probe: true}}}))
	r = m.Ready(noon)
	if len(r.Grants) != 1 || !r.Grants[0].Item.Probe {
		t.Fatalf("grants %+v", r.Grants)
	}
	g := r.Grants[0]
	m.Step(noon, machine.HandedOver(g, machine.Outcome{Signal: machine.Failed}))
	if g.Item.Attempts != 0 {
		t.Error("the probe has used up an attempt")
	}
	m.Step(noon, machine.Delivered("l", &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1, Stopped: &Cause{Text: "no credit"}}))
	r = m.Ready(noon)
	if len(r.Grants) != 2 || r.Grants[0].Verdict != machine.EndStopped || r.Grants[0].Cause.Error() != "no credit" {
		t.Errorf("stopped, it grants %+v", r.Grants)
	}
}

// A call that was let go before it left gives its permit to the next one; the keeper hears of one call.
func TestAPermitWhoseCallDidNotLeave(t *testing.T) {
	r := newRig(t, 10, 10, 9, 8)
	r.at(0).give(1, 0, 1, 10)
	for range 2 {
		r.Ended(r.now, r.mustLeave(), machine.Outcome{Unsent: true})
	}
	k := r.mustLeave()
	r.mustNotLeave("the permit is used")
	r.at(AskAgain)
	if x := r.last().Reports; len(x) != 1 || x[0].Cost.Input != 9 || x[0].Ended != nil {
		t.Errorf("it reports %+v", x)
	}
	r.Ended(r.now.Add(time.Millisecond), k, machine.Outcome{Signal: machine.Succeeded})
	r.mustNotLeave("its call has left")
	r.at(2 * AskAgain)
	if x := r.last().Reports; len(x) != 2 || x[1].Number != 1 || x[1].Cost.Input != 9 || x[1].Ended == nil || x[1].Ended.Signal != "" {
		t.Errorf("it reports %+v", x)
	}
}

// The news that the keeper has of a permit's call stands: it ends once, whatever becomes of the permit.
func TestAPermitThatIsGoodForNobody(t *testing.T) {
	const nothing = "nothing"
	for _, c := range []struct {
		name  string
		heard bool // that the call had left
		then  func(r *rig)
		want  func(x Report) bool
	}{
		{"a wave, before that was said", false, func(r *rig) { r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1}) }, func(x Report) bool { return x.Unused }},
		{"its time is up, and it was said to be used", true, func(r *rig) { r.at(2 * Life) }, func(x Report) bool { return !x.Unused && x.Ended.Signal == nothing && x.Ended.Unsent }},
		{"it is used", true, func(r *rig) { r.Ended(r.now, r.mustLeave(), machine.Outcome{Signal: machine.Failed}) }, func(x Report) bool { return !x.Unused && x.Ended.Signal == "failed" }},
		{"a wave", true, func(r *rig) { r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1}) }, func(x Report) bool { return !x.Unused && x.Ended.Signal == nothing && x.Ended.Unsent }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 10, 10, 10)
			r.at(0).give(1, 0, 1, 10)
			k := r.mustLeave()
			if c.heard {
				r.at(AskAgain)
				if x := r.last().Reports; len(x) != 1 || x[0].Ended != nil {
					t.Fatalf("it reports %+v", x)
				}
			}
			r.Ended(r.now, k, machine.Outcome{Unsent: true})
			c.then(r)
			r.at(4 * Life)
			ends := 0
			for _, x := range r.last().Reports {
				if x.Unused || x.Ended != nil {
					ends++
					if !c.want(x) {
						t.Errorf("it reports %+v, %+v", x, x.Ended)
					}
				}
			}
			if ends != 1 {
				t.Errorf("it ends %d times", ends)
			}
		})
	}
}

// A permit is not taken back for longer than it is good, nor a probe, nor one that failed on the way.
func TestPermitsThatAreNotTakenBack(t *testing.T) {
	for name, end := range map[string]func(r *rig, k limiter.Ticket){
		"its time is up": func(r *rig, k limiter.Ticket) { r.Ended(r.now.Add(Life), k, machine.Outcome{Unsent: true}) },
		"it failed": func(r *rig, k limiter.Ticket) {
			r.Ended(r.now, k, machine.Outcome{Signal: machine.Failed, Unsent: true})
		},
		"it left": func(r *rig, k limiter.Ticket) { r.Ended(r.now, k, machine.Outcome{}) },
		"a later wave": func(r *rig, k limiter.Ticket) {
			r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1})
			r.Ended(r.now, k, machine.Outcome{Unsent: true})
		},
		"a later keeper": func(r *rig, k limiter.Ticket) { r.give(2, 0, 1); r.Ended(r.now, k, machine.Outcome{Unsent: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 10, 10)
			r.at(0).give(1, 0, 1, 10)
			end(r, r.mustLeave())
			if len(r.hand.permits) > 0 {
				t.Errorf("in hand: %+v", r.hand.permits)
			}
			r.mustNotLeave(name)
		})
	}
	r := newRig(t, 10, 10)
	r.at(0)
	r.Hear(r.now, &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: r.last().Seq, Permits: []Permit{{Number: 1, Cost: Cost{Input: 10}, Probe: true}}})
	r.Ended(r.now, r.mustLeave(), machine.Outcome{Unsent: true})
	r.mustNotLeave("it was a probe, whose end the keeper waits for")
}

// Of what was taken back no more is kept than there are calls that wait for it: what lies in a hand leaves late.
func TestPermitsThatNobodyWaitsFor(t *testing.T) {
	r := newRig(t, 10, 10, 10, 10)
	r.at(0).give(1, 0, 1, 10, 10, 10)
	for _, k := range []limiter.Ticket{r.mustLeave(), r.mustLeave(), r.mustLeave()} {
		r.Ended(r.now, k, machine.Outcome{Unsent: true})
	}
	r.at(AskEvery)
	if n := len(r.hand.permits); n != 1 {
		t.Errorf("%d are in hand, and one call waits", n)
	}
	unused := 0
	for _, x := range r.last().Reports {
		if x.Unused {
			unused++
		}
	}
	if unused != 2 {
		t.Errorf("it reports %+v", r.last().Reports)
	}
	r.mustLeave()
}

func TestWordsThatComeTwiceOrLate(t *testing.T) {
	r := newRig(t, 10, 10, 10, 10)
	r.at(0).give(5, 3, 7, 10)
	r.give(5, 3, 7, 10)
	r.mustLeave()
	r.mustNotLeave("the same give came twice")
	r.give(5, 3, 6, 10)
	r.mustNotLeave("it came after a later one: whether it was used is not known any more")
	r.give(4, 9, 50, 10)
	r.mustNotLeave("an earlier keeper gave it")
	r.Hear(r.now, &Give{Version: Version, Worker: "other", Job: "j", Limit: "l", Epoch: 5, Wave: 3, Heard: 1, Permits: []Permit{{Number: 90, Cost: Cost{Input: 10}}}})
	r.mustNotLeave("it is for another")
	r.give(5, 2, 91, 10)
	r.mustNotLeave("it is of an older wave")
	r.give(6, 0, 1, 10)
	r.mustLeave()
	r.at(AskEvery)
	if a := r.last(); a.Epoch != 6 || a.Got != 1 {
		t.Errorf("it believes in keeper %d and has %d", a.Epoch, a.Got)
	}
}

// Permits of the keeper before are good until they expire: the next one begins with nothing.
func TestPermitsOutliveTheirKeeper(t *testing.T) {
	r := newRig(t, 10, 10)
	r.at(0).give(1, 4, 1, 10, 10)
	r.give(2, 0, 1)
	r.mustLeave()
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 2, Wave: 1})
	r.mustNotLeave("a wave of the later keeper voids them")
}

func TestAWaveVoidsWhatIsInHand(t *testing.T) {
	r := newRig(t, 10, 10, 10)
	r.at(0).give(1, 0, 1, 10, 10)
	r.Hear(r.now, &Cool{Version: Version, Limit: "other", Epoch: 1, Wave: 1})
	r.mustLeave()
	r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 1, For: time.Second})
	r.mustNotLeave("there was a wave since")
	r.at(AskEvery)
	if x := r.last().Reports; len(x) != 2 || x[0].Number != 1 || x[0].Unused || x[1].Number != 2 || !x[1].Unused {
		t.Errorf("it reports %+v", x)
	}
	r.give(1, 1, 3, 10)
	r.mustLeave()
}

// A wave is known from a give as well, if the word about it was lost.
func TestAGiveTellsOfAWave(t *testing.T) {
	r := newRig(t, 10, 10)
	r.at(0).give(1, 0, 1, 10)
	r.give(1, 1, 2)
	r.mustNotLeave("there was a wave since")
}

func TestStopAndResume(t *testing.T) {
	fault := &provider.Error{Kind: provider.QuotaExhausted, Message: "no credit"}
	stop := &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 2, Stopped: CauseOf(fault)}
	r := newRig(t, 10, 10)
	r.at(0).give(1, 1, 1, 10)
	if reply := r.Hear(r.now, stop); !errors.Is(reply.Stop, provider.QuotaExhausted) || reply.Resume {
		t.Errorf("the lane is to %+v", reply)
	}
	r.mustNotLeave("it is stopped")
	if r.at(AskEvery); len(r.last().Wants) > 0 {
		t.Errorf("it wants %v", r.last().Wants)
	}
	if reply := r.Hear(r.now, stop); reply != (limiter.Reply{}) {
		t.Errorf("told again, the lane is to %+v", reply)
	}
	if reply := r.give(1, 2, 2); reply.Resume {
		t.Error("a give of the same wave resumes it")
	}
	if reply := r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 3}); !reply.Resume || reply.Stop != nil {
		t.Errorf("vouched for, the lane is to %+v", reply)
	}
	if r.at(2 * AskEvery); len(r.last().Wants) == 0 {
		t.Error("it wants nothing any more")
	}
}

// A stop that was lost is heard when it is said again, though a give told of its wave.
func TestAStopAfterAGiveOfItsWave(t *testing.T) {
	r := newRig(t, 10)
	r.at(0).give(1, 2, 1)
	if reply := r.Hear(r.now, &Cool{Version: Version, Limit: "l", Epoch: 1, Wave: 2, Stopped: &Cause{Text: "no credit"}}); reply.Stop == nil {
		t.Error("it is not stopped")
	}
}

func TestAnsweredElsewhere(t *testing.T) {
	r := newRig(t, 10)
	r.at(0)
	g := &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: 1, Heard: 1}
	if r.Hear(r.now, g).Answered {
		t.Error("nobody was answered")
	}
	g.Answered = true
	if !r.Hear(r.now, g).Answered {
		t.Error("somebody was answered")
	}
}

// At each decision it is looked whether a permit has grown too old. That makes nothing, however many
// there are.
func TestLookingForOldPermitsMakesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var h hand
	for n := range 256 {
		h.add(inHand{Permit: Permit{Number: Number(n + 1)}, until: noon.Add(time.Second)})
	}
	if n := testing.AllocsPerRun(10, func() { h.dropExpired(noon) }); n > 0 {
		t.Errorf("%v allocations where none is too old", n)
	}
	if gone := h.dropExpired(noon.Add(time.Second)); len(gone) != 256 || len(h.permits) != 0 {
		t.Errorf("%d have gone, %d are left", len(gone), len(h.permits))
	}
}

// This is all that a law of permits may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 5,
		"cmp", "errors", "fmt", "math", "math/rand/v2", "slices", "strings", "time", "unicode/utf8",
		"github.com/headrace/headrace/coordinator/machine", "github.com/headrace/headrace/limiter", "github.com/headrace/headrace/provider",
	)
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func costs(input ...float64) func(func(limiter.Cost) bool) {
	return func(yield func(limiter.Cost) bool) {
		for _, n := range input {
			if !yield(limiter.Cost{Requests: 1, Input: n}) {
				return
			}
		}
	}
}

// A rig is a law, what waits for it, and what it has said.
type rig struct {
	*Law
	t       *testing.T
	now     time.Time
	waiting []float64
	free    int
	busy    int
	said    []*Ask
	next    time.Time
}

func newRig(t *testing.T, waiting ...float64) *rig {
	return &rig{Law: New("w", "j", "l"), t: t, now: noon, waiting: waiting, free: 64}
}

// at has time pass, and the law say what it has to say meanwhile.
func (r *rig) at(d time.Duration) *rig {
	to := noon.Add(d)
	for r.say(); !r.next.IsZero() && !r.next.After(to); r.say() {
		if !r.next.After(r.now) {
			r.t.Fatalf("at %v it wants to be asked at %v", r.now.Sub(noon), r.next.Sub(noon))
		}
		r.now = r.next
	}
	r.now = to
	r.say()
	return r
}

func (r *rig) say() *Ask {
	up := limiter.Upcoming{Waiting: len(r.waiting), Free: r.free, Busy: r.busy, InFlight: len(r.out), Costs: costs(r.waiting...)}
	a, next := r.Say(r.now, up)
	r.next = next
	if a == nil {
		return nil
	}
	ask := a.(*Ask)
	if err := ask.Validate(); err != nil {
		r.t.Errorf("it says %v", err)
	}
	r.said = append(r.said, ask)
	return ask
}

func (r *rig) last() *Ask { return r.said[len(r.said)-1] }

// give gives permits of those costs that answer the latest ask.
func (r *rig) give(epoch, wave uint64, from Number, input ...float64) limiter.Reply {
	g := &Give{Version: Version, Worker: "w", Job: "j", Limit: "l", Epoch: epoch, Wave: wave, Heard: r.last().Seq}
	for i, n := range input {
		g.Permits = append(g.Permits, Permit{Number: from + Number(i), Cost: Cost{Input: n}})
	}
	return r.Hear(r.now, g)
}

// leaves has the first call in line leave if it may.
func (r *rig) leaves() (k limiter.Ticket, left bool) {
	c := limiter.Cost{Requests: 1, Input: r.waiting[0]}
	wait, _ := r.Wait(r.now, c)
	if wait == 0 {
		k = r.Sent(r.now, c, 0)
		r.waiting = r.waiting[1:]
	}
	return k, wait == 0
}

func (r *rig) mustLeave() limiter.Ticket {
	r.t.Helper()
	k, left := r.leaves()
	if !left {
		r.t.Fatal("there is no permit")
	}
	return k
}

func (r *rig) mustNotLeave(why string) {
	r.t.Helper()
	if _, left := r.leaves(); left {
		r.t.Fatalf("a call left: %s", why)
	}
}
