package machine

import "github.com/headrace/headrace/limiter"

// checkBooks recounts what a run's ledger is made from. It is true after each step.
func (m *Machine) checkBooks(b *book, r *run) {
	ledger := r.ledgerAt(m.now)
	if sum, ran := ledger.Sum(), m.now.Sub(r.books.opened); sum != ran {
		b.w.failf("run %d: its ledger adds up to %v of %v", r.id, sum, ran)
	}
	for by, d := range ledger {
		if d < 0 || by == int(BoundNone) && d != 0 {
			b.w.failf("run %d: %v were held back by %q", r.id, d, Bound(by))
		}
	}
	counted := map[*runSeat]int{}
	for _, p := range r.opened {
		if p.counted == 0 {
			continue
		}
		counted[p.behind] += p.counted
		if p.head() == nil {
			b.w.failf("pool %s sleeps, and has nothing to give", p.name)
		}
	}
	if !r.books.sleepers.isHeap() || r.books.sleepers.len() != len(counted) {
		b.w.failf("run %d: %d lanes hold it back; counted %d", r.id, r.books.sleepers.len(), len(counted))
	}
	for x, n := range counted {
		if x.items != n || x.run != r || r.books.sleepers.items[x.pos] != x {
			b.w.failf("run %d: %d items sleep on %s; counted %d", r.id, x.items, x.lane.name, n)
		}
	}
}

// checkBound: what is said to hold a run back does so, by another way of finding out. It is
// true after Ready only.
func (m *Machine) checkBound(b *book, r *run) {
	heads, delayed, short, reasons := 0, 0, 0, map[Bound]bool{}
	for _, p := range r.opened {
		delayed += p.delayed.len() + p.undecided
		if p.head() == nil {
			continue
		}
		if heads++; r.hasRoom() && !r.paused && !m.full() && p.counted == 0 && !p.waitsForMoney {
			b.w.failf("pool %s has something to give, and is awake", p.name)
		}
		if p.waitsForMoney {
			short++
		}
		for _, l := range p.lanes {
			reasons[m.holds(l)] = true
			if l.usable() && len(l.pools) > 1 { // a pool that knows when to ask again does not see what another was given meanwhile
				reasons[BoundCooldown], reasons[BoundRequests] = true, true
				reasons[BoundRecovery] = reasons[BoundRecovery] || l.phase == Ramping
			}
		}
	}
	by, ok := r.bound(), false
	switch by {
	case BoundStopped:
		ok = r.stranded && r.waiting == 0
	case BoundDraining:
		ok = r.draining
	case BoundPaused:
		ok = r.paused
	case BoundInput:
		ok = heads+delayed == 0 && !r.inputEnded
	case BoundTail:
		ok = heads+delayed == 0 && r.inputEnded && r.busy > 0
	case BoundConcurrency:
		ok = r.busy >= r.cfg.Concurrency || m.full()
	case BoundBudget:
		ok = short > 0 || r.purse.overrun != nil && r.waiting == 0
	case BoundBackoff:
		ok = heads == 0 && delayed > 0
	default:
		ok = reasons[kindOf(by)]
	}
	if !ok {
		b.w.failf("run %d is said to be held back by %q: %d pools with something to give, %d delayed, %d of %d busy, %v",
			r.id, by, heads, delayed, r.busy, r.cfg.Concurrency, reasons)
	}
}

// kindOf is one bound for all that laws say of a lane that is well: what of it is the least
// changes with time alone.
func kindOf(by Bound) Bound {
	switch by {
	case BoundCooldown:
		return BoundCooldown
	case BoundOverload, BoundBreaker, BoundRecovery, BoundWindow:
		return by
	}
	return BoundRequests
}

// holds returns the bound to expect from the phase of a lane.
func (m *Machine) holds(l *lane) Bound {
	switch {
	case l.phase == Cooling && l.reason == ByOverload:
		return BoundOverload
	case l.phase == Cooling && l.reason == ByBreaker:
		return BoundBreaker
	case l.phase == Cooling:
		return BoundCooldown
	case l.phase == Probing, l.phase == Ramping && !l.full(m.now):
		return BoundRecovery
	case l.full(m.now):
		return BoundWindow
	}
	if _, h := l.law.Wait(m.now, l.nextCost()); h == limiter.BoundCooldown { // a law may hold calls back longer than its lane cools
		return BoundCooldown
	}
	return BoundRequests
}
