package model

import (
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/parttest"
	"github.com/headrace/headrace/limiter/plain"
)

// worlds are one of each kind that a law can believe in.
var worlds = map[string]func() gate{
	"bucket":  func() gate { return bucketGate(10, 45) },
	"cap":     func() gate { return capGate(8) },
	"chance":  func() gate { return chanceGate(0.1, seeded(3)) },
	"window":  func() gate { return windowGate(600) },
	"lies":    func() gate { return lying(bucketGate(10, 10)) },
	"outages": func() gate { return from(at(40), bucketGate(10, 45), from(at(60), shut, bucketGate(10, 45))) },
}

var lawsOf = map[string]limiter.LawConfig{
	"model":                {},
	"told":                 {Limits: limiter.Limits{RPM: 900, TPM: 1e6}},
	"local":                {Local: true},
	"plain":                {Law: limiter.Plain},
	"model, with a target": {Target: 1100 * time.Millisecond},
	"plain, with a target": {Law: limiter.Plain, Target: 1100 * time.Millisecond},
}

// Of two laws with the same history one is looked at all the time: they never differ, in
// anything that they hold but what they remember of the clock.
func TestViewChangesNothing(t *testing.T) {
	for world, g := range worlds {
		for law, c := range lawsOf {
			seen, other := newRig(newLaw(c, noon, seeded(1)), g()), newRig(newLaw(c, noon, seeded(1)), g())
			rng := seeded(9)
			for range race.Fewer(400) {
				d := time.Duration(rng.IntN(60)) * tick
				seen.run(d)
				other.run(d)
				ahead := time.Duration(rng.IntN(3000)) * time.Millisecond
				before := contents(seen.law)
				seen.law.View(seen.now.Add(ahead), limiter.Cost{Requests: 1, Input: 100})
				_ = seen.law.View(seen.now, limiter.Cost{}).String()
				seen.law.Save(seen.now)
				if !reflect.DeepEqual(before, contents(seen.law)) {
					t.Fatalf("%s, %s: a view changed the law", law, world)
				}
			}
			if seen.sent != other.sent || seen.refused != other.refused || !reflect.DeepEqual(contents(seen.law), contents(other.law)) {
				t.Errorf("%s, %s: the law that was looked at made %d calls, the other %d", law, world, seen.sent, other.sent)
			}
		}
	}
}

// contents is a copy of a law, down to what it points to.
func contents(law limiter.Law) any {
	m, ok := law.(*Law)
	if !ok {
		return parttest.Contents(law, "rng")
	}
	c := *m
	c.mean = copied(m.mean)
	c.estimate = m.estimate.clone()
	if m.estimate.try != nil {
		try := *m.estimate.try
		c.estimate.try = &try
	}
	for _, t := range []*table{&c.chance.paces, &c.crowd.byInFlight, &c.crowd.byPace} {
		*t = tableOf(t.counts())
	}
	c.rng, c.sends.ring, c.fates.ring = nil, nil, nil
	if m.local != nil {
		local := *m.local
		c.local = &local
	}
	if of := m.estimate.inflow.byDepth; of != nil {
		copied := *of
		c.estimate.inflow.byDepth = &copied
	}
	if m.trial != nil {
		trial := *m.trial
		c.trial = &trial
	}
	if m.drought != nil {
		drought := *m.drought
		c.drought = &drought
	}
	for k := range c.gauges {
		if s := m.gauges[k].shown; s != nil {
			copied := *s
			if s.fixed != nil {
				window := *s.fixed
				copied.fixed = &window
			}
			c.gauges[k].shown = &copied
		}
	}
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// What is said to bind is what the pace is: for every law and world the least bound is
// the pace, unless the floor or the cap on calls in flight is all there is.
func TestViewBindsThePace(t *testing.T) {
	by := map[limiter.Bound]int{}
	for world, g := range worlds {
		for law, c := range lawsOf {
			r := newRig(newLaw(c, noon, seeded(1)), g())
			for range race.Fewer(600) {
				v := r.run(300 * time.Millisecond).view()
				by[v.Binds.By]++
				pace := viewOf(r.law, r.now).Most
				switch {
				case v.Binds.Pace > v.Next.Pace:
					t.Fatalf("%s, %s: %v binds, and %v less", law, world, v.Binds, v.Next)
				case v.Binds.By == limiter.BoundCooldown:
					want(t, "pace in a hold", v.Pace, 0)
				case v.Binds.By == limiter.BoundWindow, v.Binds.By == limiter.BoundLatency:
					if v.Pace < v.Binds.Pace {
						t.Fatalf("%s, %s: a pace of %v, and %v binds", law, world, v.Pace, v.Binds)
					}
				case v.Binds.By != limiter.BoundNone && v.Binds.Pace != pace && pace != floorRate:
					t.Fatalf("%s, %s: a pace of %v, and %v binds", law, world, pace, v.Binds)
				case v.Pace != pace:
					t.Fatalf("%s, %s: a pace of %v, and the law says %v", law, world, v.Pace, pace)
				}
			}
		}
	}
	for _, b := range []limiter.Bound{
		limiter.BoundNone, limiter.BoundRequests, limiter.BoundOthers, limiter.BoundRecovery, limiter.BoundSearch, limiter.BoundTrial,
		limiter.BoundWindow, limiter.BoundLatency, limiter.BoundCooldown,
	} {
		if !race.Enabled && by[b] == 0 {
			t.Errorf("in all worlds %v never binds", b)
		}
	}
}

// A limit by tokens binds the calls that draw on it, and not the others.
func TestViewBindsByCost(t *testing.T) {
	r := newRig(New(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, InputTPM: 6000}}, noon, seeded(1)), anything)
	want(t, "a large call", r.law.View(r.now, limiter.Cost{Requests: 1, Input: 1000}).Binds.By, limiter.BoundInputTokens)
	v := r.law.View(r.now, limiter.Cost{Requests: 1})
	want(t, "a small one", v.Binds.By, limiter.BoundRequests)
	want(t, "after it", v.Next.By, limiter.BoundNone)
	want(t, "told", v.Limits[dimInput].Source, limiter.Configured)
	near(t, "refill", v.Limits[dimInput].Refill, 100, 1e-9)
}

