package observe

import (
	"math"
	"time"
)

// z95 is how many standard deviations the 95th percentile lies above the median.
const z95 = 1.645

// lastCalls is after how many seconds the last of so many calls has ended, in half of all
// cases, where half of all answers take at most p50, and 95 % at most p95. Answers are taken
// to be lognormal, which they nearly are.
//
// Calls in flight at some moment have n·R(x) among them that take longer than x from then
// on, R being the mean of what answers take beyond x over their mean. The last has ended
// where that is ln 2, as then the chance that none is left is one half.
func lastCalls(n int, p50, p95 time.Duration) float64 {
	if n == 0 || p50 <= 0 {
		return 0
	}
	l := lognormal{mu: math.Log(p50.Seconds())}
	l.sigma = max(0.01, math.Log(max(p50, p95).Seconds())-l.mu) / z95
	low, high := 0.0, l.quantile(6)
	for range 40 {
		if x := (low + high) / 2; float64(n)*l.beyond(x) > math.Ln2 {
			low = x
		} else {
			high = x
		}
	}
	return high
}

// lognormal is a distribution of times in seconds, by mean and standard deviation of their
// logarithms.
type lognormal struct{ mu, sigma float64 }

func (l lognormal) quantile(z float64) float64 { return math.Exp(l.mu + z*l.sigma) }

// beyond is the mean of what a time has beyond x, 0 if it has nothing, over the mean time.
func (l lognormal) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	z := (math.Log(x) - l.mu) / l.sigma
	mean := math.Exp(l.mu + l.sigma*l.sigma/2)
	return normal(l.sigma-z) - x/mean*normal(-z)
}

// normal is the chance that a standard normal variable is at most z.
func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
