package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// Numbers of a rate that are choices.
const (
	// rateNear is the share of the goal from which on the rate climbs slowly. It stays for most
	// of its time close under the refused rate, and is refused once a minute.
	rateNear = 0.9

	// rateNearby is the part of the increase that is left there: from rateNear to a little more
	// than the goal is a minute and a quarter.
	rateNearby = 0.05

	// ratePassed is the multiple of the goal at which the goal is out of date; less is noise.
	ratePassed = 1.01

	// ratePassing multiplies the increase beyond the goal, which is then a share of the rate
	// itself and not of the goal. The rate doubles in 14 seconds.
	ratePassing = 1.7

	// rateAlike is the least share of the goal at which a refused rate takes its place.
	rateAlike = 0.8

	// rateKept is the time for which a goal is kept while lower rates are refused. It is longer
	// than a bad minute or two, after which the rate comes back to that goal. While it lasts,
	// every ten or twenty seconds calls run into a limit that was lowered.
	rateKept = 4 * time.Minute

	// rateGap is the longest time between two successes in which the rate climbs.
	rateGap = time.Second

	// rateBlind is the start, in calls per second, of an unlimited rate that is refused before
	// anything was observed: the least that providers say they enforce.
	rateBlind = 1
)

// completeRate returns c with the defaults.
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

// A rate finds how many calls per second a server takes when nobody says: additive increase,
// multiplicative decrease. Chiu and Jain (1989) show that, of the linear rules, this one leads
// clients that share a limit to equal shares.
//
//	success               limit + Increase · goal a second; near the goal a
//	                      twentieth of that, beyond it 1.7 · Increase · limit
//	refused (429, 503)    min(limit, observed) × Decrease
//
// The caller filters: it does not report news from before the last cooldown, and it reports a
// wave of refusals once. The zero value is unlimited, with the defaults.
//
// A limit that is not used grows too. That is harmless, as the next refusal starts from the
// observed rate.
type rate struct {
	limit    float64 // calls per second; 0: unlimited
	config   limiter.RateConfig
	goal     float64       // the rate to climb back to; 0: none was refused
	goalAt   time.Time     // when that was refused
	grew     time.Time     // until when the limit has climbed
	directed bool          // a directed refusal was the last news
	answered measure.Meter // while there is no limit
}

// NewRate returns a rate at c.Initial, or without a limit.
func newRate(c limiter.RateConfig) rate {
	r := rate{config: c}
	r.Anchor(c.Initial)
	return r
}

// Limit returns the calls per second that may be made, within floor and ceiling. While nothing
// was learned it is the ceiling, or +Inf without one.
func (r *rate) Limit() float64 {
	switch {
	case r.limit > 0:
		return clamp(completeRate(r.config), r.limit)
	case measure.Positive(r.config.Ceiling):
		return r.config.Ceiling
	}
	return math.Inf(1)
}

// Anchor makes an unlimited rate finite, at the observed rate and without a decrease. A rate
// that has a limit keeps it.
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
		r.answered.Add(now) // it gives the start of a first decrease; later ones start from the limit
		return
	}
	r.grow(now, completeRate(r.config))
}

// grow adds the climb for the time since the latest success. It goes by time and not by
// successes: these get rarer as the rate falls, and a rate that was cut to next to nothing
// would crawl for an hour.
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

// Rest notes that the rate is not used before a moment: it does not climb.
func (r *rate) Rest(until time.Time) { r.grew = measure.Later(r.grew, until) }

// Aim sets the goal: the rate at which a refusal came while the rate alone held calls back. A
// rate far lower than the present goal does not count at first: it may come from a bad minute.
func (r *rate) Aim(now time.Time, perSecond float64) {
	if perSecond >= rateAlike*r.goal || now.Sub(r.goalAt) > rateKept {
		r.goal, r.goalAt = perSecond, now
	}
}

// Refused learns from an answer that says slow down. The decrease starts from the limit, or
// from the observed throughput (calls per second) if that is known, more than 0 and lower. A
// limit that calls had not reached was not refused.
//
// directed says that the server named a wait. Such a refusal decreases once. The next directed
// refusal with no success in between is about the wait, which was too short, and not about the
// rate, which was not used.
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
