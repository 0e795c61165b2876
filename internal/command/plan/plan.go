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
	l := c.Tier.limitsOf(model)
	if shown := c.Pilot[model].Limits; !shown.Zero() {
		l = shown
	}
	return withGiven(l, c.Limits)
}

// withGiven returns the limits with those replaced that the user has given.
func withGiven(limits, given limiter.Limits) limiter.Limits {
	for _, limit := range []struct {
		to    *float64
		given float64
	}{{&limits.RPM, given.RPM}, {&limits.TPM, given.TPM}, {&limits.InputTPM, given.InputTPM}, {&limits.OutputTPM, given.OutputTPM}} {
		if limit.given > 0 {
			*limit.to = limit.given
		}
	}
	limits.Burst = given.Burst
	return limits
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
	timeWhenSpread time.Duration // the time if all lanes of each pool took turns; 0: no shorter

	// Of a run over several lanes:
	lanes         []machine.LaneConfig // as the quotas
	laneNames     []string
	laneLatencies []time.Duration // of a call, as a pilot has shown; 0: not known
	pools         []forecast.Pool // as the models, which are routes
}

// modelPlan sums up the items of one model, or of one route.
type modelPlan struct {
	name          string
	items         int
	input, output float64
	quota         int // index in the plan's
	limits        limiter.Limits

	sums           // of the items that have a price
	unbounded int  // items whose answer has no bound
	unpriced  int  // items without a price
	dated     bool // some price comes from the built-in list

	route     *route.Route  // nil: it is a model
	lanes     []laneOnRoute // of the route
	low, high float64       // the cost if all items were on one lane of the route
}

// sums are what items cost, in USD.
type sums struct {
	usd  float64
	most float64 // with answers as long as their lines allow
	flex float64 // in the flex tier, where that has a price, and else as they are

	dearest float64 // the most that a run with a --max-cost reserves for one of them
}

// noteReserve notes what a run with a --max-cost reserves for a call with such a prompt and such a bound on its answer.
func (s *sums) noteReserve(p *price.Price, prompt, maxOutput float64, at time.Time) {
	if maxOutput == 0 {
		maxOutput = promptfile.UnboundedOutput
	}
	s.dearest = max(s.dearest, p.Estimate(promptfile.InputMargin*prompt, maxOutput, at).USD())
}

// add adds the cost of an item in a tier of service; false if it has no price there.
func (s *sums) add(p *price.Price, tier provider.Tier, offersFlex bool, input, output, maxOutput float64, at time.Time) bool {
	usd, known := p.EstimateIn(tier, input, output, at)
	if !known {
		return false
	}
	longest, _ := p.EstimateIn(tier, input, maxOutput, at)
	s.usd, s.most = s.usd+usd.USD(), s.most+longest.USD()
	if flex, known := p.EstimateIn(provider.FlexTier, input, output, at); known && offersFlex {
		usd = flex
	}
	s.flex += usd.USD()
	return true
}

