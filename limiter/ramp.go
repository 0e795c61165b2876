package limiter

import (
	"math"
	"time"
)

// Defaults of [RampConfig]. A server that has just refused gets a few calls a second
// at first, and five minutes, the usual span of its own load averages and scaling
// decisions, to show that it can take more.
const (
	DefaultRampInitial  = 5.0 // calls per second
	DefaultRampTarget   = 20.0
	DefaultRampDuration = 300 * time.Second
)

// MinRampRate is the slowest rate of a ramp, in calls per second. At a slower one a
// single call would be worth more than [MaxWait].
const MinRampRate = 1 / (float64(MaxWait) / float64(time.Second))

// RampConfig shapes a ramp: from Initial to Target calls per second, in a straight
// line, over Duration. A field that is 0 (or cannot be meant) has its default. Rates
// are at least [MinRampRate]. Target may be the lower one.
type RampConfig struct {
	Initial, Target float64 // calls per second
	Duration        time.Duration
}

func (c RampConfig) withDefaults() RampConfig {
	c.Initial = max(MinRampRate, orElse(c.Initial, DefaultRampInitial))
	c.Target = max(MinRampRate, orElse(c.Target, DefaultRampTarget))
	c.Duration = orElseDuration(c.Duration, DefaultRampDuration)
	return c
}

// fastest is the highest rate of a complete shape.
func (c RampConfig) fastest() float64 { return max(c.Initial, c.Target) }

// A Ramp is a graduated recovery: after a cooldown it lets calls through at a rate
// that climbs in a straight line, and after its end it is out of the way.
//
//	+Inf            ┌──────   no limiting outside
//	Target        ／│
//	            ／  │         credit: the area under the line since the last
//	          ／    │         call, at most 1; a call costs 1
//	Initial ／      │
//	       start    start + Duration
//
// The credit is the exact integral of the rate, so calls per span do not depend on
// how often one looks or how many wait. The end is exact: from that instant on
// nothing is limited and nothing is owed. The zero value is an idle ramp with the
// default shape.
type Ramp struct {
	begun  bool
	config RampConfig // of the next Start
	shape  RampConfig // of the present ramp, complete
	start  time.Time
	last   time.Time // start ≤ last
	credit float64   // 0 ≤ credit ≤ 1, as of last
}

// NewRamp gives an idle ramp.
func NewRamp(c RampConfig) Ramp { return Ramp{config: c} }

// Start begins a ramp at now, whatever was before. One call may leave at once.
func (r *Ramp) Start(now time.Time) { r.StartAs(now, r.config) }

// StartAs begins a ramp of another shape, for this once.
func (r *Ramp) StartAs(now time.Time, c RampConfig) {
	r.shape, r.begun = c.withDefaults(), true
	r.start, r.last, r.credit = now, now, 1
}

// Restore continues, with the shape of [NewRamp], a ramp that another process began
// at start: in the middle where it would be by now, with one call's credit and no
// more; after its end at full speed; from the beginning if start has yet to come.
func (r *Ramp) Restore(start, now time.Time) {
	r.Start(start)
	if start.After(now) {
		r.start = now
	}
	r.last = now
}

// Stop ends the ramp.
func (r *Ramp) Stop() { r.begun = false }

// Started is when the ramp began, and whether one did that was not stopped. It stays
// true after the end, and is what [Ramp.Restore] takes.
func (r *Ramp) Started() (time.Time, bool) {
	if !r.begun {
		return time.Time{}, false
	}
	return r.start, true
}

// Ends is when limiting stops, the zero time if no ramp began.
func (r *Ramp) Ends() time.Time {
	if !r.begun {
		return time.Time{}
	}
	return r.start.Add(r.shape.Duration)
}

// Active reports whether the ramp limits at now: from its start, and before its end.
func (r *Ramp) Active(now time.Time) bool {
	return r.begun && later(r.last, now).Before(r.Ends())
}

// Rate is how many calls per second the ramp allows at now, +Inf when not active.
func (r *Ramp) Rate(now time.Time) float64 {
	if !r.Active(now) {
		return math.Inf(1)
	}
	return r.rateAt(r.sinceStart(now))
}

// Wait is how long until a call may leave: 0 if now, and never past the end.
func (r *Ramp) Wait(now time.Time) time.Duration {
	if !r.Active(now) {
		return 0
	}
	left := r.Ends().Sub(later(r.last, now))
	return min(r.timeFor(1-r.creditAt(now), r.sinceStart(now)), left)
}

// Take lets one call through if it may leave at now, and reports whether it did.
func (r *Ramp) Take(now time.Time) bool {
	if r.Wait(now) > 0 {
		return false
	}
	if r.Active(now) {
		r.credit = max(0, r.creditAt(now)-1)
		r.last = later(r.last, now)
	}
	return true
}

func (r *Ramp) sinceStart(now time.Time) float64 {
	return elapsed(r.start, later(r.last, now))
}

// slope is by how much the rate changes in a second.
func (r *Ramp) slope() float64 {
	return (r.shape.Target - r.shape.Initial) / r.shape.Duration.Seconds()
}

func (r *Ramp) rateAt(t float64) float64 { return r.shape.Initial + r.slope()*t }

// creditAt adds the area under the line from last to now: a trapezoid.
func (r *Ramp) creditAt(now time.Time) float64 {
	from, to := elapsed(r.start, r.last), r.sinceStart(now)
	area := (r.rateAt(from) + r.rateAt(to)) / 2 * (to - from)
	return min(1, r.credit+area)
}

// timeFor is how long from t on the area takes to grow by missing. That is the
// smaller root w of slope/2·w² + rate·w = missing, written so that a flat line does
// not divide by zero and a gentle one does not lose digits. On a falling line there
// may be no root: then the area is not reached before the end.
func (r *Ramp) timeFor(missing, t float64) time.Duration {
	rate := r.rateAt(t)
	square := rate*rate + 2*r.slope()*missing
	if square < 0 {
		return MaxWait
	}
	return waitFor(2 * missing / (rate + math.Sqrt(square)))
}
