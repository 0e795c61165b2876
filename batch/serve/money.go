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

// startDay sets today's sum to 0 if a new day has begun.
func (p *purse) startDay(now time.Time) {
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

// hasCap reports whether anything bounds what the request may cost.
func (v *visit) hasCap() bool {
	return v.server.cfg.MaxCost > 0 || v.client.MaxCostDay > 0 || v.client.MaxCostRun > 0
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

// reservePrice reserves the price of the request's call. If it must, it waits for money that comes back. The error
// is batch.ErrMaxCost, errUnpriced or ctx's.
func (v *visit) reservePrice(ctx context.Context, pool string) error {
	if v.server.cfg.Price == nil {
		return nil
	}
	var known bool
	if v.price, known = v.server.cfg.Price(pool, v.model, v.input, v.output); !known && v.hasCap() {
		return errUnpriced
	}
	for {
		var moneyBack <-chan struct{}
		tooDear := false
		v.server.withBooks(func(b *books) {
			now, later := v.tryReserve(b)
			if tooDear = !later; later && !now {
				moneyBack = b.moneyBack
			}
		})
		switch {
		case tooDear:
			return batch.ErrMaxCost
		case moneyBack == nil:
			return nil
		}
		v.ticket.Left() // a cheaper request, or one of another client, may fit
		select {
		case <-moneyBack:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryReserve reserves the price of a call if it fits now. later reports whether it may fit now, or once other calls
// have ended.
func (v *visit) tryReserve(b *books) (now, later bool) {
	own := b.purseOf(v.client.Name)
	own.startDay(v.server.cfg.Clock.Now())
	now, later = fits(v.server.cfg.MaxCost, b.total.spent, b.total.reserved, v.price)
	ofRun, ofRunLater := fits(v.client.MaxCostRun, own.spent, own.reserved, v.price)
	ofDay, ofDayLater := fits(v.client.MaxCostDay, own.today, own.reserved, v.price)
	now, later = now && ofRun && ofDay, later && ofRunLater && ofDayLater
	if now {
		b.total.reserved = b.total.reserved.Plus(v.price)
		own.reserved = own.reserved.Plus(v.price)
		v.reservations++
	}
	return now, later
}

// reserveAgain reserves the price of the next try, since the last one may be billed. It ends the call if that does not fit.
func (v *visit) reserveAgain() {
	if v.reservations == 0 {
		return
	}
	fit := false
	v.server.withBooks(func(b *books) { fit, _ = v.tryReserve(b) })
	if !fit {
		v.cancel(batch.ErrMaxCost)
	}
}

// settle gives back what was reserved, and books what the call has cost.
func (v *visit) settle() {
	if v.reservations == 0 {
		return
	}
	v.cost, v.costKnown = v.finalCost()
	v.server.withBooks(func(b *books) {
		own := b.purseOf(v.client.Name)
		own.startDay(v.server.cfg.Clock.Now())
		for _, p := range [...]*purse{&b.total, own} {
			p.reserved -= v.price * limiter.Money(v.reservations)
			p.spent, p.today = p.spent.Plus(v.cost), p.today.Plus(v.cost)
		}
		close(b.moneyBack)
		b.moneyBack = make(chan struct{})
	})
}

// finalCost returns what the calls of the request have cost. A call whose answer was cut off costs its price, as
// the provider may bill as much. So does an answer whose usage nobody reports.
func (v *visit) finalCost() (cost limiter.Money, known bool) {
	end := &v.itemEnd
	for range end.Doubtful.Calls {
		cost = cost.Plus(v.price)
	}
	known = end.Doubtful.Calls == 0
	if v.tries == 0 || end.Err != nil {
		return cost, known // the provider refused the others, or never had them
	}
	if v.server.cfg.Cost != nil && end.Usage != (provider.Usage{}) {
		if last, told := v.server.cfg.Cost(v.lane, v.model, end.Usage); told {
			return cost.Plus(last), known
		}
	}
	return cost.Plus(v.price), false
}
