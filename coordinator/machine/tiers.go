package machine

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is about pools that prefer some of their lanes to others, or give some of them more
// turns.
//
//	tier 0: a, b in turn ──both stopped, or ill for After──▶ tier 1: c ──likewise──▶ tier 2
//	                     ──the head would wait for Spill───▶
//
// A pool asks its tiers from the best one on, each time anew. So it goes back by itself.
//
// Lanes with weights take smooth turns: 3 : 1 is a b a a, and not a a a b.

// tiers holds what a pool knows of its tiers.
type tiers struct {
	tierOf     []int // the tier of each of the pool's lanes
	turns      []int // by tier: how many of its lanes stand before the one that is asked first
	after      time.Duration
	spill      time.Duration // 0: never
	waitsSince time.Time     // since when the pool's head waits for its lanes; zero: it does not
	wokenAt    time.Time     // since when it does not sleep in their lines; of a pool that is awake
	opensAt    time.Time     // when its lanes have been ill for long enough, as it was last asked; zero: not by time alone
	heavy      *weights      // nil: all lanes weigh the same
}

// newTiers returns the tiers of a pool; nil if all its lanes are of one tier and weigh the same.
func newTiers(c PoolConfig) *tiers {
	if c.Tiers == nil && c.Weights == nil {
		return nil
	}
	n, of := len(c.Lanes), c.Tiers
	if of == nil {
		of = make([]int, n)
	}
	heavy := newWeights(c.Weights)
	if of[n-1] == 0 && heavy == nil {
		return nil
	}
	return &tiers{tierOf: of, turns: make([]int, of[n-1]+1), after: c.After, spill: c.Spill, heavy: heavy}
}

// hasNextTier reports whether the pool has a tier after that of its i-th lane.
func (t *tiers) hasNextTier(i int) bool { return t != nil && t.tierOf[i] < len(t.turns)-1 }

// span returns the lanes of a tier: from first up to end.
func (t *tiers) span(tier int) (first, end int) {
	first, _ = slices.BinarySearch(t.tierOf, tier)
	end, _ = slices.BinarySearch(t.tierOf, tier+1)
	return first, end
}

// index returns which lane is asked as the i-th: those of a tier take turns.
func (t *tiers) index(i int) int {
	tier := t.tierOf[i]
	first, end := t.span(tier)
	return first + (i-first+t.turns[tier])%(end-first)
}

// pickOfTiers does what pick does, for a pool with tiers. If the item must wait and a lane that was
// asked is well, first is such a lane.
func (p *pool) pickOfTiers(now time.Time, it *Item) (first *lane, soonest time.Duration, asked int) {
	t := p.tiers
	t.skipAwakeTime(now, p)
	var well *lane
	crowded := -1       // the first lane of a tier that could go, and has its share of the run's places
	foreseen := forever // until a lane that is well takes the item
	soonest = forever
	if t.heavy != nil {
		t.heavy.forget()
	}
	for i := range p.lanes {
		tier, k := t.tierOf[i], t.index(i)
		l := p.lanes[k]
		start, end := t.span(tier)
		wait := p.waitOn(now, l, it)
		switch {
		case wait > 0:
		case t.heavy != nil:
			t.heavy.addReady(k, p.hasItsWeight(k, start, end))
		case !p.hasItsShare(k, end-start):
			t.turns[tier] = k + 1 - start
			return l, 0, i + 1
		case crowded < 0:
			crowded = k
		}
		if i+1 == end && t.heavy != nil {
			crowded = t.heavy.next()
		}
		if i+1 == end && crowded >= 0 {
			t.turns[tier] = crowded + 1 - start
			return p.lanes[crowded], 0, i + 1
		}
		if wait == 0 {
			continue
		}
		if first == nil || wait < soonest || first.phase == Stopped {
			first, soonest = l, min(wait, soonest)
		}
		if l.well() {
			if well == nil || wait < well.delay {
				well = l
			}
			if t.spill > 0 {
				foreseen = min(foreseen, l.foreseen(now, it, wait))
			}
		}
		if asked = i + 1; asked < len(p.lanes) && t.tierOf[asked] > tier && !p.opensNext(now, tier, foreseen) {
			break
		}
	}
	if well != nil {
		first = well
	}
	if asked == len(p.lanes) {
		t.opensAt = time.Time{}
	}
	return first, soonest, asked
}