// What is under way is dated.
func TestViewDates(t *testing.T) {
	for what, of := range map[string]struct {
		gate gate
		date func(limiter.View) time.Time
	}{
		"trial":   {halving(), func(v limiter.View) time.Time { return v.Trial }},
		"try":     {bucketGate(10, 45), func(v limiter.View) time.Time { return v.Try }},
		"drought": {from(at(30), bucketGate(10, 45), shut), func(v limiter.View) time.Time { return v.Drought }},
	} {
		r := variedRig(of.gate)
		r.runUntil(5*time.Minute, func() bool { return !of.date(r.view()).IsZero() })
		began := of.date(r.view())
		if began.IsZero() || r.now.Sub(began) > time.Second || began.After(r.now) {
			t.Errorf("%s: since %v at %v", what, began, r.now)
		}
	}
}

// A server of one's own that queues is seen by its window alone; once it has refused, by
// what is believed of its refusals too.
func TestViewOfALocalServer(t *testing.T) {
	local := func(g gate) *rig { return newRig(New(limiter.LawConfig{Local: true}, noon, seeded(1)), g) }
	v := local(anything).run(time.Minute).view()
	if v.Search != 0 || v.Cap < localStart {
		t.Errorf("it queues: %+v", v)
	}
	r := local(capGate(4))
	if !r.says(5*time.Minute, `no more than 4 in flight`) {
		t.Errorf("it takes four: %v", r.view())
	}
	r = local(bucketGate(10, 45))
	searched := func() bool { return r.view().Search > 0 }
	if r.runUntil(5*time.Minute, searched); !searched() {
		t.Errorf("it refuses: %+v", r.view())
	}
}

// The level of a limit is the one that the law uses, and +Inf if the law knows of none. A rate
// that the plain law learned has no level, and a configured limit keeps its own.
func TestViewLevels(t *testing.T) {
	learned := 0
	for world, g := range worlds {
		for law, c := range lawsOf {
			r := newRig(newLaw(c, noon, seeded(1)), g())
			for range race.Fewer(300) {
				v := r.run(300 * time.Millisecond).view()
				for k, d := range dimensionOf {
					level := unlimited
					switch l := r.law.(type) {
					case *plain.Law:
						if v.Limits[k].Source == limiter.Learned {
							learned++
						}
						if c.Limits.PerMinute(d) > 0 {
							level = v.Limits[k].Level
						}
					case *Law:
						if l.gauges[k].known() {
							level = l.gauges[k].levelAt(l.seconds(r.now))
						}
					}
					if got := v.Level(d); got != level {
						t.Fatalf("%s, %s: %v %v are left, the law goes by %v", law, world, got, d, level)
					}
				}
			}
			v := r.view()
			want(t, "level of nothing", v.Level(limiter.None), unlimited)
		}
	}
	if learned == 0 && !race.Enabled {
		t.Error("the plain law never learned a rate")
	}
}
