package keeper

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

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
	r := newRig(t, under(configured))
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

// A call that ended under an earlier keeper is a lesson once, however often its worker says so: the next report is heard, and
// that one is not.
func TestReportsTeachOnce(t *testing.T) {
	r := newRig(t, Config{Epoch: 4})
	ends := func(number permit.Number, o machine.Outcome) permit.Report {
		report := ended(permit.Permit{Number: number}, o)
		report.Epoch = 3
		return report
	}
	refused := machine.Outcome{Signal: machine.Throttled, Latency: time.Second}
	for seq, c := range []struct {
		first uint64
		said  []permit.Report
		want  uint64
	}{
		{1, []permit.Report{ends(7, refused)}, 1},
		{1, []permit.Report{ends(7, refused)}, 1},
		{1, []permit.Report{ends(7, refused), ends(8, refused)}, 2},
		{2, []permit.Report{ends(8, refused)}, 2},
	} {
		a := asking("a", uint64(seq+1), nil, c.said...)
		a.Epoch, a.First = 3, c.first
		if r.hears(a); r.limits["org"].counts.Refused != c.want {
			t.Errorf("after ask %d %d refusals are counted, want %d", seq+1, r.limits["org"].counts.Refused, c.want)
		}
	}
}

// Who says that a permit was used and that it was not is not given its charge back.
func TestUsedIsNotUnused(t *testing.T) {
	r := newRig(t, under(configured))
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
	r := newRig(t, under(configured))
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
	r := newRig(t, under(configured))
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

// A message may lie on its way for as long as a connection is cut, without knowing it. Its headers then do not
// count as current. That holds for a call that was given up, and for an earlier keeper's call long after that keeper.
func TestSightingsThatLayOnTheWay(t *testing.T) {
	seen := limiter.Sighting{Dimension: limiter.Tokens, Limit: 6e6, Window: time.Minute, Remaining: 50_000, Reset: 500 * time.Millisecond, HasReset: true}
	answered := machine.Outcome{Signal: machine.Succeeded, Latency: time.Second, Sightings: []limiter.Sighting{seen}}
	for _, c := range []struct {
		name  string
		epoch uint64 // that the worker had heard of
		after time.Duration
		want  limiter.Source
	}{
		{"given up", 4, 10 * time.Second, limiter.Unknown},
		{"an earlier keeper's, at once", 3, time.Second, limiter.Seen},
		{"an earlier keeper's, late", 3, 10 * time.Second, limiter.Unknown},
	} {
		r := newRig(t, Config{Epoch: 4})
		r.silent = true
		r.hears(asking("b", 1, nil)).at(c.after)
		report := ended(permit.Permit{Number: 7, Cost: permit.Cost{Input: 10}}, answered)
		report.Epoch = c.epoch
		a := asking("a", 90, nil, report)
		a.Epoch = c.epoch
		if r.hears(a); r.lane().View.Limits[1].Source != c.want || r.lane().Latency != time.Second {
			t.Errorf("%s: limit %v, want %v; latency %v", c.name, r.lane().View.Limits[1].Source, c.want, r.lane().Latency)
		}
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

// The first thing that a keeper hears may be one that does not wait for its turn: it has had no turn yet, and has one all the
// same.
func TestTheFirstThingHeardIsUrgent(t *testing.T) {
	refused := ended(permit.Permit{Number: 8}, machine.Outcome{Signal: machine.Throttled, Latency: time.Second})
	refused.Epoch = 3
	a := asking("a", 90, calls(5, 10), refused)
	a.Epoch = 3
	r := newRig(t, Config{Epoch: 4, Limits: map[string]machine.LaneConfig{"org": many}})
	r.hears(a).at(5 * time.Second)
	if got := r.given("a"); len(got) == 0 {
		t.Errorf("after a refusal of an earlier keeper's permit nobody is given any; it wants to be asked again at %v", r.out.WakeAt)
	}
	r = newRig(t, under(many))
	r.Reset(r.now, "org")
	r.hears(asking("a", 1, calls(5, 10))).at(5 * time.Second)
	if got := r.given("a"); len(got) == 0 {
		t.Error("after a person has vouched for a limit nobody is given any permit")
	}
}

// A keeper takes over what is known, and nothing that may have been spent.
func TestTakingOver(t *testing.T) {
	r := newRig(t, under(configured))
	r.hears(asking("a", 1, calls(10, 10))).at(3 * time.Second)
	for i, p := range r.given("a") {
		r.hears(asking("a", uint64(i+2), nil, ended(p, machine.Outcome{Signal: machine.Succeeded, Latency: 2 * time.Second})))
	}
	next := newRig(t, Config{Epoch: 2, Memory: r.Save(r.now), Limits: map[string]machine.LaneConfig{"org": configured}})
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
		must.Do(t, r.Heard(r.now, a))
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
	r.silent = true
	r.Job(r.now, "job", 2)
	r.hears(asking("a", 1, calls(3, 10))).hears(asking("b", 1, calls(40, 10))).at(500 * time.Millisecond)
	s := r.Status(r.now)
	if len(s.Limits) != 1 || s.Epoch != 1 || s.Limits[0].Name != "org" || len(s.Limits[0].Jobs) != 1 {
		t.Fatalf("%+v", s)
	}
	l := s.Limits[0]
	j := l.Jobs[0]
	given := len(r.given("a")) + len(r.given("b"))
	if j.Name != "job" || j.Weight != 2 || j.Workers != 2 || int(j.Given) != given || j.Wanted != 43-given || j.Out != given || int(l.Counts.Given) != given || l.Lane.InFlight != given {
		t.Errorf("%d were given, and it shows %+v", given, l)
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
	asOfGrant(seen, 100*time.Millisecond)
	if seen[0].Remaining != 40_000 || seen[0].Reset != 1100*time.Millisecond || seen[1].Remaining != 40_000 || seen[1].Reset != 0 || seen[2].Remaining != 0 {
		t.Errorf("%+v", seen)
	}
}

// The first call of a line leaves next, or none does: a worker with permits for others alone would wait for ever. Where a
// window binds, each permit that comes back unused is one for the first.
func TestPermitsAreForThoseThatLeaveNext(t *testing.T) {
	r := newRig(t, under(configured))
	var all []permit.Cost
	for i := range 40 {
		all = append(all, permit.Cost{Input: float64(100 - i)})
	}
	a := asking("a", 1, all[1:])
	var hand []permit.Permit
	for s := range 20 {
		r.hears(a).at(time.Duration(s+1) * time.Second)
		hand = append(hand, r.given("a")...)
		if s > 0 && slices.ContainsFunc(hand, func(p permit.Permit) bool { return p.Cost == all[0] }) {
			return
		}
		if s > 0 { // its time is up before the others' is
			a.Reports = append(a.Reports, unused(hand[0]))
			hand = hand[1:]
		}
		a.Seq++
		a.Got, a.Wants = max(a.Got, hand[len(hand)-1].Number), nil
		for _, c := range all { // the head came last: it was refused, and goes first
			if !slices.ContainsFunc(hand, func(p permit.Permit) bool { return p.Cost == c }) {
				a.Wants = append(a.Wants, c)
			}
		}
	}
	t.Errorf("the first call never had a permit; in hand are %+v", hand)
}