// opensNext reports whether the pool's head may use the tier after this one. If it may not yet,
// only because lanes have not been ill for long enough, it stores when it may. foreseen is the wait
// until a lane that is well takes the head; forever: unknown.
func (p *pool) opensNext(now time.Time, tier int, foreseen time.Duration) bool {
	t := p.tiers
	switch at, leaves := p.leavesTierAt(tier); {
	case leaves && at.After(now):
		t.opensAt = at
		return false
	case leaves:
		return true
	}
	t.opensAt = time.Time{}
	if t.spill == 0 {
		return false
	}
	at := t.spillsAt(now)
	return !at.After(now) || foreseen != forever && now.Add(foreseen).After(at)
}

// spillsAt returns when the head has waited for long enough.
func (t *tiers) spillsAt(now time.Time) time.Time {
	if t.waitsSince.IsZero() {
		return now.Add(t.spill)
	}
	return t.waitsSince.Add(t.spill)
}

// leavesTierAt returns from when on the pool may leave this tier for the next. It reports false if
// a lane that is well keeps the pool. A lane that has stopped, or has been ill for long enough,
// does not keep it. Nor does such a lane while it climbs, as it cannot take all items yet.
func (p *pool) leavesTierAt(tier int) (at time.Time, leaves bool) {
	t := p.tiers
	for i, l := range p.lanes {
		switch {
		case t.tierOf[i] > tier:
			return at, true
		case l.phase == Stopped, t.after > 0 && l.phase == Ramping && l.illness.span() >= t.after:
		case l.well():
			return at, false
		default:
			at = latest(at, l.illness.began().Add(t.after))
		}
	}
	return at, true
}

// uses reports whether the pool's next item could go out on a lane of the tier.
func (p *pool) uses(now time.Time, tier int) bool {
	if tier == 0 {
		return true
	}
	at, leaves := p.leavesTierAt(tier - 1)
	return leaves && !at.After(now) || p.tiers.spill > 0 && !p.tiers.spillsAt(now).After(now)
}

// waitForTiers notes that the pool's head waits for its lanes.
func (m *Machine) waitForTiers(now time.Time, p *pool) {
	if t := p.tiers; t.waitsSince.IsZero() {
		t.waitsSince = now
	}
	m.setAlarm(p)
}

// nextAt returns when time alone may open the next tier to the head that waits; zero: never.
func (t *tiers) nextAt(now time.Time) (at time.Time) {
	if at = t.opensAt; t.spill > 0 && !t.waitsSince.IsZero() {
		if spills := t.spillsAt(now); spills.After(now) && (at.IsZero() || spills.Before(at)) {
			at = spills
		}
	}
	return at
}

// isDue reports whether the next tier may be used by now, as far as time decides.
func (t *tiers) isDue(now time.Time) bool {
	return !t.opensAt.IsZero() && !t.opensAt.After(now) || t.spill > 0 && !t.waitsSince.IsZero() && !t.spillsAt(now).After(now)
}

// skipAwakeTime drops from the wait of the head the time for which the pool was awake. It waited for a
// place of its run then, and not for lanes.
func (t *tiers) skipAwakeTime(now time.Time, p *pool) {
	if p.behind == nil && !t.waitsSince.IsZero() {
		t.waitsSince, t.wokenAt = t.waitsSince.Add(now.Sub(t.wokenAt)), now
	}
}

// clearWaits notes that the pool has no head, or that it waits for a place, and not for lanes.
func (p *pool) clearWaits() {
	if p.tiers != nil {
		p.tiers.waitsSince = time.Time{}
	}
}

// tryTiers lets a pool whose next tier may be open by now ask all its lanes anew. A pool that
// stands in the line of each lane keeps its places: its alarm may ring for a backoff.
func (m *Machine) tryTiers(now time.Time, p *pool) {
	t := p.tiers
	if t == nil || p.counted == 0 || !t.isDue(now) || p.standsOn(t.index(len(p.lanes)-1)) {
		return
	}
	t.opensAt = time.Time{}
	m.leaveLines(p)
}

// standsOn reports whether the pool sleeps in the line of its k-th lane.
func (p *pool) standsOn(k int) bool { return p.seats[k].link.of != nil }

// nextOfTiers begins the wait of the next head, after the lane has taken an item. A pool that
// sleeps, but not on this lane, was asked for another one: it may have more for this one.
func (m *Machine) nextOfTiers(now time.Time, p *pool, l *lane) {
	t := p.tiers
	t.waitsSince = time.Time{}
	switch {
	case p.counted == 0:
	case !p.standsOn(slices.Index(p.lanes, l)):
		m.leaveLines(p)
		p.wake()
	default: // it is not asked before its turn on a lane comes
		m.waitForTiers(now, p)
	}
}

// well reports whether the lane lets calls go, if perhaps slowly.
func (l *lane) well() bool { return l.usable() && !l.restsOutside() }

