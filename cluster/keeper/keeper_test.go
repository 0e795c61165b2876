package keeper

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// A rig is a keeper, and hands that ask it.
type rig struct {
	*Keeper
	t   *testing.T
	now time.Time
	out Out

	watch  func(permit.Give)
	silent bool // workers say nothing but what a test has them say; else they ask all the time
}

// told is a limit of a call a second, a minute of which may be saved up: four leave in the first
// seconds, and what comes back is seen.
var told = machine.LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}

// many is one of a thousand calls a second.
var many = machine.LaneConfig{Limits: limiter.Limits{RPM: 60_000}}

func under(c machine.LaneConfig) Config {
	return Config{Limits: map[string]machine.LaneConfig{"org": c}}
}

func newRig(t *testing.T, c Config) *rig {
	if c.Epoch == 0 {
		c.Epoch = 1
	}
	return &rig{Keeper: New(c), t: t, now: noon}
}

func calls(n int, input float64) []permit.Cost {
	wants := make([]permit.Cost, n)
	for i := range wants {
		wants[i].Input = input
	}
	return wants
}

// asking is an ask of worker w.
func asking(w string, seq uint64, wants []permit.Cost, reports ...permit.Report) permit.Ask {
	return permit.Ask{Version: permit.Version, Worker: w, Job: "job", Limit: "org", Seq: seq, Epoch: 1, Wants: wants, First: 1, Reports: reports}
}

func (r *rig) hears(a permit.Ask) *rig {
	r.t.Helper()
	if err := r.Heard(r.now, a); err != nil {
		r.t.Fatal(err)
	}
	return r.decides()
}

func (r *rig) decides() *rig {
	r.t.Helper()
	for _, p := range r.line {
		if !r.silent {
			p.heard = r.now
		}
	}
	out := r.Ready(r.now)
	r.out.Gives = append(r.out.Gives, out.Gives...)
	for _, g := range out.Gives {
		if r.watch != nil {
			r.watch(g)
		}
	}
	r.out.Cools = append(r.out.Cools, out.Cools...)
	r.out.WakeAt, r.out.Outbid = out.WakeAt, out.Outbid
	if fault := audit(r.Keeper); fault != "" {
		r.t.Fatal(fault)
	}
	if at := out.WakeAt; !at.IsZero() && !at.After(r.now) {
		r.t.Fatalf("at %v it wants to be asked at %v", r.now.Sub(noon), at.Sub(noon))
	}
	return r
}

// at has time pass, and the keeper decide whenever it wants to.
func (r *rig) at(d time.Duration) *rig {
	r.t.Helper()
	for to := noon.Add(d); ; r.decides() {
		if at := r.out.WakeAt; at.IsZero() || at.After(to) {
			r.now = to
			return r.decides()
		}
		r.now = r.out.WakeAt
	}
}

// given are the permits that were given to a worker since it was asked last.
func (r *rig) given(worker string) (permits []permit.Permit) {
	kept := r.out.Gives[:0]
	for _, g := range r.out.Gives {
		if g.Worker == worker {
			permits = append(permits, g.Permits...)
		} else {
			kept = append(kept, g)
		}
	}
	r.out.Gives = kept
	return permits
}

func (r *rig) lane() machine.LaneStatus { return r.Status(r.now).Limits[0].Lane }

// refused is a refusal whose headers say that nothing is left.
var refused = machine.Outcome{
	Signal: machine.Throttled, Latency: 100 * time.Millisecond,
	Sightings: []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Reset: time.Second, HasReset: true}},
}

func left(p permit.Permit) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Cost: p.Cost}
}

func unused(p permit.Permit) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Unused: true}
}

func ended(p permit.Permit, o machine.Outcome) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Cost: p.Cost, Age: 10 * time.Millisecond, Ended: permit.OutcomeOf(o)}
}

