package model

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// A law that follows another has all of its knowledge and nothing in hand: what flowed in
// since may have been drawn. A debt stays, as far as it has not flowed in.
func TestSuccessorHasNothingInHand(t *testing.T) {
	for what, c := range map[string]struct {
		limit   limiter.LimitMemory
		seconds float64
		level   float64
	}{
		"learned, at once":     {limiter.LimitMemory{On: "requests", Source: "learned", Refill: 10, Capacity: 45}, 0, 0},
		"learned, a day later": {limiter.LimitMemory{On: "requests", Source: "learned", Refill: 10, Capacity: 45, Debt: 20}, 86400, 0},
		"seen":                 {limiter.LimitMemory{On: "requests", Source: "seen", Refill: 10, Capacity: 600, Debt: 20}, 3, 0},
		"in debt":              {limiter.LimitMemory{On: "requests", Source: "learned", Refill: 10, Capacity: 45, Debt: 95}, 3, -20},
		"debt that is over":    {limiter.LimitMemory{On: "requests", Source: "learned", Refill: 10, Capacity: 45, Debt: 65}, 3, 0},
		"tokens":               {limiter.LimitMemory{On: "input tokens", Source: "seen", Refill: 1000, Capacity: 60000}, 1, 0},
		"window, spent at the fastest since": {
			limiter.LimitMemory{On: "requests", Source: "seen", Refill: 10, Capacity: 600, Debt: 200, Window: &limiter.WindowMemory{Ends: at(30), Period: 60, Most: 600}}, 3, 400 - 3*burstCap*10,
		},
		"window of a day": {
			limiter.LimitMemory{On: "requests", Source: "seen", Refill: 0.1, Capacity: 8640, Window: &limiter.WindowMemory{Ends: at(3000), Period: 86400, Most: 8640}}, 3, 8640 - 3*8640/longBurst,
		},
		"window, no more than there is": {
			limiter.LimitMemory{On: "requests", Source: "seen", Refill: 10, Capacity: 600, Debt: 590, Window: &limiter.WindowMemory{Ends: at(30), Period: 60, Most: 600}}, 3, 0,
		},
	} {
		k := limiter.Memory{Version: 1, Law: "model", At: noon, Limits: []limiter.LimitMemory{c.limit}}
		now := at(c.seconds)
		m := restored(t, now, k.Empty(), limiter.LawConfig{})
		g := &m.gauges[dimensionNamed(c.limit.On)]
		near(t, what, g.level, c.level, 1e-6)
		if usual := restored(t, now, k, limiter.LawConfig{}); c.level >= 0 && usual.gauges[dimensionNamed(c.limit.On)].level <= c.level && c.limit.Debt < 590 {
			t.Errorf("%s: who restarts has no more in hand than who follows", what)
		}
		want(t, what+": source", g.source, sourceNamed(c.limit.Source))
	}
}

// What the user tells is not in hand either, were it not in the memory, or other than it
// was; and by the plain law it is not.
func TestSuccessorKeepsNothingConfigured(t *testing.T) {
	configured := limiter.Limits{RPM: 600, TPM: 600_000, Burst: 30 * time.Second}
	for what, k := range map[string]limiter.Memory{
		"nothing was saved":   {Version: 1, Law: "model", At: at(-60)},
		"another was told":    {Version: 1, Law: "model", At: at(-60), Limits: []limiter.LimitMemory{{On: "requests", Source: "told", Refill: 5, Capacity: 150, Ceiling: 5}}},
		"the same was told":   {Version: 1, Law: "model", At: at(-60), Limits: []limiter.LimitMemory{{On: "requests", Source: "told", Refill: 10, Capacity: 300, Ceiling: 10}}},
		"less was seen":       {Version: 1, Law: "model", At: at(-60), Limits: []limiter.LimitMemory{{On: "requests", Source: "seen", Refill: 5, Capacity: 300, Ceiling: 10}}},
		"by the plain law it": {Version: 1, Law: "plain", At: at(-60)},
	} {
		c := limiter.LawConfig{Limits: configured}
		if k.Law == "plain" {
			c.Law = limiter.Plain
		}
		for _, d := range []limiter.Dimension{limiter.Requests, limiter.Tokens} {
			usual, follows := newLaw(c, noon, seeded(1)), newLaw(c, noon, seeded(1))
			must.Do(t, errors.Join(usual.Restore(noon, k), follows.Restore(noon, k.Empty())))
			if got, was := viewOf(follows, noon).Level(d), viewOf(usual, noon).Level(d); got != 0 || was <= 0 {
				t.Errorf("%s: %v %v in hand, and without a predecessor %v", what, got, d, was)
			}
		}
	}
}