// illness is a stretch of time in which a lane was not well. It is apart from its lane, as most
// lanes are never ill.
type illness struct {
	since    time.Time     // when it began; zero: a call that left since then was answered
	duration time.Duration // up to the climb that ended it
}

func (x *illness) began() (since time.Time) {
	if x != nil {
		since = x.since
	}
	return since
}

func (x *illness) span() (lasted time.Duration) {
	if x != nil {
		lasted = x.duration
	}
	return lasted
}

// noteHealthChange notes that the lane has fallen ill, or is well again. An illness lasts until a
// call that left since then is answered. A server that is down may refuse a probe too late, and the
// lane then climbs for a moment.
func (l *lane) noteHealthChange(now time.Time, well bool) {
	switch since := l.illness.began(); {
	case !well && since.IsZero():
		l.beginsIllness(now)
	case well && !since.IsZero():
		l.illness.duration = now.Sub(since)
	}
}

// beginsIllness begins an illness. What the latest one lasted stays known until this one ends.
func (l *lane) beginsIllness(now time.Time) {
	if l.illness == nil {
		l.illness = &illness{}
	}
	l.illness.since = now
}

// endIllnessBefore ends an illness that began before a call left that was answered, if the lane
// lets calls go. The call may be of an older epoch, as answers may take longer than cooldowns.
func (l *lane) endIllnessBefore(sent time.Time) {
	if l.illness != nil && l.usable() && !sent.Before(l.illness.since) {
		l.illness.since = time.Time{}
	}
}

// noteRest notes whether a remote lane cools outside, as its law has just said.
func (m *Machine) noteRest(now time.Time, l *lane) {
	switch rests := l.restsOutside(); {
	case rests && l.illness.began().IsZero():
		l.beginsIllness(now)
		m.scheduleTierSays(l)
	case !rests && l.illness != nil && l.usable():
		if !l.illness.since.IsZero() {
			m.scheduleTierSays(l)
		}
		l.illness.since = time.Time{}
	}
}

// foreseen returns the whole wait of an item for a lane that is well; forever: unknown. wait is the
// time after which the law is to be asked again.
func (l *lane) foreseen(now time.Time, it *Item, wait time.Duration) time.Duration {
	if f, is := l.law.(limiter.Foreseer); is && wait != forever {
		return f.WaitInAll(now, l.charge.Of(it.Cost))
	}
	return wait
}

// weights holds what a pool knows of the weights of its lanes. At each turn the lanes of a tier
// that have room are credited with their weights. That with the most credit goes, and pays what
// all got.
type weights struct {
	weightOf []int // by lane
	credit   []int // likewise; within ±all
	all      int   // the sum of the weights
	ready    []int // lanes of the tier that have room, as they were last asked
	free     []int // those of them that have less than their share of the run's places
}

// newWeights returns the weights of a pool's lanes; nil if all lanes weigh the same.
func newWeights(of []int) *weights {
	if len(of) == 0 || slices.Min(of) == slices.Max(of) {
		return nil
	}
	w := &weights{weightOf: of, credit: make([]int, len(of))}
	for _, n := range of {
		w.all += n
	}
	return w
}

// forget begins a new round of questions.
func (w *weights) forget() { w.ready, w.free = w.ready[:0], w.free[:0] }

// addReady notes a lane that has room.
func (w *weights) addReady(k int, hasItsShare bool) {
	w.ready = append(w.ready, k)
	if !hasItsShare {
		w.free = append(w.free, k)
	}
}

// next returns the lane whose turn it is; -1: none has room. A lane that has its share of the
// places gives way, but keeps its credit: it could go.
func (w *weights) next() int {
	from, best := w.free, -1
	if len(from) == 0 {
		from = w.ready
	}
	for _, k := range from {
		if best < 0 || w.credit[k]+w.weightOf[k] > w.credit[best]+w.weightOf[best] {
			best = k
		}
	}
	return best
}

// bookTurn charges the turn of a lane that was given an item. It is apart from next, because not
// every lane that is next gets one. A lane that gives way for long saves up no more than a round.
func (t *tiers) bookTurn(k int) {
	w := t.heavy
	if w == nil {
		return
	}
	for _, i := range w.ready {
		w.credit[i] = min(w.credit[i]+w.weightOf[i], w.all)
		w.credit[k] -= w.weightOf[i]
	}
	w.credit[k] = max(w.credit[k], -w.all)
}

// hasItsWeight is hasItsShare of a lane with a weight, in the tier from start up to end.
func (p *pool) hasItsWeight(k, start, end int) bool {
	of, all := p.tiers.heavy.weightOf, 0
	for _, n := range of[start:end] {
		all += n
	}
	return end-start > 1 && int(p.seats[k].inFlight)*all >= p.run.m.ceiling(p.run)*of[k]
}