func TestWhoAsksIsGiven(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(3, 10))).at(3 * time.Second)
	if len(r.out.Gives) == 0 {
		t.Fatal("nothing was given")
	}
	g := r.out.Gives[0]
	if g.Version != permit.Version || g.Worker != "a" || g.Job != "job" || g.Limit != "org" || g.Epoch != 1 || g.Heard != 1 || g.Validate() != nil {
		t.Errorf("it gave %+v", g)
	}
	permits := r.given("a")
	if len(permits) != 3 {
		t.Fatalf("of three wants %d were met", len(permits))
	}
	for i, p := range permits {
		if p.Number != permit.Number(i+1) || p.Cost.Input != 10 {
			t.Errorf("permit %+v", p)
		}
	}
	if len(r.given("b")) > 0 {
		t.Error("nobody asked, and was given")
	}
}

// The same ask again, an earlier one that comes late, and reports that are said again change
// nothing.
func TestAsksThatComeTwiceOrLate(t *testing.T) {
	r := newRig(t, under(told))
	r.hears(asking("other", 1, calls(30, 10))).at(10 * time.Second) // so that the bucket is not full
	a := asking("a", 5, calls(2, 10))
	r.hears(a).at(11 * time.Second)
	permits := r.given("a")
	if len(permits) != 2 {
		t.Fatalf("%d were given", len(permits))
	}
	r.hears(a).hears(asking("a", 4, calls(9, 10))).at(11500 * time.Millisecond)
	if n := len(r.given("a")); n > 0 {
		t.Errorf("asks that were heard, or are old, are given %d", n)
	}
	before := r.lane().Level.Requests
	again := asking("a", 6, nil, ended(permits[0], machine.Outcome{Signal: machine.Succeeded}), unused(permits[1]))
	again.Got = permits[1].Number
	r.hears(again)
	back := r.lane().Level.Requests
	again.Seq = 7
	r.hears(again)
	again.Seq, again.Reports = 8, append(again.Reports, unused(permits[1]), unused(permits[0]))
	r.hears(again)
	if now := r.lane().Level.Requests; now != back || back != before+1 {
		t.Errorf("a permit that came back once makes of %v %v, and when it is said again %v", before, back, now)
	}
	if c := r.Status(r.now).Limits[0].Counts; c.Ended != 1 || c.Unused != 1 {
		t.Errorf("%+v", c)
	}
}

// Who says that a permit was used and that it was not is not given its charge back.
func TestUsedIsNotUnused(t *testing.T) {
	r := newRig(t, under(told))
	r.hears(asking("a", 1, calls(1, 10))).at(100 * time.Millisecond)
	p := r.given("a")[0]
	level := r.lane().Level.Requests
	r.hears(asking("a", 2, nil, left(p), unused(p)))
	if now := r.lane().Level.Requests; now > level {
		t.Errorf("the level was %v and is %v", level, now)
	}
}

// A permit of which nothing is said for Forgotten is no call in flight any more; its charge
// does not come back, as a call may have left with it.
func TestPermitsAreForgotten(t *testing.T) {
	r := newRig(t, under(told))
	r.silent = true
	r.hears(asking("a", 1, calls(3, 10))).at(750 * time.Millisecond)
	permits := r.given("a")
	if len(permits) != 3 {
		t.Fatalf("%d were given", len(permits))
	}
	for i := range 80 { // the worker lives, and says nothing of two of them
		r.hears(asking("a", uint64(2+i), nil, left(permits[0]))).at(time.Duration(i+8) * 100 * time.Millisecond)
		want, since := 3, r.now.Sub(noon)
		if since > permit.Forgotten && since < permit.Forgotten+time.Second {
			continue
		}
		if since > permit.Forgotten {
			want = 1
		}
		if got := r.lane().InFlight; got != want {
			t.Fatalf("%v after they were given %d are in flight", r.now.Sub(noon), got)
		}
	}
	if c := r.Status(r.now).Limits[0].Counts; c.Vanished != 2 {
		t.Errorf("%+v", c)
	}
	if got := r.lane().Level.Requests; got > 60-3+8.1 {
		t.Errorf("the level is %v: what vanished has come back", got)
	}
}

