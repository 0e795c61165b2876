package promptfile

import (
	"errors"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider"
)

// InputMargin multiplies the estimated length of a prompt to get the length that is reserved for
// it. Estimates of prompts are off by some percent either way.
const InputMargin = 1.15

// UnboundedOutput is the length that is reserved for an answer that nothing bounds, in tokens,
// until a hundred of them have ended. The models that most runs use write no more in one
// answer. A longer answer costs more than was reserved for it, and the run says so.
const UnboundedOutput = 16_384

// budget returns the option that bounds what the run costs; false: nothing does.
func (j *Job) budget() (o batch.Option, has bool) {
	if j.cfg.MaxCost == 0 {
		return o, false
	}
	return batch.WithMaxCost(batch.Budget[*Item]{
		Max: j.cfg.MaxCost, Before: j.earlierSpending.usd, Broken: j.earlierSpending.doubtful, Reserve: j.cfg.reserve,
		Cost: func(it *Item, lane string, used provider.Usage) (float64, bool) {
			b := j.cfg.Bill(lane, it.Model, used)
			return b.USD, b.Known
		},
	}), true
}

// reserve returns the most that a call of the item is expected to cost.
func (c *Config) reserve(it *Item, _ string, usual float64) (usd float64, known bool) {
	output := it.bound
	if output == 0 {
		output = usual
	}
	if output == 0 {
		output = UnboundedOutput
	}
	return c.Reserve(it.Model, InputMargin*it.prompt, output)
}

// doubtful returns the most that calls of the item which broke may cost, in USD; 0: there is no
// budget to count them against.
func (c *Config) doubtful(it *Item, calls int) float64 {
	if c.MaxCost == 0 {
		return 0
	}
	usd, _ := c.reserve(it, "", 0)
	return float64(calls) * usd
}

// spending holds the cost of the items in the files of earlier runs.
type spending struct {
	usd      float64
	doubtful float64 // what calls that broke may cost in addition
	unseen   float64 // part of doubtful: of calls without a line
	unpriced int     // items whose cost is not known: they count as nothing
}

// readSpending returns what earlier runs have spent, by their files. It is zero for a run that starts over.
func (c *Config) readSpending() (s spending, err error) {
	if c.Output == "" || c.Fresh {
		return s, nil
	}
	p, err := journal.ReadProgress(c.Output, c.Errors)
	if err != nil {
		return s, err
	}
	s = spending{usd: p.CostUSD, doubtful: p.Doubtful.USD, unpriced: p.Unpriced}
	s.unseen = c.Stood.unseen(p.CostUSD+p.Doubtful.USD, p.Done+p.Failed > 0)
	s.doubtful += s.unseen
	return s, nil
}

// Stood holds the money of a run as it was last seen, in USD. A run that was killed leaves
// no line about the calls in flight, and one that was abandoned none about the items it gave up: the
// provider may bill them all the same.
type Stood struct {
	InFlight int     // calls
	Reserved float64 // for them
	Spent    float64 // and in doubt, by this run and those before it
}

// roundingError is less than any sum that matters, and more than rounding makes of a million costs.
const roundingError = 1e-6

// unseen returns the most that calls without a line have cost. usd is the cost of all lines together, and has
// reports whether there are any. Without any line the output may be a new one: then only the calls in flight count.
func (s Stood) unseen(usd float64, has bool) float64 {
	unseen := s.Reserved
	if has {
		unseen = max(unseen, s.Spent+s.Reserved-usd)
	}
	if unseen < roundingError {
		return 0
	}
	return unseen
}

// prices notes the models without a price that an input names.
type prices struct {
	known  func(model string, input, output float64) (usd float64, known bool) // nil: none is needed
	latest string
	seen   map[string]bool
}

// maxUnpriced bounds the models that a complaint names.
const maxUnpriced = 10

// add notes the model of one item, and appends it to the list if it has no price.
func (p *prices) add(model string, to *[]string) {
	if p.known == nil || p.seen != nil && model == p.latest {
		return
	}
	if p.latest = model; p.seen == nil {
		p.seen = map[string]bool{}
	}
	if p.seen[model] || len(*to) == maxUnpriced {
		return
	}
	if p.seen[model] = true; !hasPrice(p.known, model) {
		*to = append(*to, model)
	}
}

// hasPrice reports whether the price of a model is known.
func hasPrice(price func(string, float64, float64) (float64, bool), model string) bool {
	_, known := price(model, 1, 1)
	return known
}

// noteBudget records that an item was not run since the budget does not cover it, or since its
// model has no price.
func (r *run) noteBudget(res *Result) {
	var why *batch.BudgetError
	if !errors.As(res.Err, &why) {
		return
	}
	r.sums.OverBudget = why
	if why.Unpriced && why.Item == uint64(res.Index) {
		r.sums.UnpricedModel = res.Item.Model
	}
	if r.cfg.Input.Stream && !r.released {
		r.released = true
		close(r.in.halted)
	}
}
