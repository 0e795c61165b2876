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
	price, known := v.s.cfg.Price(pool, v.model, v.input, v.output)
	if v.price = price; !known && v.capped() {
		return errUnpriced
	}
	for {
		var back <-chan struct{}
		over := false
		v.s.with(func(b *books) {
			own := b.purseOf(v.client.Name)
			own.turn(v.s.cfg.Clock.Now())
			now, later := fits(v.s.cfg.MaxCost, b.all.spent, b.all.reserved, price)
			ofRun, ofRunLater := fits(v.client.MaxCostRun, own.spent, own.reserved, price)
			ofDay, ofDayLater := fits(v.client.MaxCostDay, own.today, own.reserved, price)
			switch {
			case now && ofRun && ofDay:
				b.all.reserved = b.all.reserved.Plus(price)
				own.reserved = own.reserved.Plus(price)
				v.reserved = true
			case later && ofRunLater && ofDayLater:
				back = b.money
			default:
				over = true
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

// settles gives back what was reserved, and books what the call has cost.
func (v *visit) settles() {
	if !v.reserved {
		return
	}
	v.cost, v.costKnown = v.costs()
	v.s.with(func(b *books) {
		own := b.purseOf(v.client.Name)
		own.turn(v.s.cfg.Clock.Now())
		for _, p := range [...]*purse{&b.all, own} {
			p.reserved = p.reserved - v.price
			p.spent, p.today = p.spent.Plus(v.cost), p.today.Plus(v.cost)
		}
		close(b.money)
		b.money = make(chan struct{})
	})
}

// costs returns what the calls of the request have cost. Where an answer was cut off, or nobody says what it has used, that is
// the price: the provider may bill as much.
func (v *visit) costs() (cost limiter.Money, known bool) {
	e := &v.end
	if v.tries == 0 || e.Err != nil && e.Doubtful.Calls == 0 {
		return 0, true // the provider refused it, or never had it
	}
	if e.Doubtful.Calls == 0 && v.s.cfg.Cost != nil && e.Usage != (provider.Usage{}) {
		if cost, known = v.s.cfg.Cost(v.lane, v.model, e.Usage); known {
			return cost, true
		}
	}
	return v.price, false
}
