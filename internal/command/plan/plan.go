package plan

import (
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/internal/command/price"
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
	Seed        uint64 // another seed draws other latencies
}

// limitsOf returns the limits of one model: the user's beat the tier.
func (c *Config) limitsOf(model string) limiter.Limits {
	l := c.Tier.of(model)
	for _, p := range []struct {
		to   *float64
		told float64
	}{{&l.RPM, c.Limits.RPM}, {&l.TPM, c.Limits.TPM}, {&l.InputTPM, c.Limits.InputTPM}, {&l.OutputTPM, c.Limits.OutputTPM}} {
		if p.told > 0 {
			*p.to = p.told
		}
	}
	l.Burst = c.Limits.Burst
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

	lines    int
	bad      int // lines that are left out
	foreign  int // likewise, as they cannot be translated
	items    int
	assumed  int // items whose answer has no bound
	tooLong  int // items whose call takes longer than the timeout
	models   []*modelPlan
	byModel  map[string]int
	quotas   []limiter.Limits
	byQuota  map[string]int
	sample   forecast.Sample
	latency  float64 // seconds of all calls, in the median
	forecast forecast.Forecast
	whatIfs  []whatIf
}

// modelPlan sums up the items of one model.
type modelPlan struct {
	name          string
	items         int
	input, output float64
	quota         int // index in the plan's
	limits        limiter.Limits

	usd      float64 // of the items that have a price
	unpriced int     // items without a price
	dated    bool    // some price comes from the built-in list
}

// price adds the cost of one request, by the model that its line names.
func (m *modelPlan) price(prices *price.Table, model string, input, output float64) {
	p, dated, ok := prices.Of(model)
	if !ok {
		m.unpriced++
		return
	}
	m.usd += p.Estimate(input, output)
	m.dated = m.dated || dated
}

// New returns an empty plan.
func New(cfg Config) *Plan {
	return &Plan{cfg: cfg, byModel: map[string]int{}, byQuota: map[string]int{}}
}

// Take counts one request. It keeps nothing of its body.
func (p *Plan) Take(req prompts.Request) {
	m := p.modelOf(req.Model)
	input, output := estimate.Prompt(req.Body), p.outputOf(req)
	p.items++
	m.items++
	m.input += input
	m.output += output
	m.price(&p.cfg.Prices, req.Model, input, output)
	latency := p.latencyOf(output)
	if p.cfg.Timeout > 0 && latency > p.cfg.Timeout {
		p.tooLong++
	}
	p.latency += latency.Seconds()
	p.sample.Add(forecast.Call{
		Lane: m.quota, Cost: p.costOf(req, m, input, output), Latency: latency,
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

// outputOf returns the assumed length of the answer: its bound, or else the configured
// assumption. A model that only reads writes nothing.
func (p *Plan) outputOf(req prompts.Request) float64 {
	if provider.OnlyReads(req.Endpoint) {
		return 0
	}
	if most := estimate.MaxOutput(req.Body); most > 0 {
		return most
	}
	p.assumed++
	return p.cfg.Output
}

func (p *Plan) latencyOf(output float64) time.Duration {
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
