package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

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
	left := r.Ends().Sub(measure.Later(r.last, now))
	return min(r.timeFor(1-r.creditAt(now), r.sinceStart(now)), left)
}

// Take lets one call through if it may leave at now, and reports whether it did.
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

// timeFor returns the time that the area takes, from t on, to grow by missing. That is the
// smaller root w of slope/2·w² + rate·w = missing, written so that a flat line does not divide
// by zero and a gentle one does not lose digits. On a falling line there may be no root: then
// the area is not reached before the end.
func (r *ramp) timeFor(missing, t float64) time.Duration {
	rate := r.rateAt(t)
	square := rate*rate + 2*r.slope()*missing
	if square < 0 {
		return measure.MaxWait
	}
	return measure.Wait(2 * missing / (rate + math.Sqrt(square)))
}
