package observe

import (
	"math"
	"time"
)

// z95 is the number of standard deviations from the median up to the 95th percentile.
const z95 = 1.645

// lastCalls returns the seconds after which the last of n calls has ended, in half of all
// cases. Half of all answers take at most p50, and 95 % at most p95. Answers are taken to be
// lognormal, which they nearly are.
//
// Let R be the mean of what answers take beyond x over their mean. Of the calls in flight at
// some moment, n·R(x) take longer than x from then on. The last has ended where that is ln 2:
// the chance that no call is left is then one half.
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

// beyond returns the mean excess of a time over x, counted as 0 for shorter times, over the
// mean time.
func (l lognormal) beyond(x float64) float64 {
	if x <= 0 {
		return 1
	}
	z := (math.Log(x) - l.mu) / l.sigma
	mean := math.Exp(l.mu + l.sigma*l.sigma/2)
	return normal(l.sigma-z) - x/mean*normal(-z)
}

// normal returns the chance that a standard normal variable is at most z.
func normal(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