// Who is silent for Forgotten is gone, and all that it had.
func TestSilentWorkersAreForgotten(t *testing.T) {
	r := newRig(t, under(told))
	r.silent = true
	r.hears(asking("a", 1, calls(2, 10))).at(100 * time.Millisecond)
	r.hears(asking("a", 2, calls(60, 10), left(r.given("a")[0]))).at(permit.Forgotten)
	if len(r.peers) != 1 || r.lane().InFlight == 0 {
		t.Fatal("it is forgotten before its time")
	}
	r.at(100*time.Millisecond + permit.Forgotten + 2*sweepEvery)
	if len(r.peers) != 0 || len(r.line) != 0 || r.lane().InFlight != 0 || r.limits["org"].waiting != 0 || len(r.limits["org"].turns) != 0 {
		t.Errorf("%d peers, %d in flight, %d wait", len(r.peers), r.lane().InFlight, r.limits["org"].waiting)
	}
	if !r.out.WakeAt.IsZero() && r.out.WakeAt.Before(r.now.Add(time.Second)) {
		t.Errorf("nobody is there, and it wants to be asked in %v", r.out.WakeAt.Sub(r.now))
	}
}

// What a worker reports that was given up is still a lesson.
func TestReportsOfTheForgotten(t *testing.T) {
	r := newRig(t, Config{})
	r.silent = true
	r.hears(asking("a", 1, calls(1, 10))).at(time.Second)
	p := r.given("a")[0]
	r.at(10 * time.Second)
	r.hears(asking("a", 2, nil, ended(p, machine.Outcome{Signal: machine.Succeeded, Latency: 9 * time.Second})))
	if got := r.lane(); got.Latency != 9*time.Second || got.InFlight != 0 {
		t.Errorf("latency %v, %d in flight", got.Latency, got.InFlight)
	}
}

// A refusal is one wave everywhere: all are told at once, and those that follow are part of it.
func TestARefusalIsOneWave(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(20, 10))).hears(asking("b", 1, calls(20, 10))).at(10 * time.Second)
	a, b := r.given("a"), r.given("b")
	if len(a) < 3 || len(b) < 3 {
		t.Fatalf("%d and %d were given", len(a), len(b))
	}
	r.hears(asking("a", 2, calls(20, 10))).hears(asking("b", 2, calls(20, 10))).at(10*time.Second + permit.GiveEvery)
	a, b = append(a, r.given("a")...), append(b, r.given("b")...)
	fresh := a[len(a)-1]
	r.hears(asking("a", 3, nil, ended(fresh, refused)))
	if len(r.out.Cools) != 1 {
		t.Fatalf("at once, %d words about a wave", len(r.out.Cools))
	}
	c := r.out.Cools[0]
	if c.Limit != "org" || c.Epoch != 1 || c.Wave != 1 || c.For <= 0 || c.Stopped != nil || c.Validate() != nil {
		t.Errorf("the word is %+v", c)
	}
	r.hears(asking("b", 3, nil, ended(b[len(b)-1], refused)))
	if len(r.out.Cools) != 1 {
		t.Errorf("a straggler makes another wave: %+v", r.out.Cools)
	}
	r.at(10*time.Second + 2*permit.GiveEvery)
	for _, g := range r.out.Gives {
		if g.Wave != 1 || len(g.Permits) > 0 {
			t.Errorf("after the refusal it gives %+v", g)
		}
	}
}

// What was granted and not given yet when a wave begins is taken back, with its charge.
func TestAWaveTakesBackWhatDidNotGoOut(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(2, 10))).at(3 * time.Second)
	permits := r.given("a")
	if len(permits) != 2 {
		t.Fatalf("%d were given", len(permits))
	}
	plenty := refused
	plenty.Signal, plenty.Sightings = machine.Succeeded, []limiter.Sighting{{Dimension: limiter.Requests, Limit: 6000, Window: time.Minute, Remaining: 5000}}
	a := asking("a", 2, calls(64, 10), ended(permits[0], plenty))
	a.Got = permits[1].Number
	r.hears(a).at(3010 * time.Millisecond)
	p := r.peers[peerName{"a", "job", "org"}]
	r.now = r.now.Add(10 * time.Millisecond) // before a give may follow
	r.grant(r.now)
	out, inFlight := len(p.outgoing), r.lane().InFlight
	if out == 0 {
		t.Fatal("nothing is to be given: this test proves nothing")
	}
	r.hears(asking("a", 3, nil, ended(permits[0], plenty), ended(permits[1], refused)))
	if len(r.out.Cools) != 1 || len(p.outgoing) != 0 || r.lane().InFlight != inFlight-out-1 {
		t.Errorf("%d cools, %d to be given, %d in flight of %d", len(r.out.Cools), len(p.outgoing), r.lane().InFlight, inFlight)
	}
}

