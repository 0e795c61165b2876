package machine

import "github.com/headrace/headrace/limiter"

// This file is about what items draw on lanes. An item carries estimates, and each lane turns
// them into a cost by the rule of its provider. So the same item may cost more on one lane than
// on another. A lane keeps its rule for as long as its law. So the charge of a call that left
// is the same when it ends and is settled.
//
// Most lanes take the estimates as they are. They are marked, so their items cost only a look
// at the mark.

// recharge changes the rule by which the lane charges, and renews the sums that depend on it.
func (l *lane) recharge(c limiter.Charge) {
	if l.charge == c {
		return
	}
	l.charge, l.ruled = c, c != limiter.Charge{}
	for _, p := range l.pools {
		if p.lanes[0] == l {
			p.ruled, p.cost = l.ruled, p.sum(l)
		}
	}
}

// settle replaces the costs in the news of a call by those of the lane's rule.
func (l *lane) settle(n *limiter.News, o *Outcome) {
	n.Cost = l.charge.Of(n.Cost)
	if o.Measured {
		n.Actual = l.charge.Settled(o.Actual, o.Cached)
		if free := o.Actual.Input - n.Actual.Input; free > 0 {
			n.Cached = free
		}
	}
}

// comes adds an item's draw to the sum of those that wait in the pool.
func (p *pool) comes(it *Item) {
	if p.ruled {
		p.cost = p.cost.Plus(p.lanes[0].charge.Of(it.Cost))
		return
	}
	p.cost = p.cost.Plus(it.Cost)
}

// goes takes it away again.
func (p *pool) goes(it *Item) {
	if p.ruled {
		p.cost = p.cost.Minus(p.lanes[0].charge.Of(it.Cost))
		return
	}
	p.cost = p.cost.Minus(it.Cost)
}

// costOn returns the cost, on one of its lanes, of the items that wait in the pool.
func (p *pool) costOn(l *lane) limiter.Cost {
	if p.lanes[0].charge == l.charge {
		return p.cost
	}
	return p.sum(l)
}

// sum looks at each item that waits, so it is only for pictures and for a change of the rule.
func (p *pool) sum(l *lane) (c limiter.Cost) {
	for it := p.waiting.first; it != nil; it = it.next {
		c = c.Plus(l.charge.Of(it.Cost))
	}
	for _, items := range [][]*Item{p.returned.items, p.delayed.items, p.undecidedItems()} {
		for _, it := range items {
			c = c.Plus(l.charge.Of(it.Cost))
		}
	}
	return c
}
