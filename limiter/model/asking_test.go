package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// ask asks a law all that can be asked of it, at random moments of a stretch of time.
func ask(law limiter.Law, rng *rand.Rand, from, to time.Time) {
	if to.Before(from) {
		return
	}
	moments := []time.Time{from, to}
	for range rng.IntN(6) {
		moments = append(moments, from.Add(time.Duration(rng.Int64N(int64(to.Sub(from))+1))))
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, now := range moments {
		c := limiter.Cost{Requests: 1, Input: float64(rng.IntN(3000))}
		for range 1 + rng.IntN(3) {
			law.Wait(now, c)
			law.ProbeWait(now, one)
			law.Window(now)
			viewOf(law, now)
			law.View(now, c)
		}
	}
}

// randomLaw is a law of any kind, with or without limits and a first guess.
func randomLaw(rng *rand.Rand) limiter.LawConfig {
	c := limiter.LawConfig{}
	if rng.IntN(5) == 0 {
		c.Law = limiter.Plain
	}
	c.Local = c.Law == limiter.Model && rng.IntN(8) == 0
	if rng.IntN(3) == 0 {
		c.Limits.RPM = []float64{20, 600, 6000}[rng.IntN(3)]
	}
	if rng.IntN(4) == 0 {
		c.Limits.TPM = 60_000
	}
	if rng.IntN(4) == 0 {
		c.Rate.Initial = 1 + 20*rng.Float64()
	}
	return c
}

// randomServer refuses for want of level, of places, by chance, while it is down; or not.
// It shows headers, or names waits, or is silent; and some calls break, or never leave.
func randomServer(rng *rand.Rand) func(float64, int) reply {
	var (
		p       = fullPail(0.5+20*rng.Float64(), 1+60*rng.Float64()*float64(rng.IntN(2)))
		places  = []int{1e9, 1e9, 4, 16}[rng.IntN(4)]
		share   = []float64{0, 0, 0.05, 0.3}[rng.IntN(4)]
		broken  = []float64{0, 0.05, 0.4}[rng.IntN(3)]
		down    = 40 * rng.Float64()
		up      = down + 30*rng.Float64()*float64(rng.IntN(2))
		latency = 0.05 + 3*rng.Float64()
		headers = rng.IntN(2) == 0
		busy    = rng.IntN(3) == 0
	)
	return func(t float64, beside int) (r reply) {
		r.after = latency * (0.5 + rng.Float64())
		switch x := rng.Float64(); {
		case t > down && t < up, beside >= places, x < share, !p.takes(t, 1):
			r.kind, r.after = isRefused, 0.3*rng.Float64()
			r.news.Overloaded = busy
			r.news.Directed, r.news.RetryAfter = rng.IntN(4) == 0, time.Duration(rng.IntN(3)-1)*time.Second
			r.news.Slow = rng.IntN(50) == 0
		case rng.Float64() < broken:
			r.kind = []kind{isFailed, isVanished}[rng.IntN(2)]
			r.news.Timeout, r.news.Unsent = rng.IntN(2) == 0, rng.IntN(2) == 0
		case rng.IntN(2) == 0:
			r.news.Measured, r.news.Actual = true, limiter.Cost{Requests: 1, Input: float64(rng.IntN(3000)), Output: 10}
		}
		if headers && r.kind <= isRefused {
			r.news.Sightings = []limiter.Sighting{p.headers(60 * p.refill)}
		}
		return r
	}
}

// randomWorld is the world of a seed.
func randomWorld(seed uint64) *lawWorld {
	rng := seeded(seed)
	w := newLawWorld(randomLaw(rng), seed, randomServer(rng))
	w.every = []float64{0, 0, 0.3, 8}[rng.IntN(4)]
	w.cost = func() limiter.Cost { return limiter.Cost{Requests: 1, Input: float64(rng.IntN(3000))} }
	return w
}

// Asking changes nothing: a law that is asked again and again, at moments that the other is
// not, lets the same calls leave at the same moments.
func TestAskingChangesNothing(t *testing.T) {
	calls, pairs := 0, 2000
	if race.Enabled { // each pair is asked ten thousand times
		pairs = 40
	}
	for seed := range uint64(pairs) {
		alone, watched := randomWorld(seed), randomWorld(seed)
		rng := seeded(seed + 1)
		watched.watch = func(from, to time.Time) { ask(watched.law, rng, from, to) }
		for _, w := range []*lawWorld{alone, watched} {
			w.run(90, 200)
		}
		if !slices.Equal(alone.sent, watched.sent) || alone.now != watched.now || alone.refused != watched.refused {
			t.Fatalf("seed %d: %s", seed, firstDifference(alone.sent, watched.sent))
		}
		calls += len(alone.sent)
	}
	if calls < 50*pairs {
		t.Errorf("only %d calls left in all", calls)
	}
}

func firstDifference(a, b []float64) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("call %d left at %v, and at %v where the law was asked", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d calls left, and %d where the law was asked", len(a), len(b))
}

// Whatever befalls a law, what it answers can be meant; and a call that may not leave now
// may leave in the end.
func TestAnswersCanBeMeant(t *testing.T) {
	for seed := range uint64(400) {
		w := randomWorld(seed)
		for until := 5.0; until < 90 && !t.Failed(); until += 5 {
			w.run(until, 1000)
			isSane(t, w.law, w.now)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A watched run makes as many calls in its first second as an unwatched one: what is asked
// ten thousand times does not let the search grow.
func TestWatchingSpeedsNothingUp(t *testing.T) {
	count := func(watch bool) int {
		w := newLawWorld(limiter.LawConfig{}, 1, func(float64, int) reply { return reply{after: 1} })
		if watch {
			w.watch = func(from, to time.Time) {
				for now := from; now.Before(to); now = now.Add(100 * time.Microsecond) {
					w.law.Wait(now, one)
					viewOf(w.law, now)
				}
			}
		}
		w.run(1, math.MaxInt)
		return len(w.sent)
	}
	if alone, watched := count(false), count(true); alone != watched || alone < 2 {
		t.Errorf("%d calls in the first second, and %d when watched", alone, watched)
	}
}
