package limiter

import (
	"math"
	"time"
)

// MaxWait is the longest wait that a [Bucket], [Quota], [Pacer] or [Ramp] ever
// answers. It is two minutes because that is how long the deepest debt of a bucket,
// one minute of budget, takes to become the fullest bucket, one minute of budget.
// Who has waited that long asks again.
const MaxWait = 120 * time.Second

// MaxSpan is the longest time that is counted: ten years, which is for ever to a run. A
// longer one counts as that, so that ten together are a [time.Duration] still.
const MaxSpan = 10 * 365 * 24 * time.Hour

// bounded is d, or MaxSpan if that is less.
func bounded(d time.Duration) time.Duration { return min(d, MaxSpan) }

// spanOf turns seconds into a duration, rounded up and of MaxSpan at most.
func spanOf(seconds float64) time.Duration {
	return time.Duration(math.Ceil(min(seconds, MaxSpan.Seconds()) * 1e9))
}

// grace is the deficit, in nanoseconds of refill, that counts as none. The clock
// ticks in whole nanoseconds and sums of floats are off by far less than a tenth of
// one, so grace absorbs rounding and gives nothing away that a clock could show.
const grace = 0.1

// waitFor turns a deficit, in seconds of refill, into a wait in 0..MaxWait.
// It rounds up to the tick that leaves at most half the grace, so that the same
// deficit, recomputed at that tick with other rounding, counts as none.
func waitFor(seconds float64) time.Duration {
	ns := seconds * 1e9
	if ns <= grace {
		return 0
	}
	if ns >= float64(MaxWait) || math.IsNaN(ns) {
		return MaxWait
	}
	return time.Duration(math.Ceil(ns - grace/2))
}

// elapsed is the time from last to now in seconds, and 0 if the clock went back.
func elapsed(last, now time.Time) float64 {
	if now == last { // an owner looks at many calls at one moment; word for word the same is quickly seen
		return 0
	}
	return max(0, now.Sub(last).Seconds())
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// positive tells the numbers a user can mean by a limit or a rate from 0, negative
// ones, NaN and infinity, which all mean that there is none.
func positive(x float64) bool {
	return x > 0 && !math.IsInf(x, 1)
}

func orElse(x, fallback float64) float64 {
	if positive(x) {
		return x
	}
	return fallback
}

func orElseDuration(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return bounded(d)
	}
	return fallback
}

func orElseInt(n, fallback int) int {
	if n > 0 {
		return n
	}
	return fallback
}
