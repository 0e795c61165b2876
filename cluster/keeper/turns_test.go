package keeper

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

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

// Permits on their way to a worker are not given twice; lost ones are given again.
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
	r.at(200*time.Millisecond + lostAfter)
	got.Seq = 4
	r.hears(got).at(300*time.Millisecond + lostAfter)
	if n := len(r.given("a")); n != 5 {
		t.Errorf("5 were lost, and it is given %d", n)
	}
}

// What a worker wants no more does not wait for it.
func TestWantsAreThoseOfTheLatestAsk(t *testing.T) {
	r := newRig(t, under(configured))
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
	r := newRig(t, under(configured))
	r.silent = true
	r.hears(asking("a", 1, calls(40, 10))).at(silentAfter)
	r.given("a")
	r.at(silentAfter + 2*time.Second)
	if n := len(r.given("a")); n > 2 { // what waited already
		t.Errorf("to one who is silent %d are given", n)
	}
	r.hears(asking("a", 2, calls(40, 10))).at(silentAfter + 2500*time.Millisecond)
	if n := len(r.given("a")); n < 2 {
		t.Errorf("to one who asks again %d are given", n)
	}
}

// A holder that is no job has the weight of its asks, which no scheduler tells.
func TestAHolderHasItsWeight(t *testing.T) {
	r := newRig(t, under(configured))
	a := asking("a", 1, calls(1, 10))
	a.Job, a.Weight = "serve/a", 4
	r.hears(a).hears(asking("b", 1, calls(1, 10)))
	jobs := map[string]float64{}
	for _, j := range r.Status(r.now).Limits[0].Jobs {
		jobs[j.Name] = j.Weight
	}
	if jobs["serve/a"] != 4 || jobs["job"] != 1 {
		t.Errorf("weights %v", jobs)
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
		sums, had, said := map[string]float64{}, map[string][]permit.Permit{}, map[string]uint64{}
		for i := range 400 {
			for _, w := range []struct {
				job, worker string
				input       float64
			}{{"light", "a", 3000}, {"heavy", "b", 500}, {"heavy", "c", 500}} {
				a := asking(w.worker, uint64(i+1), calls(64, w.input))
				a.Job, a.Got, a.First = w.job, math.MaxInt64, said[w.worker]+1
				for _, p := range had[w.worker] { // each call is over by then: it is the limit that binds, and not what is in flight
					a.Reports = append(a.Reports, ended(p, machine.Outcome{Signal: machine.Succeeded, Latency: 50 * time.Millisecond}))
				}
				said[w.worker] += uint64(len(a.Reports))
				r.hears(a)
			}
			r.at(time.Duration(i+1) * 100 * time.Millisecond)
			for _, w := range []string{"a", "b", "c"} {
				had[w] = r.given(w)
				for _, p := range had[w] {
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
	if r.decides(); r.limits["org"].nextPeer(r.now) != nil {
		t.Error("a job that is gone has a turn")
	}
}

// A permit that comes back unused, and one that is withdrawn, give their job back what they counted for it, by its weight.
func TestUnusedPermitsDoNotCountInTurns(t *testing.T) {
	for name, weight := range map[string]float64{"heavy": 4, "light": 0.5} {
		r := newRig(t, under(configured))
		r.Job(r.now, "job", weight)
		r.hears(asking("a", 1, calls(40, 10))).at(100 * time.Millisecond)
		permits, p := r.given("a"), r.line[0]
		if len(permits) == 0 || len(p.offers) == 0 {
			t.Fatalf("%s: %d are given and %d wait: this test proves nothing", name, len(permits), len(p.offers))
		}
		spent := func(want int) {
			t.Helper()
			if got := p.team.spent; math.Abs(got-float64(want)/weight) > 1e-9 {
				t.Errorf("%s: %d permits count %v, want %v", name, want, got, float64(want)/weight)
			}
		}
		spent(len(permits) + len(p.offers))
		var back []permit.Report
		for _, given := range permits {
			back = append(back, unused(given))
		}
		must.Do(t, r.Heard(r.now, asking("a", 2, nil, back...)))
		spent(0)
	}
}

// What waits for calls that are still wanted goes on waiting when its worker asks again: the calls before them have permits that
// are on their way to it.
func TestWhatWaitsIsKept(t *testing.T) {
	r := newRig(t, under(configured))
	var wants []permit.Cost
	for i := range 20 {
		wants = append(wants, permit.Cost{Input: float64(100 - i)})
	}
	r.hears(asking("a", 1, wants)).at(100 * time.Millisecond)
	p := r.line[0]
	waits := slices.Clone(p.offers)
	if len(p.onWay) == 0 || len(waits) == 0 {
		t.Fatalf("%d are on their way and %d wait: this test proves nothing", len(p.onWay), len(waits))
	}
	must.Do(t, r.Heard(r.now, asking("a", 2, wants)))
	if !slices.Equal(p.offers, waits) {
		t.Errorf("of %d that wait %d are left", len(waits), len(p.offers))
	}
}

// A worker whose first call is another one at each ask has its share: what was made anew for it waits behind the permits of
// the others, and is left there until it is granted.
func TestACallThatChangesWaitsOneTurn(t *testing.T) {
	r := newRig(t, Config{Limits: map[string]machine.LaneConfig{"org": {Limits: limiter.Limits{RPM: 60}}}})
	got := map[string]int{}
	for i := range 1200 {
		for _, w := range []string{"same", "changes"} {
			wants := calls(4, 10)
			if w == "changes" {
				wants[0].Input += float64(1 + i%2)
			}
			a := asking(w, uint64(i+1), wants)
			a.Got = math.MaxUint64 // all that was given
			r.hears(a)
		}
		r.at(time.Duration(i+1) * 250 * time.Millisecond)
		for _, w := range []string{"same", "changes"} {
			got[w] += len(r.given(w))
		}
	}
	if got["changes"] < got["same"]/4 || got["same"] == 0 {
		t.Errorf("given: %v", got)
	}
}

// What was counted in requests is not taken back in tokens.
func TestARefundIsInTheUnitOfItsCharge(t *testing.T) {
	r := newRig(t, under(configured))
	r.hears(asking("a", 1, calls(40, 10_000))).at(100 * time.Millisecond)
	p := r.line[0]
	if len(p.offers) == 0 || p.team.spent == 0 {
		t.Fatalf("%d wait, and %v is counted: this test proves nothing", len(p.offers), p.team.spent)
	}
	p.limit.countIn(limiter.Tokens)
	must.Do(t, r.Heard(r.now, asking("a", 2, nil)))
	if p.team.spent != 0 || p.limit.flow != 0 {
		t.Errorf("nothing was counted in tokens, and %v is, of %v that flows", p.team.spent, p.limit.flow)
	}
}

// A permit that is withdrawn did not flow.
func TestWhatIsWithdrawnDidNotFlow(t *testing.T) {
	r := newRig(t, under(configured))
	r.hears(asking("a", 1, calls(40, 10))).at(100 * time.Millisecond)
	p := r.line[0]
	waited, flowed := len(p.offers), p.limit.flow
	must.Do(t, r.Heard(r.now, asking("a", 2, nil)))
	if want := flowed - float64(waited); waited == 0 || math.Abs(p.limit.flow-want) > 1e-9 {
		t.Errorf("%d are withdrawn of a flow of %v, and %v is left", waited, flowed, p.limit.flow)
	}
}