// The probe after a wave is for one worker.
func TestTheProbeIsForOne(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(1, 10))).at(time.Second)
	r.hears(asking("a", 2, nil, ended(r.given("a")[0], machine.Outcome{Signal: machine.Throttled, Latency: 100 * time.Millisecond})))
	probes := 0
	for i := range 100 {
		r.at(time.Second + time.Duration(i)*100*time.Millisecond)
		for w, name := range []string{"a", "b", "c"} {
			r.hears(asking(name, uint64(10+i), calls(5, 10)))
			for _, p := range r.given(name) {
				if !p.Probe {
					t.Fatalf("before the probe is answered, worker %d has %+v", w, p)
				}
				probes++
			}
		}
		if probes > 0 && i > 50 {
			break
		}
	}
	if probes == 0 {
		t.Error("nobody probes")
	}
	if s := r.lane(); s.Phase == machine.Probing && s.InFlight > 1 {
		t.Errorf("%d are in flight while it is probed", s.InFlight)
	}
}

var errCredit = &provider.Error{Kind: provider.QuotaExhausted, Status: 429, Code: "insufficient_quota", Message: "no credit"}

// A limit that is used up stops everybody, also who comes later, and until a person says so:
// a keeper that follows knows it too.
func TestStop(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(1, 10))).at(time.Second)
	r.hears(asking("a", 2, calls(5, 10), ended(r.given("a")[0], machine.Outcome{Signal: machine.Exhausted, Cause: errCredit})))
	check := func(why string, epoch uint64) {
		t.Helper()
		if len(r.out.Cools) != 1 || r.out.Cools[0].Stopped == nil || !errors.Is(r.out.Cools[0].Stopped, provider.QuotaExhausted) || r.out.Cools[0].Epoch != epoch {
			t.Fatalf("%s: %+v", why, r.out.Cools)
		}
		r.out.Cools = nil
	}
	check("it is stopped", 1)
	r.at(3 * time.Second)
	r.hears(asking("b", 1, calls(5, 10))).at(3500 * time.Millisecond)
	check("one who is new is told", 1)
	if n := len(r.given("b")); n > 0 {
		t.Errorf("it is given %d", n)
	}
	next := newRig(t, Config{Epoch: 2, Memory: r.Save(r.now), Stops: r.Stops()})
	r = next
	r.hears(asking("b", 2, calls(5, 10))).at(time.Second)
	check("the next keeper tells", 2)
	if len(r.Stops()) != 1 || len(r.given("b")) > 0 {
		t.Errorf("the next keeper has stopped %v", r.Stops())
	}
	r.Reset(r.now, "org")
	r.decides()
	if len(r.out.Cools) != 1 || r.out.Cools[0].Stopped != nil || len(r.Stops()) > 0 {
		t.Fatalf("vouched for: %+v", r.out.Cools)
	}
	again := asking("b", 3, calls(5, 10))
	again.Epoch = 2
	r.hears(again).at(3 * time.Second)
	if len(r.given("b")) == 0 {
		t.Error("vouched for, it gives nothing")
	}
}