// addItem adds the cost of one request, by the model that its line names. maxOutput is the bound on its
// answer; 0 if there is none.
func (m *modelPlan) addItem(cfg *Config, model string, input, output, maxOutput, prompt float64) {
	modelPrice, source, known := cfg.Prices.Of(model)
	if known {
		m.noteReserve(&modelPrice, prompt, maxOutput, cfg.At)
		known = m.sums.add(&modelPrice, cfg.Service, cfg.OffersFlex, input, output, maxOutput, cfg.At)
	}
	if !known {
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
	row := p.modelRow(req.Model)
	input, output, maxOutput := p.tokensOf(req)
	p.items++
	row.items++
	row.input += input
	row.output += output
	if maxOutput == 0 && !provider.OnlyReads(req.Endpoint) {
		row.unbounded++
	}
	row.addItem(&p.cfg, req.Model, input, output, maxOutput, estimate.Prompt(req.Body))
	latency := p.latencyOf(req.Model, output)
	if p.cfg.Timeout > 0 && latency > p.cfg.Timeout {
		p.tooLong++
	}
	p.latency += latency.Seconds()
	p.sample.Add(forecast.Call{
		Pool: row.quota, Cost: p.costOf(req, row, input, output), Latency: latency,
	})
}

// modelRow returns the row of a model. The first call for a row adds it.
func (p *Plan) modelRow(model string) *modelPlan {
	name := p.cfg.Row(model)
	index, ok := p.byModel[name]
	if !ok {
		index = len(p.models)
		p.byModel[name] = index
		quota := p.quotaIndex(model)
		p.models = append(p.models, &modelPlan{name: name, quota: quota, limits: p.quotas[quota]})
	}
	return p.models[index]
}

// quotaIndex returns the index of a model's quota. The first call for a quota adds it with its limits.
func (p *Plan) quotaIndex(model string) int {
	name := p.cfg.Quota(model)
	index, ok := p.byQuota[name]
	if !ok {
		index = len(p.quotas)
		p.byQuota[name] = index
		p.quotas = append(p.quotas, p.cfg.limitsOf(model))
	}
	return index
}

// tokensOf returns the tokens that a call is assumed to read and to write. An answer is as long as in a
// pilot, or as its bound, or as the configured assumption. A model that only reads writes nothing. maxOutput
// is the bound on the answer; 0 if there is none.
func (p *Plan) tokensOf(req prompts.Request) (input, output, maxOutput float64) {
	input, maxOutput = estimate.Prompt(req.Body), estimate.MaxOutput(req.Body)
	shown, known := p.cfg.Pilot[req.Model]
	if known {
		input *= shown.Input
	}
	switch {
	case provider.OnlyReads(req.Endpoint):
	case known && maxOutput > 0:
		output = min(shown.Output, maxOutput)
	case known:
		output = shown.Output
	case maxOutput > 0:
		output = maxOutput
	default:
		p.assumed++
		output = p.cfg.Output
	}
	return input, output, maxOutput
}

// latencyOf returns the median time that a call is assumed to last: as in a pilot, as configured, or by its
// output tokens.
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

// Cost returns the sum of the known costs, in USD, and the number of items whose cost is unknown.
func (p *Plan) Cost() (usd float64, unpriced int) {
	for _, m := range p.models {
		usd += m.usd
		if _, known := m.knownCost(); !known {
			unpriced += m.unpriced
		}
	}
	return usd, unpriced
}

// whatIf is the duration with half and with twice of one thing.
type whatIf struct {
	dimension      limiter.Dimension // None: the concurrency
	halved, double time.Duration
}

// How far a plan may be off: tokens are estimated from the text within 15 %, and calls may last half
// or twice as long as assumed.
const (
	tokenError    = 0.15
	latencyFactor = 2.0
)

// whatIfSample is the number of calls in each of these forecasts: only their ratio counts,
// and a fifth of the sample shows the same.
const whatIfSample = 20_000

// Foresee runs the main forecast and those with changed limits. lines is the number of input lines. bad and
// untranslatable count the lines that are left out.
func (p *Plan) Foresee(lines, bad, untranslatable int) {
	p.lines, p.bad, p.untranslatable = lines, bad, untranslatable
	p.forecast = forecast.Run(p.forecastConfig(limiter.None, 1), &p.sample)
	if p.items == 0 {
		return
	}
	if p.cfg.Routes != nil {
		p.shareItems()
		p.timeWhenSpread = p.timeIfSpread()
	}
	smaller := p.sample.Smaller(whatIfSample)
	asIs := forecast.Run(p.forecastConfig(limiter.None, 1), smaller).Took
	timeWith := func(dimension limiter.Dimension, factor float64) time.Duration {
		share := forecast.Run(p.forecastConfig(dimension, factor), smaller).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(min(share*float64(p.forecast.Took), math.MaxInt64/2))
	}
	timeScaled := func(draws, lasts float64) time.Duration {
		share := forecast.Run(p.forecastConfig(limiter.None, 1), smaller.Scaled(draws, lasts)).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(min(share*float64(p.forecast.Took), math.MaxInt64/2))
	}
	p.quick, p.slow = min(timeScaled(1-tokenError, 1/latencyFactor), p.forecast.Took), max(timeScaled(1+tokenError, latencyFactor), p.forecast.Took)
	for _, dimension := range append(forecast.Dimensions, limiter.None) {
		if dimension != limiter.None && !p.limited(dimension) {
			continue
		}
		p.whatIfs = append(p.whatIfs, whatIf{dimension: dimension, halved: timeWith(dimension, 0.5), double: timeWith(dimension, 2)})
	}
}

// limited reports whether any quota has a limit in that dimension.
func (p *Plan) limited(d limiter.Dimension) bool {
	return slices.ContainsFunc(p.quotas, func(l limiter.Limits) bool { return l.PerMinute(d) > 0 })
}

// forecastConfig returns the settings of the forecast with one limit multiplied by the factor. For the
// dimension None it multiplies the calls in flight.
func (p *Plan) forecastConfig(d limiter.Dimension, factor float64) forecast.Config {
	cfg := forecast.Config{
		Lane: p.cfg.Lane, Concurrency: p.cfg.Concurrency, Seed: p.cfg.Seed,
		Pools: p.pools, Lanes: p.lanes, Lasts: p.laneLatencies,
	}
	if d == limiter.None {
		multiply := func(n int) int { return max(1, int(float64(n)*factor+0.5)) }
		cfg.Concurrency, cfg.Lanes = multiply(cfg.Concurrency), slices.Clone(p.lanes)
		for i := range cfg.Lanes {
			cfg.Lanes[i].Window = multiply(cfg.Lanes[i].Window)
		}
	}
	for _, limits := range p.quotas {
		switch d {
		case limiter.Requests:
			limits.RPM *= factor
		case limiter.Tokens:
			limits.TPM *= factor
		case limiter.InputTokens:
			limits.InputTPM *= factor
		case limiter.OutputTokens:
			limits.OutputTPM *= factor
		}
		cfg.Limits = append(cfg.Limits, limits)
	}
	return cfg
}

// fullest returns the share in use of a limit, on the lane where it is highest. For the dimension None it is
// that of the concurrency.
func (p *Plan) fullest(d limiter.Dimension) float64 {
	if d == limiter.None {
		return p.forecast.Concurrency
	}
	most := 0.0
	for _, l := range p.forecast.Lanes {
		most = max(most, l.Used[d])
	}
	return most
}

// leastGain is the least share of its time that a batch must save with twice of something for
// that to be its bound: less is noise.
const leastGain = 0.05

// binding returns the limit that holds the batch back most: doubling it saves the most time. It is false if
// no single limit does.
func (p *Plan) binding() (limiter.Dimension, bool) {
	best, least := limiter.None, time.Duration(float64(p.forecast.Took)*(1-leastGain))
	found := false
	for _, change := range p.whatIfs {
		if change.double < least {
			best, least, found = change.dimension, change.double, true
		}
	}
	return best, found
}

// fullShare is the share from which on a limit matters. A run leaves a few percent of each in
// reserve, and takes some seconds to get up to it.
const fullShare = 0.8

// anyFull reports whether any limit matters.
func (p *Plan) anyFull() bool {
	return slices.ContainsFunc(p.whatIfs, func(x whatIf) bool { return p.fullest(x.dimension) >= fullShare })
}

func (p *Plan) tooLarge() (n int) {
	for _, l := range p.forecast.Lanes {
		n += l.TooLarge
	}
	return n
}