// That a memory is for a successor is written with it, and not where it is not.
func TestEmptiedIsWritten(t *testing.T) {
	k := everything()
	if text, _ := json.Marshal(k); strings.Contains(string(text), "emptied") {
		t.Errorf("a memory that is for nobody else says so: %s", text)
	}
	text, err := json.Marshal(k.Empty())
	if err != nil || !strings.Contains(string(text), `"emptied":true`) {
		t.Errorf("%v: %s", err, text)
	}
	var read limiter.Memory
	if err := json.Unmarshal(text, &read); err != nil || !read.Emptied {
		t.Errorf("%v: read back, it is not for a successor", err)
	}
	want(t, "the one that it was made of", k.Emptied, false)
}

// The rate of answers is inherited for a minute, and for four latencies if these are
// longer: for so long as many calls may be in flight as were, without one answer.
func TestRateOfAnswersIsInherited(t *testing.T) {
	for _, c := range []struct{ answered, latency, until float64 }{{500, 30, 120}, {500, 2, 60}, {100, 60, 240}} {
		m := restored(t, noon, limiter.Memory{Version: 1, Law: "model", At: at(-3), Answered: c.answered, Latency: c.latency}, limiter.LawConfig{})
		for _, s := range []float64{0, 1, 11, 30, c.until - 0.1} {
			if got := m.Window(at(s)); float64(got) < windowFactor*c.answered*c.latency {
				t.Errorf("%v answers a second, of %v s: after %v s %d may be in flight", c.answered, c.latency, s, got)
			}
		}
		want(t, "after that, without an answer", m.Window(at(c.until+0.1)), leastWindow)
	}
	if m := New(limiter.LawConfig{}, noon, seeded(1)); m.Window(noon) != leastWindow {
		t.Error("a law that follows nobody inherits something")
	}
}

// Where a user tells a rate, a second of it may be in flight from the start, unless the
// server was seen to allow less. What tokens allow is known from the first call on.
func TestConfiguredRateIsAFloorOfTheWindow(t *testing.T) {
	cost := limiter.Cost{Requests: 1, Input: 800, Output: 200}
	for what, c := range map[string]struct {
		configured    limiter.Limits
		before, after int
	}{
		"nothing":         {limiter.Limits{}, 64, 64},
		"few requests":    {limiter.Limits{RPM: 600}, 64, 64},
		"requests":        {limiter.Limits{RPM: 30_000}, 500, 500},
		"tokens":          {limiter.Limits{TPM: 30e6}, 64, 500},
		"output tokens":   {limiter.Limits{OutputTPM: 3e6}, 64, 250},
		"the least binds": {limiter.Limits{RPM: 30_000, TPM: 12e6}, 500, 200},
	} {
		m := New(limiter.LawConfig{Limits: c.configured}, noon, seeded(1))
		want(t, what+", before the first call", m.Window(noon), c.before)
		m.Sent(noon, cost, 0)
		want(t, what+", after it", m.Window(at(1)), c.after)
		m.sends.bookRefusal(0, 1)
		want(t, what+", and though that was refused", m.Window(at(2)), c.after)
	}
	m := New(limiter.LawConfig{Limits: limiter.Limits{RPM: 30_000}}, noon, seeded(1))
	k := m.Sent(noon, cost, 0)
	m.Answered(at(0.1), limiter.News{Ticket: k, Sent: noon, Cost: cost, Good: true, Latency: 100 * time.Millisecond, Sightings: []limiter.Sighting{{
		Dimension: limiter.Requests, Limit: 6000, Window: time.Minute, Remaining: 100, Reset: time.Second, HasReset: true,
	}}})
	want(t, "headers show less than was told", m.Window(at(1)), 100)
}

// An organisation is the world of a law that is killed each minute, and followed three
// seconds later by another that knows what was saved half a second before the end. Its
// calls go on, and end.
type organisation struct {
	level, depth, rate float64 // the provider's bucket
	headers, lost      bool    // it shows its level; ends of a predecessor's calls are not heard
	configured         limiter.Limits

	law     *Law
	life    int
	flying  []organisedCall // all take as long, so they end in the order in which they left
	saved   limiter.Memory
	savedAt time.Time

	now           time.Time
	own           int // calls in flight that this law let go: it counts no other
	sent, refused int
}

type organisedCall struct {
	news limiter.News
	life int
	ends time.Time
}

const organisedLatency = 30 * time.Second

func (o *organisation) run(seconds float64) {
	const step = 25 * time.Millisecond
	for end := o.now.Add(time.Duration(seconds * 1e9)); o.now.Before(end); o.now = o.now.Add(step) {
		o.level = min(o.depth, o.level+o.rate*step.Seconds())
		o.end()
		if o.law == nil {
			continue
		}
		if o.now.Sub(o.savedAt) >= 500*time.Millisecond {
			o.saved, o.savedAt = o.law.Save(o.now), o.now
		}
		o.leave()
	}
}

