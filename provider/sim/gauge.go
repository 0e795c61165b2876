package sim

import (
	"math"
	"time"
)

// epsilon is the part of a unit that summed fractions may be short of a whole.
// It is forgiven once, not at each call: the level is charged in full.
const epsilon = 1e-6

// dust is the part of a nanosecond that summed fractions may be too long, so
// that a wait of 300 ms is not rounded up to 300.000001.
const dust = 0.01

// maxWait bounds a wait computed from a limit that is nearly zero, where the
// quotient would not fit a Duration.
const maxWait = 365 * 24 * time.Hour

// gauge is one dimension of the quota, requests or tokens. It fills with time,
// continuously or a window's worth at each boundary, and never above its depth.
// A call larger than the depth passes when the gauge is full and leaves a debt.
type gauge struct {
	perMinute float64       // 0: unlimited
	burst     time.Duration // depth in time of refill, without windows
	window    time.Duration // 0: fills continuously
	depth     float64
	level     float64
	at        time.Time // the level is true of this instant; with windows, a boundary
}

func newGauge(c Config, perMinute float64, start time.Time) gauge {
	g := gauge{burst: c.Burst, window: c.Window, at: start}
	g.setLimit(perMinute)
	return g
}

// setLimit keeps the level. A gauge that was unlimited begins full.
func (g *gauge) setLimit(perMinute float64) {
	wasUnlimited := g.perMinute == 0
	g.perMinute = perMinute
	span := g.burst
	if g.window > 0 {
		span = g.window
	}
	g.depth = max(1, g.over(span))
	if wasUnlimited {
		g.level = g.depth
	}
	g.level = min(g.level, g.depth)
}

// over returns the amount that flows in during d.
func (g *gauge) over(d time.Duration) float64 {
	return g.perMinute * float64(d) / float64(minute)
}

// advance fills the gauge up to now. A clock that went back fills nothing.
func (g *gauge) advance(now time.Time) {
	d := now.Sub(g.at)
	if g.window > 0 {
		d = d.Truncate(g.window)
	}
	if d <= 0 {
		return
	}
	g.level = min(g.depth, g.level+g.over(d))
	g.at = g.at.Add(d)
}

// wait returns the time from now until the cost can be taken; 0 is at once. The gauge
// has been advanced to now.
func (g *gauge) wait(now time.Time, cost float64) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	return g.until(now, min(cost, g.depth))
}

// until returns the time from now to the instant at which the level is reached.
func (g *gauge) until(now time.Time, level float64) time.Duration {
	missing := level - g.level
	if missing <= epsilon {
		return 0
	}
	if g.window > 0 {
		// What rounding leaves short of a whole window must not cost another.
		windows := math.Ceil(missing/g.over(g.window) - epsilon)
		return g.at.Add(bounded(windows * float64(g.window))).Sub(now)
	}
	ns := missing * float64(minute) / g.perMinute
	return g.at.Add(bounded(math.Ceil(ns - dust))).Sub(now)
}

func bounded(ns float64) time.Duration {
	return time.Duration(min(ns, float64(maxWait)))
}

func (g *gauge) take(cost float64) {
	if g.perMinute > 0 {
		g.level -= cost
	}
}

// quota returns the gauge's state for headers. The limit is per minute whatever
// the depth, so that remaining + reset·limit/60 is the depth.
func (g *gauge) quota(now time.Time) Quota {
	if g.perMinute == 0 {
		return Quota{}
	}
	q := Quota{Limit: g.perMinute, Remaining: max(0, g.level)}
	if g.depth-g.level > epsilon {
		q.Reset = g.until(now, g.depth)
	}
	return q
}
