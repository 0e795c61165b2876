package machine

import (
	"slices"
	"time"
)

// What the book says to the waits that the machine says, and to those that it does not.

// longWait: what is said to wait does, for that long, and it was not said before.
func (b *book) longWait(lw LongWait) {
	w, bound := b.w, b.w.m.cfg.LongWait
	switch {
	case lw.Since.After(lw.At) || lw.At.After(w.now):
		w.failf("%v: it begins at %v, and is said at %v", lw, lw.Since, lw.At)
	case !lw.Until.IsZero() && !lw.Until.After(lw.At):
		w.failf("%v: it is over", lw)
	case lw.At.Sub(lw.Since) < bound && lw.Until.Sub(lw.Since) <= bound:
		w.failf("%v: that is not longer than %v", lw, bound)
	}
	if lw.Own {
		b.itemWaits(lw)
	} else {
		b.laneWaits(lw)
	}
}

func (b *book) itemWaits(lw LongWait) {
	i := slices.IndexFunc(b.items, func(x *bookItem) bool { return x.run.id == lw.Run && x.item.Seq == lw.Item })
	x := b.items[i]
	if x.place == Releasing {
		return // its time was up as well, or it was not wanted any more: that was found by the same look
	}
	if x.back != lw.Since || x.grant.Lane != lw.Lane || x.last.Signal == Failed != (lw.Cause == NoReason) {
		b.w.failf("%v: item %d of run %d is back on %s since %v", lw, x.item.Seq, x.run.id, x.grant.Lane, x.back)
	}
}

func (b *book) laneWaits(lw LongWait) {
	w, l := b.w, b.lane(lw.Lane)
	waiting, first := b.waitFor(lw.Lane)
	switch {
	case waiting == 0:
		w.failf("%v: nothing waits", lw)
	case lw.Since.Before(first):
		w.failf("%v: the first that waits was offered at %v", lw, first)
	case lw.Phase != l.phase || l.phase == Stopped:
		w.failf("%v: the lane is %v", lw, l.phase)
	case lw.Since.Before(l.letIn):
		w.failf("%v: a call was let in at %v", lw, l.letIn)
	case !l.said.IsZero() && !l.letIn.After(l.said) && !l.said.Before(first) && !lw.Since.After(l.said):
		w.failf("%v: that was said at %v", lw, l.said)
	case (l.phase == Flowing || l.phase == Ramping) && l.inEpoch > 0:
		w.failf("%v: %d calls are under way", lw, l.inEpoch)
	}
	l.said = lw.At
}

// waitFor counts the items that wait for a lane, whose run could send one, and says
// when the first of them was offered.
func (b *book) waitFor(lane string) (n int, first time.Time) {
	for _, x := range b.living {
		if !x.couldGo() {
			continue
		}
		for _, name := range x.lanes {
			if name == lane {
				if n++; n == 1 || x.item.Offered.Before(first) {
					first = x.item.Offered
				}
			}
		}
	}
	return n, first
}

// isSaid: a lane that has been ill for longer than the bound, while items waited for it
// all the time and for no other, was said to wait, if each of them came that long ago.
func (b *book) isSaid() {
	for _, l := range b.pages {
		name := l.name
		if l.phase != Cooling && l.phase != Probing {
			l.unhealthySince = time.Time{}
			continue
		}
		some, latestOffer := b.onlyFor(name)
		if !some {
			l.unhealthySince = time.Time{}
			continue
		}
		if l.unhealthySince.IsZero() {
			l.unhealthySince = b.w.m.now
		}
		if d := b.w.m.now.Sub(latest(l.unhealthySince, latestOffer)); d > b.w.m.cfg.LongWait && (l.said.IsZero() || l.said.Before(l.letIn)) {
			b.w.failf("lane %s is %v and lets nothing in for %v, and nobody was told", name, l.phase, d)
		}
	}
}

// onlyFor reports whether items wait that no other lane could take, and when the latest
// of them was offered.
func (b *book) onlyFor(lane string) (some bool, offered time.Time) {
	for _, x := range b.living {
		if x.couldGo() && len(x.lanes) == 1 && x.lanes[0] == lane {
			some, offered = true, latest(offered, x.item.Offered)
		}
	}
	return some, offered
}

// couldGo reports whether an item waits, and nothing but its lanes keeps it from a call.
func (x *bookItem) couldGo() bool {
	waits := x.place == Waiting || x.place == Parked || x.place == Delayed || x.place == Undecided && x.item.place != Undecided
	return waits && x.item.place != Releasing && x.run.paused == 0 && x.run.busy < withDefault(x.run.config.Concurrency)
}
