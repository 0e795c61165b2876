package machine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/headrace/headrace/limiter"
)

// A run may have a budget: a gauge of money that never refills. A call reserves its price when
// it is granted, and its end settles that:
//
//	cap ─┬─ left ──── reserve ──▶ reserved ──┬─ the cost is known ─────▶ spent
//	     │     ▲                             ├─ it may have been billed ▶ doubtful
//	     │     └─────────────────────────────┴─ refused, never sent
//
// The head of a pool that does not fit waits while something is reserved, since that may come
// back. Nothing that costs money overtakes it in its run: not even a cheaper lane, nor another pool.
// Once nothing is reserved the run is over: all items that wait are released, and those that still
// come.

// A PriceFunc returns the most that a call of the item is expected to cost on the lane; false:
// its price is not known, and the run must stop. usual is the most that an answer without a
// bound is expected to write there, in tokens: [UsualFactor] times the longest of a thousand; 0:
// too few have ended. The function is called while the machine decides, so it must be fast.
type PriceFunc func(it *Item, lane string, usual float64) (price limiter.Money, known bool)

// Reservations for answers whose length nothing bounds.
const (
	// UsualFactor multiplies the length of the longest of a thousand answers to get the length
	// that is reserved for the next one. Lengths have long tails: half as much again covers
	// nearly all of them.
	UsualFactor = 1.5
	// UsualAfter is the number of answers after which their lengths are believed.
	UsualAfter = 100
	// usualShare is the share of the answers that are no longer than the usual one.
	usualShare = 0.999
)

// Spending is a picture of a run's money. It is zero if the run has no budget.
type Spending struct {
	Cap       limiter.Money // the budget
	Spent     limiter.Money // the cost of calls that have ended, with what was spent before
	Reserved  limiter.Money // of calls in flight
	Doubtful  limiter.Money // the most that calls which broke may cost in addition
	Over      limiter.Money // by which calls cost more than was reserved for them, in all
	OverCalls int           // the number of those calls
}

// Left returns the part of the budget that is neither spent nor reserved nor in doubt. It is
// negative if calls cost more than was reserved for them.
func (s Spending) Left() limiter.Money {
	return s.Cap - s.Spent.Plus(s.Reserved).Plus(s.Doubtful)
}

// ErrMaxCost says that a run's budget does not cover the next call. It is the kind of a
// [BudgetError], which has the details.
var ErrMaxCost = errors.New("machine: the budget does not cover the next call")

// A BudgetError says why a run with a budget has stopped.
type BudgetError struct {
	Spending
	Next     limiter.Money // the price of the call that did not fit
	Lane     string        // on which that call would have left
	Item     uint64        // the number of its item in the run
	Unpriced bool          // its price is not known, and Next is 0
}

// Error says what does not fit, and into what.
func (e *BudgetError) Error() string {
	if e.Unpriced {
		return fmt.Sprintf("%v: its price on %s is not known, and %v of %v are left", ErrMaxCost, e.Lane, e.Left(), e.Cap)
	}
	return fmt.Sprintf("%v: it may cost %v, and %v of %v are left", ErrMaxCost, e.Next, e.Left(), e.Cap)
}

// Is makes errors.Is(err, ErrMaxCost) true.
func (e *BudgetError) Is(target error) bool { return target == ErrMaxCost }

// purse holds the money of a run with a budget.
//
// Invariants: Reserved is the sum of held over the calls in flight. Whenever a call that costs
// anything leaves, Left is not negative.
type purse struct {
	Spending
	price    PriceFunc
	reserved []limiter.Money     // by the slot of a call in its run's flights
	waiting  []*pool             // those whose head does not fit, or waits behind one that does not
	lengths  map[string]*lengths // of answers, by lane
	overrun  *BudgetError        // why the run has stopped; nil: it has not
}

// newPurse returns the purse of a run; nil: it has no budget.
func newPurse(c *RunConfig) *purse {
	if c.Budget == 0 {
		return nil
	}
	return &purse{Spending: Spending{Cap: c.Budget, Spent: c.Spent, Doubtful: c.Doubtful}, price: c.Price, lengths: map[string]*lengths{}}
}

