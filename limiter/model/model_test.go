package model

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

func newModel(c limiter.LawConfig, now time.Time) *Law {
	return New(c, now, rand.New(rand.NewPCG(1, 2)))
}

// A local server that does have a limit, and shows it, is paced by it from then on:
// the time without a rate leaves no credit behind.
func TestLocalServerWithALimitIsPaced(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{Local: true}, now)
	one := limiter.Cost{Requests: 1}
	for range 100 {
		if wait, _ := m.Wait(now, one); wait != 0 {
			t.Fatalf("a call waits %v, and nothing is known", wait)
		}
		m.Sent(now, one, 0)
	}
	seen := limiter.Sighting{Dimension: limiter.Requests, Limit: 600, Remaining: 0, Reset: time.Minute, HasReset: true}
	m.Answered(now, limiter.News{Sent: now, Cost: one, Present: true, Good: true, Sightings: []limiter.Sighting{seen}})
	sent := 0
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		if wait, _ := m.Wait(now, one); wait == 0 {
			m.Sent(now, one, 0)
			sent++
		}
	}
	if sent > 100 {
		t.Errorf("%d calls left in ten seconds of a limit of ten a second", sent)
	}
}

// Estimates that are always half of the truth are charged double after a while.
func TestEstimatesAreCorrected(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{TPM: 1e6}}, now)
	c := limiter.Cost{Requests: 1, Input: 100}
	for range 200 {
		now = now.Add(time.Second)
		n := m.Sent(now, c, 0)
		m.Answered(now, limiter.News{Ticket: n, Sent: now, Cost: c, Good: true, Measured: true, Actual: limiter.Cost{Requests: 1, Input: 200}})
	}
	if got := perDimension(m.weigh(c))[dimTokens]; got < 195 || got > 200 {
		t.Errorf("a call that draws 200 is charged %v", got)
	}
}

// A limit by the day may be spent faster than it refills.
func TestDayLimitIsNotRationed(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{}, now)
	one := limiter.Cost{Requests: 1}
	see := limiter.Sighting{Dimension: limiter.Requests, Limit: 14400, Window: 24 * time.Hour, Remaining: 14000, Reset: 40 * time.Minute, HasReset: true}
	m.Answered(now, limiter.News{Ticket: m.Sent(now, one, 0), Sent: now, Cost: one, Good: true, Sightings: []limiter.Sighting{see}})
	if rate := viewOf(m, now.Add(time.Second)).Most; rate < 100 {
		t.Errorf("%v calls a second, of 14,000 that are left", rate)
	}
}

// A configured limit below the floor of learned rates is kept all the same.
func TestConfiguredLimitUnderTheFloor(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 1}}, now)
	one, sent := limiter.Cost{Requests: 1}, 0
	for range 4 * 3600 {
		now = now.Add(250 * time.Millisecond)
		if wait, _ := m.Wait(now, one); wait == 0 {
			m.Sent(now, one, 0)
			sent++
		}
	}
	if sent < 55 || sent > 63 {
		t.Errorf("%d calls left in an hour of one a minute", sent)
	}
}

// A refusal that names the tokens empties the model of the tokens, and leaves the rate
// of requests alone.
func TestRefusalForTokens(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, TPM: 60_000, Burst: time.Minute}}, now)
	c := limiter.Cost{Requests: 1, Input: 10}
	rate := viewOf(m, now).Rate
	m.Refused(now, limiter.News{Ticket: m.Sent(now, c, 0), Sent: now, Cost: c, Present: true, On: limiter.Tokens})
	if got := viewOf(m, now).Rate; got != rate {
		t.Errorf("%v requests a second after a refusal for tokens, %v before", got, rate)
	}
	if level := viewOf(m, now).Level(limiter.Tokens); level > 0 {
		t.Errorf("%v tokens are thought to be left", level)
	}
	if level := viewOf(m, now).Level(limiter.Requests); level < 500 {
		t.Errorf("%v requests are thought to be left", level)
	}
}

// However deep the debt was at the old rate, it is bounded by a minute of the new one.
func TestDebtIsBoundedAfterACut(t *testing.T) {
	now := time.Unix(0, 0)
	m := newModel(limiter.LawConfig{Rate: limiter.RateConfig{Initial: 10}}, now)
	one := limiter.Cost{Requests: 1}
	first := m.Sent(now, one, 0)
	for range 3000 {
		m.Sent(now.Add(time.Second/2), one, 0)
	}
	m.Refused(now.Add(time.Second), limiter.News{Ticket: first, Sent: now, Cost: one, Present: true})
	if level, bound := viewOf(m, now.Add(time.Second)).Level(limiter.Requests), 60*viewOf(m, now).Rate; level < -max(bound, leastDebt)-1e-9 {
		t.Errorf("a debt of %v, with %v a minute", -level, bound)
	}
}

// The rate that a call is charged by is that of its moment, also where Wait had found
// it before and something was learned in between: a law that may use what it was asked
// and one that may not come to the same credit.
func TestQuotesAreVoidOnceAnythingIsLearned(t *testing.T) {
	rng := seeded(3)
	for i := range 100 {
		now := time.Unix(0, 0)
		c := limiter.LawConfig{Limits: limiter.Limits{RPM: 600, TPM: 60_000, Burst: time.Duration(i%4) * 20 * time.Second}}
		asked, other := newModel(c, now), newModel(c, now)
		for i := range 300 {
			now = now.Add(time.Duration(rng.IntN(3)) * 50 * time.Millisecond)
			kind, c := rng.IntN(100), limiter.Cost{Requests: 1, Input: float64(rng.IntN(500))}
			for _, m := range []*Law{asked, other} {
				m.Window(now)
				wait, _ := m.Wait(now, c)
				other.quoted = quote{}
				teach(m, now, kind, i, c)
				if wait == 0 {
					m.Sent(now, c, 0)
				}
			}
			other.window = 0
			if asked.credit != other.credit || asked.Window(now) != other.Window(now) {
				t.Fatalf("after news %d: credit %v, and %v without a quote", kind, asked.credit, other.credit)
			}
		}
	}
}

// teach tells a law one of eleven kinds of news, the i-th of all, or nothing.
func teach(m *Law, now time.Time, kind, i int, c limiter.Cost) {
	n := limiter.News{Sent: now.Add(-time.Second), Cost: c, Present: true, Good: true, Latency: time.Duration(i%7) * time.Second}
	switch kind {
	case 0, 1, 2, 3:
		n.Measured, n.Actual = true, limiter.Cost{Requests: 1, Input: float64(i % 300)}
		m.Answered(now, n)
	case 4:
		n.Sightings = []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Remaining: float64(i % 600)}}
		m.Answered(now, n)
	case 5:
		n.Measured, n.Actual = true, limiter.Cost{Output: 900}
		m.Failed(now, n)
	case 6:
		m.Straggled(now, n)
	case 7:
		m.SetLimits(now, limiter.Limits{RPM: 600 + float64(i%100), TPM: 60_000})
	case 8:
		m.Remaining(limiter.Cost{Requests: float64(i % 3)})
	case 9:
		m.Broken(now)
		m.Climb(now)
	case 10:
		m.Refused(now, n)
	}
}