// A model that is not found is the end of a limit that was never answered, and else the
// misfortune of one item; under an earlier keeper's answers, too.
func TestNotFound(t *testing.T) {
	for _, answered := range []bool{false, true} {
		c := Config{}
		if answered {
			first := newRig(t, Config{})
			first.hears(asking("a", 1, calls(1, 10))).at(time.Second)
			first.hears(asking("a", 2, nil, ended(first.given("a")[0], machine.Outcome{Signal: machine.Succeeded, Latency: time.Second})))
			c.Memory = first.Save(first.now)
		}
		r := newRig(t, c)
		r.hears(asking("b", 1, calls(1, 10))).at(time.Second)
		r.hears(asking("b", 2, nil, ended(r.given("b")[0], machine.Outcome{Signal: machine.Exhausted, OnlyIfFirst: true})))
		if stopped := len(r.Stops()) > 0; stopped == answered {
			t.Errorf("answered before: %v; stopped: %v", answered, stopped)
		}
	}
}

// Gives are rare: at most one each GiveEvery for a worker, and none without anything in it.
func TestGivesAreRare(t *testing.T) {
	r := newRig(t, under(many))
	var last time.Time
	gives := 0
	r.watch = func(g permit.Give) {
		if d := r.now.Sub(last); d < permit.GiveEvery {
			t.Errorf("a give %v after another", d)
		}
		if len(g.Permits) == 0 {
			t.Error("a give of nothing")
		}
		last = r.now
		gives++
	}
	for i := range 200 {
		a := asking("a", uint64(i+1), calls(64, 10))
		a.Got = math.MaxInt64
		r.hears(a).at(time.Duration(i+1) * 7 * time.Millisecond)
	}
	if gives < 30 {
		t.Errorf("in 1.4 s only %d", gives)
	}
}

// That reports were heard is said also where there is nothing to give.
func TestReportsAreAcknowledged(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(1, 10))).at(time.Second)
	p := r.given("a")[0]
	r.hears(asking("a", 2, nil, left(p))).at(2 * time.Second)
	if len(r.out.Gives) != 1 || r.out.Gives[0].Heard != 2 || len(r.out.Gives[0].Permits) != 0 {
		t.Errorf("it says %+v", r.out.Gives)
	}
}

// What is on its way to a worker is not given twice; what was lost is given again.
func TestWhatIsOnItsWay(t *testing.T) {
	r := newRig(t, under(many))
	r.hears(asking("a", 1, calls(30, 10))).at(60 * time.Millisecond)
	if n := len(r.given("a")); n != 30 {
		t.Fatalf("of 30 it is given %d", n)
	}
	r.hears(asking("a", 2, calls(32, 10))).at(100 * time.Millisecond)
	if n := len(r.given("a")); n != 2 {
		t.Errorf("30 are on their way to one who wants 32, and it is given %d more", n)
	}
	got := asking("a", 3, calls(5, 10))
	got.Got = 30
	r.hears(got).at(200 * time.Millisecond)
	if n := len(r.given("a")); n != 3 {
		t.Errorf("2 are on their way to one who wants 5, and it is given %d more", n)
	}
	r.at(200*time.Millisecond + lost)
	got.Seq = 4
	r.hears(got).at(300*time.Millisecond + lost)
	if n := len(r.given("a")); n != 5 {
		t.Errorf("5 were lost, and it is given %d", n)
	}
}

// What a worker wants no more does not wait for it.
func TestWantsAreThoseOfTheLatestAsk(t *testing.T) {
	r := newRig(t, under(told))
	r.hears(asking("a", 1, calls(30, 10))).at(5 * time.Second)
	r.hears(asking("a", 2, calls(30, 10)))
	if r.limits["org"].waiting == 0 {
		t.Fatal("nothing waits: this test proves nothing")
	}
	r.hears(asking("a", 3, nil)).at(5*time.Second + permit.GiveEvery)
	if n := r.limits["org"].waiting; n > 0 {
		t.Errorf("%d wait for nobody", n)
	}
}

// Who is silent for half a second is offered nothing more: what it is given is lost, if it is
// dead or cut off, and it would have asked. When it asks again it has its turn again.
func TestNothingIsOfferedToTheSilent(t *testing.T) {
	r := newRig(t, under(told))
	r.silent = true
	r.hears(asking("a", 1, calls(40, 10))).at(silent)
	r.given("a")
	r.at(silent + 2*time.Second)
	if n := len(r.given("a")); n > 2 { // what waited already
		t.Errorf("to one who is silent %d are given", n)
	}
	r.hears(asking("a", 2, calls(40, 10))).at(silent + 2500*time.Millisecond)
	if n := len(r.given("a")); n < 2 {
		t.Errorf("to one who asks again %d are given", n)
	}
}

