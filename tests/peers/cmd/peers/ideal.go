package main

import (
	"math"
	"time"
)

// ideal returns the time for so many items, in seconds, of a client that knows the server.
type ideal func(items int) float64

// chance returns the ideal with the crowd in flight from the first moment to the last; every
// call takes its time, refused or not.
func chance(lost float64) ideal {
	return func(items int) float64 {
		calls := float64(items) / (1 - lost)
		return (calls/crowd + 1) * soon.Seconds()
	}
}

// capped returns the ideal of as many calls at once as are let in, round after round.
func capped(most int, latency time.Duration) ideal {
	return func(items int) float64 {
		return math.Ceil(float64(items)/float64(most)) * latency.Seconds()
	}
}

// paced returns the ideal that sends the saved-up calls at once, then each call as it is let
// in; the last one takes its time.
func paced(perSecond, saved float64, latency time.Duration) ideal {
	return func(items int) float64 {
		return (float64(items)-saved)/perSecond + latency.Seconds()
	}
}
