package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A bucket that holds much less than its limit, and whose headers do not say when it is
// full, is used all the same: that no more is left time and again than at most is no
// neighbour's doing, it is full.
func TestSmallBucketWithoutResetIsUsed(t *testing.T) {
	for _, c := range []struct{ perSecond, depth float64 }{{1, 1}, {5, 1}, {5, 5}, {20, 1}, {20, 20}, {20, 200}, {20, 1200}} {
		p, rng := fullPail(c.perSecond, c.depth), seeded(7)
		w := newLawWorld(limiter.LawConfig{}, 1, func(t float64, _ int) (r reply) {
			r.after = 0.2 + 0.6*rng.Float64()
			if !p.takes(t, 1) {
				r.kind, r.after = isRefused, 0.1
			}
			seen := p.headers(60 * c.perSecond)
			seen.HasReset, seen.Reset = false, 0
			r.news.Sightings = []limiter.Sighting{seen}
			return r
		})
		w.run(300, 1e9)
		before := w.refused
		w.run(600, 1e9)
		if flow := w.between(300, 600); flow < 0.75*c.perSecond || flow > 1.1*c.perSecond {
			t.Errorf("%+v: %v calls a second; %v", c, flow, w.law.View(at(600), one))
		}
		if n := w.refused - before; float64(n) > 0.1*300*c.perSecond {
			t.Errorf("%+v: %d refusals in five minutes", c, n)
		}
	}
}

// A header without a reset, after many with one, does not make the bucket as small as it was left at first.
func TestSightingsWithAResetSayHowMuchIsSavedUp(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	left := 34.0
	for i := range 9 {
		n := leave(m, at(float64(i)), one)
		s := limiter.Sighting{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Remaining: left}
		if s.HasReset = i < 8; s.HasReset {
			s.Reset = time.Duration((600 - left) / 10 * float64(time.Second))
		}
		n.Good, n.Sightings = true, []limiter.Sighting{s}
		m.Answered(at(float64(i)+0.1), n)
		left += 4 // others draw six of ten
	}
	near(t, "capacity", m.gauges[dimRequests].capacity, 600, 1)
}

// A neighbour who draws on a bucket without a reset is still seen: he gets what he takes.
func TestNeighbourWithoutResetIsSeen(t *testing.T) {
	p, rng, last := fullPail(10, 60), seeded(7), 0.0
	w := newLawWorld(limiter.LawConfig{}, 1, func(t float64, _ int) (r reply) {
		for ; last < t; last += 0.2 { // five a second
			p.takes(last, 1)
		}
		r.after = 0.2 + 0.6*rng.Float64()
		if !p.takes(t, 1) {
			r.kind, r.after = isRefused, 0.1
		}
		seen := p.headers(600)
		seen.HasReset, seen.Reset = false, 0
		r.news.Sightings = []limiter.Sighting{seen}
		return r
	})
	w.run(120, 1e9)
	before := w.refused
	w.run(420, 1e9)
	if flow := w.between(120, 420); flow < 3.5 || flow > 6.5 {
		t.Errorf("%v calls a second, and five are left of ten", flow)
	}
	if n := w.refused - before; n > 60 {
		t.Errorf("%d refusals in five minutes", n)
	}
}
