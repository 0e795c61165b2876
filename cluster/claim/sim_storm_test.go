package claim

import "time"

// storms lets things go wrong until the storm is over.
func (w *world) storms() {
	w.in(w.upTo(2*w.every), func() {
		if w.now > w.lasts {
			w.calms()
			return
		}
		w.hit(w.slots[w.rng.IntN(len(w.slots))], w.strike())
		w.storms()
	})
}

// calms ends the storm: dead workers come back, and nothing new goes wrong.
func (w *world) calms() {
	w.log("the storm is over")
	w.calm = true
	w.fate.has &= retries | pieces | drift
	for slot, l := range w.slots {
		if l.dead {
			w.born(slot)
		}
	}
	if w.cancel {
		w.resume()
	}
}

// strike draws what goes wrong now, of what may in this world.
func (w *world) strike() trouble {
	var can []trouble
	for _, t := range []trouble{kills, freezes, cuts, restarts, wipes, drains, cancels} {
		if w.has(t) {
			can = append(can, t)
		}
	}
	if len(can) == 0 {
		return 0
	}
	return can[w.rng.IntN(len(can))]
}

// badLuck strikes a worker, now and then, just when it matters, and the more so the more it does.
func (w *world) badLuck(l *life, matters int) {
	if w.calm || w.strikes == 0 || !w.chance(max(1, w.bad/matters)) {
		return
	}
	w.strikes--
	t := w.strike()
	w.in(w.upTo(pick(w.rng, 0, 50*time.Millisecond)), func() {
		if !w.calm {
			w.hit(l, t)
		}
	})
}

func (w *world) hit(l *life, t trouble) {
	switch t {
	case kills:
		w.kill(l)
	case freezes:
		l.freeze(w.length())
	case cuts:
		l.cut(w.length())
	case restarts:
		w.restart(false)
	case wipes:
		w.restart(true)
	case drains:
		l.drain()
	case cancels:
		w.cancelOrResume()
	}
}

// length draws how long something lasts: less than it takes to be missed, or more than AckWait.
func (w *world) length() time.Duration {
	return w.upTo(pick(w.rng, w.lengths...))
}

func (w *world) kill(l *life) {
	if l.dead {
		return
	}
	w.tally.kills++
	w.log("%s is killed", l.name)
	l.die()
	slot := l.slot
	w.in(w.upTo(40*time.Second), func() {
		if w.slots[slot].dead {
			w.born(slot)
		}
	})
}

// restart takes the hub away and brings it back. It forgets heartbeats, or all it had.
func (w *world) restart(wipe bool) {
	if !w.up {
		return
	}
	w.tally.restarts++
	w.up = false
	w.queue.pulls = nil
	w.log("the hub is gone")
	for _, l := range w.slots {
		l.offline()
	}
	w.in(w.upTo(6*time.Second), func() {
		w.up = true
		w.queue.restart(wipe)
		w.log("the hub is back, wiped: %v", wipe)
		for _, l := range w.slots {
			l.reconnect(w.upTo(reconnectSpread))
		}
	})
}

// reconnectSpread bounds the time between clients that find a returned hub: less than the grace.
const reconnectSpread = 2500 * time.Millisecond

func (w *world) cancelOrResume() {
	if w.cancel {
		w.resume()
		return
	}
	w.cancel = true
	w.log("the job is canceled")
	w.tellAll()
}

func (w *world) resume() {
	w.cancel = false
	w.log("the job is resumed")
	w.tellAll()
}

// tellAll lets every worker read soon what has become of the job.
func (w *world) tellAll() {
	for _, l := range w.slots {
		l.at(w.upTo(time.Second), l.readJob)
	}
}

func (l *life) readJob() {
	if l.w.cancel {
		l.step(Canceled{"j"})
		return
	}
	l.step(Resumed{"j"})
}
