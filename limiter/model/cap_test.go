package model

import (
	"math/rand/v2"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// crowdedServer refuses what is more than so many calls at once.
func crowdedServer(rng *rand.Rand, places int, latency float64) func(float64, int) reply {
	return func(_ float64, beside int) reply {
		if beside >= places {
			return reply{kind: isRefused, after: 0.1}
		}
		return reply{kind: isAnswered, after: latency * (0.5 + rng.Float64())}
	}
}

// A cap on calls in flight is found, and kept to: the places are used, hardly anything is
// refused, and what is makes its item wait and not the lane.
func TestCapIsFoundAndKept(t *testing.T) {
	for _, places := range []int{8, 32} {
		w := newLawWorld(limiter.LawConfig{}, 1, crowdedServer(seeded(7), places, 1))
		w.run(200, 1e9)
		before, served := w.refused, len(w.sent)-w.refused
		w.run(600, 1e9)
		served = len(w.sent) - w.refused - served
		if most := 400 * float64(places); float64(served) < 0.85*most {
			t.Errorf("%d places: %d calls in 400 s, of %v", places, served, most)
		}
		if refused := w.refused - before; refused > served/20 {
			t.Errorf("%d places: %d calls of %d were refused", places, refused, served)
		}
	}
}

// A bucket is not taken for a cap for long: calls do not stop at some number in flight.
func TestBucketIsNotTakenForACap(t *testing.T) {
	for seed := range uint64(5) {
		w := newLawWorld(limiter.LawConfig{}, seed, bucketServer(fullPail(10, 50), 2))
		w.run(120, 1e9)
		near(t, "calls a second", w.between(60, 120), 10, 2)
	}
}

// Company explains refusals only where it explains them better than the pace does: of the
// same refusals those that follow company make a cap, those that follow the pace none.
func TestCrowdExplainsWhatFollowsIt(t *testing.T) {
	for _, byCompany := range []bool{true, false} {
		rng := seeded(3)
		var c crowd
		explained := false
		for range 300 {
			k := limiter.Ticket{Beside: uint16(rng.IntN(16)), Pace: 1 + 15*rng.Float32()}
			refused := k.Pace > 12
			if byCompany {
				refused = k.Beside >= 12
			}
			c.book(&k, refused)
			if refused && c.explains(&k, 0, 1, 0.25, 0.01) {
				explained = true
			}
		}
		want(t, "explained by company", explained, byCompany)
	}
}

// A cap lets one call in whenever one ends: where one after the other is refused it is not
// the cap, and it is not believed any more.
func TestCapExplainsNoRow(t *testing.T) {
	var c crowd
	k := limiter.Ticket{Beside: 12, Pace: 5}
	for i := range 300 {
		c.book(&limiter.Ticket{Beside: uint16(i % 16), Pace: 5}, i%16 >= 12)
	}
	want(t, "one refusal explained", c.explains(&k, 0, 1, 0.25, 0.01), true)
	want(t, "a long row explained", c.explains(&k, 0, capRow+1, 0.25, 0.01), false)
	want(t, "a cap is believed", c.cap != nil, false)
}

// A call without others in flight was not refused for company; and while chance explains as
// many refusals, no cap is found.
func TestNoCapWithoutCompanyOrNeed(t *testing.T) {
	for _, x := range []struct {
		beside uint16
		usual  float64
	}{{0, 0}, {14, 0.4}} {
		var c crowd
		for i := range 300 {
			k := limiter.Ticket{Beside: uint16(i % 16), Pace: 5}
			c.book(&k, k.Beside >= 12)
		}
		if c.explains(&limiter.Ticket{Beside: x.beside, Pace: 5}, 0, 1, 0.25, x.usual) || c.cap != nil {
			t.Errorf("%+v: a cap of %v", x, c.cap)
		}
	}
}

// A refusal at the edge lowers a cap, never below one place, and one well inside is not
// the cap's; what is let in at the edge raises it, by a bounded step.
func TestCapMovesAtItsEdge(t *testing.T) {
	c := callCap{most: 40}
	if c.refused(&limiter.Ticket{Beside: 10}, 1) || c.most != 40 {
		t.Errorf("a call beside 10 was refused for a cap of 40, which is now %v", c.most)
	}
	for range 500 {
		if before := c.most; !c.refused(&limiter.Ticket{Number: c.from, Beside: uint16(before)}, c.from+1) || c.most > before {
			t.Fatalf("a refusal at the edge: %v after %v", c.most, before)
		}
	}
	want(t, "places", c.places(), 1)
	for range 500 {
		before := c.most
		if c.raise(0.1, c.most); c.most <= before || c.most > before*(1+capMost)+1e-9 {
			t.Fatalf("let in at the edge: %v after %v", c.most, before)
		}
	}
	if c.places() < 2 {
		t.Error("a cap that is never met does not rise")
	}
}

// A full flight that meets a cap lowers it a little, and not for each of its calls: all of them had
// left before the first one was refused. A refusal with fewer in flight shows a lower cap.
func TestAFlightLowersACapOnce(t *testing.T) {
	c := callCap{most: 2000}
	for i := range uint64(400) {
		c.refused(&limiter.Ticket{Number: 600 + i, Beside: 1990}, 1000)
	}
	want(t, "calls in flight after one flight", c.places(), 1809)
	c.refused(&limiter.Ticket{Number: 999, Beside: 1700}, 1000)
	want(t, "calls in flight after one beside fewer", c.places(), 1700)
	c.refused(&limiter.Ticket{Number: 1000, Beside: 1699}, 1400)
	want(t, "calls in flight after the next flight", c.places(), 1538)
}

// The more calls were let in at the edge since the latest refusal there, the faster a cap
// rises.
func TestCapRisesFasterWhenSure(t *testing.T) {
	c := callCap{most: 40}
	c.raise(0.1, c.most)
	first := c.most - 40
	for range 200 {
		c.raise(0.1, c.most)
	}
	before := c.most
	c.raise(0.1, c.most)
	if later := (c.most - before) / before * 40; later <= first {
		t.Errorf("it rose by %v at first, and by %v when sure", first, later)
	}
}
