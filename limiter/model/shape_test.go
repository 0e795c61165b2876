package model

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// headers are what a bucket prints, rounded as servers round.
func (p *pail) headers(perMinute float64) limiter.Sighting {
	return limiter.Sighting{
		Dimension: limiter.Requests, Limit: perMinute, Window: time.Minute, Remaining: math.Floor(p.level),
		Reset: time.Duration((p.depth-p.level)/p.refill*1e3) * time.Millisecond, HasReset: true,
	}
}

// Headers tell a window from a bucket, however fast it is used: the sum of a bucket stays, that
// of a window falls.
func TestWindowsDifferFromBuckets(t *testing.T) {
	for _, perSecond := range []float64{2, 6, 9} {
		for seed := range uint64(20) {
			rng := seeded(seed)
			var ofBucket, ofWindow shapeGuess
			p, isWindow := fullPail(10, 600), false
			for now, n := 0.0, 0.0; now < 60; n++ {
				p.takes(now, 1)
				s := p.headers(600)
				if ofBucket.addSighting(s.Remaining+10*s.Reset.Seconds(), s.Reset.Seconds()) {
					t.Fatalf("%v a second: a bucket was taken for a window after %v calls", perSecond, n)
				}
				left := 600 - n - 1
				isWindow = isWindow || ofWindow.addSighting(left+10*(60-now), 60-now)
				now += rng.ExpFloat64() / perSecond
			}
			if !isWindow {
				t.Errorf("%v a second: a window was not found", perSecond)
			}
		}
	}
}

// One odd sighting, or a window that is over in a moment, makes no window.
func TestOddSightingsMakeNoWindow(t *testing.T) {
	var g, short shapeGuess
	for range 50 {
		for range fixedSightings - 1 {
			if g.addSighting(100, 60) {
				t.Fatal("found among odd sightings")
			}
		}
		g.addSighting(600, 60)
	}
	short.addSighting(600, 1)
	for range 50 {
		if short.addSighting(10, 1) {
			t.Fatal("found of a second")
		}
	}
}

// Nothing flows into a window before it ends; then it is whole, and stays so until calls
// leave; and a window that nobody saw for long has begun anew at its own times.
func TestWindowIsWholeWhenItEnds(t *testing.T) {
	w := fixedWindow{}
	w.see(limiter.Sighting{Remaining: 599, Reset: 50 * time.Second}, 10)
	want(t, "level at once", w.levelAt(120, 10), 120)
	want(t, "level before the end", w.levelAt(120, 60), 120)
	want(t, "level after it", w.levelAt(120, 60+2*fixedEdge), 600)
	for _, now := range []float64{30, 60 + 2*fixedEdge, 200, 10_000} {
		x := w
		x.advance(now)
		if ahead := x.ends + fixedEdge - now; ahead <= 0 || ahead > max(50, 60-now+1) {
			t.Errorf("at %v s the window ends in %v s", now, ahead)
		}
		if rest := math.Mod(x.ends-60, 50); math.Abs(rest) > 1e-6 && math.Abs(rest-50) > 1e-6 {
			t.Errorf("at %v s it ends at %v", now, x.ends)
		}
	}
}

// What is left of a window is spread over the rest of it, and never at less than what
// would flow in.
func TestWindowIsSpread(t *testing.T) {
	w := fixedWindow{ends: 60, period: 60, most: 600}
	near(t, "pace", w.rate(30, 300, 1), 10, 0.1)
	near(t, "pace with much left", w.rate(50, 300, 1), 30, 0.1)
	near(t, "pace with nothing left", w.rate(50, 0, 2), 2, 1e-9)
	near(t, "pace once it is over", w.rate(61, 0, 2), 10, 1e-9)
}

