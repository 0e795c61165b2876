package price

import (
	"math"

	"github.com/headrace/headrace/provider"
)

// Rates are USD per million tokens. Each is 0 or more, and at most mostPrice.
type Rates struct {
	Input  float64
	Output float64
	Cached float64 // of input that was read from a cache
	Write  float64 // of input that was written to a cache
}

// Price holds the rates of a model. The zero value is the price of a free model.
type Price struct {
	Rates
	Above []Step // in rising order
}

// Step holds the Rates of a whole request whose prompt has more than so many tokens.
type Step struct {
	Tokens int64
	Rates
}

// at returns the rates of a request with such a prompt, tokens of caches included.
func (p *Price) at(prompt float64) Rates {
	r := p.Rates
	for _, s := range p.Above {
		if prompt > float64(s.Tokens) {
			r = s.Rates
		}
	}
	return r
}

// Of returns the cost of so many tokens, in USD. A call that reported no tokens has no known
// cost, unless the price is 0.
func (p *Price) Of(u provider.Usage) (usd float64, known bool) {
	if p.Rates == (Rates{}) && len(p.Above) == 0 {
		return 0, true
	}
	if u.InputTokens == 0 && u.OutputTokens == 0 {
		return 0, false
	}
	r := p.at(float64(u.InputTokens))
	cached := min(u.CachedTokens, u.InputTokens) // parts never exceed the whole
	written := min(u.CacheWriteTokens, u.InputTokens-cached)
	plain := u.InputTokens - cached - written
	usd = Tidy((r.Input*float64(plain) + r.Cached*float64(cached) + r.Write*float64(written) + r.Output*float64(u.OutputTokens)) / 1e6)
	return usd, provider.IsCost(usd) // the provider's counts may be nonsense
}

// Estimate returns what so many tokens would cost, in USD, without any cache.
func (p *Price) Estimate(input, output float64) float64 {
	r := p.at(input)
	return (r.Input*input + r.Output*output) / 1e6
}

// picodollars is the number of units of money in a dollar. A price of a millionth of a dollar
// per million tokens is one unit for each token.
const picodollars = 1e12

// Tidy removes what arithmetic with fractions adds to a sum of money, so that it reads as it
// would by hand: 0.00003 and not 0.000030000000000000004.
func Tidy(usd float64) float64 {
	whole := math.Round(usd * picodollars)
	if whole == 0 || whole >= 1<<53 { // below the unit, or too large to resolve it
		return usd
	}
	return whole / picodollars
}

// mostPrice is the highest believable price, a thousand dollars a token. A higher one is a
// slip, and a sum of such costs might overflow.
const mostPrice = 1e9

func isPrice(usd float64) bool { return usd >= 0 && usd <= mostPrice }
