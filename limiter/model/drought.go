package model

import "math"

const (
	droughtGrowth = 1.5
	droughtLeast  = 0.1  // seconds of the shortest hold
	droughtMost   = 30.0 // seconds of the longest that no server asked for
	busyMost      = 2.3  // seconds likewise, of a server that says it is too busy: it is asked again soon, as a refused probe costs nothing
	busyGrowth    = 2.0
	busyPatience  = 30  // refusals, more than a minute, after which it is asked less and less often: being asked may be what keeps it from letting anything in
	downAfter     = 8.0 // seconds without a call let in, by 503 alone: the server was down
	downApart     = 4.0 // a drought that begins sooner after an outage than so many times its own length is a closed window
	fixedEnd      = 2.0 // seconds of drought at least, and
	fixedCalls    = 8   // calls' time, after which calls are let in because a window has ended
)

// A drought is a time in which nothing at all is let in. It lengthens the holds, and
// only its first refusal teaches anything.
type drought struct {
	began    float64 // when the hold began
	refusals int     // with nothing let in between
	busy     bool    // all of them said busy, and nothing of a rate
	pace     float64 // at which calls were let in before
	lesson   *lesson // what the first one taught; nil: nothing
}

// hold returns the seconds to wait where no server asked for a wait: a refusal's time there and
// back, a call's time, and more with each refusal.
func (d *drought) hold(delay, gap float64, overloaded bool) float64 {
	first := max(droughtLeast, 2*delay, gap)
	if !overloaded {
		return min(droughtMost, first*math.Pow(droughtGrowth, float64(d.refusals-1)))
	}
	patience := math.Pow(droughtGrowth, float64(max(0, d.refusals-busyPatience)))
	return min(droughtMost, busyMost*patience, first*math.Pow(busyGrowth, float64(d.refusals-1)))
}

// wasFixed reports whether the drought was the rest of a window, now that calls are let in.
func (d *drought) wasFixed(t, rate float64) bool {
	return t-d.began >= max(fixedEnd, fixedCalls/rate)
}

// wasDown reports whether the server was down, now that calls are let in.
func (d *drought) wasDown(t float64) bool { return d.busy && t-d.began >= downAfter }
