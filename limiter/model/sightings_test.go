package model

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Headers show the level exactly, at the moment when their call was sent: what
// left since is taken off, and a neighbour's draw is found in what is missing.
func TestHeadersAndNeighbours(t *testing.T) {
	var (
		s sends
		g gauge
	)
	see := func(at, left float64) {
		g.takeSighting(dimRequests, limiter.Sighting{Limit: 600, Remaining: left}, &s, at, at, 0)
	}
	see(1, 300)
	if got := g.level; math.Abs(got-300.5) > 1e-9 || g.refill != 10 || g.capacity != 600 {
		t.Fatalf("%+v", g)
	}
	// Four calls a second of ours, and four of somebody else's: two come in.
	left := 300.0
	for sec := 2.0; sec < 60; sec++ {
		for range 4 {
			s.add(sec-0.5, limiter.Cost{Requests: 1})
		}
		left += 2
		see(sec, left)
	}
	if g.others < 3.5 || g.others > 4.5 {
		t.Errorf("the neighbour is taken to draw %v a second, and draws 4", g.others)
	}
	g.takeSighting(dimRequests, limiter.Sighting{Limit: 600, Remaining: 1}, &s, 2, 70, 0)
	if g.level < 300 {
		t.Errorf("old headers were believed: %v left", g.level)
	}
}

// With many calls in flight one answer of many is looked at, so that an answer costs
// what replayShare sends cost; with few in flight, each is.
func TestAnswersPayForReplays(t *testing.T) {
	for _, c := range []struct{ inFlight, answers, most int }{{1, 100, 100}, {replayShare, 100, 100}, {4096, 6400, 100}} {
		g := gauge{shown: &shown{}}
		looked := 0
		for range c.answers {
			if g.due(uint64(c.inFlight)) {
				looked++
			}
		}
		if looked != c.most {
			t.Errorf("%d in flight: %d of %d answers were looked at, want %d", c.inFlight, looked, c.answers, c.most)
		}
	}
}

// A limit that has changed is believed at once, however many calls are in flight and
// however lately one was looked at.
func TestNewLimitIsSeenAmongThousands(t *testing.T) {
	var (
		s sends
		g gauge
	)
	for i := range 4096 {
		s.add(1+float64(i)/4096, limiter.Cost{Requests: 1})
	}
	g.takeSighting(dimRequests, limiter.Sighting{Limit: 60_000, Remaining: 50_000}, &s, 1.1, 3, 0)
	if g.takeSighting(dimRequests, limiter.Sighting{Limit: 60_000, Remaining: 49_999}, &s, 1.2, 3, 0); g.seenAt != 1.1 {
		t.Fatal("each answer is looked at")
	}
	if !g.takeSighting(dimRequests, limiter.Sighting{Limit: 30_000, Remaining: 20_000}, &s, 1.3, 3, 0) || g.refill != 500 {
		t.Errorf("a limit of 30,000 a minute was told, and %v a second is believed", g.refill)
	}
}

// Calls that leave at one moment are served in an order that nobody knows, and of a full
// bucket each finds more than a replay of all leaves: that is no sign of wrong headers.
func TestCallsOfOneMomentAreNoLie(t *testing.T) {
	for name, together := range map[string]int{"one by one": 1, "a few": 12, "many": 50} {
		var own sends
		g := gauge{}
		level, depth := 6000.0, 6000.0
		for i := range 400 {
			now := 1 + float64(i)*float64(together)/100
			level = min(depth, level+float64(together))
			var s limiter.Sighting
			for j := range together {
				own.add(now, limiter.Cost{Requests: 1})
				level--
				if j == i%together {
					s = limiter.Sighting{Limit: 6000, Window: time.Minute, Remaining: level, Reset: time.Duration((depth - level) / 100 * 1e9), HasReset: true}
				}
			}
			g.takeSighting(dimRequests, s, &own, now, now, 0)
			if g.outgrown() {
				t.Fatalf("%s: the headers are taken to be wrong", name)
			}
		}
	}
	var own sends
	g := gauge{}
	for i := range 400 { // but twice as much flows in as they say, and somebody draws it all
		now := 1 + float64(i)/200
		own.add(now, limiter.Cost{Requests: 1})
		g.takeSighting(dimRequests, limiter.Sighting{Limit: 6000, Window: time.Minute, Remaining: 3000, Reset: 30 * time.Second, HasReset: true}, &own, now, now, 0)
	}
	if g.lag < lagMost+lagSpread*g.refill {
		t.Errorf("headers that are wrong by half are believed: %v", g.lag)
	}
}

// A limit that has changed is another one: nothing that was found out of the old one holds for
// it, neither what others draw nor how much may be saved up.
func TestNewLimitBeginsAnew(t *testing.T) {
	var (
		s sends
		g gauge
	)
	see := func(at float64, limit, left float64) {
		g.takeSighting(dimRequests, limiter.Sighting{Limit: limit, Remaining: left, Reset: time.Duration((limit - left) / limit * 60e9), HasReset: true}, &s, at, at, 0)
	}
	for sec := range 30 { // somebody else takes three of ten a second
		see(float64(1+sec), 600, 300+7*float64(sec))
	}
	if g.others < 2 || g.capacity != 600 {
		t.Fatalf("others draw %v a second, and %v may be saved up", g.others, g.capacity)
	}
	g.takeSighting(dimRequests, limiter.Sighting{Limit: 300, Remaining: 9, HasReset: true}, &s, 40, 40, 0)
	want(t, "others", g.others, 0)
	want(t, "saved up", g.capacity, 9)
}

// Permits that are lost on the way are counted as calls and never arrive. What is then left
// is more than a replay leaves, and resets that agree with the minute keep the limit by it.
func TestCallsThatNeverLeftMakeNoShorterPeriod(t *testing.T) {
	const limit, depth, refill = 9000, 750, 150.0
	for name, proof := range map[string]bool{"with resets": true, "without": false} {
		var own sends
		g := gauge{}
		level, now := float64(depth), 1.0
		see := func(calls, lost int) {
			now += 0.25
			for range calls + lost {
				own.add(now-0.1, limiter.Cost{Requests: 1})
			}
			level = min(depth, level+refill*0.25) - float64(calls)
			s := limiter.Sighting{Limit: limit, Remaining: math.Floor(level), HasReset: proof}
			if proof {
				s.Reset = time.Duration((depth - level) / refill * 1e9)
			}
			g.takeSighting(dimRequests, s, &own, now, now, 0)
			g.outgrown()
		}
		for range 8 {
			see(60, 0)
		}
		for range 8 {
			see(40, 20)
		}
		period := 60.0
		if !proof {
			period = 10
		}
		want(t, name+": the period", g.period.period(), period)
	}
}

// Resets of another period than the believed one prove nothing, nor do those of a window,
// nor sightings that are too near to each other.
func TestResetsProveTheirOwnPeriodOnly(t *testing.T) {
	for _, c := range []struct {
		name          string
		drawn, period float64
		proved        bool
	}{
		{"a minute", 20, 60, true},
		{"ten seconds", 20, 10, false},
		{"a window", 20, -60, false},
		{"too near", 4, 60, false},
	} {
		var p slopeProof
		for i := range 6 {
			drawn := float64(i%2) * c.drawn
			reset := 30 + drawn/9000*c.period
			p.addSighting(&limiter.Sighting{Limit: 9000, Remaining: 500 - drawn, HasReset: true, Reset: time.Duration(reset * 1e9)}, 60)
		}
		want(t, c.name, p.proved(), c.proved)
	}
}
