package keeper

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A refusal is one wave everywhere: all workers hear of it at once, and refusals that follow are part of it.
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
	short := refused // of tokens: how many calls a second are let in is not known yet
	short.Sightings = []limiter.Sighting{{Dimension: limiter.Tokens, Limit: 6000, Window: time.Minute, Reset: time.Second, HasReset: true}}
	r.hears(asking("a", 2, nil, ended(r.given("a")[0], short)))
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
		if probes > 1 && i < 35 {
			t.Fatal("while a probe is out there is another")
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

// Workers that an earlier keeper has stopped ask for nothing more. The keeper after it tells them that the limit flows: on a
// reset, and on a reminder if it never heard of the stop.
func TestTheNextKeeperTellsThatALimitFlows(t *testing.T) {
	stops := map[string]*permit.Cause{"org": {Kind: "quota_exhausted", Text: "no credit"}}
	for name, c := range map[string]struct {
		stops map[string]*permit.Cause
		say   func(*rig)
	}{
		"reset":    {stops, func(r *rig) { r.Reset(r.now, "org") }},
		"reminder": {nil, func(r *rig) { r.Remind(r.now, "org") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{Epoch: 2, Limits: under(many).Limits, Stops: c.stops})
			c.say(r)
			r.decides()
			if len(r.out.Cools) != 1 || r.out.Cools[0].Epoch != 2 || r.out.Cools[0].Stopped != nil || len(r.Stops()) > 0 {
				t.Errorf("%+v is said, and %v has stopped", r.out.Cools, r.Stops())
			}
		})
	}
	r := newRig(t, Config{Epoch: 2, Limits: under(many).Limits, Stops: stops})
	r.Remind(r.now, "org")
	r.decides()
	if len(r.out.Cools) != 1 || r.out.Cools[0].Stopped == nil || len(r.Stops()) != 1 {
		t.Errorf("a limit that has stopped is reminded of by %+v, and %v has stopped", r.out.Cools, r.Stops())
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
		r.hears(asking("b", 2, nil, ended(r.given("b")[0], machine.Outcome{Signal: machine.Exhausted, Alike: 404, First: 1, Later: 5})))
		if stopped := len(r.Stops()) > 0; stopped == answered {
			t.Errorf("answered before: %v; stopped: %v", answered, stopped)
		}
	}
}

// A limit that was answered stops when so many different items in a row are refused alike, by
// whatever workers; an answer between begins a new row, and so do another refusal and a person.
func TestRowOfRefusalsForGood(t *testing.T) {
	key := machine.Outcome{Signal: machine.Exhausted, Alike: 401, First: 1, Later: 3}
	model, again, good := key, key, machine.Outcome{Signal: machine.Succeeded, Latency: time.Second}
	model.Alike, again.Again = 404, true
	wrong, long := machine.Outcome{Signal: machine.Answered, Alike: 400}, machine.Outcome{Signal: machine.Answered}
	for want, ends := range map[bool][][]machine.Outcome{
		true: {
			{good, key, key, key},
			{good, key, key, again, key},
			{good, key, key, good, key, key, key},
			{good, model, key, key, key},
			{key},
			{good, key, key, wrong, key}, // which may be said to anybody
			{wrong, key},
		},
		false: {
			{good, key, key},
			{good, key, key, again, again},
			{good, key, key, good, key},
			{good, key, key, model, key},
			{good, key, key, {}, key},
			{good, key, key, long, key},
			{long, key}, // which says that it is the item's
		},
	} {
		for _, list := range ends {
			r := newRig(t, under(many))
			r.hears(asking("a", 1, calls(len(list), 10))).at(time.Second)
			for i, g := range r.given("a") {
				if list[i].Signal == machine.Nothing { // a person vouches for it
					r.Reset(r.now, "org")
				}
				said := asking("a", uint64(i+2), nil, ended(g, list[i]))
				said.First = uint64(i + 1)
				r.hears(said)
			}
			if stopped := len(r.Stops()) > 0; stopped != want {
				t.Errorf("%v: stopped: %v", list, stopped)
			}
		}
	}
}
