package machine

import "github.com/headrace/headrace/limiter"

// What items draw on lanes. An item tells what was estimated; each lane makes the cost of
// it by the rule of its provider, so the same item may cost more on one lane than on
// another. A lane keeps one rule for as long as one law: what a call was charged when it
// left is what is settled when it ends.
//
// Most lanes take what is told as it is. They are marked, so that this costs their items
// nothing but a look.

// recharge has the lane charge by another rule, and sums up anew what is summed up by its
// own.
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

// settle puts the costs in the news of a call as the lane's rule makes them.
func (l *lane) settle(n *limiter.News, o *Outcome) {
	n.Cost = l.charge.Of(n.Cost)
	if o.Measured {
		n.Actual = l.charge.Settled(o.Actual, o.Cached)
		if free := o.Actual.Input - n.Actual.Input; free > 0 {
			n.Cached = free
		}
	}
}

// comes adds what an item draws to the sum of those that wait in the pool.
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

// costOn is what the items that wait in the pool draw on one of its lanes.
func (p *pool) costOn(l *lane) limiter.Cost {
	if p.lanes[0].charge == l.charge {
		return p.cost
	}
	return p.sum(l)
}

// sum looks at each item that waits: it is for pictures, and for when a rule changes.
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