// affords returns the price of a call of the item on l, and whether the run's money suffices for
// it. If it does not, the pool waits for money that is reserved. If none is reserved, the run
// stops.
func (m *Machine) affords(p *pool, it *Item, l *lane) (price limiter.Money, fits bool) {
	purse := p.run.purse
	price, known := purse.price(it, l.name, purse.lengths[l.name].usual())
	price = max(0, price)
	first := len(purse.waiting) == 0 || purse.waiting[0] == p
	switch {
	case known && (price == 0 || first && price <= purse.Left()):
		return price, true
	case known && (purse.Reserved > 0 || !first):
		p.clearWaits() // or the wait for money would let it spill
		m.leaveLines(p)
		purse.setWaiting(p, true)
		m.schedulePoolSays(p)
	default:
		if !known {
			price = 0
		}
		m.stopOverBudget(p.run, &BudgetError{Spending: purse.Spending, Next: price, Lane: l.name, Item: it.Seq, Unpriced: !known})
	}
	return 0, false
}

// setWaiting puts a pool at the end of those that wait for money, or takes it out. The first of
// them has a claim to the money that comes back. Once it has left, the next one is asked.
func (q *purse) setWaiting(p *pool, waits bool) {
	if waits == p.waitsForMoney {
		return
	}
	if p.waitsForMoney = waits; waits {
		q.waiting = append(q.waiting, p)
		return
	}
	at := slices.Index(q.waiting, p)
	if q.waiting = slices.Delete(q.waiting, at, at+1); at == 0 {
		q.askFirst()
	}
}

// askFirst asks the pool that waits for money first again.
func (q *purse) askFirst() {
	if len(q.waiting) > 0 {
		q.waiting[0].wake()
	}
}

// reserve sets the price of a call in flight aside.
func (q *purse) reserve(slot int, price limiter.Money) {
	for len(q.reserved) <= slot {
		q.reserved = append(q.reserved, 0)
	}
	q.reserved[slot] = price
	q.Reserved = q.Reserved.Plus(price)
}

// settle books what a call has cost once it has ended, and frees what was reserved for it. Then it
// asks the pool that waits for money first.
func (q *purse) settle(it *Item, o *Outcome) {
	reserved := q.reserved[it.pos]
	q.reserved[it.pos] = 0
	q.Reserved -= reserved
	spent := max(0, o.Spent)
	if o.Doubtful {
		spent = max(spent, reserved)
		q.Doubtful = q.Doubtful.Plus(spent)
	} else {
		q.Spent = q.Spent.Plus(spent)
	}
	if spent > reserved {
		q.Over = q.Over.Plus(spent - reserved)
		q.OverCalls++
	}
	if o.Measured && it.Cost.Output == 0 { // nothing bounds it
		q.lengthsOn(it.lane.name).add(o.Actual.Output)
	}
	q.askFirst()
}

// lengthsOn returns the lengths of the answers on a lane, and begins to keep them at the first
// request.
func (q *purse) lengthsOn(lane string) *lengths {
	n := q.lengths[lane]
	if n == nil {
		n = &lengths{}
		q.lengths[lane] = n
	}
	return n
}

// stopOverBudget stops a run whose money does not suffice, and releases its items.
func (m *Machine) stopOverBudget(r *run, why *BudgetError) {
	r.purse.overrun = why
	for _, p := range r.opened {
		m.releaseAll(p, EndUnpaid, why)
		m.schedulePoolSays(p)
	}
	m.budgetSpent = true
	m.giveUp(r, why)
}

// setBudget changes how much a run may cost. The pool that waits for money first is asked again.
func (m *Machine) setBudget(r *run, budget limiter.Money) {
	if r == nil || r.purse == nil || r.purse.overrun != nil {
		return
	}
	r.cfg.Budget, r.purse.Cap = budget, budget
	m.touch(r)
	r.purse.askFirst()
}

// lengths counts the tokens of answers in steps of 9 %.
type lengths struct {
	n      int
	counts [lengthSteps]uint32
}

// Steps of lengths: eight to each doubling, up to four billion tokens.
const (
	stepsPerDoubling = 8
	lengthSteps      = 32 * stepsPerDoubling
)

func (n *lengths) add(tokens float64) {
	step := math.Ceil(stepsPerDoubling * math.Log2(max(1, tokens)))
	n.counts[int(min(step, lengthSteps-1))]++
	n.n++
}

// usual returns how many tokens to reserve for an answer without a bound; 0: too few answers have
// ended.
func (n *lengths) usual() float64 {
	if n == nil || n.n < UsualAfter {
		return 0
	}
	longer := n.n - int(math.Ceil(usualShare*float64(n.n)))
	step := lengthSteps - 1
	for ; step > 0; step-- {
		if longer -= int(n.counts[step]); longer < 0 {
			break
		}
	}
	return UsualFactor * math.Exp2(float64(step)/stepsPerDoubling)
}
