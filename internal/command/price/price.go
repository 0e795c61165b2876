package price

import (
	"math"

	"github.com/headrace/headrace/provider"
)

// Price is what a model costs, in USD per million tokens. The zero value is that of what is
// free.
type Price struct {
	Input  float64 // 0 or more, and at most mostPrice, as are the others
	Output float64
	Cached float64 // of input that was read from a cache
}

// Of is what so many tokens cost, in USD. Of a price that is not 0, it is not known for a
// call that told of no tokens.
func (p Price) Of(u provider.Usage) (usd float64, known bool) {
	if p == (Price{}) {
		return 0, true
	}
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		return 0, false
	}
	cached := min(u.CachedTokens, u.InputTokens)
	usd = tidy((p.Input*float64(u.InputTokens-cached) + p.Cached*float64(cached) + p.Output*float64(u.OutputTokens)) / 1e6)
	return usd, provider.IsCost(usd) // no provider's word makes it anything else
}

// Estimate is what so many tokens would cost, in USD, if none is read from a cache.
func (p Price) Estimate(input, output float64) float64 {
	return (p.Input*input + p.Output*output) / 1e6
}

// picodollars are the unit of money, as many of them as a dollar has: a price of a millionth
// of a dollar per million tokens is one for each token.
const picodollars = 1e12

// tidy takes what arithmetic with fractions adds to a sum of money, so that it reads as it
// would by hand: 0.00003 and not 0.000030000000000000004.
func tidy(usd float64) float64 {
	whole := math.Round(usd * picodollars)
	if whole == 0 || whole >= 1<<53 { // less than the unit, or more than can be told apart in it
		return usd
	}
	return whole / picodollars
}

// mostPrice is the highest price that is believed, a thousand dollars a token: a higher one
// is a slip, and a sum of such costs may be no number.
const mostPrice = 1e9

func isPrice(usd float64) bool { return usd >= 0 && usd <= mostPrice }