// Of a limit of few calls few permits wait in the machine: they are out of the hands of turns.
func TestFewWaitWhereFewLeave(t *testing.T) {
	r := newRig(t, Config{Limits: map[string]machine.LaneConfig{"org": {Limits: limiter.Limits{RPM: 60}}}})
	for i := range 50 {
		r.hears(asking("a", uint64(i+1), calls(64, 10))).at(time.Duration(i+1) * 100 * time.Millisecond)
		if n := r.limits["org"].waiting; n > 2 {
			t.Fatalf("%d wait for one call a second", n)
		}
	}
}

// Jobs get by weight, in what is scarce.
func TestTurnsByWeight(t *testing.T) {
	for name, c := range map[string]struct {
		limits limiter.Limits
		units  func(permit.Permit) float64
	}{
		"requests": {limiter.Limits{RPM: 6000}, func(permit.Permit) float64 { return 1 }},
		"tokens":   {limiter.Limits{TPM: 6e6}, func(p permit.Permit) float64 { return p.Cost.Input }},
	} {
		r := newRig(t, Config{Limits: map[string]machine.LaneConfig{"org": {Limits: c.limits}}})
		r.Job(r.now, "heavy", 3)
		sums := map[string]float64{}
		for i := range 400 {
			for _, w := range []struct {
				job, worker string
				input       float64
			}{{"light", "a", 3000}, {"heavy", "b", 500}, {"heavy", "c", 500}} {
				a := asking(w.worker, uint64(i+1), calls(64, w.input))
				a.Job, a.Got = w.job, math.MaxInt64
				r.hears(a)
			}
			r.at(time.Duration(i+1) * 100 * time.Millisecond)
			for _, w := range []string{"a", "b", "c"} {
				for _, p := range r.given(w) {
					if i >= 200 {
						job := map[string]string{"a": "light", "b": "heavy", "c": "heavy"}[w]
						sums[job] += c.units(p)
						sums[w] += c.units(p)
					}
				}
			}
		}
		if share := sums["heavy"] / (sums["heavy"] + sums["light"]); math.Abs(share-0.75) > 0.03 {
			t.Errorf("%s: the job of weight 3 beside one of 1 had %.3f", name, share)
		}
		if share := sums["b"] / sums["heavy"]; math.Abs(share-0.5) > 0.02 {
			t.Errorf("%s: one of two workers had %.3f", name, share)
		}
	}
}

// A job that wanted nothing for a while does not make up for it: it has its share from then on.
func TestNothingIsSavedUpByWantingNothing(t *testing.T) {
	r := newRig(t, Config{Limits: map[string]machine.LaneConfig{"org": {Limits: limiter.Limits{RPM: 6000}}}})
	got := map[string]int{}
	for i := range 400 {
		for _, w := range []string{"a", "b"} {
			a := asking(w, uint64(i+1), calls(64, 10))
			a.Job, a.Got = "of "+w, math.MaxInt64
			if w == "b" && i > 20 && i < 300 {
				a.Wants = nil
			}
			r.hears(a)
		}
		r.at(time.Duration(i+1) * 100 * time.Millisecond)
		for _, w := range []string{"a", "b"} {
			if n := len(r.given(w)); i >= 320 {
				got[w] += n
			}
		}
	}
	if share := float64(got["b"]) / float64(got["a"]+got["b"]); math.Abs(share-0.5) > 0.03 {
		t.Errorf("two seconds after it has come back it has %.3f", share)
	}
}