// Asking for the level at a later time is what advancing to it says, for buckets with and
// without neighbours and for windows; and asking changes nothing.
func TestLevelAtIsAdvance(t *testing.T) {
	for seed := range uint64(3000) {
		rng := seeded(seed)
		g := gauge{source: limiter.Learned, refill: 20 * rng.Float64(), capacity: 100 * rng.Float64(), at: 100 * rng.Float64()}
		g.level = g.capacity * (2*rng.Float64() - 1)
		if seed%3 > 0 {
			g.others = 5 * rng.Float64()
		}
		if seed%3 > 1 {
			period := 60 * rng.Float64()
			g.shown = &shown{fixed: &fixedWindow{ends: g.at + period*rng.Float64(), period: period, most: g.capacity}}
		}
		until := g.at + 200*rng.Float64() - 20
		before, window := g, fixedWindow{}
		if g.isFixed() {
			window = *g.fixed
		}
		later := until + 0.5*rng.Float64()
		level, then := g.levelAt(until), g.levelAt(later)
		if want(t, "the gauge after it was asked", g, before); g.isFixed() {
			want(t, "its window", *g.fixed, window)
		}
		if !g.isFixed() && level > g.capacity {
			t.Fatalf("a level of %v in a bucket of %v", level, g.capacity)
		}
		g.advance(until)
		near(t, "level", g.level, level, 1e-9)
		if g.isFixed() && later > g.fixed.ends {
			continue // another window has begun
		}
		near(t, "level a moment later", g.levelAt(later), then, 1e-6)
	}
}

// Where one call at a time is let in, they leave as evenly as the bucket refills, with room
// for how much they overtake each other; and none is saved up.
func TestSpacedCallsLeaveEvenly(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	p := fullPail(1, 1)
	now, last := 0.0, -10.0
	for n := 0; n < 100; {
		m.Tick(at(now), true)
		wait, _ := m.Wait(at(now), one)
		if wait > 0 {
			now += max(0.001, wait.Seconds())
			continue
		}
		if gap := now - last; n > 3 && gap < 1 {
			t.Fatalf("call %d leaves %v s after the one before it", n, gap)
		}
		last = now
		sent := at(now)
		k := m.Sent(sent, one, 0)
		p.takes(now, 1)
		now += 0.01
		m.Answered(at(now), limiter.News{Ticket: k, Sent: sent, Cost: one, Present: true, Good: true, Sightings: []limiter.Sighting{p.headers(60)}})
		if n++; n == 50 {
			now += 20 // nobody calls: nothing is saved up by that
		}
	}
	want(t, "one at a time", m.gauges[dimRequests].spacing(dimRequests), true)
	if took := now - 20; took > 1.1*100 {
		t.Errorf("a hundred calls of one a second took %v s", took)
	}
}

// However long nobody calls, one call is saved up where one at a time is let in.
func TestSpacedCallsAreNotSavedUp(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	g := &m.gauges[dimRequests]
	*g = gauge{source: limiter.Seen, refill: 100, capacity: 1, level: 1, shown: &shown{}}
	want(t, "saved up", m.creditAt(1000, 100), 1)
	if g.capacity = 50; m.creditAt(1000, 100) <= 1 {
		t.Error("nothing is saved up where more is let in")
	}
}

// Headers round the remainder down, so it and the coming inflow are up to one less than the
// depth. The depth is remembered, and never underestimated once it was seen.
func TestDepthIsNotUnderestimated(t *testing.T) {
	for _, depth := range []float64{1, 2, 20} {
		var own sends
		var g gauge
		p, rng := fullPail(1, depth), seeded(4)
		for now := 0.0; now < 300; now += 0.2 + rng.ExpFloat64() {
			p.takes(now, 1)
			g.takeSighting(dimRequests, p.headers(60), &own, now, now, 0)
			near(t, "depth", g.capacity, depth, 0.01)
			if g.level < p.level-0.01 || g.level > p.level+1 {
				t.Fatalf("%v are left, and %v are believed to be", p.level, g.level)
			}
		}
	}
}

// A period that lets in too little gives way to the next shorter one, down to the
// shortest, and what was voted for it is void.
func TestPeriodsShorten(t *testing.T) {
	p := periodGuess{found: 86400, candidate: 86400, votes: 2, least: 1, most: 9}
	for _, next := range []float64{3600, 60, 10, 1} {
		want(t, "there is a shorter one", p.shorten(), true)
		want(t, "the guess", p, periodGuess{found: next})
	}
	want(t, "there is a shorter one", p.shorten(), false)
	want(t, "period", p.period(), 1)
	var usual periodGuess
	usual.shorten()
	want(t, "shorter than a minute", usual.period(), 10)
}
