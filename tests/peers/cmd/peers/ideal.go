package main

import (
	"math"
	"time"
)

// ideal is how long one who knows the server takes for so many items, in seconds.
type ideal func(items int) float64

// chance: every call takes its time, refused or not, and the crowd is in flight
// from the first moment to the last.
func chance(lost float64) ideal {
	return func(items int) float64 {
		calls := float64(items) / (1 - lost)
		return (calls/crowd + 1) * soon.Seconds()
	}
}

// capped: as many at once as are let in, round after round.
func capped(most int, latency time.Duration) ideal {
	return func(items int) float64 {
		return math.Ceil(float64(items)/float64(most)) * latency.Seconds()
	}
}

// paced: at once what is saved up, then each call as it is let in; the last one
// takes its time.
func paced(perSecond, saved float64, latency time.Duration) ideal {
	return func(items int) float64 {
		return (float64(items)-saved)/perSecond + latency.Seconds()
	}
}
