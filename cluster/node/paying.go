package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/purse"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// A priceFunc returns what tokens of a model cost on a lane, in USD; false: that is not known.
type priceFunc func(lane, model string, u provider.Usage) (usd float64, known bool)

// payer pays for the calls of a job whose user says what they may cost in all.
type payer struct {
	job      string
	purse    *purse.Purse
	price    priceFunc
	refusals *refusals
}

// payerOf returns the payer of a job, with an empty purse.
func (j *jobs) payerOf(r *job.Record, price priceFunc) *payer {
	home, name := j.node.home, r.Job
	return &payer{job: name, price: price, refusals: j.refusals, purse: purse.New(purse.Config{
		Store: home, Job: name, Who: j.node.Name(),
		Caps: func(ctx context.Context) ([]limiter.Money, limiter.Money, error) {
			r, err := job.Load(ctx, home, name)
			return r.Caps, r.Cap(), err
		},
	})}
}

// reserve sets aside the most that a call is expected to cost. If the cap does not cover it, the worker leaves the job
// alone for a while.
func (p *payer) reserve(ctx context.Context, it *promptfile.Item) (paid func(provider.Reply, error), err error) {
	input, output := estimate.For(it.Endpoint, it.Body)
	input *= promptfile.InputMargin
	if output == 0 {
		output = float64(it.Asks().MaxTokens)
	}
	bounded := output > 0
	if !bounded {
		output = float64(p.purse.Unbounded())
	}
	usd, known := p.priceOf(batch.LaneFrom(ctx), it.Model, provider.Usage{InputTokens: int64(input), OutputTokens: int64(output)})
	if !known {
		err := fmt.Errorf("its cap cannot be kept: %w", noPrice(it.Model))
		p.refusals.refuse(p.job, capAsLimit, err.Error(), true)
		return nil, err
	}
	price := limiter.USD(usd)
	final, err := p.purse.Reserve(ctx, price)
	if errors.Is(err, purse.ErrSpent) {
		p.refusals.refuseUnpaid(p.job, fmt.Sprintf("its cap (--max-cost) is reached: the next call may cost $%g, and less is left", usd), final)
	}
	if err != nil {
		return nil, err
	}
	p.refusals.lift(p.job, capAsLimit)
	return func(reply provider.Reply, err error) {
		if answered(err) && !bounded {
			p.purse.Answered(reply.Usage.OutputTokens)
		}
		p.purse.Settle(price, p.cost(ctx, it.Model, price, &reply, err))
	}, nil
}

// cost returns the cost of a call that has ended. It is the reserved price where the true cost is unknown: the call may
// be billed, the answer does not say what it used, or that use has no known price.
func (p *payer) cost(ctx context.Context, model string, price limiter.Money, reply *provider.Reply, err error) limiter.Money {
	recorded := provider.RecorderFrom(ctx).Snapshot()
	used, hasUsage := recorded.Usage, recorded.HasUsage
	if !hasUsage {
		used, hasUsage = reply.Usage, reply.HasUsage
	}
	usd, known := p.priceOf(batch.LaneFrom(ctx), model, used)
	switch doubtful := recorded.Doubtful(err).Calls > 0; {
	case doubtful, answered(err) && !hasUsage, hasUsage && !known:
		return price
	case !hasUsage:
		return 0
	}
	return limiter.USD(usd)
}

// answered reports whether an answer came, also one that does not fit.
func answered(err error) bool { return err == nil || errors.Is(err, provider.Misfit) }

// priceOf returns the price of tokens in USD. known is false also for a price that no call can have, such as NaN.
func (p *payer) priceOf(lane, model string, u provider.Usage) (usd float64, known bool) {
	usd, known = p.price(lane, model, u)
	return usd, known && provider.IsCost(usd)
}

func noPrice(model string) error {
	return fmt.Errorf("the price of %s is not known: --price IN,OUT sets it", model)
}

// pricedOnly returns the check of a line for a job with a cap. In addition to the caller's own check, it refuses a line
// whose price is not known on a lane that may take it.
func pricedOnly(c *Caller) func(*prompts.Request) error {
	takes := c.Reader.Takes
	return func(r *prompts.Request) error {
		if takes != nil {
			if err := takes(r); err != nil {
				return err
			}
		}
		if !c.priced(r) {
			return noPrice(r.Model)
		}
		return nil
	}
}

// priced reports whether the price of a line is known, on each lane that may take it.
func (c *Caller) priced(r *prompts.Request) bool {
	const some = 1 // token shows whether there is a price
	u := provider.Usage{InputTokens: some, OutputTokens: some}
	if c.Route == nil {
		usd, known := priceOf(&c.Lines, nil)("", r.Model, u)
		return known && provider.IsCost(usd)
	}
	route, err := c.Route(r)
	if err != nil {
		return false
	}
	for i := range route.Lanes {
		if b := c.Lines.Bill(route.Lanes[i].Name, r.Model, u); !b.Known || !provider.IsCost(b.USD) {
			return false
		}
	}
	return true
}
