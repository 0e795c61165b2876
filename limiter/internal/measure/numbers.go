package measure

import (
	"math"
	"time"
)

// MaxWait is the longest wait that a part of the plain law ever returns. It is two minutes: in that
// time the deepest debt of a bucket, one minute of budget, becomes the fullest bucket, one minute of
// budget. A caller that has waited that long asks again.
const MaxWait = 120 * time.Second

// MaxSpan is the longest time that is counted: ten years, which is for ever to a run. A longer
// one counts as ten years, so that ten of them together still fit a [time.Duration].
const MaxSpan = 10 * 365 * 24 * time.Hour

// Bounded returns d, or MaxSpan if that is less.
func Bounded(d time.Duration) time.Duration { return min(d, MaxSpan) }

// Span turns seconds into a duration, rounded up and of MaxSpan at most.
func Span(seconds float64) time.Duration {
	return time.Duration(math.Ceil(min(seconds, MaxSpan.Seconds()) * 1e9))
}

// grace is the deficit, in nanoseconds of refill, that counts as none. The clock
// ticks in whole nanoseconds and sums of floats are off by far less than a tenth of
// one, so grace absorbs rounding and gives nothing away that a clock could show.
const grace = 0.1

// Wait turns a deficit, in seconds of refill, into a wait in 0..MaxWait. It rounds up to a tick
// that leaves at most half the grace. So the same deficit counts as none at that tick, even if it
// is computed with other rounding.
func Wait(seconds float64) time.Duration {
	ns := seconds * 1e9
	if ns <= grace {
		return 0
	}
	if ns >= float64(MaxWait) || math.IsNaN(ns) {
		return MaxWait
	}
	return time.Duration(math.Ceil(ns - grace/2))
}

// Elapsed returns the time from last to now in seconds, and 0 if the clock went back.
func Elapsed(last, now time.Time) float64 {
	if now == last { // an owner looks at many calls at one moment; word for word the same is quickly seen
		return 0
	}
	return max(0, now.Sub(last).Seconds())
}

// Later returns the later of two moments.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Positive reports whether a number can be a limit or a rate. 0, negative numbers, NaN and
// infinity all mean that there is none.
func Positive(x float64) bool {
	return x > 0 && !math.IsInf(x, 1)
}

// OrElse returns x, or the fallback if x cannot be meant.
func OrElse(x, fallback float64) float64 {
	if Positive(x) {
		return x
	}
	return fallback
}

// OrElseDuration returns d, at most MaxSpan, or the fallback if d cannot be meant.
func OrElseDuration(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return Bounded(d)
	}
	return fallback
}

// OrElseInt returns n, or the fallback if n cannot be meant.
func OrElseInt(n, fallback int) int {
	if n > 0 {
		return n
	}
	return fallback
}

// Amount returns n if it can be an amount, and else 0.
func Amount(n float64) float64 {
	if n > 0 && n <= math.MaxFloat64 {
		return n
	}
	return 0
}

// Sane returns x if it lies in least..most, and else 0: not known.
func Sane(x, least, most float64) float64 {
	if x >= least && x <= most {
		return x
	}
	return 0
}

// Ages is the age, in seconds, beyond which a greater age makes no difference.
const Ages = 1e7

// WallAt converts a moment of the law's clock to the clock on the wall, which goes on while the
// process does not run.
func WallAt(now time.Time, ahead float64) time.Time {
	ahead = min(Ages, max(-Ages, ahead))
	return now.Round(0).UTC().Add(time.Duration(math.Round(ahead * 1e9)))
}

// Grown returns base·factor^times, at most most. It computes in floats, which overflow to
// infinity and not to nonsense.
func Grown(base time.Duration, factor float64, times int, most time.Duration) time.Duration {
	x := float64(base) * math.Pow(factor, float64(times))
	if x >= float64(most) {
		return most
	}
	return time.Duration(x)
}

// Slack is the credit that a pacer saves up beyond one call, in seconds of its rate. A tenth of
// a second makes up for an owner that looks a little late, and is too short to be seen as a
// burst.
const Slack = 0.1
