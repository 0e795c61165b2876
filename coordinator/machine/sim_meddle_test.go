package machine

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// meddle plans what people do.
func (w *world) meddle() {
	for _, trouble := range []struct {
		kind  trouble
		share int // one world in so many
		do    func()
	}{
		{withdrawals, 2, w.withdraw},
		{pauses, 3, w.pause},
		{drains, 6, w.drain},
		{newLimits, 3, w.limits},
		{resets, 3, w.reset},
		{clockSteps, 3, w.clockBack},
	} {
		if w.rng.IntN(trouble.share) > 0 || w.plan.without&trouble.kind != 0 {
			continue
		}
		for range 1 + w.rng.IntN(4) {
			w.In(time.Duration(w.rng.Float64()*float64(40*time.Second)), trouble.do)
		}
	}
}

// steer plans what people change of runs while they go on. It draws from a stream of its own, so that the
// other worlds stay what they were.
func (w *world) steer() {
	rng := rand.New(rand.NewPCG(w.plan.seed, 23))
	for range rng.IntN(2) * rng.IntN(6) {
		at, n := time.Duration(rng.Float64()*float64(40*time.Second)), 1+rng.IntN(30)
		if w.plan.machine.Concurrency > 0 && w.plan.without&newCeilings == 0 {
			w.In(at, func() {
				w.plan.machine.Concurrency, w.book.beyond = n, w.m.inFlight
				w.tell(ConcurrencyChanged(0, n))
			})
		}
	}
	for range rng.IntN(2) * rng.IntN(3) {
		at := time.Duration(rng.Float64() * float64(40*time.Second))
		if w.plan.without&newLimits == 0 {
			w.In(at, w.limitsOfAll)
		}
	}
	for i := range w.plan.runs {
		id, c := RunID(1+i), &w.plan.runs[i].config
		widens, changes := rng.IntN(3) == 0, rng.IntN(2) == 0
		for range 1 + rng.IntN(8) {
			at, n, share := time.Duration(rng.Float64()*float64(40*time.Second)), 1+rng.IntN(c.MostConcurrency+3), rng.Float64()
			if widens && w.plan.without&newCeilings == 0 {
				w.In(at, func() { w.widen(id, n) })
			}
			if changes && c.Budget > 0 && w.plan.without&newBudgets == 0 {
				w.In(at, func() { w.fund(id, max(1, limiter.Money(2*share*float64(c.Budget)))) })
			}
		}
	}
}

// limitsOfAll gives every lane the same limits.
func (w *world) limitsOfAll() {
	limits := w.plan.limits()
	for i := range w.plan.lanes {
		if name := w.plan.lanes[i].name; w.m.lanes[name] != nil {
			w.book.lane(name) // its law began by what it is defined as now
		}
	}
	w.tell(LimitsChanged("", limits))
	for i := range w.plan.lanes {
		name := w.plan.lanes[i].name
		c := *w.m.laneConfig(name)
		if w.book.define(name, c); c.Limits != limits {
			w.failf("lane %s has the limits %+v, and all got %+v", name, c.Limits, limits)
		}
	}
}

// widen changes how many calls of a run may be in flight, at times to more than may be.
func (w *world) widen(id RunID, n int) {
	c := &w.book.runs[id].config
	c.Concurrency = min(n, c.MostConcurrency)
	w.tell(ConcurrencyChanged(id, n))
}

// fund changes what a run may cost. A run that was stopped for want of money stays so.
func (w *world) fund(id RunID, most limiter.Money) {
	if r := w.m.runs[id]; r != nil && r.purse.overrun == nil {
		b := w.book.runs[id]
		b.config.Budget = most
		b.money.excess = max(0, b.money.spent+b.money.reserved+b.money.doubtful-most)
	}
	w.tell(BudgetChanged(id, most))
}

func (w *world) anyRun() RunID   { return RunID(1 + w.rng.IntN(len(w.plan.runs))) }
func (w *world) anyLane() string { return w.plan.lanes[w.rng.IntN(len(w.plan.lanes))].name }

func (w *world) withdraw() {
	for range 1 + w.rng.IntN(10) {
		if items := w.book.items; len(items) > 0 {
			w.tell(Withdrawn(items[w.rng.IntN(len(items))].item))
		}
	}
}

// withdrawEarly withdraws an item that will be offered later.
func (w *world) withdrawEarly(it *Item, offered time.Duration) {
	if w.plan.without&withdrawals != 0 || w.hasty.IntN(100) > 0 {
		return
	}
	w.In(time.Duration(w.hasty.Float64()*float64(offered)), func() {
		w.book.early[it] = true
		w.tell(Withdrawn(it))
	})
}

func (w *world) pause() {
	id := w.anyRun()
	w.book.runs[id].paused++
	w.tell(Paused(id))
	w.In(time.Duration(w.rng.IntN(30))*time.Second, func() {
		if r := w.book.runs[id]; r.paused > 0 {
			r.paused = 0
			w.tell(Resumed(id))
		}
	})
}

func (w *world) drain() {
	id := w.anyRun()
	w.book.runs[id].draining = true
	w.tell(Drained(id))
}

func (w *world) limits() {
	name := w.anyLane()
	if w.m.lanes[name] != nil {
		w.book.lane(name) // its law began by what it is defined as now
	}
	c := *w.m.laneConfig(name)
	c.Limits = w.plan.limits()
	if w.rng.IntN(2) == 0 {
		w.tell(LimitsChanged(name, c.Limits))
	} else {
		w.redefine(&c)
		w.tell(LaneDefined(name, c))
	}
	w.book.define(name, c)
}

// redefine changes what a lane in use takes over, and its law at times.
func (w *world) redefine(c *LaneConfig) {
	c.Window = w.rng.IntN(5)
	if w.rng.IntN(2) == 0 {
		c.Ramp = w.plan.ramp()
	}
	if w.rng.IntN(3) == 0 {
		c.Law = limiter.Plain - c.Law
	}
	if w.hasty.IntN(2) == 0 { // it holds from the next law on
		c.Charge = chargeOf(w.hasty)
	}
}

func (w *world) reset() {
	name := w.anyLane()
	w.book.freed(name)
	w.tell(LaneReset(name))
}

// clockBack looks once with a clock that is behind.
func (w *world) clockBack() {
	now := w.now
	w.now = now.Add(-time.Duration(w.rng.Float64() * float64(time.Hour)))
	w.say("the clock is set back")
	w.ready()
	w.now = now
}