func (o *organisation) leave() {
	cost := limiter.Cost{Requests: 1}
	for range 1000 {
		if w := o.law.Window(o.now); w > 0 && o.own >= w {
			return
		}
		o.law.Tick(o.now, true)
		if wait, _ := o.law.Wait(o.now, cost); wait > 0 {
			return
		}
		o.sent++
		o.own++
		c := organisedCall{life: o.life, ends: o.now.Add(organisedLatency)}
		c.news = limiter.News{Ticket: o.law.Sent(o.now, cost, o.own-1), Sent: o.now, Cost: cost, Present: true, Good: true, Latency: organisedLatency}
		if o.level < 1 {
			o.refused++
		}
		o.level = max(0, o.level-1)
		if o.headers {
			c.news.Sightings = []limiter.Sighting{{
				Dimension: limiter.Requests, Limit: 60 * o.rate, Window: time.Minute, Remaining: math.Floor(o.level),
				Reset: time.Duration((o.depth - o.level) / o.rate * 1e9), HasReset: true,
			}}
		}
		o.flying = append(o.flying, c)
	}
}

func (o *organisation) end() {
	done := 0
	for ; done < len(o.flying) && !o.flying[done].ends.After(o.now); done++ {
		c := &o.flying[done]
		switch {
		case o.law == nil:
		case c.life == o.life:
			o.own--
			o.law.Answered(o.now, c.news)
		case !o.lost:
			c.news.Overheard, c.news.Present, c.news.Ticket = true, false, limiter.Ticket{}
			o.law.Answered(o.now, c.news)
		}
	}
	o.flying = o.flying[done:]
}

func (o *organisation) die() { o.law = nil }

func (o *organisation) follow(t *testing.T) {
	o.life++
	o.own = 0
	o.law = New(limiter.LawConfig{Limits: o.configured}, o.now, seeded(uint64(o.life)))
	must.Do(t, o.law.Restore(o.now, o.saved.Empty()))
	o.savedAt = o.now
}

// Calls take half a minute, five hundred leave a second, and the law is killed each minute. The
// successor goes on whether or not the ends of the earlier calls are heard, and nothing is
// refused. With a configured limit it is at full pace at once. With headers it is at more than half
// of it, as nothing is in hand and some seconds are kept in reserve. It draws the rest of the
// bucket later in its life.
func TestSuccessorGoesOnWithLongCalls(t *testing.T) {
	const perMinute = 30_000
	for what, c := range map[string]struct {
		organisation
		soon float64 // share of the limit, from the second second to the tenth
	}{
		"told":                   {organisation{depth: perMinute, configured: limiter.Limits{RPM: perMinute}}, 0.97},
		"told, ends are lost":    {organisation{depth: perMinute, configured: limiter.Limits{RPM: perMinute}, lost: true}, 0.97},
		"told, a second deep":    {organisation{depth: perMinute / 60, configured: limiter.Limits{RPM: perMinute}}, 0.97},
		"headers":                {organisation{depth: perMinute, headers: true}, 0.65},
		"headers, ends are lost": {organisation{depth: perMinute, headers: true, lost: true}, 0.65},
		"headers, shallow":       {organisation{depth: perMinute / 12, headers: true}, 0.65},
		"headers, a second deep": {organisation{depth: perMinute / 60, headers: true}, 0.65},
	} {
		o := &c.organisation
		o.rate, o.now, o.level = perMinute/60, noon, o.depth
		o.saved = limiter.Memory{Version: 1, Law: "model", At: noon, Answered: o.rate, Latency: organisedLatency.Seconds(), Pace: o.rate}
		if o.headers {
			o.saved.Limits = []limiter.LimitMemory{{On: "requests", Source: "seen", Refill: o.rate, Capacity: o.depth, Period: 60}}
		}
		o.follow(t)
		o.run(57)
		o.sent = 0
		lives := max(2, race.Fewer(5))
		for range lives {
			o.die()
			o.run(3)
			o.follow(t)
			o.run(2)
			first := o.sent
			o.run(8)
			if share := float64(o.sent-first) / (8 * o.rate); share < c.soon {
				t.Errorf("%s, life %d: %.2f of the limit in the first seconds", what, o.life, share)
			}
			o.run(47)
		}
		if use := float64(o.sent) / float64(lives*perMinute); use < 0.93 || o.refused > 0 {
			t.Errorf("%s: %.3f of the limit was used, and %d calls refused", what, use, o.refused)
		} else {
			t.Logf("%s: %.3f of the limit was used", what, use)
		}
	}
}