func TestWeights(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(1, 10)))
	for _, c := range []struct{ say, want float64 }{{2, 2}, {0, 1}, {-3, 1}, {math.NaN(), 1}, {math.Inf(1), 1}, {0.5, 0.5}} {
		r.Job(r.now, "job", c.say)
		if got := r.Status(r.now).Limits[0].Jobs[0].Weight; got != c.want {
			t.Errorf("weight %v is %v", c.say, got)
		}
	}
	r.JobGone(r.now, "job")
	if r.decides(); r.limits["org"].next(r.now) != nil {
		t.Error("a job that is gone has a turn")
	}
}

// What an earlier keeper gave ends under this one: that is news of the provider, and a refusal
// of it a straggler.
func TestReportsOfAnEarlierKeeper(t *testing.T) {
	r := newRig(t, Config{Epoch: 4})
	seen := limiter.Sighting{Dimension: limiter.Tokens, Limit: 6e6, Window: time.Minute, Remaining: 50_000, Reset: 500 * time.Millisecond, HasReset: true}
	report := ended(permit.Permit{Number: 7, Cost: permit.Cost{Input: 10}}, machine.Outcome{Signal: machine.Succeeded, Latency: time.Second, Sightings: []limiter.Sighting{seen}})
	report.Epoch = 3
	refused := ended(permit.Permit{Number: 8}, machine.Outcome{Signal: machine.Throttled, Latency: time.Second})
	refused.Epoch = 3
	a := asking("a", 90, nil, report, refused)
	a.Epoch = 3
	r.hears(a)
	if s := r.lane(); s.Latency != time.Second || s.View.Limits[1].Source != limiter.Seen || s.Phase != machine.Flowing || s.InFlight != 0 {
		t.Errorf("latency %v, limit %v, %v, %d in flight", s.Latency, s.View.Limits[1].Source, s.Phase, s.InFlight)
	}
	if len(r.out.Cools) > 0 {
		t.Errorf("a straggler makes a wave: %+v", r.out.Cools)
	}
}

// A keeper takes over what is known, and nothing that may have been spent.
func TestTakingOver(t *testing.T) {
	r := newRig(t, under(told))
	r.hears(asking("a", 1, calls(10, 10))).at(3 * time.Second)
	for i, p := range r.given("a") {
		r.hears(asking("a", uint64(i+2), nil, ended(p, machine.Outcome{Signal: machine.Succeeded, Latency: 2 * time.Second})))
	}
	next := newRig(t, Config{Epoch: 2, Memory: r.Save(r.now), Limits: map[string]machine.LaneConfig{"org": told}})
	next.now = r.now.Add(3 * time.Second)
	next.hears(asking("a", 50, calls(1, 10)))
	s := next.lane()
	if s.Level.Requests > 0 {
		t.Errorf("it begins with %v tokens in hand", s.Level.Requests)
	}
	if !next.limits["org"].answered {
		t.Error("it does not know that the provider answers")
	}
}

// Once a worker has heard a later keeper, this one is none any more.
func TestOutbid(t *testing.T) {
	r := newRig(t, Config{})
	r.hears(asking("a", 1, calls(5, 10)))
	later := asking("b", 1, calls(5, 10))
	later.Epoch = 3
	if err := r.Heard(r.now, later); !errors.Is(err, ErrOutbid) {
		t.Errorf("it says %v", err)
	}
	if out := r.Ready(r.now.Add(time.Second)); out.Outbid != 3 || len(out.Gives) > 0 || !out.WakeAt.IsZero() {
		t.Errorf("it decides %+v", out)
	}
}

func TestAsksThatAreNotHeard(t *testing.T) {
	r := newRig(t, Config{})
	a := asking("a", 1, nil)
	a.Version++
	if err := r.Heard(r.now, a); !errors.Is(err, permit.ErrVersion) {
		t.Errorf("of another version: %v", err)
	}
	if err := r.Heard(r.now, asking("", 1, nil)); !errors.Is(err, permit.ErrMessage) {
		t.Errorf("of nobody: %v", err)
	}
	for i := range MaxLimits + 1 {
		a := asking("a", 1, nil)
		a.Limit = fmt.Sprint("limit ", i)
		if err := r.Heard(r.now, a); (i < MaxLimits) != (err == nil) || err != nil && !errors.Is(err, ErrTooMany) {
			t.Fatalf("limit %d: %v", i, err)
		}
	}
}

