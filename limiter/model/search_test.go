package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Where no limit is known, calls that break slow the lane all the same.
func TestFailuresSlowASearch(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	now := noon
	for i := range 120 {
		now = now.Add(100 * time.Millisecond)
		k := m.Sent(now, limiter.Cost{Requests: 1}, 0)
		n := limiter.News{Ticket: k, Sent: now, Cost: limiter.Cost{Requests: 1}, Present: true, Latency: time.Second}
		if i%2 == 0 {
			m.Failed(now, n)
		} else {
			m.Answered(now, n)
		}
	}
	near(t, "pace", viewOf(m, now).Most, limiter.DefaultErrorFactor*m.estimate.search.pace, 1e-9)
}

// A server of one's own that refuses is searched and paced like any other; one that does
// not is bounded by its window alone.
func TestLocalServerThatRefusesIsJudged(t *testing.T) {
	m := newModel(limiter.LawConfig{Local: true}, noon)
	c := limiter.Cost{Requests: 1}
	var tickets []limiter.Ticket
	for i := range 16 {
		m.Tick(noon, false)
		if wait, _ := m.Wait(noon, c); wait > 0 {
			t.Fatalf("call %d of a server that queues waits %v", i, wait)
		}
		tickets = append(tickets, m.Sent(noon, c, i))
	}
	now := at(0.01)
	for _, k := range tickets[8:] {
		m.Refused(now, limiter.News{Ticket: k, Sent: noon, Cost: c, Present: true, Overloaded: true, Latency: 10 * time.Millisecond})
	}
	now = at(10)
	m.Resume(now)
	sent := 0
	for range 16 {
		m.Tick(now, true)
		if wait, _ := m.Wait(now, c); wait == 0 {
			m.Sent(now, c, sent)
			sent++
		}
	}
	if sent > 2 {
		t.Errorf("%d calls left at one moment after a refusal", sent)
	}
}

// Where nothing more was tried, an alarm tells of the last half minute: what was let in before
// that was paced, and not found out. A search and a try tell of all the time since they began.
func TestAlarmLooksBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		begins func(*estimate)
		from   float64
	}{
		{"neither", func(e *estimate) { e.search = nil }, 70},
		{"lately", func(e *estimate) { e.search, e.anchor = nil, 90 }, 90},
		{"search", func(*estimate) {}, 5},
		{"try", func(e *estimate) { e.search, e.try = nil, &try{before: 10} }, 5},
	} {
		m := newModel(limiter.LawConfig{}, noon)
		m.gauges[dimRequests] = gauge{source: limiter.Learned, refill: 10, capacity: 15}
		m.estimate.anchor = 5
		c.begins(&m.estimate)
		l := m.learn(100.5, 100, 10, 0)
		near(t, c.name, l.from, c.from, 1e-9)
	}
}

// After its first alarm a search goes on from the refused pace if few calls leave until a
// refusal is heard, and else from below, at half at least. The second alarm ignores that.
func TestSearchComesFromBelowWherePaceOutrunsRefusals(t *testing.T) {
	for _, c := range []struct{ delay, want float64 }{{0, 100}, {0.08, 100}, {0.1, 80}, {0.16, 50}, {10, 50}} {
		s := search{pace: 100}
		if s.slowDown(8, 100, 0, 200, c.delay); s.pace != c.want {
			t.Errorf("heard after %v s: on from %v a second, want %v", c.delay, s.pace, c.want)
		}
		s = search{pace: 100, refused: true}
		if s.slowDown(8, 80, 0, 200, c.delay); s.pace != 80 {
			t.Errorf("the second, heard after %v s: on from %v a second", c.delay, s.pace)
		}
	}
}
