package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// overheardNews is an answer to a call of the law before, that left so many seconds after
// this one began.
func overheardNews(sent float64, latency time.Duration, left ...float64) limiter.News {
	n := limiter.News{Overheard: true, Sent: at(sent), Cost: limiter.Cost{Requests: 1, Input: 100}, Good: true, Latency: latency}
	for _, x := range left {
		n.Sightings = append(n.Sightings, limiter.Sighting{Dimension: limiter.Requests, Limit: 6000, Window: time.Minute, Remaining: x, Reset: time.Duration((6000 - x) / 100 * 1e9), HasReset: true})
	}
	return n
}

// Answers to calls of the law before say how long answers take and how many there are, so
// that as many calls may be in flight as those make room for.
func TestOverheardAnswersAreCounted(t *testing.T) {
	for name, c := range map[string]limiter.LawConfig{"model": {}, "plain": {Law: limiter.Plain}} {
		law := newLaw(c, noon, seeded(1))
		for i := range 1000 {
			law.Answered(at(float64(i)/100), overheardNews(float64(i)/100-30, 30*time.Second))
		}
		k := law.Save(at(10))
		near(t, name+": answers a second", k.Answered, 100, 2)
		if name == "model" {
			near(t, "latency", k.Latency, 30, 1e-9)
			if got := law.Window(at(10)); got < windowFactor*90*30 {
				t.Errorf("a hundred answers a second of half a minute each, and %d may be in flight", got)
			}
			n := overheardNews(0, time.Second)
			n.Measured, n.Actual = true, limiter.Cost{Requests: 1, Input: 200}
			for range 100 {
				law.Answered(at(10), n)
			}
			near(t, "tokens for each that was estimated", law.Save(at(10)).Factor, 2, 0.05)
		}
	}
}

// A call of the law before was not charged to this one, and had neither its pace nor its
// company: nothing is given back for it, and no lesson is booked.
func TestOverheardEndsTouchNothingElse(t *testing.T) {
	for name, c := range map[string]limiter.LawConfig{
		"model": {Limits: limiter.Limits{RPM: 600, TPM: 60_000}}, "local": {Local: true}, "mean": {Target: time.Second}, "plain": {Law: limiter.Plain, Limits: limiter.Limits{RPM: 600, TPM: 60_000}},
	} {
		law := newLaw(c, noon, seeded(1))
		var k limiter.Ticket
		for range 5 {
			k = law.Sent(noon, limiter.Cost{Requests: 1, Input: 100}, 3)
		}
		before := contents(law)
		n := overheardNews(-1, 0)
		n.Measured, n.Actual = true, limiter.Cost{Requests: 1, Input: 1e6}
		tell := map[string]func(){
			"failed":   func() { n.Timeout = true; law.Failed(noon, n) },
			"unsent":   func() { n.Unsent = true; law.Failed(noon, n) },
			"vanished": func() { law.Vanished(noon, n) },
			"unbegun":  func() { n.Unsent = true; law.Vanished(noon, n) },
			"refused":  func() { law.Straggled(noon, n) },
		}
		for what, f := range tell {
			f()
			if !sameContents(before, contents(law)) {
				t.Errorf("%s: a call of the law before that %s has changed the law", name, what)
			}
		}
		n.Unsent, n.Timeout, n.Good = false, false, false
		law.Answered(noon, n)
		v, w := law.View(noon, limiter.Cost{Requests: 1}), newLaw(c, noon, seeded(1))
		for range 5 {
			w.Sent(noon, limiter.Cost{Requests: 1, Input: 100}, 3)
		}
		if u := w.View(noon, limiter.Cost{Requests: 1}); v.Limits != u.Limits || v.Window != u.Window {
			t.Errorf("%s: an answer to a call of the law before has changed what is left:\n%+v\n%+v", name, v.Limits, u.Limits)
		}
		law.Answered(at(1), limiter.News{Ticket: k, Sent: noon, Cost: limiter.Cost{Requests: 1, Input: 100}, Good: true}) // its own are as ever
	}
}

