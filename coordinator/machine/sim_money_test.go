package machine

import (
	"errors"
	"math/rand/v2"

	"github.com/headrace/headrace/limiter"
)

// fromMoney gives some runs a budget. It draws from a stream of its own, so that the other
// worlds stay what they were.
func (p *plan) fromMoney() {
	rng := rand.New(rand.NewPCG(p.seed, 17))
	for i := range p.runs {
		r := &p.runs[i]
		has, share, before, unknown := rng.IntN(4) == 0, rng.Float64(), rng.Float64(), rng.IntN(4) == 0
		if !has || p.without&budgets != 0 {
			continue
		}
		seed := rng.Uint64()
		r.config.Price = func(it *Item, lane string, _ float64) (limiter.Money, bool) { return simPrice(seed, it, lane, unknown) }
		r.config.Budget = max(1, limiter.Money(2*share*float64(r.items)*500))
		if rng.IntN(3) == 0 {
			r.config.Spent = limiter.Money(1.2 * before * float64(r.config.Budget))
		}
	}
}

// simPrice returns a price of 0 to 1,000 that differs by item and lane. Some items cost nothing,
// some a lot, and where some price is unknown, that of one item in two hundred is.
func simPrice(seed uint64, it *Item, lane string, unknown bool) (limiter.Money, bool) {
	h := rand.New(rand.NewPCG(seed, it.Seq<<8+uint64(lane[len(lane)-1])))
	switch n := h.IntN(200); {
	case n == 0 && unknown:
		return 0, false
	case n < 10:
		return 0, true
	case n < 15:
		return limiter.Money(h.IntN(10_000)), true
	}
	return limiter.Money(h.IntN(1000)), true
}

// bills says what a call cost: at times more than was reserved for it, and if it broke or said
// nothing, perhaps something.
func (w *world) bills(g Grant, o *Outcome) {
	c := &w.book.runs[g.Run].config
	if c.Price == nil {
		return
	}
	rng := rand.New(rand.NewPCG(w.plan.seed, g.Item.Seq<<8+uint64(g.Item.Calls)))
	price, _ := c.Price(g.Item, g.Lane, 0)
	cost := limiter.Money(rng.Float64() * 1.2 * float64(price))
	switch o.Signal {
	case Succeeded, Answered:
		o.Spent, o.Doubtful = cost, rng.IntN(20) == 0
	case Failed, Nothing:
		if o.Doubtful = !o.Unsent && rng.IntN(2) == 0; o.Doubtful && rng.IntN(2) == 0 {
			o.Spent = cost
		}
	}
}

// bookMoney holds the world's own count of a run's money.
type bookMoney struct {
	spent, reserved, doubtful, over limiter.Money
	excess                          limiter.Money // by which these passed the budget when that was set
	flying                          int
	spentOut                        bool // lack of money has stopped it
}

// pays: a call leaves only if the budget covers it.
func (b *book) pays(g Grant, x *bookItem) {
	r := x.run
	if r.config.Price == nil {
		return
	}
	price, known := r.config.Price(g.Item, g.Lane, 0)
	n := &r.money
	switch left := r.config.Budget - n.spent - n.reserved - n.doubtful; {
	case !known:
		b.w.failf("%v: its price is not known", g)
	case n.spentOut && price > 0:
		b.w.failf("%v: its run was stopped for want of money", g)
	case price > 0 && price > left:
		b.w.failf("%v: it may cost %d, and %d are left", g, price, left)
	}
	n.reserved += price
	n.flying++
}

// paid writes down what a call cost.
func (b *book) paid(x *bookItem, o Outcome) {
	r := x.run
	if r.config.Price == nil {
		return
	}
	price, _ := r.config.Price(x.item, x.grant.Lane, 0)
	n := &r.money
	n.reserved -= price
	n.flying--
	if o.Doubtful {
		n.doubtful += max(price, o.Spent)
	} else {
		n.spent += o.Spent
	}
	n.over += max(0, o.Spent-price)
}

// isSpent: a run stops for want of money only if nothing is reserved, and the next call does not
// fit or has no known price.
func (b *book) isSpent(r *bookRun, cause error) {
	var why *BudgetError
	if !errors.As(cause, &why) || !errors.Is(cause, ErrMaxCost) {
		b.w.failf("run %d was stopped for want of money, by %v", r.id, cause)
	}
	n := &r.money
	left := r.config.Budget - n.spent - n.doubtful
	if !n.spentOut && (!why.Unpriced && (n.reserved > 0 || why.Next <= left || why.Next == 0)) {
		b.w.failf("run %d was stopped for want of money: %v; %d are left, and %d reserved", r.id, cause, left, n.reserved)
	}
	n.spentOut = true
}

// checkMoney: the purse holds what the world has counted.
func (m *Machine) checkMoney(b *book, r *run) {
	q, n := r.purse, &b.runs[r.id].money
	if (q != nil) != (r.cfg.Budget > 0) {
		b.w.failf("run %d has a purse: %v", r.id, q != nil)
	}
	if q == nil {
		return
	}
	reserved := limiter.Money(0)
	for _, x := range q.reserved {
		reserved += x
	}
	if want := (Spending{r.cfg.Budget, n.spent, n.reserved, n.doubtful, n.over, q.OverCalls}); q.Spending != want || reserved != n.reserved {
		b.w.failf("run %d: %+v, %d held; counted %+v", r.id, q.Spending, reserved, want)
	}
	if n.flying == 0 && n.reserved != 0 {
		b.w.failf("run %d: %d are reserved, and no call is in flight", r.id, n.reserved)
	}
	if excess := n.spent + n.reserved + n.doubtful - r.cfg.Budget; excess > n.over+n.excess {
		b.w.failf("run %d: %d over its budget, and calls cost %d more than reserved", r.id, excess, n.over)
	}
	for _, p := range q.waiting {
		if !p.waitsForMoney || p.head() == nil {
			b.w.failf("pool %s waits for money, short %v", p.name, p.waitsForMoney)
		}
	}
}

// checkShort: a pool waits for money only if its head does not fit, or waits behind one that does
// not, and something may come back.
// After each decision.
func (m *Machine) checkShort(b *book, p *pool, it *Item) {
	if p.run.purse.Reserved == 0 {
		b.w.failf("pool %s waits for money, and none is reserved", p.name)
	}
	if p.run.purse.waiting[0] != p {
		return
	}
	left := p.run.purse.Left()
	for _, l := range p.lanes {
		if price, _ := p.run.cfg.Price(it, l.name, 0); price > left {
			return
		}
	}
	if it.pool.waiting.first == it { // another was tried where the breaker probes
		b.w.failf("item %d waits for money, and %d are left", it.Seq, left)
	}
}
