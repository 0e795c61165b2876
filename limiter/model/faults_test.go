package model

import (
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Each test here is of a fault that the law before this one had.

// leave has a call leave now.
func leave(law limiter.Law, now time.Time, c limiter.Cost) limiter.News {
	law.Tick(now, false)
	return limiter.News{Ticket: law.Sent(now, c, 0), Sent: now, Cost: c, Present: true}
}

// bothLaws are the laws that c may be of.
func bothLaws(t *testing.T, c limiter.LawConfig, test func(t *testing.T, law func() limiter.Law)) {
	for _, law := range []limiter.LawName{limiter.Model, limiter.Plain} {
		c.Law = law
		t.Run(law.String(), func(t *testing.T) { test(t, func() limiter.Law { return newLaw(c, noon, seeded(1)) }) })
	}
}

// The very first call of a lane is refused, at the moment in which it began: by a 503, for a
// configured limit on tokens, or without a reason. Nothing is divided by zero, the hold is short, and
// calls leave again.
func TestFirstRefusalStopsNothing(t *testing.T) {
	for name, n := range map[string]limiter.News{"429": {}, "503": {Overloaded: true}, "tokens": {On: limiter.Tokens}} {
		for _, limits := range []limiter.Limits{{}, {TPM: 60_000}, {RPM: 600, TPM: 60_000}} {
			first := true
			w := newLawWorld(limiter.LawConfig{Limits: limits}, 1, func(float64, int) reply {
				if first {
					first = false
					return reply{kind: isRefused, news: n}
				}
				return reply{after: 0.5}
			})
			w.run(0.25, 1e9) // a configured limit has nothing saved up at first
			want(t, name+": refused", w.refused, 1)
			isSane(t, w.law, 0.25)
			w.run(30, 100)
			isSane(t, w.law, w.now)
			if n := len(w.sent); n < 10 {
				t.Errorf("%s, %+v: %d calls in half a minute", name, limits, n)
			}
		}
	}
}

// A wait of nothing, or less, is none that a server named: the hold is that of a refusal
// that names none.
func TestRetryAfterOfNothingIsNone(t *testing.T) {
	bothLaws(t, limiter.LawConfig{Limits: limiter.Limits{RPM: 60}}, func(t *testing.T, law func() limiter.Law) {
		hold := func(directed bool, after time.Duration) (r limiter.Refusal) {
			l := law()
			for i := range 12 {
				n := leave(l, at(float64(i)), one)
				n.Directed, n.RetryAfter = directed, after
				r = l.Refused(at(float64(i)+0.1), n)
			}
			return r
		}
		expected := hold(false, 0)
		if !expected.Until.After(at(11.1)) {
			t.Fatalf("a hold until %v", expected.Until)
		}
		want(t, "with Retry-After: 0", hold(true, 0), expected)
		want(t, "with a negative one", hold(true, -time.Hour), expected)
		if longer := hold(true, 10*time.Minute); !longer.Until.After(at(600)) {
			t.Errorf("with ten minutes: %v", longer.Until)
		}
	})
}

// What was refused cost nothing: the first refusal of a wave gives its charge back to told
// tokens, and so does each that follows.
func TestRefusalsGiveTheirChargeBack(t *testing.T) {
	l := newModel(limiter.LawConfig{Limits: limiter.Limits{TPM: 600_000, Burst: time.Minute}}, noon)
	c := limiter.Cost{Requests: 1, Input: 1000, Output: 1000}
	before := viewOf(l, noon).Level(limiter.Tokens)
	first, second := leave(l, noon, c), leave(l, noon, c)
	want(t, "charged for two", before-viewOf(l, noon).Level(limiter.Tokens), 4000)
	l.Refused(noon, first)
	want(t, "charged once one was refused", before-viewOf(l, noon).Level(limiter.Tokens), 2000)
	second.Present = false
	l.Straggled(noon, second)
	want(t, "charged once both were", before-viewOf(l, noon).Level(limiter.Tokens), 0)
}

// A call that never left gives back its charge, whether it vanished or failed, and is none
// that was let in; one that did leave does not.
func TestCallsThatNeverLeftCostNothing(t *testing.T) {
	limits := limiter.Limits{RPM: 600, TPM: 600_000, Burst: 30 * time.Second}
	bothLaws(t, limiter.LawConfig{Limits: limits}, func(t *testing.T, law func() limiter.Law) {
		for _, failed := range []bool{false, true} {
			for _, unsent := range []bool{false, true} {
				l, c := law(), limiter.Cost{Requests: 1, Input: 1000}
				requests, tokens := viewOf(l, noon).Level(limiter.Requests), viewOf(l, noon).Level(limiter.Tokens)
				n := leave(l, noon, c)
				n.Unsent = unsent
				if failed {
					l.Failed(noon, n)
				} else {
					l.Vanished(noon, n)
				}
				back := viewOf(l, noon).Level(limiter.Requests) == requests && viewOf(l, noon).Level(limiter.Tokens) == tokens
				want(t, fmt.Sprintf("failed: %v, unsent: %v: the charge is back", failed, unsent), back, unsent)
			}
		}
	})
	m := newModel(limiter.LawConfig{}, noon)
	n := leave(m, at(1), one)
	n.Unsent = true
	m.Vanished(at(2), n)
	want(t, "let in", m.sends.accepted(0, 10), 0)
}

// failing is a law of ten calls a second, told, of which every so-manieth breaks.
func failing(t *testing.T, m *Law, from, to float64, every int) {
	t.Helper()
	for i, s := 0, from; s < to; i, s = i+1, s+0.2 {
		n := leave(m, at(s), one)
		if every > 0 && i%every == 0 {
			m.Failed(at(s+0.1), n)
		} else {
			n.Good = true
			m.Answered(at(s+0.1), n)
		}
	}
}

// A server that breaks a third of its calls gets half as many of them, until it breaks
// hardly any: the error window's factor reaches the pace, however the limit is known.
func TestErrorsHalveThePace(t *testing.T) {
	seen := limiter.Sighting{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: 590}
	for name, m := range map[string]*Law{
		"told":    newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Minute}}, noon),
		"guessed": newModel(limiter.LawConfig{Rate: limiter.RateConfig{Initial: 10}}, noon),
		"seen":    newModel(limiter.LawConfig{}, noon),
	} {
		if n := leave(m, noon, one); name == "seen" {
			n.Sightings, n.Good = []limiter.Sighting{seen}, true
			m.Answered(at(0.1), n)
		}
		failing(t, m, 1, 30, 0)
		full := viewOf(m, at(30)).Most
		failing(t, m, 30, 90, 2)
		if half := viewOf(m, at(90)).Most; half > 0.51*viewOf(m, at(90)).Rate || half < 0.2*viewOf(m, at(90)).Rate {
			t.Errorf("%s: %v calls a second while every second one breaks, of %v", name, half, viewOf(m, at(90)).Rate)
		}
		failing(t, m, 90, 300, 0)
		if again := viewOf(m, at(300)).Most; again < 0.9*full && again < 9 {
			t.Errorf("%s: %v calls a second when none breaks any more, %v before", name, again, full)
		}
	}
}

