package gates

import (
	"math"
	"time"
)

// A Rate is a limit in units per second that may change with time.
type Rate struct {
	of   func(at float64) float64 // units per second
	flow func(at float64) float64 // units since the beginning
}

// Steady is constant.
func Steady(perSecond float64) Rate {
	return Rate{
		of:   func(float64) float64 { return perSecond },
		flow: func(at float64) float64 { return perSecond * at },
	}
}

// Turning changes by a factor at a moment.
func Turning(perSecond, factor float64, moment time.Duration) Rate {
	turn := moment.Seconds()
	return Rate{
		of: func(at float64) float64 {
			if at < turn {
				return perSecond
			}
			return factor * perSecond
		},
		flow: func(at float64) float64 {
			return perSecond * (at + (factor-1)*max(0, at-turn))
		},
	}
}

// Drifting goes up and down between all of the rate and half of it, in ten minutes: slowly
// enough for a law to follow, and more than once in a world.
func Drifting(perSecond float64) Rate {
	const mean, swing, period = 0.75, 0.25, 600
	omega := 2 * math.Pi / period
	return Rate{
		of:   func(at float64) float64 { return perSecond * (mean + swing*math.Sin(omega*at)) },
		flow: func(at float64) float64 { return perSecond * (mean*at + swing*(1-math.Cos(omega*at))/omega) },
	}
}
