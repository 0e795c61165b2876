package plan

import (
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// Config holds what is known before the prompts are read. The caller has checked its values:
// limits are valid, Concurrency is 1 or more, Latency and Output are 0 or more.
type Config struct {
	Input string // its name
	// Row names the row of a model in the plan, and Quota the quota that its calls draw on, as
	// in a run. Rows of one quota have the same limits.
	Row, Quota func(model string) string
	// Cost returns what a call is expected to draw when the provider lets it in, as in a
	// run.
	Cost   func(*prompts.Request) limiter.Cost
	Counts string // names the rule by which Cost counts tokens

	Limits      limiter.Limits     // of every model; 0: not known
	Tier        Tier               // the limits of models that have no others
	Ramps       bool               // traffic may grow only slowly above rampFrom, whatever the limits are
	Concurrency int                // most calls in flight
	Lane        machine.LaneConfig // of every quota, without its limits
	Timeout     time.Duration      // of a call; 0: none
	Deadline    time.Duration      // of the run; 0: none
	Latency     time.Duration      // median time of a call; 0: derived from the tokens of its answer
	Output      float64            // tokens of an answer whose line has no bound
	Prices      price.Table
	At          time.Time        // whose prices count
	Service     provider.Tier    // whose prices count
	OffersFlex  bool             // the run could use a cheaper tier of service
	Capped      bool             // the run has a bound on its cost
	Checked     bool             // answers are checked, and items whose answers do not fit are asked again
	Before      float64          // what counts against such a bound already, in USD
	Pilot       map[string]Pilot // by model: what its calls have shown; nil: nothing
	OnLane      map[string]Pilot // by lane of a file: its latency, and its limits
	Routes      *route.Table     // of the lanes of a file; nil: there is one lane
	Seed        uint64           // another seed draws other latencies
}

// Pilot holds what calls of a model have shown. A plan need not assume it then.
type Pilot struct {
	Answers int            // that showed it
	Input   float64        // tokens of a prompt, as a share of those that are estimated from its text
	Output  float64        // tokens of an answer, on average
	Latency time.Duration  // of a call, in the median
	Limits  limiter.Limits // that the provider has shown; 0: not known
}

// limitsOf returns the limits of one model: the user's beat those of a pilot, which beat the tier.
func (c *Config) limitsOf(model string) limiter.Limits {
	l := c.Tier.of(model)
	if shown := c.Pilot[model].Limits; !shown.Zero() {
		l = shown
	}
	return over(l, c.Limits)
}

// over returns limits of which those that the user has given win.
func over(l, given limiter.Limits) limiter.Limits {
	for _, p := range []struct {
		to    *float64
		given float64
	}{{&l.RPM, given.RPM}, {&l.TPM, given.TPM}, {&l.InputTPM, given.InputTPM}, {&l.OutputTPM, given.OutputTPM}} {
		if p.given > 0 {
			*p.to = p.given
		}
	}
	l.Burst = given.Burst
	return l
}

// Assumptions about a call whose latency is not given: the time to the first token, and the
// tokens a second of hosted models of middle size. Both differ by a factor of three between
// models.
const (
	firstToken   = 500 * time.Millisecond
	tokensPerSec = 50.0
)

// longestCall is longer than any call takes. It keeps the time a finite number even where a
// line asks for an absurd answer.
const longestCall = 100 * 365 * 24 * time.Hour

// Plan sums up what a prompt file asks for, as far as it shows, and what to expect of it.
// New makes one; the caller gives every request to Take, and then calls Foresee once.
type Plan struct {
	cfg Config

	lines          int
	bad            int // lines that are left out
	untranslatable int // likewise, as they cannot be translated
	items          int
	assumed        int // items whose answer has no bound
	tooLong        int // items whose call takes longer than the timeout
	models         []*modelPlan
	byModel        map[string]int
	quotas         []limiter.Limits
	byQuota        map[string]int
	sample         forecast.Sample
	latency        float64 // seconds of all calls, in the median
	forecast       forecast.Forecast
	quick          time.Duration // the time if texts are shorter and calls faster than assumed
	slow           time.Duration // if they are longer and slower
	whatIfs        []whatIf
	spreads        time.Duration // the time if all lanes of each pool took turns; 0: no shorter

	// Of a run over several lanes:
	lanes     []machine.LaneConfig // as the quotas
	laneNames []string
	lasts     []time.Duration // of a call, as a pilot has shown; 0: not known
	pools     []forecast.Pool // as the models, which are routes
}

// modelPlan sums up the items of one model, or of one route.
type modelPlan struct {
	name          string
	items         int
	input, output float64
	quota         int // index in the plan's
	limits        limiter.Limits

	sums          // of the items that have a price
	open     int  // items whose answer has no bound
	unpriced int  // items without a price
	dated    bool // some price comes from the built-in list

	route     *route.Route // nil: it is a model
	lanes     []onLane     // of the route
	low, high float64      // the cost if all items were on one lane of the route
}

// sums are what items cost, in USD.
type sums struct {
	usd  float64
	most float64 // with answers as long as their lines allow
	flex float64 // in the flex tier, where that has a price, and else as they are

	dearest float64 // the most that a run with a --max-cost reserves for one of them
}

// reserves notes what a run with a --max-cost reserves for a call with such a prompt and such a bound on its answer.
func (s *sums) reserves(p *price.Price, prompt, most float64, at time.Time) {
	if most == 0 {
		most = promptfile.UnboundedOutput
	}
	s.dearest = max(s.dearest, p.Estimate(promptfile.InputMargin*prompt, most, at).USD())
}

// add adds an item, in a tier of service; false: it has no price there.
func (s *sums) add(p *price.Price, tier provider.Tier, offersFlex bool, input, output, most float64, at time.Time) bool {
	usd, known := p.EstimateIn(tier, input, output, at)
	if !known {
		return false
	}
	longest, _ := p.EstimateIn(tier, input, most, at)
	s.usd, s.most = s.usd+usd.USD(), s.most+longest.USD()
	if flex, known := p.EstimateIn(provider.FlexTier, input, output, at); known && offersFlex {
		usd = flex
	}
	s.flex += usd.USD()
	return true
}

// price adds the cost of one request, by the model that its line names. Most is the bound on its
// answer.
func (m *modelPlan) price(c *Config, model string, input, output, most, prompt float64) {
	p, source, ok := c.Prices.Of(model)
	if ok {
		m.reserves(&p, prompt, most, c.At)
		ok = m.sums.add(&p, c.Service, c.OffersFlex, input, output, most, c.At)
	}
	if !ok {
		m.unpriced++
		return
	}
	m.dated = m.dated || source == price.FromTable()
}

// New returns an empty plan.
func New(cfg Config) *Plan {
	return &Plan{cfg: cfg, byModel: map[string]int{}, byQuota: map[string]int{}}
}

// Take counts one request. It keeps nothing of its body.
func (p *Plan) Take(req prompts.Request) {
	if p.cfg.Routes != nil {
		p.takeRouted(&req)
		return
	}
	m := p.modelOf(req.Model)
	input, output, most := p.tokensOf(req)
	p.items++
	m.items++
	m.input += input
	m.output += output
	if most == 0 && !provider.OnlyReads(req.Endpoint) {
		m.open++
	}
	m.price(&p.cfg, req.Model, input, output, most, estimate.Prompt(req.Body))
	latency := p.latencyOf(req.Model, output)
	if p.cfg.Timeout > 0 && latency > p.cfg.Timeout {
		p.tooLong++
	}
	p.latency += latency.Seconds()
	p.sample.Add(forecast.Call{
		Pool: m.quota, Cost: p.costOf(req, m, input, output), Latency: latency,
	})
}

func (p *Plan) modelOf(model string) *modelPlan {
	name := p.cfg.Row(model)
	i, ok := p.byModel[name]
	if !ok {
		i = len(p.models)
		p.byModel[name] = i
		quota := p.quotaOf(model)
		p.models = append(p.models, &modelPlan{name: name, quota: quota, limits: p.quotas[quota]})
	}
	return p.models[i]
}

func (p *Plan) quotaOf(model string) int {
	name := p.cfg.Quota(model)
	i, ok := p.byQuota[name]
	if !ok {
		i = len(p.quotas)
		p.byQuota[name] = i
		p.quotas = append(p.quotas, p.cfg.limitsOf(model))
	}
	return i
}

// tokensOf returns the tokens that a call is taken to read and to write. The answer is as long as
// those of a pilot, or else as its bound, or else as the configured assumption. A model that only
// reads writes nothing. Most is the bound on the answer, 0 if there is none.
func (p *Plan) tokensOf(req prompts.Request) (input, output, most float64) {
	input, most = estimate.Prompt(req.Body), estimate.MaxOutput(req.Body)
	shown, known := p.cfg.Pilot[req.Model]
	if known {
		input *= shown.Input
	}
	switch {
	case provider.OnlyReads(req.Endpoint):
	case known && most > 0:
		output = min(shown.Output, most)
	case known:
		output = shown.Output
	case most > 0:
		output = most
	default:
		p.assumed++
		output = p.cfg.Output
	}
	return input, output, most
}

func (p *Plan) latencyOf(model string, output float64) time.Duration {
	if shown, known := p.cfg.Pilot[model]; known {
		return shown.Latency
	}
	if p.cfg.Latency > 0 {
		return p.cfg.Latency
	}
	return firstToken + time.Duration(min(output/tokensPerSec, longestCall.Seconds())*1e9)
}

// costOf returns what the call draws, by the provider's rule. Where output has a limit of
// its own, it is the expected input and output.
func (p *Plan) costOf(req prompts.Request, m *modelPlan, input, output float64) limiter.Cost {
	if m.limits.OutputTPM > 0 {
		return limiter.Cost{Requests: 1, Input: input, Output: output}
	}
	return p.cfg.Cost(&req)
}

// Items returns the number of items that were taken.
func (p *Plan) Items() int { return p.items }

// Cost returns the sum of the costs that are known, in USD, and the number of items whose cost is not.
func (p *Plan) Cost() (usd float64, unpriced int) {
	for _, m := range p.models {
		usd += m.usd
		if _, known := m.cost(); !known {
			unpriced += m.unpriced
		}
	}
	return usd, unpriced
}

// whatIf is the duration with half and with twice of one thing.
type whatIf struct {
	on             limiter.Dimension // None: the concurrency
	halved, double time.Duration
}

// How far a plan may be off: tokens are estimated from the text within 15 %, and calls may last half
// or twice as long as assumed.
const (
	offBy    = 0.15
	timesOff = 2.0
)

// whatIfSample is the number of calls in each of these forecasts: only their ratio counts,
// and a fifth of the sample shows the same.
const whatIfSample = 20_000

// Foresee runs the main forecast and the what-ifs. Lines is the number of input lines read.
// Bad is the number of lines left out, and foreign that of further ones which the provider's
// dialect cannot express.
func (p *Plan) Foresee(lines, bad, untranslatable int) {
	p.lines, p.bad, p.untranslatable = lines, bad, untranslatable
	p.forecast = forecast.Run(p.config(limiter.None, 1), &p.sample)
	if p.items == 0 {
		return
	}
	if p.cfg.Routes != nil {
		p.share()
		p.spreads = p.spread()
	}
	smaller := p.sample.Smaller(whatIfSample)
	asIs := forecast.Run(p.config(limiter.None, 1), smaller).Took
	took := func(d limiter.Dimension, factor float64) time.Duration {
		share := forecast.Run(p.config(d, factor), smaller).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(min(share*float64(p.forecast.Took), math.MaxInt64/2))
	}
	scaled := func(draws, lasts float64) time.Duration {
		share := forecast.Run(p.config(limiter.None, 1), smaller.Scaled(draws, lasts)).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(min(share*float64(p.forecast.Took), math.MaxInt64/2))
	}
	p.quick, p.slow = min(scaled(1-offBy, 1/timesOff), p.forecast.Took), max(scaled(1+offBy, timesOff), p.forecast.Took)
	for _, d := range append(forecast.Dimensions, limiter.None) {
		if d != limiter.None && !p.limited(d) {
			continue
		}
		p.whatIfs = append(p.whatIfs, whatIf{on: d, halved: took(d, 0.5), double: took(d, 2)})
	}
}

// limited reports whether any quota has a limit in that dimension.
func (p *Plan) limited(d limiter.Dimension) bool {
	return slices.ContainsFunc(p.quotas, func(l limiter.Limits) bool { return l.PerMinute(d) > 0 })
}

// config returns the batch's settings, with one thing changed by a factor.
func (p *Plan) config(d limiter.Dimension, factor float64) forecast.Config {
	c := forecast.Config{
		Lane: p.cfg.Lane, Concurrency: p.cfg.Concurrency, Seed: p.cfg.Seed,
		Pools: p.pools, Lanes: p.lanes, Lasts: p.lasts,
	}
	if d == limiter.None {
		times := func(n int) int { return max(1, int(float64(n)*factor+0.5)) }
		c.Concurrency, c.Lanes = times(c.Concurrency), slices.Clone(p.lanes)
		for i := range c.Lanes {
			c.Lanes[i].Window = times(c.Lanes[i].Window)
		}
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