// A few failures slow nothing down.
func TestFewErrorsSlowNothing(t *testing.T) {
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Minute}}, noon)
	failing(t, m, 0, 90, 15)
	if pace := viewOf(m, at(90)).Most; pace < 9 {
		t.Errorf("%v calls a second", pace)
	}
}

// said returns a law that let so many calls in within its first minute, and then heard a
// refusal whose words allow so many a minute.
func said(let int, limit float64) *Law {
	m := newModel(limiter.LawConfig{}, noon)
	for i := range let {
		now := at(60 * float64(i) / float64(let))
		n := leave(m, now, one)
		n.Good = true
		m.Answered(now.Add(100*time.Millisecond), n)
	}
	n := leave(m, at(60), one)
	n.Sightings = []limiter.Sighting{{Dimension: limiter.Requests, Limit: limit, Window: time.Minute, Said: true}}
	m.Refused(at(60.1), n)
	return m
}

// A limit is said by refusals until a header shows it, also after a restart; what a refusal
// says then makes the header's limit none of its own.
func TestSourceOfALimit(t *testing.T) {
	m := said(600, 600)
	if v := m.View(at(61), one); !v.Limits[dimRequests].Said {
		t.Errorf("%+v", v.Limits[dimRequests])
	}
	next := restored(t, at(61), m.Save(at(61)), limiter.LawConfig{})
	if v := next.View(at(61), one); !v.Limits[dimRequests].Said {
		t.Errorf("after a restart: %+v", v.Limits[dimRequests])
	}
	see := func(second float64, words bool) {
		n := leave(m, at(second), one)
		n.Good = !words
		n.Sightings = []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: 300, Said: words}}
		if n.Good {
			m.Answered(at(second+0.1), n)
		} else {
			m.Refused(at(second+0.1), n)
		}
	}
	for second, words := range []bool{false, true} {
		see(62+float64(second), words)
		if l := m.View(at(64), one).Limits[dimRequests]; l.Said || l.Source != limiter.Seen {
			t.Errorf("headers show it, words say it again (%t): %+v", words, l)
		}
	}
}

