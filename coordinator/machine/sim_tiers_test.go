package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is about tiers: which lanes of its pool an item may use, as the book knows it.
//
//	all lanes before it stopped, or ill for After ─▶ yes
//	some are well, and the pool never spills ──────▶ no
//	some are well, and the pool spills ────────────▶ once its head has waited for Spill, or a lane that is
//	                                                well says that it must

// inItsPool: a lane of the pool, and of a later tier only while all lanes before it have stopped
// or were ill for long enough, or some are well and the pool spills.
func (b *book) inItsPool(g Grant, x, head *bookItem) {
	c := x.run.poolOf(x.pool)
	at := slices.Index(c.Lanes, g.Lane)
	if at < 0 {
		b.w.failf("%v: no lane of its pool", g)
	}
	if c.Tiers == nil {
		return
	}
	well, why := false, ""
	unseen := false // a lane cools outside, but is full: the machine asks its law only when there is room
	for i, name := range c.Lanes {
		l := b.lane(name)
		switch {
		case c.Tiers[i] == c.Tiers[at] && well && c.Spill > 0:
			b.spills(g, head, c.Lanes[:i], c.Spill)
			return
		case c.Tiers[i] == c.Tiers[at]:
			waited := b.w.m.now.Sub(head.run.waits[head.pool])
			if why != "" && (well || !unseen || c.Spill == 0 || waited < c.Spill) {
				b.w.failf("%v: %s", g, why)
			}
			return
		case l.phase == Stopped && l.fell.Equal(b.w.m.now) && c.Spill > 0:
			return // the call may have left before, in the same decision: what the lane's law said then is not known
		case l.phase == Stopped, l.climbs(c.After):
		case l.isWell() && !b.rests(name):
			well, why = true, fmt.Sprintf("lane %s comes first and is %v", name, l.phase)
		case l.isWell() && l.of.full(b.w.m.now):
			unseen = true
		case !l.isRemote() && b.w.m.now.Sub(l.fell) < c.After:
			why = fmt.Sprintf("lane %s comes first and is %v only since %v", name, l.phase, l.fell.Sub(storyStart))
		}
	}
}

// climbs reports whether the lane climbs after so long an illness that it keeps no pool.
func (l *bookLane) climbs(after time.Duration) bool {
	return after > 0 && l.phase == Ramping && l.lay >= after
}

// spills: the head of a pool has waited for its patience, or a better lane that is well must let
// it wait for that long in all. It has not waited since before the latest call of its pool.
func (b *book) spills(g Grant, head *bookItem, better []string, patience time.Duration) {
	left := patience - b.w.m.now.Sub(head.run.waits[head.pool])
	if left <= 0 {
		return
	}
	some := false
	for _, name := range better {
		l := b.lane(name)
		if !l.isWell() || b.rests(name) {
			continue
		}
		if len(l.of.pools) > 1 { // another pool may stand before this one: how long it waits there is not known
			some = true
			continue
		}
		if slices.ContainsFunc(b.later, func(later Grant) bool { return later.Lane == name }) {
			some = true // a call that left there since has changed what its law says
			continue
		}
		waits := b.foresees(l, head.item)
		some = some || waits > left
		if waits <= left {
			b.w.failf("%v: its pool spills only in %v, and on lane %s it must wait for %v", g, left, name, waits)
		}
	}
	if !some {
		b.w.failf("%v: its pool spills only in %v, and may go before that elsewhere", g, left)
	}
}

// foresees returns the wait of an item for a lane that is well, and a bit more: it is asked after the
// decision, and found by halving. A lane that has no place left does not know.
func (b *book) foresees(l *bookLane, it *Item) time.Duration {
	law, now := l.of.ownLaw(), b.w.m.now
	if l.of.full(now) {
		return forever
	}
	wait, _ := law.Wait(now, l.charge.Of(it.Cost))
	if f, is := law.(limiter.Foreseer); is && wait != forever {
		wait = f.WaitInAll(now, l.charge.Of(it.Cost))
	}
	if wait == forever {
		return forever
	}
	return wait + wait/500 + 2*time.Millisecond
}

// Whether the items of a pool may use a lane now, as far as the book can know.
type maybe uint8

const (
	no maybe = iota
	unknown
	yes
)

// mayUse reckons whether the items of a pool may use a lane of it now. The book does not know for how long a
// remote lane has rested, nor for how long exactly a head has waited.
func (b *book) mayUse(x *bookItem, lane string) maybe {
	c := x.run.poolOf(x.pool)
	at := slices.Index(c.Lanes, lane)
	switch {
	case at < 0:
		return no
	case c.Tiers == nil || c.Tiers[at] == 0:
		return yes
	}
	may := yes
	for i, name := range c.Lanes {
		if c.Tiers[i] == c.Tiers[at] {
			break
		}
		switch l := b.lane(name); {
		case l.phase == Stopped, l.climbs(c.After):
		case l.isRemote() && b.hasRested(name):
			may = min(may, unknown)
		case l.isWell(), b.w.m.now.Sub(l.fell) < c.After:
			may = no
		}
	}
	if may == no && c.Spill > 0 && b.w.m.now.Sub(x.run.waits[x.pool]) >= c.Spill {
		return unknown
	}
	return may
}

// hasRested reports whether the law of a remote lane has let it rest, ever.
func (b *book) hasRested(lane string) bool {
	law, is := b.w.m.lanes[lane].ownLaw().(*simRemote)
	return !is || !law.rests.IsZero()
}

// wasWell: a call that left at a moment was answered, and the lane lets calls go.
func (l *bookLane) wasWell(sent time.Time) {
	if l.isWell() && !sent.Before(l.fell) {
		l.fell = time.Time{}
	}
}

// isWell reports whether the lane lets calls go.
func (l *bookLane) isWell() bool { return l.phase == Flowing || l.phase == Ramping }
