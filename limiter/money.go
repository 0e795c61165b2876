package limiter

import (
	"math"
	"strconv"
)

// Money is a sum of money in picodollars. A token at a millionth of a dollar per million of
// tokens costs one, so that the cheapest embedding is not rounded away. Nine million dollars
// fit; a larger sum is that much.
type Money int64

// dollar is the number of picodollars in a US dollar.
const dollar = 1e12

// USD returns that many dollars, rounded to the picodollar. An amount that does not fit becomes the
// nearest that does; NaN becomes 0.
func USD(usd float64) Money {
	switch x := math.Round(usd * dollar); {
	case x >= math.MaxInt64: // as a float, one more than fits
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	case math.IsNaN(x):
		return 0
	default:
		return Money(x)
	}
}

// USD returns the sum in dollars.
func (m Money) USD() float64 { return float64(m) / dollar }

// Plus returns the sum of both, or the nearest sum that fits.
func (m Money) Plus(n Money) Money {
	switch {
	case n > 0 && m > math.MaxInt64-n:
		return math.MaxInt64
	case n < 0 && m < math.MinInt64-n:
		return math.MinInt64
	}
	return m + n
}

// String returns the sum in dollars, with as many digits as it has: "$0.00015".
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign = "-"
	}
	return sign + "$" + strconv.FormatFloat(math.Abs(m.USD()), 'f', -1, 64)
}