// What a refusal says of the limit is believed if what was let in fits it, and not if it
// contradicts it: ten times as many were let in, or a tenth.
func TestWordsAreBelievedIfTheyFit(t *testing.T) {
	near(t, "rate by words that fit", viewOf(said(600, 600), at(60.1)).Rate, 10, 1e-9)
	for _, c := range []struct {
		let   int
		limit float64
	}{{600, 60}, {60, 6000}} {
		m := said(c.let, c.limit)
		if rate := viewOf(m, at(60.1)).Rate; rate == c.limit/60 || m.gauges[dimRequests].source == limiter.Seen {
			t.Errorf("%d were let in, %v a minute were named, and %v a second are believed", c.let, c.limit, rate)
		}
	}
}

// More than is believed is tried, and never more than the user allows, also while no debt holds
// calls back.
// The share that chance refuses lifts the pace of what is tried, and never over the user's limit.
func TestNothingIsTriedOverTheUsersLimit(t *testing.T) {
	for _, byChance := range []float64{0, 0.1, 0.4} {
		m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 20}}, noon)
		g := &m.gauges[dimRequests]
		g.source, g.refill, g.capacity = limiter.Learned, 0.8*g.ceiling, 1
		m.refusals, m.chanceShare = 1, byChance
		m.tryMore(0, g, 2*g.ceiling)
		near(t, "calls a minute", 60*viewOf(m, at(1)).Most, 20, 1e-6)
		m.gauges[dimRequests].ceiling = 0
		m.tryMore(0, g, 40.0/60)
		near(t, "without the user's limit", 60*viewOf(m, at(1)).Most*(1-byChance), 40, 1e-6)
	}
}

// The same words in headers are the server's own count, and need no proof.
func TestHeadersNeedNoProof(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	n := leave(m, noon, one)
	n.Good, n.Sightings = true, []limiter.Sighting{{Dimension: limiter.Requests, Limit: 6000, Window: time.Minute, Remaining: 5999}}
	m.Answered(at(1), n)
	near(t, "rate", viewOf(m, at(1)).Rate, 100, 1e-9)
	if pace := viewOf(m, at(1)).Most; pace < 90 { // at once: a limit that is shown is permitted
		t.Errorf("%v calls a second, and 100 are allowed", pace)
	}
}

// An item counts once for the error window: a few that always break are no sign that the
// server does, however often they are asked.
func TestItemThatBreaksAgainSlowsNothing(t *testing.T) {
	bothLaws(t, limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Minute}}, func(t *testing.T, law func() limiter.Law) {
		for _, again := range []bool{false, true} {
			l := law()
			for i := range 60 {
				s := float64(i) * 0.3
				n := leave(l, at(s), one)
				if i%2 == 0 {
					n.Again = again
					l.Failed(at(s+0.1), n)
				} else {
					n.Good = true
					l.Answered(at(s+0.1), n)
				}
			}
			want(t, fmt.Sprintf("again: %v: the pace is eased", again), l.Slowed(at(18)) > 0, !again)
		}
	})
}

// The answer of an item that broke before says nothing of the server either: it would make
// the share of those that break look smaller than it is.
func TestAnswerAfterAFailureIsNotCounted(t *testing.T) {
	bothLaws(t, limiter.LawConfig{Limits: limiter.Limits{RPM: 600, Burst: time.Minute}}, func(t *testing.T, law func() limiter.Law) {
		l := law()
		for i := range 120 {
			s := float64(i) * 0.15
			n := leave(l, at(s), one)
			if i%6 == 0 {
				l.Failed(at(s+0.1), n)
			} else {
				n.Good, n.Again = true, true
				l.Answered(at(s+0.1), n)
			}
		}
		want(t, "the pace is eased", l.Slowed(at(18)) > 0, true)
	})
}
