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

// completeRate returns c with its default for each field that is 0 or cannot be meant.
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
	limit      float64 // calls per second; 0: unlimited
	config     limiter.RateConfig
	goal       float64       // the rate to climb back to; 0: none was refused
	goalAt     time.Time     // when that was refused
	grownUntil time.Time     // until when the limit has climbed
	directed   bool          // a directed refusal was the last news
	answered   measure.Meter // while there is no limit
}

// newRate returns a rate at c.Initial, or without a limit.
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
	r.set(completeRate(r.config), observed)
}

// Success raises the limit after a call that was answered. Without a limit it only counts the
// answers.
func (r *rate) Success(now time.Time) {
	r.directed = false
	if r.limit <= 0 {
		r.answered.Add(now) // it gives the start of a first decrease; later ones start from the limit
		return
	}
	r.grow(now, completeRate(r.config))
}

// grow raises the limit for the time since the latest success. It goes by time and not by
// successes, which get rarer as the rate falls. Otherwise a rate that was cut to next to nothing
// would crawl for an hour.
func (r *rate) grow(now time.Time, c limiter.RateConfig) {
	if r.grownUntil.IsZero() {
		r.grownUntil = now
	}
	gap := min(rateGap, now.Sub(r.grownUntil))
	if gap <= 0 {
		return
	}
	r.grownUntil = now
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
func (r *rate) Rest(until time.Time) { r.grownUntil = measure.Later(r.grownUntil, until) }

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
// directed says that the server named a wait. Such a refusal decreases the limit once. The next one
// with no success in between does not: the wait was too short, and the rate was not used.
func (r *rate) Refused(now time.Time, observed float64, directed bool) {
	if directed && r.directed {
		return
	}
	r.directed = directed
	r.decrease(now, completeRate(r.config), observed)
}

// decrease cuts the limit by its factor. It starts from the observed rate if that is lower than the
// limit. Without either, it starts from the answers per second.
func (r *rate) decrease(now time.Time, c limiter.RateConfig, observed float64) {
	from := r.Limit()
	if measure.Positive(observed) {
		from = min(from, observed)
	}
	if math.IsInf(from, 1) {
		from = measure.OrElse(r.answered.PerSecond(now), rateBlind)
	}
	r.grownUntil = now
	r.set(c, from*c.Decrease)
}

func (r *rate) set(c limiter.RateConfig, x float64) { r.limit = clamp(c, x) }

// completeRamp returns c with the defaults.
func completeRamp(c limiter.RampConfig) limiter.RampConfig {
	c.Initial = max(limiter.MinRampRate, measure.OrElse(c.Initial, limiter.DefaultRampInitial))
	c.Target = max(limiter.MinRampRate, measure.OrElse(c.Target, limiter.DefaultRampTarget))
	c.Duration = measure.OrElseDuration(c.Duration, limiter.DefaultRampDuration)
	return c
}

// fastest returns the highest rate of a complete shape.
func fastest(c limiter.RampConfig) float64 { return max(c.Initial, c.Target) }

// A ramp is a graduated recovery. After a cooldown it lets calls through at a rate that climbs
// in a straight line. After its end it is out of the way.
//
//	+Inf            ┌──────   no limiting outside
//	Target        ／│
//	            ／  │         credit: the area under the line since the last
//	          ／    │         call, at most 1; a call costs 1
//	Initial ／      │
//	       start    start + Duration
//
// The credit is the exact integral of the rate, so calls per span do not depend on how often
// one looks or how many wait. The end is exact: from that instant on nothing is limited and
// nothing is owed. The zero value is an idle ramp with the default shape.
type ramp struct {
	begun  bool
	config limiter.RampConfig // of the next Start
	shape  limiter.RampConfig // of the present ramp, complete
	start  time.Time
	last   time.Time // start ≤ last
	credit float64   // 0 ≤ credit ≤ 1, as of last
}

// newRamp returns an idle ramp.
func newRamp(c limiter.RampConfig) ramp { return ramp{config: c} }

// Start begins a ramp at now, whatever was before. One call may leave at once.
func (r *ramp) Start(now time.Time) { r.StartAs(now, r.config) }

// StartAs begins a ramp of another shape, for this once.
func (r *ramp) StartAs(now time.Time, c limiter.RampConfig) {
	r.shape, r.begun = completeRamp(c), true
	r.start, r.last, r.credit = now, now, 1
}

// Restore continues, with the shape of newRamp, a ramp that another process began at start. In
// the middle it continues where it would be by now, with one call's credit and no more. After
// its end it is at full speed. If start has yet to come, it begins from the beginning.
func (r *ramp) Restore(start, now time.Time) {
	r.Start(start)
	if start.After(now) {
		r.start = now
	}
	r.last = now
}

// Stop ends the ramp.
func (r *ramp) Stop() { r.begun = false }

// Started returns when the ramp began, and whether there is one that was not stopped. That
// stays true after its end. ramp.Restore takes the start.
func (r *ramp) Started() (time.Time, bool) {
	if !r.begun {
		return time.Time{}, false
	}
	return r.start, true
}

// Ends returns when limiting stops, the zero time if no ramp began.
func (r *ramp) Ends() time.Time {
	if !r.begun {
		return time.Time{}
	}
	return r.start.Add(r.shape.Duration)
}

// Active reports whether the ramp limits at now: from its start, and before its end.
func (r *ramp) Active(now time.Time) bool {
	return r.begun && measure.Later(r.last, now).Before(r.Ends())
}

// Rate returns the calls per second that the ramp allows at now, +Inf when not active.
func (r *ramp) Rate(now time.Time) float64 {
	if !r.Active(now) {
		return math.Inf(1)
	}
	return r.rateAt(r.sinceStart(now))
}

// Wait returns the time until a call may leave: 0 if now, and never past the end.
func (r *ramp) Wait(now time.Time) time.Duration {
	if !r.Active(now) {
		return 0
	}
	untilEnd := r.Ends().Sub(measure.Later(r.last, now))
	return min(r.timeFor(1-r.creditAt(now), r.sinceStart(now)), untilEnd)
}

// Take lets one call through if it may leave now, and reports whether it did.
func (r *ramp) Take(now time.Time) bool {
	if r.Wait(now) > 0 {
		return false
	}
	if r.Active(now) {
		r.credit = max(0, r.creditAt(now)-1)
		r.last = measure.Later(r.last, now)
	}
	return true
}

func (r *ramp) sinceStart(now time.Time) float64 {
	return measure.Elapsed(r.start, measure.Later(r.last, now))
}

// slope returns the change of the rate per second.
func (r *ramp) slope() float64 {
	return (r.shape.Target - r.shape.Initial) / r.shape.Duration.Seconds()
}

func (r *ramp) rateAt(t float64) float64 { return r.shape.Initial + r.slope()*t }

// creditAt adds the area under the line from last to now: a trapezoid.
func (r *ramp) creditAt(now time.Time) float64 {
	from, to := measure.Elapsed(r.start, r.last), r.sinceStart(now)
	area := (r.rateAt(from) + r.rateAt(to)) / 2 * (to - from)
	return min(1, r.credit+area)
}

// timeFor returns the time from t on after which the area under the line has grown by missing. It
// is the smaller root w of slope/2·w² + rate·w = missing. The form used here neither divides by
// zero on a flat line nor loses digits on a gentle one. On a falling line there may be no root: the
// area is then not reached before the end.
func (r *ramp) timeFor(missing, t float64) time.Duration {
	rate := r.rateAt(t)
	square := rate*rate + 2*r.slope()*missing
	if square < 0 {
		return measure.MaxWait
	}
	return measure.Wait(2 * missing / (rate + math.Sqrt(square)))
}