// Workers come and go, each life under a new name; what is kept of them is what lives.
func TestMemoryIsBounded(t *testing.T) {
	r := newRig(t, under(many))
	r.silent = true
	for i := range 3000 {
		a := asking(fmt.Sprint("w", i), 1, calls(3, 10))
		a.Job = fmt.Sprint("job", i%700)
		if i%3 == 0 {
			r.Job(r.now, a.Job, 2)
		}
		r.now = noon.Add(time.Duration(i) * 20 * time.Millisecond)
		if err := r.Heard(r.now, a); err != nil {
			t.Fatal(err)
		}
		r.Ready(r.now)
		r.JobGone(r.now, a.Job)
		if most := int((permit.Forgotten+2*sweepEvery)/(20*time.Millisecond)) + 1; len(r.peers) > most {
			t.Fatalf("%d peers, and %d at most have asked within %v", len(r.peers), most, permit.Forgotten)
		}
	}
	r.out.WakeAt = r.now
	r.at(2 * time.Minute)
	if len(r.peers)+len(r.line)+len(r.outbox)+len(r.granted.items)+len(r.weights) > 0 || len(r.limits["org"].teams) > 0 {
		t.Errorf("%d peers, %d in the outbox, %d granted, %d weights, %d teams are left", len(r.peers), len(r.outbox), len(r.granted.items), len(r.weights), len(r.limits["org"].teams))
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t, Config{Limits: map[string]machine.LaneConfig{"org": {Limits: limiter.Limits{RPM: 600}}}})
	r.Job(r.now, "job", 2)
	r.hears(asking("a", 1, calls(3, 10))).hears(asking("b", 1, calls(40, 10))).at(500 * time.Millisecond)
	s := r.Status(r.now)
	if len(s.Limits) != 1 || s.Epoch != 1 || s.Limits[0].Name != "org" || len(s.Limits[0].Jobs) != 1 {
		t.Fatalf("%+v", s)
	}
	l := s.Limits[0]
	j := l.Jobs[0]
	given := len(r.given("a")) + len(r.given("b"))
	if j.Name != "job" || j.Weight != 2 || len(j.Workers) != 2 || int(j.Given) != given || j.Wanted != 43-given || j.Out != given || int(l.Counts.Given) != given || l.Lane.InFlight != given {
		t.Errorf("%d were given, and it shows %+v", given, l)
	}
	if j.Workers[0].Name != "a" || !j.Workers[0].Heard.Equal(noon) {
		t.Errorf("%+v", j.Workers[0])
	}
}

// The same facts at the same times give the same permits.
func TestSameFactsSamePermits(t *testing.T) {
	run := func() []permit.Give {
		r := newRig(t, Config{Seed: 5})
		for i := range 40 {
			for w := range 5 {
				a := asking(fmt.Sprint("w", w), uint64(i+1), calls(7, 10))
				a.Job = fmt.Sprint("job", w%2)
				r.hears(a)
			}
			r.at(time.Duration(i+1) * 100 * time.Millisecond)
		}
		return r.out.Gives
	}
	if a, b := run(), run(); !reflect.DeepEqual(a, b) {
		t.Error("they differ")
	}
}

// Headers are dated by the grant of their call: what they show is put back by what flowed in
// since, and no law reads more in them than there is.
func TestSightingsAreThoseOfTheGrant(t *testing.T) {
	seen := []limiter.Sighting{
		{Limit: 6e6, Window: time.Minute, Remaining: 50_000, Reset: time.Second, HasReset: true},
		{Limit: 6e6, Remaining: 50_000},
		{Limit: 6e6, Window: time.Minute, Remaining: 10},
	}
	granted(seen, 100*time.Millisecond)
	if seen[0].Remaining != 40_000 || seen[0].Reset != 1100*time.Millisecond || seen[1].Remaining != 40_000 || seen[1].Reset != 0 || seen[2].Remaining != 0 {
		t.Errorf("%+v", seen)
	}
}
