package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// Numbers of a rate that are choices.
const (
	// rateNear is from which share of the goal on the rate climbs slowly: it stays for
	// most of its time close under what was refused, and is refused once a minute.
	rateNear = 0.9

	// rateNearby is the part of the increase that is left there: from rateNear to a
	// little more than the goal is a minute and a quarter.
	rateNearby = 0.05

	// ratePassed is by how much the goal is passed when it is out of date; less is noise.
	ratePassed = 1.01

	// ratePassing is how much faster the rate climbs beyond it, as a share of itself: it
	// doubles in 14 seconds.
	ratePassing = 1.7

	// rateAlike is how near a refused rate is to the goal at least to take its place.
	rateAlike = 0.8

	// rateKept is for how long a goal is kept while lower rates are refused. Longer than
	// a bad minute or two, after which it is what to come back to; while it lasts, a limit
	// that was lowered is run into every ten or twenty seconds.
	rateKept = 4 * time.Minute

	// rateGap is the longest time between two successes in which the rate climbs.
	rateGap = time.Second

	// rateBlind is where an unlimited rate starts that is refused before anything
	// was observed, calls per second: the least that providers say they enforce.
	rateBlind = 1
)

// completeRate is c with the defaults.
func completeRate(c limiter.RateConfig) limiter.RateConfig {
	c.Floor = measure.OrElse(c.Floor, limiter.DefaultRateFloor)
	c.Ceiling = min(limiter.MaxRate, measure.OrElse(c.Ceiling, limiter.MaxRate))
	c.Increase = measure.OrElse(c.Increase, limiter.DefaultRateIncrease)
	if !(c.Decrease > 0 && c.Decrease < 1) {
		c.Decrease = limiter.DefaultRateDecrease
	}
	return c
}

func clamp(c limiter.RateConfig, x float64) float64 { return min(max(x, c.Floor), c.Ceiling) }

// A rate finds how many calls per second a server takes when nobody says: additive
// increase, multiplicative decrease (Chiu and Jain, 1989, show that of the linear rules
// this one lets clients that share a limit arrive at equal shares).
//
//	success               limit + Increase · goal a second; near the goal a
//	                      twentieth of that, beyond it 1.7 · Increase · limit
//	refused (429, 503)    min(limit, observed) × Decrease
//
// The caller filters: news from before the last cooldown is not reported here, and a
// wave of refusals is reported once. The zero value is unlimited, with the defaults.
//
// A limit that is not used grows too. That is harmless, as the next refusal starts
// from what was observed.
type rate struct {
	limit    float64 // calls per second; 0: unlimited
	config   limiter.RateConfig
	goal     float64       // the rate to climb back to; 0: none was refused
	goalAt   time.Time     // when that was refused
	grew     time.Time     // until when the limit has climbed
	directed bool          // a directed refusal was the last news
	answered measure.Meter // while there is no limit
}

// NewRate gives a rate at c.Initial, or without a limit.
func newRate(c limiter.RateConfig) rate {
	r := rate{config: c}
	r.Anchor(c.Initial)
	return r
}

// Limit is how many calls per second may be made, within floor and ceiling. While
// nothing was learned it is the ceiling, or +Inf without one.
func (r *rate) Limit() float64 {
	switch {
	case r.limit > 0:
		return clamp(completeRate(r.config), r.limit)
	case measure.Positive(r.config.Ceiling):
		return r.config.Ceiling
	}
	return math.Inf(1)
}

// Anchor makes an unlimited rate finite, at what was observed and without a decrease.
// A rate that has a limit keeps it.
func (r *rate) Anchor(observed float64) {
	if r.limit > 0 || !measure.Positive(observed) {
		return
	}
	r.put(completeRate(r.config), observed)
}

// Success learns from a call that was answered.
func (r *rate) Success(now time.Time) {
	r.directed = false
	if r.limit <= 0 {
		r.answered.Add(now) // it tells a first decrease where to start, and later ones start from the limit
		return
	}
	r.grow(now, completeRate(r.config))
}

// grow adds what the time since the latest success is worth. It goes by time and not by
// successes: these come the more seldom the lower the rate is, and a rate that was cut to
// next to nothing would crawl for an hour.
func (r *rate) grow(now time.Time, c limiter.RateConfig) {
	if r.grew.IsZero() {
		r.grew = now
	}
	gap := min(rateGap, now.Sub(r.grew))
	if gap <= 0 {
		return
	}
	r.grew = now
	step := c.Increase * r.goal
	switch {
	case r.limit >= ratePassed*r.goal:
		step = ratePassing * c.Increase * r.limit
	case r.limit >= rateNear*r.goal:
		step *= rateNearby
	}
	r.limit = clamp(c, r.limit+step*gap.Seconds())
}

// Rest says that the rate is not made use of before a moment: it does not climb.
func (r *rate) Rest(until time.Time) { r.grew = measure.Later(r.grew, until) }

// Aim says at which rate a refusal came while the rate alone held calls back: there is
// where to climb to. One far lower than that of late does not count at first: it may be
// a bad minute's.
func (r *rate) Aim(now time.Time, perSecond float64) {
	if perSecond >= rateAlike*r.goal || now.Sub(r.goalAt) > rateKept {
		r.goal, r.goalAt = perSecond, now
	}
}

// Refused learns from an answer that says slow down. The decrease starts from the
// limit, or from the observed throughput (calls per second) if that is known, more than
// 0 and lower: a limit nobody had reached is not what was refused.
//
// Directed says that the server named a wait. It decreases once: the next directed
// refusal with no success in between is about the wait, which was too short, and not
// about the rate, which was not used.
func (r *rate) Refused(now time.Time, observed float64, directed bool) {
	if directed && r.directed {
		return
	}
	r.directed = directed
	r.decrease(now, completeRate(r.config), observed)
}

func (r *rate) decrease(now time.Time, c limiter.RateConfig, observed float64) {
	from := r.Limit()
	if measure.Positive(observed) {
		from = min(from, observed)
	}
	if math.IsInf(from, 1) {
		from = measure.OrElse(r.answered.PerSecond(now), rateBlind)
	}
	r.grew = now
	r.put(c, from*c.Decrease)
}

func (r *rate) put(c limiter.RateConfig, x float64) { r.limit = clamp(c, x) }
