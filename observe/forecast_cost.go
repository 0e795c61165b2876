package observe

import "math"

// A spending is the cost of items: its average, its spread, and the part that goes by input
// tokens. The zero value knows nothing yet.
type spending struct {
	amounts
	samples float64 // in which items ended
	squares float64 // of the USD of a sample over its items

	// Sums of products over the samples, for a price per token of either kind.
	inIn, inOut, outOut, inUSD, outUSD float64
}

// add takes in what ended in a span of time.
func (s *spending) add(a amounts) {
	s.amounts = s.plus(a)
	if a.items <= 0 {
		return
	}
	s.samples++
	s.squares += a.usd * a.usd / a.items
	s.inIn += a.input * a.input
	s.inOut += a.input * a.output
	s.outOut += a.output * a.output
	s.inUSD += a.input * a.usd
	s.outUSD += a.output * a.usd
}

// deviation returns the standard deviation of the cost of one item. The sum of k items spreads
// √k times as much as one.
func (s *spending) deviation() float64 {
	if s.samples < 2 {
		return 0
	}
	mean := s.usd / s.items
	return math.Sqrt(max(0, (s.squares-mean*mean*s.items)/(s.samples-1)))
}

// inputShare returns the input tokens' part of the cost, 0..1, by least squares. It returns 0 if
// the part cannot be told, as both kinds of tokens always come in the same proportion.
func (s *spending) inputShare() float64 {
	det := s.inIn*s.outOut - s.inOut*s.inOut
	if s.usd <= 0 || det <= 1e-9*s.inIn*s.outOut {
		return 0
	}
	price := (s.inUSD*s.outOut - s.outUSD*s.inOut) / det
	return min(1, max(0, price*s.input/s.usd))
}

// rest returns the USD left to spend, and their standard deviation.
func (s *spending) rest(left rest) (usd, deviation float64) {
	if s.items == 0 {
		return 0, 0
	}
	dearer := 1.0
	if left.input > 0 && s.input > 0 {
		dearer += s.inputShare() * (left.input*s.items/s.input - 1)
	}
	return left.items * s.usd / s.items * dearer, s.deviation() * math.Sqrt(left.items*left.items/s.items+left.items)
}

// inAll estimates the cost of the whole run, of the items that have a price. The cost is not
// known while the total is not known, before 30 items have ended, or before one with a price
// has. It is not known either once the run drains or is stopped.
func (f *forecaster) inAll(p *Picture, work []Work) Estimate {
	if p.Total == UnknownTotal || p.State == Draining || p.State == Stopped || p.Spent.Priced == 0 || p.Answered+p.Failed < earlyItems {
		return Estimate{}
	}
	if p.State == Over {
		return Estimate{Likely: p.Spent.USD, Known: true}
	}
	f.follow(p, work)
	usd, variance := f.toSpend(p, work)
	return Estimate{Likely: p.Spent.USD + usd, PlusMinus: z80 * math.Sqrt(variance), Known: true}
}

// toSpend returns the USD left to spend and their variance, lane by lane as far as lanes
// are known.
func (f *forecaster) toSpend(p *Picture, work []Work) (usd, variance float64) {
	left := leftOf(p)
	if !several(p, work) {
		of := rest{items: left}
		if len(p.Lanes) == 1 {
			of.input = inputOf(&p.Lanes[0], work, f.spent.amounts, left)
		}
		usd, dev := f.spent.rest(of)
		return usd, dev * dev
	}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		k := f.lanes[l.Name]
		if k == nil || l.Left <= 0 || k.spent.usd == 0 {
			continue
		}
		more, dev := k.spent.rest(f.rest(l, work))
		usd, variance = usd+more, variance+dev*dev
		left -= float64(l.Left)
	}
	more, dev := f.spent.rest(rest{items: max(0, left)})
	return usd + more, variance + dev*dev
}
