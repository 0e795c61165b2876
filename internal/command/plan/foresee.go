package plan

import (
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/limiter"
)

// whatIf is the duration with half and with twice of one thing.
type whatIf struct {
	on             limiter.Dimension // None: the concurrency
	halved, double time.Duration
}

// whatIfSample is the number of calls in each of these forecasts: only their ratio counts,
// and a fifth of the sample shows the same.
const whatIfSample = 20_000

// Foresee runs the main forecast and the what-ifs. Lines is the number of input lines read.
// Bad is the number of lines left out, and foreign that of further ones which the provider's
// dialect cannot express.
func (p *Plan) Foresee(lines, bad, foreign int) {
	p.lines, p.bad, p.foreign = lines, bad, foreign
	p.forecast = forecast.Run(p.config(limiter.None, 1), &p.sample)
	if p.items == 0 {
		return
	}
	smaller := p.sample.Smaller(whatIfSample)
	asIs := forecast.Run(p.config(limiter.None, 1), smaller).Took
	took := func(d limiter.Dimension, factor float64) time.Duration {
		share := forecast.Run(p.config(d, factor), smaller).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(min(share*float64(p.forecast.Took), math.MaxInt64/2))
	}
	for _, d := range append(forecast.Dimensions, limiter.None) {
		if d != limiter.None && !p.limited(d) {
			continue
		}
		p.whatIfs = append(p.whatIfs, whatIf{on: d, halved: took(d, 0.5), double: took(d, 2)})
	}
}

// limited reports whether any model has a limit in that dimension.
func (p *Plan) limited(d limiter.Dimension) bool {
	for _, m := range p.models {
		if m.limits.PerMinute(d) > 0 {
			return true
		}
	}
	return false
}

// config returns the batch's settings, with one thing changed by a factor.
func (p *Plan) config(d limiter.Dimension, factor float64) forecast.Config {
	c := forecast.Config{Lane: p.cfg.Lane, Concurrency: p.cfg.Concurrency, Seed: p.cfg.Seed}
	if d == limiter.None {
		c.Concurrency = max(1, int(float64(c.Concurrency)*factor+0.5))
	}
	for _, l := range p.quotas {
		switch d {
		case limiter.Requests:
			l.RPM *= factor
		case limiter.Tokens:
			l.TPM *= factor
		case limiter.InputTokens:
			l.InputTPM *= factor
		case limiter.OutputTokens:
			l.OutputTPM *= factor
		}
		c.Limits = append(c.Limits, l)
	}
	return c
}

// used returns how full a limit is where it is fullest; that of None is the concurrency.
func (p *Plan) used(d limiter.Dimension) float64 {
	if d == limiter.None {
		return p.forecast.Concurrency
	}
	most := 0.0
	for _, l := range p.forecast.Lanes {
		most = max(most, l.Used[d])
	}
	return most
}

// gain is the least share of its time that a batch must save with twice of something for
// that to be its bound: less is noise.
const gain = 0.05

// binding returns what holds the batch back most: doubling it saves the most time. It is
// false if no single limit does.
func (p *Plan) binding() (limiter.Dimension, bool) {
	best, least := limiter.None, time.Duration(float64(p.forecast.Took)*(1-gain))
	found := false
	for _, x := range p.whatIfs {
		if x.double < least {
			best, least, found = x.on, x.double, true
		}
	}
	return best, found
}

// fullShare is the share from which on a limit matters. A run leaves a few percent of each in
// reserve, and takes some seconds to get up to it.
const fullShare = 0.8

// anyFull reports whether any limit matters.
func (p *Plan) anyFull() bool {
	return slices.ContainsFunc(p.whatIfs, func(x whatIf) bool { return p.used(x.on) >= fullShare })
}

func (p *Plan) tooLarge() (n int) {
	for _, l := range p.forecast.Lanes {
		n += l.TooLarge
	}
	return n
}
