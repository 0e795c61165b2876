package serve

import (
	"context"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A call is paid for like this, so that calls at the same time cannot pass a cap together:
//
//	its turn ──price fits──▶ reserved ──▶ the call ──▶ settled: what it has cost, or its price if nobody knows
//	    ▲  └─not now──▶ waits for money that comes back
//	    └──────────────────┘
//
// A call costs more than its price if its answer is longer than the estimate. So a cap is passed by that much at most.
// A call that broke may be billed: it keeps its price, and the next try needs another one.

// purse is the money of a client, or of all.
type purse struct {
	spent, reserved limiter.Money
	today           limiter.Money // of spent
	day             time.Time     // of today, in UTC
}

// turn begins a new day.
func (p *purse) turn(now time.Time) {
	if day := now.UTC().Truncate(24 * time.Hour); !day.Equal(p.day) {
		p.day, p.today = day, 0
	}
}

// fits reports whether a price fits under a cap, now or once the reserved money is back. 0 is no cap.
func fits(limit, spent, reserved, price limiter.Money) (now, later bool) {
	if limit == 0 {
		return true, true
	}
	return spent.Plus(reserved).Plus(price) <= limit, spent.Plus(price) <= limit
}

// capped reports whether anything bounds what the request may cost.
func (v *visit) capped() bool {
	return v.s.cfg.MaxCost > 0 || v.client.MaxCostDay > 0 || v.client.MaxCostRun > 0
}

// purseOf returns the money of a client.
func (b *books) purseOf(name string) *purse {
	p := b.purses[name]
	if p == nil {
		p = &purse{}
		b.purses[name] = p
	}
	return p
}

// pays reserves the price of the request's call, and waits for money that comes back if it must. The error is
// batch.ErrMaxCost, or ctx's.
func (v *visit) pays(ctx context.Context, pool string) error {
	if v.s.cfg.Price == nil {
		return nil
	}
	var known bool
	if v.price, known = v.s.cfg.Price(pool, v.model, v.input, v.output); !known && v.capped() {
		return errUnpriced
	}
	for {
		var back <-chan struct{}
		over := false
		v.s.with(func(b *books) {
			now, later := v.reserves(b)
			if over = !later; later && !now {
				back = b.money
			}
		})
		switch {
		case over:
			return batch.ErrMaxCost
		case back == nil:
			return nil
		}
		v.ticket.Left() // a cheaper request, or one of another client, may fit
		select {
		case <-back:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// reserves reserves the price of a call if it fits now. later says that it may fit, now or once other calls have ended.
func (v *visit) reserves(b *books) (now, later bool) {
	own := b.purseOf(v.client.Name)
	own.turn(v.s.cfg.Clock.Now())
	now, later = fits(v.s.cfg.MaxCost, b.all.spent, b.all.reserved, v.price)
	ofRun, ofRunLater := fits(v.client.MaxCostRun, own.spent, own.reserved, v.price)
	ofDay, ofDayLater := fits(v.client.MaxCostDay, own.today, own.reserved, v.price)
	now, later = now && ofRun && ofDay, later && ofRunLater && ofDayLater
	if now {
		b.all.reserved = b.all.reserved.Plus(v.price)
		own.reserved = own.reserved.Plus(v.price)
		v.reserved++
	}
	return now, later
}

// paysAgain reserves the price of the next try, since the last one may be billed. It ends the call if that does not fit.
func (v *visit) paysAgain() {
	if v.reserved == 0 {
		return
	}
	fit := false
	v.s.with(func(b *books) { fit, _ = v.reserves(b) })
	if !fit {
		v.cancel(batch.ErrMaxCost)
	}
}

// settles gives back what was reserved, and books what the call has cost.
func (v *visit) settles() {
	if v.reserved == 0 {
		return
	}
	v.cost, v.costKnown = v.costs()
	v.s.with(func(b *books) {
		own := b.purseOf(v.client.Name)
		own.turn(v.s.cfg.Clock.Now())
		for _, p := range [...]*purse{&b.all, own} {
			p.reserved -= v.price * limiter.Money(v.reserved)
			p.spent, p.today = p.spent.Plus(v.cost), p.today.Plus(v.cost)
		}
		close(b.money)
		b.money = make(chan struct{})
	})
}

// costs returns what the calls of the request have cost. For each whose answer was cut off, that is the price, as the
// provider may bill as much; and so it is if nobody says what the answer has used.
func (v *visit) costs() (cost limiter.Money, known bool) {
	e := &v.end
	for range e.Doubtful.Calls {
		cost = cost.Plus(v.price)
	}
	known = e.Doubtful.Calls == 0
	if v.tries == 0 || e.Err != nil {
		return cost, known // the provider refused the others, or never had them
	}
	if v.s.cfg.Cost != nil && e.Usage != (provider.Usage{}) {
		if last, told := v.s.cfg.Cost(v.lane, v.model, e.Usage); told {
			return cost.Plus(last), known
		}
	}
	return cost.Plus(v.price), false
}