// What headers showed a call of the law before is taken for the moment at which it left:
// that law drew meanwhile, and so has this one since. Of two the later counts, in whatever
// order they come; of a neighbour nothing is concluded.
func TestOverheardSightings(t *testing.T) {
	memory := limiter.Memory{Version: 1, Law: "model", At: at(-3), Pace: 100, Limits: []limiter.LimitMemory{{On: "requests", Source: "seen", Refill: 100, Capacity: 6000}}}
	fast := memory
	fast.Pace = 300
	wild := memory
	wild.Pace = 10_000
	for what, c := range map[string]struct {
		memory limiter.Memory
		news   []limiter.News
		level  float64
	}{
		"at the rate that flows in":         {memory, []limiter.News{overheardNews(-10, 0, 4000)}, 4000 + 500 - 20},
		"faster: what it drew before":       {fast, []limiter.News{overheardNews(-10, 0, 4000)}, 4000 - 2000 + 500 - 20},
		"no faster than any limit is spent": {wild, []limiter.News{overheardNews(-10, 0, 4000)}, 4000 - 3000 + 500 - 20},
		"no more than all of it":            {fast, []limiter.News{overheardNews(-30, 0, 4000)}, 500 - 20},
		"the later":                         {memory, []limiter.News{overheardNews(-10, 0, 4000), overheardNews(-5, 0, 3000)}, 3000 + 500 - 20},
		"the later came first":              {memory, []limiter.News{overheardNews(-5, 0, 3000), overheardNews(-10, 0, 4000)}, 3000 + 500 - 20},
		"it left after this law had begun":  {memory, []limiter.News{overheardNews(-5, 0, 3000), overheardNews(1, 0, 1000)}, 1000 + 400 - 20},
	} {
		m := restored(t, noon, memory.Empty(), limiter.LawConfig{})
		m.lastPace = c.memory.Pace
		for range 20 {
			m.Sent(at(2), limiter.Cost{Requests: 1}, 0)
		}
		for _, n := range c.news {
			m.Answered(at(5), n)
		}
		near(t, what, m.gauges[dimRequests].levelAt(5), c.level, 1.5)
		near(t, what+": others", m.gauges[dimRequests].othersDraw(), 0, 1e-9)
	}
}

// A window is not filled by what flows in: what the law before drew is gone.
func TestOverheardSightingsOfAWindow(t *testing.T) {
	memory := limiter.Memory{Version: 1, Law: "model", At: at(-3), Pace: 100, Limits: []limiter.LimitMemory{{
		On: "requests", Source: "seen", Refill: 100, Capacity: 6000, Debt: 1000, Window: &limiter.WindowMemory{Ends: at(30), Period: 60, Most: 6000},
	}}}
	m := restored(t, noon, memory.Empty(), limiter.LawConfig{})
	n := overheardNews(-10, 0, 4000)
	n.Sightings[0].Reset = 40 * time.Second
	m.Answered(at(5), n)
	near(t, "left", m.gauges[dimRequests].levelAt(5), 3000, 1.5)
	near(t, "the window ends", viewOf(m, at(5)).Limits[dimRequests].Ends.Sub(at(5)).Seconds(), 25, 0.1)
}

// A refusal of a call of the law before can lengthen a wait that the server names, and
// teaches nothing besides.
func TestOverheardRefusalLengthens(t *testing.T) {
	for name, c := range map[string]limiter.LawConfig{"model": {}, "plain": {Law: limiter.Plain}} {
		law := newLaw(c, noon, seeded(1))
		n := overheardNews(-1, 0)
		n.Directed, n.RetryAfter = true, 7*time.Second
		if got := law.Straggled(noon, n); got.Before(at(7)) {
			t.Errorf("%s: until %v", name, got)
		}
	}
}
