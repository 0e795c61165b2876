package price

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Rates are USD per million tokens. Each is 0 or more, and at most mostPrice.
type Rates struct {
	Input     float64
	Output    float64
	Cached    float64 // of input that was read from a cache
	Write     float64 // of input that was written to a cache
	LongWrite float64 // of input that was written to a cache for an hour
}

// Schedule holds the rates of a request by the length of its prompt.
type Schedule struct {
	Rates
	Above []Step // in rising order
}

// Step holds the Rates of a whole request whose prompt has more than so many tokens.
type Step struct {
	Tokens int64
	Rates
}

// at returns the rates of a request whose prompt has that many tokens, including cached ones.
func (s *Schedule) at(prompt float64) Rates {
	r := s.Rates
	for _, step := range s.Above {
		if prompt > float64(step.Tokens) {
			r = step.Rates
		}
	}
	return r
}

// Price holds the rates of a model. The zero value is the price of a free model.
type Price struct {
	Schedule
	When []Case // of those that hold, the last counts
}

// Case holds the rates of some days, some hours of each day, or a tier of service.
type Case struct {
	From, Until time.Time     // days in UTC, both included; zero: without a bound
	Begin, End  time.Duration // hours of the day in UTC, the End excluded; both 0: all day
	Tier        provider.Tier
	// Times multiplies the rates that hold in the standard tier. If it is below 0, the case has
	// rates of its own.
	Times float64
	Schedule
}

// ownRates is the Times of a case that has rates of its own.
const ownRates = -1

const day = 24 * time.Hour

// isDay reports whether the case holds on the day of an instant.
func (c *Case) isDay(at time.Time) bool {
	return !at.Before(c.From) && (c.Until.IsZero() || at.Before(c.Until.Add(day)))
}

// Over reports whether the case will never hold again.
func (c *Case) Over(at time.Time) bool { return !c.Until.IsZero() && !at.Before(c.Until.Add(day)) }

// Holds reports whether the case holds at an instant. Its hours may run over midnight.
func (c *Case) Holds(at time.Time) bool {
	if !c.isDay(at) {
		return false
	}
	if c.Begin == c.End {
		return true
	}
	clock := at.Sub(at.UTC().Truncate(day))
	if c.Begin < c.End {
		return c.Begin <= clock && clock < c.End
	}
	return clock >= c.Begin || clock < c.End
}

// ratesFor returns the rates of a request at an instant; false if the price of its tier is unknown.
func (p *Price) ratesFor(prompt float64, tier provider.Tier, at time.Time) (Rates, bool) {
	standard := &p.Schedule
	var ofTier *Case
	for i := range p.When {
		switch priceCase := &p.When[i]; {
		case !priceCase.Holds(at):
		case priceCase.Tier == provider.StandardTier:
			standard = &priceCase.Schedule
		case priceCase.Tier == tier:
			ofTier = priceCase
		}
	}
	switch {
	case tier == provider.StandardTier:
		return standard.at(prompt), true
	case ofTier == nil:
		return Rates{}, false
	case ofTier.Times == ownRates:
		return ofTier.at(prompt), true
	}
	return standard.at(prompt).multiply(ofTier.Times), true
}

func (r Rates) multiply(x float64) Rates {
	return Rates{Input: x * r.Input, Output: x * r.Output, Cached: x * r.Cached, Write: x * r.Write, LongWrite: x * r.LongWrite}
}

// free reports whether a price is nothing at all.
func (p *Price) free() bool { return p.Rates == (Rates{}) && len(p.Above) == 0 && len(p.When) == 0 }

// perToken is the number of picodollars for a token at a dollar per million tokens.
const perToken = 1e6

// mostMoney is the most that a call may cost, in picodollars: a thousand dollars less than fits.
const mostMoney = 9e18

// Of returns the cost of a usage at an instant. The cost is unknown if the tier has no price. It is also
// unknown if the call reported no tokens, unless the model is free.
func (p *Price) Of(usage provider.Usage, at time.Time) (cost limiter.Money, known bool) {
	if p.free() {
		return 0, true
	}
	if usage.InputTokens == 0 && usage.OutputTokens == 0 {
		return 0, false
	}
	rates, known := p.ratesFor(float64(usage.InputTokens), usage.Tier, at)
	if !known {
		return 0, false
	}
	cached := min(usage.CachedTokens, usage.InputTokens) // parts never exceed the whole
	written := min(usage.CacheWriteTokens, usage.InputTokens-cached)
	long := min(usage.LongWriteTokens, written)
	plain := usage.InputTokens - cached - written
	picodollarCost := perToken * (rates.Input*float64(plain) + rates.Cached*float64(cached) + rates.Write*float64(written-long) + rates.LongWrite*float64(long) + rates.Output*float64(usage.OutputTokens))
	if !(picodollarCost >= 0 && picodollarCost <= mostMoney) { // the provider's counts may be nonsense
		return 0, false
	}
	return limiter.USD(picodollarCost / picodollars), true
}

// Estimate returns what so many tokens would cost from an instant on, in the standard tier and without any
// cache. If the price changes with the hour it takes the highest, so that no sum is too low.
func (p *Price) Estimate(input, output float64, at time.Time) limiter.Money {
	cost := func(s *Schedule) float64 {
		r := s.at(input)
		return r.Input*input + r.Output*output
	}
	highest := cost(&p.Schedule)
	for i := range p.When {
		switch priceCase := &p.When[i]; {
		case priceCase.Tier != provider.StandardTier || !priceCase.isDay(at):
		case priceCase.Begin == priceCase.End:
			highest = cost(&priceCase.Schedule)
		default:
			highest = max(highest, cost(&priceCase.Schedule))
		}
	}
	return limiter.USD(highest * perToken / picodollars)
}

// EstimateIn is Estimate for a tier of service; false if the price of that tier is unknown. Of several cases
// the last counts.
func (p *Price) EstimateIn(tier provider.Tier, input, output float64, at time.Time) (limiter.Money, bool) {
	usual := p.Estimate(input, output, at)
	if tier == provider.StandardTier || p.free() {
		return usual, true
	}
	for _, priceCase := range slices.Backward(p.When) {
		switch {
		case priceCase.Tier != tier || !priceCase.isDay(at):
		case priceCase.Times == ownRates:
			r := priceCase.at(input)
			return limiter.USD((r.Input*input + r.Output*output) * perToken / picodollars), true
		default:
			return limiter.USD(usual.USD() * priceCase.Times), true
		}
	}
	return 0, false
}

// picodollars is the number of units of money in a dollar.
const picodollars = 1e12

// mostPrice is the highest believable price, a thousand dollars a token. A higher one is a
// slip.
const mostPrice = 1e9

func isPrice(usd float64) bool { return usd >= 0 && usd <= mostPrice }
