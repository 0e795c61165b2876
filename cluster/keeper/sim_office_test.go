package keeper

import (
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// An office is where the keeper is: it dies, and another takes its place after a while.
type office struct {
	l     *lab
	desks []*desk
	epoch uint64
	saved map[string]machine.LaneMemory
	stops map[string]*permit.Cause
	gone  Counts // of those that are dead
}

// A desk is one keeper at work.
type desk struct {
	o     *office
	k     *Keeper
	clock clock
	alive bool
	timer int
	at    time.Duration // the timer's
	half  int           // of two keepers in a split: which workers it hears; -1: all
}

func (o *office) begin() {
	o.open(-1)
	o.l.every(500*time.Millisecond, func() {
		for _, d := range o.desks {
			if d.alive {
				o.saved, o.stops = d.save(), d.k.Stops()
			}
		}
	})
	if o.l.plan.storm {
		o.l.every(o.l.plan.kills, o.kill)
	}
	if s := o.l.plan.split; s[1] > 0 {
		o.l.after(s[0], func() {
			o.desks[0].half = 0
			o.open(1)
		})
		o.l.after(s[1], func() {
			o.desks[0].alive = false
			o.desks = o.desks[1:]
			o.desks[0].half = -1
		})
	}
}

func (d *desk) save() map[string]machine.LaneMemory {
	now := d.clock.at(d.o.l.now)
	if d.o.l.plan.hand != nil {
		return d.o.l.plan.hand(d.k, now)
	}
	return d.k.Save(now)
}

// open has a keeper begin.
func (o *office) open(half int) {
	o.epoch++
	d := &desk{o: o, alive: true, clock: o.l.clock(50 * time.Millisecond), half: half}
	d.k = New(o.config(o.epoch))
	for _, j := range o.l.plan.jobs {
		d.k.Job(d.clock.at(o.l.now), j.name, j.weight)
	}
	o.desks = append(o.desks, d)
}

func (o *office) config(epoch uint64) Config {
	c := Config{Epoch: epoch, Seed: o.l.plan.seed + epoch, Memory: o.saved, Stops: o.stops, Limits: map[string]machine.LaneConfig{}}
	for _, name := range o.l.plan.limits {
		c.Limits[name] = o.l.plan.known()
	}
	return c
}

// kill ends the keeper. With T = 3 s another one has won the lease after T·1.01, and ways,
// less what had passed since the dead one's last renewal.
func (o *office) kill() {
	d := o.desks[0]
	if !d.alive {
		return
	}
	d.alive = false
	o.gone = o.gone.plus(d.k.totals())
	o.desks = nil
	o.l.after(3030*time.Millisecond+o.l.span(1, 50*time.Millisecond)-o.l.span(0, 750*time.Millisecond), func() { o.open(-1) })
}

// totals are of all keepers that there were.
func (o *office) totals() Counts {
	c := o.gone
	for _, d := range o.desks {
		c = c.plus(d.k.totals())
	}
	return c
}

func (k *Keeper) totals() (c Counts) {
	for _, l := range k.order {
		c = c.plus(l.counts)
	}
	return c
}

func (c Counts) plus(d Counts) Counts {
	return Counts{c.Given + d.Given, c.Ended + d.Ended, c.Refused + d.Refused, c.Unused + d.Unused, c.Vanished + d.Vanished}
}

func (o *office) hear(from *worker, word any) {
	for _, d := range o.desks {
		if d.alive && (d.half < 0 || d.half == from.slot%2) {
			d.hear(word.(*permit.Ask))
		}
	}
}

func (d *desk) hear(a *permit.Ask) {
	if d.o.l.plan.taped != nil {
		d.o.l.plan.taped(d, a)
	}
	if err := d.k.Heard(d.clock.at(d.o.l.now), *a); err != nil {
		d.o.l.book.fail("an ask was not heard: %v", err)
	}
	d.decide()
}

func (d *desk) decide() {
	if !d.alive {
		return
	}
	l := d.o.l
	if l.plan.taped != nil {
		l.plan.taped(d, nil)
	}
	out := d.k.Ready(d.clock.at(l.now))
	for _, g := range out.Gives {
		l.book.gave(&g)
		l.post(func() { l.deliver(l.pass(&g).(*permit.Give)) })
	}
	for _, c := range out.Cools {
		for _, w := range l.workers {
			if d.half < 0 || d.half == w.slot%2 {
				l.post(func() { w.tell(c.Limit, "", l.pass(&c)) })
			}
		}
	}
	if l.plan.watched != nil {
		l.plan.watched(d)
	}
	if !out.WakeAt.IsZero() {
		d.wake(d.clock.until(l.now, out.WakeAt))
	}
}

// wake sets the timer, unless it rings earlier already.
func (d *desk) wake(in time.Duration) {
	l := d.o.l
	if at := l.now + in; d.at > l.now && d.at <= at {
		return
	}
	d.timer++
	timer := d.timer
	d.at = l.now + in
	l.after(in, func() {
		if d.timer == timer {
			d.at = 0
			d.decide()
		}
	})
}
