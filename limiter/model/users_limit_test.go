package model

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// No provider lifts the user's limit, whatever it lets in, and whatever its headers say: at random both change in the midst, and
// the law is restored from its memory. The calls let in are those that a bucket of the user's limit lets in, or fewer.
func TestNoProviderLiftsTheUsersLimit(t *testing.T) {
	t.Run("requests", func(t *testing.T) {
		keepsToStrange(t, limiter.Requests, 1, func(perMinute float64) limiter.Limits { return limiter.Limits{RPM: perMinute} })
	})
	t.Run("tokens", func(t *testing.T) {
		keepsToStrange(t, limiter.Tokens, 100, func(perMinute float64) limiter.Limits { return limiter.Limits{TPM: 100 * perMinute} })
	})
}

// keepsToStrange asks strange providers under limits of so many calls a minute. A call draws so many units of dimension d.
func keepsToStrange(t *testing.T, d limiter.Dimension, units float64, limits func(perMinute float64) limiter.Limits) {
	for seed := range uint64(race.Fewer(100)) {
		w := newStrange(seed)
		w.of, w.units = d, units
		l := limits(60 * w.perSecond)
		l.Burst = time.Duration(w.pick(0, 0, 1, 10, 60) * 1e9)
		m := newModel(limiter.LawConfig{Limits: l}, noon)
		r := newRig(m, w.answers)
		r.cost = limiter.Cost{Requests: 1, Input: 100}
		depth := l.Capacity(d) / units
		level, let := depth, 0
		for range 12 {
			for range 200 + w.rng.IntN(8000) { // ticks
				r.run(tick)
				level = min(depth, level+w.perSecond*tick.Seconds()) - float64(r.sent-r.refused-let)
				if let = r.sent - r.refused; level < -1 {
					t.Fatalf("seed %d: told %+v, %v calls are let in too many by %v, by a limit that is %v", seed, l, -level, r.now.Sub(noon), m.gauges[index(d)].source)
				}
			}
			w.change()
			if w.rng.IntN(6) == 0 {
				next := newModel(limiter.LawConfig{Limits: l}, r.now)
				must.Do(t, next.Restore(r.now, m.Save(r.now)))
				m, r.law, r.flying = next, next, nil
			}
		}
	}
}

// A successor that must take its limits to be empty finds nothing saved up under the user's limit, though the one before it had
// saved up all that there may be. A debt stays.
func TestSuccessorFindsNoSavingsOfTheUser(t *testing.T) {
	l := limiter.Limits{RPM: 60 * usersRate, Burst: 10 * time.Second}
	for level, want := range map[float64]float64{9.95 * usersRate: 0, -30: -30} {
		before := newModel(limiter.LawConfig{Limits: l}, noon)
		r := newRig(before, neverLess(free))
		r.runUntil(time.Minute, func() bool { return before.gauges[dimRequests].source == limiter.Seen })
		before.users[dimRequests] = userBucket{level, before.seconds(r.now)}
		m := newModel(limiter.LawConfig{Limits: l}, r.now)
		must.Do(t, m.Restore(r.now, before.Save(r.now).Empty()))
		near(t, "level", m.userLevel(dimRequests, 0), want, 1e-6)
		next := newRig(m, neverLess(free))
		next.now = r.now
		if next.run(3 * time.Second); next.sent > 3*usersRate+1 {
			t.Errorf("%v were left: %d calls in 3 s", level, next.sent)
		}
	}
}

// A strange provider lets in what its gate of the moment lets in, and says what its headers of the moment say.
type strange struct {
	rng       *rand.Rand
	perSecond float64           // the user's limit
	of        limiter.Dimension // of its headers,
	units     float64           // and how many a call draws
	gate      gate
	says      func() []limiter.Sighting
}

func newStrange(seed uint64) *strange {
	w := &strange{rng: rand.New(rand.NewPCG(seed, 7))}
	w.perSecond = w.pick(0.5, 2, 5, 20)
	w.gate, w.says = w.newGate(), w.newHeaders()
	return w
}

func (w *strange) pick(xs ...float64) float64 { return xs[w.rng.IntN(len(xs))] }

func (w *strange) answers(now time.Time, beside int) answer {
	a := w.gate(now, beside)
	a.sightings = w.says()
	return a
}

func (w *strange) change() {
	if w.rng.IntN(2) == 0 {
		w.gate = w.newGate()
	}
	if w.rng.IntN(2) == 0 {
		w.says = w.newHeaders()
	}
}

func (w *strange) newGate() gate {
	switch w.rng.IntN(5) {
	case 0:
		return free
	case 1:
		return shut
	case 2:
		return chanceGate(0.1, w.rng)
	case 3:
		return windowGate(math.Ceil(60 * w.perSecond * w.pick(0.3, 0.9, 1, 1.5, 4)))
	}
	rate := w.perSecond * w.pick(0.3, 0.9, 1, 1.5, 4)
	return bucketGate(rate, rate*w.pick(0.5, 1, 10, 60))
}

// newHeaders returns headers of a limit within the user's or beyond it, of which always all but one is left, or half, or any
// number.
func (w *strange) newHeaders() func() []limiter.Sighting {
	if w.rng.IntN(4) == 0 {
		return func() []limiter.Sighting { return nil }
	}
	limit := math.Ceil(60 * w.perSecond * w.pick(0.3, 0.8, 1, 1.3, 4, 100))
	window := time.Duration(w.pick(0, 0, 1, 60, 3600, 86400) * 1e9)
	reset := time.Duration(w.pick(0, 0.25, 1, 30) * 1e9)
	kind := w.rng.IntN(3)
	return func() []limiter.Sighting {
		left := []float64{limit - 1, math.Floor(limit / 2), math.Floor(limit * w.rng.Float64())}[kind]
		return []limiter.Sighting{{
			Dimension: w.of, Limit: w.units * limit, Window: window, Remaining: w.units * left, Reset: reset, HasReset: reset > 0,
		}}
	}
}
