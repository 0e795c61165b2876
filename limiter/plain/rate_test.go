package plain

import (
	"math"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// A rate of which nothing is known is unlimited, and successes leave it so.
func TestRateStartsUnlimited(t *testing.T) {
	var zero rate
	for _, r := range []rate{zero, newRate(limiter.RateConfig{})} {
		for range 100 {
			r.Success(noon)
		}
		want(t, "limit", r.Limit(), math.Inf(1))
	}
}

// The first refusal of an unlimited rate starts from what was observed.
func TestRateStartsFromTheObserved(t *testing.T) {
	r := newRate(limiter.RateConfig{})
	r.Refused(noon, 10, false)
	near(t, "limit", r.Limit(), 7, 1e-12)
}

// With nothing observed it starts from the successes that it heard of, and without any from one
// call a second.
func TestRateStartsBlind(t *testing.T) {
	r := newRate(limiter.RateConfig{})
	for i := range 100 {
		r.Success(at(float64(i) * 0.1))
	}
	r.Refused(at(10), 0, false)
	near(t, "limit", r.Limit(), 7, 0.5)
	r = newRate(limiter.RateConfig{})
	r.Refused(noon, math.NaN(), false)
	near(t, "limit", r.Limit(), 0.7, 1e-12)
}

// A decrease starts from the lower of limit and observed.
func TestRateDecreasesFromTheLower(t *testing.T) {
	for _, c := range []struct{ observed, limit float64 }{
		{0, 70}, {50, 35}, {200, 70}, {-5, 70}, {math.NaN(), 70}, {math.Inf(1), 70},
	} {
		r := newRate(limiter.RateConfig{Initial: 100})
		r.Refused(noon, c.observed, false)
		near(t, "limit", r.Limit(), c.limit, 1e-9)
	}
}

// Each second adds three hundredths of the rate that was refused, up to nine tenths of it,
// and then a twentieth of that; beyond it the rate doubles in 14 seconds. How many
// successes there were in it does not matter.
func TestRateIncreasesAdditively(t *testing.T) {
	for _, perSecond := range []int{1, 10} {
		r := newRate(limiter.RateConfig{Initial: 100})
		r.Aim(noon, 100)
		r.Refused(noon, 0, false)
		second := func(i int) float64 {
			for k := range perSecond {
				r.Success(at(float64(i) + float64(k+1)/float64(perSecond)))
			}
			return r.Limit()
		}
		for i := range 6 {
			near(t, "far from the goal", second(i), 70+3*float64(i+1), 1e-6)
		}
		i := 6
		for second(i) < 90 {
			i++
		}
		for began := i; r.Limit() < 100; i++ {
			before := r.Limit()
			near(t, "near the goal", second(i+1), before+0.15, 1e-6)
			if i > began+80 {
				t.Fatal("it takes for ever")
			}
		}
		near(t, "seconds to the goal", float64(i), 70, 5)
		for ; r.Limit() < 102; i++ {
			second(i + 1)
		}
		before := r.Limit()
		for range 14 {
			i++
			second(i + 1)
		}
		near(t, "beyond it", r.Limit()/before, 2, 0.15)
	}
}

// A rate that was cut to next to nothing is back at nine tenths of what was refused of
// late within half a minute, though its successes are few at first.
func TestRateDoesNotCrawl(t *testing.T) {
	r := newRate(limiter.RateConfig{Initial: 20})
	r.Aim(noon, 20)
	for range 20 {
		r.Refused(noon, 0.1, false)
	}
	r.Aim(noon, 0.1)
	near(t, "it is on the floor", r.Limit(), 0.05, 0)
	now, calls := 0.0, 0
	for ; r.Limit() < 18 && calls < 1000; calls++ {
		now += min(1, 1/r.Limit())
		r.Success(at(now))
	}
	near(t, "seconds", now, 30, 2)
}

// The rate to climb back to is that of the latest refusal, but for one that is far lower:
// that counts once the other is older than four minutes.
func TestRateKeepsItsGoal(t *testing.T) {
	r := newRate(limiter.RateConfig{Initial: 20})
	for _, c := range []struct{ at, refused, goal float64 }{
		{0, 20, 20}, {10, 17, 17}, {20, 10, 17}, {240, 10, 17}, {251, 10, 10}, {252, 30, 30},
	} {
		r.Aim(at(c.at), c.refused)
		near(t, "goal", r.goal, c.goal, 0)
	}
}

// Time in which the rate is not made use of adds nothing.
func TestRateRests(t *testing.T) {
	r := newRate(limiter.RateConfig{Initial: 10})
	r.Rest(at(100))
	for i := range 100 {
		r.Success(at(float64(i + 1)))
	}
	near(t, "resting", r.Limit(), 10, 0)
	r.Success(at(101))
	near(t, "a second later", r.Limit(), 10*(1+1.7*0.03), 1e-9)
}

// Refusals that name a wait decrease once until a success comes between them; others
// each time.
func TestRateDirectedRefusalDecreasesOnce(t *testing.T) {
	r := newRate(limiter.RateConfig{Initial: 100})
	r.Refused(noon, 0, true)
	near(t, "first", r.Limit(), 70, 1e-9)
	r.Refused(at(1), 1, true)
	near(t, "second, nothing sent between", r.Limit(), 70, 1e-9)
	r.Success(noon)
	r.Refused(at(3), 0, true)
	near(t, "after a success", r.Limit(), 49, 1e-9)
	r.Refused(at(4), 0, false)
	near(t, "undirected", r.Limit(), 34.3, 1e-9)
	r.Refused(at(5), 0, false)
	near(t, "undirected again", r.Limit(), 24.01, 1e-9)
}

// The limit stays within floor and ceiling, whatever happens; the ceiling is stronger.
func TestRateBounds(t *testing.T) {
	r := newRate(limiter.RateConfig{Initial: 10, Ceiling: 12})
	for i := range 1000 {
		r.Success(at(float64(i)))
	}
	near(t, "ceiling", r.Limit(), 12, 0)
	for range 1000 {
		r.Refused(noon, 0, false)
	}
	near(t, "default floor", r.Limit(), 0.05, 0)
	r = newRate(limiter.RateConfig{Initial: 10, Floor: 5, Ceiling: 3})
	near(t, "floor over ceiling", r.Limit(), 3, 0)
	r = newRate(limiter.RateConfig{Initial: 1e300})
	near(t, "no ceiling", r.Limit(), limiter.MaxRate, 0)
	r = newRate(limiter.RateConfig{Ceiling: 8})
	near(t, "unlimited under a ceiling", r.Limit(), 8, 0)
	r.Refused(noon, 0, false)
	near(t, "decrease from the ceiling", r.Limit(), 5.6, 1e-9)
}

// Anchor makes an unlimited rate finite and leaves a finite one alone.
func TestRateAnchor(t *testing.T) {
	r := newRate(limiter.RateConfig{})
	r.Anchor(0)
	want(t, "nothing observed", r.Limit(), math.Inf(1))
	r.Anchor(20)
	near(t, "anchored", r.Limit(), 20, 0)
	r.Success(noon)
	r.Success(at(1))
	near(t, "grows from there", r.Limit(), 21.02, 1e-9)
	r.Anchor(1)
	near(t, "only once", r.Limit(), 21.02, 1e-9)
}

// Settings that cannot be meant have their defaults.
func TestRateConfigDefaults(t *testing.T) {
	bad := math.NaN()
	got := completeRate(limiter.RateConfig{Floor: bad, Ceiling: -1, Increase: math.Inf(1), Decrease: 1})
	want(t, "config", got, limiter.RateConfig{Floor: 0.05, Ceiling: limiter.MaxRate, Increase: 0.03, Decrease: 0.7})
}

// Against a server that takes ten a second, the rate finds it from either side and
// hardly a call is refused.
func TestRateFindsTheLimit(t *testing.T) {
	for _, initial := range []float64{0.5, 10, 200} {
		r := newRate(limiter.RateConfig{Initial: initial})
		server := newBucket(600, 2, noon)
		var p pacer
		now, calls, refused := noon, 0, 0
		for now.Before(at(600)) {
			now = now.Add(p.Wait(now, r.Limit()))
			p.Take(now, r.Limit())
			late := now.After(at(300))
			if late {
				calls++
			}
			if server.take(now, 1) {
				r.Success(now)
				continue
			}
			if late {
				refused++
			}
			r.Aim(now, r.Limit())
			r.Refused(now, 0, false)
		}
		near(t, "calls a second", float64(calls)/300, 9.5, 0.5)
		near(t, "share refused", float64(refused)/float64(calls), 0.002, 0.002)
	}
}
