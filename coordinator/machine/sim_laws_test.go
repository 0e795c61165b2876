package machine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/plain"
)

// The laws: what the book says to each thing that the machine decides.

// transition: a lane goes where it may, and its epoch rises with a cooldown only.
func (b *book) transition(t Transition) {
	l := b.lane(t.Lane)
	if is := b.w.m.lanes[t.Lane]; is != nil && is != l.of { // an offer had it forgotten, and made it again
		b.closePages()
		l = b.lane(t.Lane)
	}
	b.turns.note(t.Lane)
	if t.From != l.phase {
		b.w.failf("%v, but the lane was %v", t, l.phase)
	}
	if t.Reason == ByErrors || t.Reason == ByAnswers {
		if t.To != t.From || t.Epoch != l.epoch || (t.Reason == ByErrors) != (t.Slowed > 0) || (t.Slowed > 0) == l.halved {
			b.w.failf("%v, after slowed %v in epoch %d", t, l.halved, l.epoch)
		}
		l.halved = t.Slowed > 0
		return
	}
	rises := t.To == Cooling || t.To == Stopped || t.Reason == ByHand
	if rises != (t.Epoch == l.epoch+1) || (!rises && t.Epoch != l.epoch) {
		b.w.failf("%v, after epoch %d", t, l.epoch)
	}
	allowed := map[Phase][]Phase{
		Flowing: {Cooling, Stopped}, Cooling: {Probing, Ramping, Flowing, Stopped},
		Probing: {Ramping, Flowing, Cooling, Stopped}, Ramping: {Flowing, Cooling, Stopped},
	}[t.From]
	ok := t.Reason == ByHand
	for _, to := range allowed {
		ok = ok || to == t.To
	}
	if !ok {
		b.w.failf("%v is no way to go", t)
	}
	switch {
	case t.Reason == ByHand && (b.w.telling == evOffered || l.isRemote() && b.w.telling != evLaneDefined && !b.w.outer.pages[t.Lane].isRenewed()): // it keeps its law
	case t.Reason == ByHand:
		if page := b.w.outer.pages[t.Lane]; page != nil {
			page.renewed = false // a lane that is defined anew has another law in any case
		}
		l.beginLaw(b.w.now, *b.w.m.laneConfig(t.Lane), t.Epoch)
	case t.To == Cooling:
		b.total[cooldowns]++
	}
	switch {
	case t.To == Cooling && l.of.breaker.State(b.w.m.now) != limiter.Closed:
		l.blame.opened = t.Epoch
	case t.Reason == ByHand && t.To == Flowing && (b.w.telling == evLaneReset || b.w.telling == evOffered || l.of.remote()):
		l.blame = bookBlame{opened: t.Epoch, ever: l.blame.ever}
	}
	if rises {
		l.inEpoch = 0
	}
	switch well := t.To == Flowing || t.To == Ramping; {
	case well == l.isWell():
	case !well && l.fell.IsZero():
		l.fell = t.At
	case well && !l.fell.IsZero():
		l.lay = t.At.Sub(l.fell)
	}
	if t.Reason == ByHand && t.To == Flowing && (b.w.telling == evLaneReset || b.w.telling == evOffered || l.of.remote()) {
		l.fell, l.lay = time.Time{}, 0
	}
	l.before, l.phase, l.epoch = t.From, t.To, t.Epoch
	if t.To == Stopped {
		b.stopped[t.Lane] = true
		b.mayBeUsedUp(t)
	}
	l.givenUp = t.To == Stopped && errors.Is(t.Cause, ErrNoAnswer)
	l.ruined = t.To == Stopped && t.Account != ""
}

// beginLaw: a person has reset the lane, or wants another law. What it may draw is there
// again, and what left before was charged to another law.
func (l *bookLane) beginLaw(now time.Time, c LaneConfig, epoch uint64) {
	l.config, l.began, l.buckets, l.charge, l.halved = c, epoch, buckets{}, c.Charge, false
	l.buckets.set(now, c.Limits)
}

// grant: the right item, at the right time, to a lane that may take it.
func (b *book) grant(g Grant) {
	x, w := b.of[g.Item], b.w
	r := x.run
	if r.id != g.Run || r.finished || g.Serial <= x.grant.Serial {
		w.failf("%v: run %d, serial %d after %d", g, g.Run, g.Serial, x.grant.Serial)
	}
	if x.place == InFlight || x.place == Releasing || x.place == Over {
		w.failf("%v, but it is %v", g, x.place)
	}
	if r.busy >= withDefault(r.config.Concurrency) {
		w.failf("%v: run %d has %d in flight, which is its concurrency", g, r.id, r.busy)
	}
	b.out++
	r.busy++
	if g.Verdict == Call {
		b.call(g, x)
		x.place = InFlight
	} else {
		b.ends(g, x)
		x.place = Releasing
	}
	x.grant, x.sent = g, b.w.m.now
}

func withDefault(concurrency int) int {
	if concurrency == 0 {
		return DefaultConcurrency
	}
	return concurrency
}

func (b *book) call(g Grant, x *bookItem) {
	w, l := b.w, b.lane(g.Lane)
	// A law that fails in a decision stops its lane at the end of it, and so does an account of which
	// another lane is convicted. The epoch of the grant proves that it was made before.
	page := w.outer.pages[g.Lane]
	late := (page != nil && page.broken || l.ruined) && l.phase == Stopped && g.Epoch+1 == l.epoch
	switch {
	case x.run.paused > 0 || x.run.draining:
		w.failf("%v: its run is paused or drains", g)
	case l.phase == Cooling || l.phase == Stopped && !late:
		w.failf("%v: the lane is %v", g, l.phase)
	case l.phase == Probing && l.inEpoch > 0:
		w.failf("%v: a probe is under way", g)
	case l.config.Window > 0 && l.inFlight >= l.config.Window:
		w.failf("%v: the window is %d", g, l.config.Window)
	case g.Epoch != l.epoch && !late:
		w.failf("%v: the lane is in epoch %d", g, l.epoch)
	case !x.wanted:
		w.failf("%v: it was withdrawn", g)
	case x.timeUp(w.m.now):
		w.failf("%v: its time is up", g)
	}
	if !l.isRemote() && !l.buckets.take(w.m.now, 1, l.charged(g.Item), l.config.Law == limiter.Plain) {
		w.failf("%v: the bucket has not that much: %+v", g, l.buckets)
	}
	b.pays(g, x)
	head := b.isInTurn(g, x)
	b.leaves(g, x)
	b.isAnsweredInTime(g, x)
	b.inItsPool(g, x, head)
	x.run.waits[x.pool] = w.m.now
	l.inFlight++
	if !late {
		l.inEpoch++
	}
	b.count(x.run, calls)
	if l.phase == Probing || late && l.before == Probing {
		b.total[probes]++
	}
	if x.first.IsZero() {
		x.first = w.m.now
	}
}

func (x *bookItem) timeUp(now time.Time) bool {
	t := x.run.config.ItemTimeout
	return t > 0 && !x.first.IsZero() && !now.Before(x.first.Add(t))
}

// isInTurn: parked before others, back before new, and each in order. Who waits for
// itself alone, after a failure or a refusal, is overtaken until that is over. It returns the item for which
// the lanes were asked.
func (b *book) isInTurn(g Grant, x *bookItem) (head *bookItem) {
	head = x
	for _, y := range x.run.line[x.pool] {
		is := y.item.place // InFlight: it was ripe, and is granted later in the same decision
		ripe := y.place == Waiting || y.place == Parked || y.place == Delayed && (is == Waiting || is == InFlight)
		if ripe && y.wanted && y.item.place != Releasing && b.goesBefore(y, head) {
			head = y
		}
	}
	if x.run.yields[x.pool] && b.rank(head) == 1 && head.blame.attempts > 0 {
		head = b.firstNew(x, head)
	}
	x.run.yields[x.pool] = b.rank(x) == 1 && x.blame.attempts > 0
	if head != x && !b.maySkip(g, x, head) {
		b.w.failf("%v overtakes item %d", g, head.item.Seq)
	}
	return head
}

// firstNew is the first of a pool that was never called; otherwise, if there is none.
func (b *book) firstNew(x, otherwise *bookItem) *bookItem {
	for _, y := range x.run.line[x.pool] {
		if b.rank(y) == 2 && y.place == Waiting && y.wanted && y.item.place != Releasing && (b.rank(otherwise) < 2 || b.goesBefore(y, otherwise)) {
			otherwise = y
		}
	}
	return otherwise
}

func (b *book) goesBefore(x, y *bookItem) bool {
	return cmp.Or(cmp.Compare(b.rank(x), b.rank(y)), x.order(y)) < 0
}

// order is that of two items of one rank.
func (x *bookItem) order(y *bookItem) int {
	suspects := 0
	if x.blame.suspect() {
		suspects++
	}
	if y.blame.suspect() {
		suspects--
	}
	return cmp.Or(suspects, cmp.Compare(x.blame.probed, y.blame.probed), cmp.Compare(x.item.Seq, y.item.Seq))
}

func (b *book) rank(x *bookItem) int {
	switch {
	case x.place == Parked:
		return 0
	case !x.first.IsZero():
		return 1
	}
	return 2
}

// isAnsweredInTime: no backoff is cut short.
func (b *book) isAnsweredInTime(g Grant, x *bookItem) {
	switch {
	case x.place != Delayed:
		return
	case !x.alone.IsZero():
		b.hasWaitedAlone(g, x)
		return
	}
	least := time.Duration(limiter.BackoffFloor * float64(limiter.DefaultBackoffBase))
	if x.last.Directed {
		least = max(least, min(x.last.RetryAfter, MaxDirected))
	}
	if b.w.m.now.Sub(x.back) < least {
		b.w.failf("%v after %v, but its backoff is %v at least", g, b.w.m.now.Sub(x.back), least)
	}
}

// freed: a person vouches for a lane, so that nothing waits any longer after a call there.
func (b *book) freed(lane string) {
	for _, x := range b.of {
		if x.place == Delayed && x.grant.Lane == lane {
			x.place = Waiting
		}
	}
}

// hasWaitedAlone: it is due, and a wait that the server named is not cut short.
func (b *book) hasWaitedAlone(g Grant, x *bookItem) {
	now := b.w.m.now
	if now.Before(x.alone) {
		b.w.failf("%v, but it waits alone for %v more", g, x.alone.Sub(now))
	}
	if x.last.Directed && now.Sub(x.back) < x.last.RetryAfter {
		b.w.failf("%v after %v, and the server asked for %v", g, now.Sub(x.back), x.last.RetryAfter)
	}
}

// ends: an item ends without a call for a reason that the world knows.
func (b *book) ends(g Grant, x *bookItem) {
	ok := false
	switch g.Verdict {
	case EndExpired:
		ok = x.timeUp(b.w.m.now)
	case EndDrained:
		ok = x.run.draining
	case EndWithdrawn:
		ok = !x.wanted
	case EndFailed:
		ok = x.judged
	case EndUnpaid:
		x.run.unserved, ok = true, true
		b.isSpent(x.run, g.Cause)
	case EndStopped:
		x.run.unserved = true
		if ok = x.noRoom && errors.Is(g.Cause, ErrTooManyLanes); ok {
			break
		}
		ok = !errors.Is(g.Cause, ErrTooManyLanes)
		for _, name := range x.run.poolOf(x.pool).Lanes {
			ok = ok && b.stopped[name]
		}
	}
	if !ok {
		b.w.failf("%v: that is not so", g)
	}
}

func (b *book) strand(s Stranding) {
	r := b.runs[s.Run]
	if r.stranded || s.Cause == nil {
		b.w.failf("run %d is stranded twice, or for nothing", s.Run)
	}
	r.stranded = true
	if errors.Is(s.Cause, ErrTooManyLanes) && r.crowded {
		return
	}
	if errors.Is(s.Cause, ErrMaxCost) {
		b.isSpent(r, s.Cause)
		return
	}
	for _, c := range r.config.Pools {
		for _, name := range c.Lanes {
			if !b.stopped[name] {
				b.w.failf("run %d is stranded, but lane %s never stopped", s.Run, name)
			}
		}
	}
}

func (b *book) finish(f Finish) {
	r := b.runs[f.Run]
	if !r.ended || r.open > 0 || r.busy > 0 || r.finished || !f.Counters.Proves() {
		b.w.failf("run %d is not over: %d open, %d busy, %+v", f.Run, r.open, r.busy, f.Counters)
	}
	if r.unserved != (f.Stopped != nil) || r.crowded && !r.stranded {
		b.w.failf("run %d ends as stopped by %v; no lane could take some item: %v; too many lanes: %v, and stranded: %v", f.Run, f.Stopped, r.unserved, r.crowded, r.stranded)
	}
	b.same(r.counts, f.Counters)
	r.finished = true
	b.finished++
}

// afterReady: somebody will wake up; what is waited for is bounded; the counts are
// those of the world.
//
// A look also compares what takes longer.
func (b *book) afterReady(ready Ready, look bool) {
	w := b.w
	if !ready.WakeAt.IsZero() && !ready.WakeAt.After(w.m.now) {
		w.failf("the machine wants to be woken at once, for ever")
	}
	if most := MaxDirected + time.Minute; ready.WakeAt.Sub(w.m.now) > most {
		w.failf("the machine wants to sleep for %v", ready.WakeAt.Sub(w.m.now))
	}
	if b.out == 0 && w.m.decidesAt().IsZero() {
		for _, x := range b.living {
			if x.place != Over && x.run.paused == 0 {
				w.failf("item %d of run %d waits, nothing flies, and nobody will wake up", x.item.Seq, x.run.id)
			}
		}
	}
	b.same(b.total, w.m.totals.counters())
	b.closePages()
	if b.w.bare {
		return
	}
	for _, l := range b.pages {
		b.sameLane(l.name, l, look)
	}
	b.areUpToDate(look)
}

// needed reports whether an item that the machine has, and that may be tried yet, may have
// to do with the lane.
func (b *book) needed(lane string) bool {
	for _, r := range b.runs {
		for pool, line := range r.line {
			known := slices.ContainsFunc(line, func(x *bookItem) bool { return x.place != Nowhere && x.item.place != Releasing })
			if known && slices.Contains(r.poolOf(pool).Lanes, lane) {
				return true
			}
		}
	}
	return false
}

// same compares the counts that the world can make itself.
func (b *book) same(t tally, c Counters) {
	is := t.counters()
	is.Parked, is.Redistributed, is.Delayed, is.Participants = c.Parked, c.Redistributed, c.Delayed, c.Participants
	if t[dropped] == 0 { // a run's own: what befalls lanes is not counted here
		is.Cooldowns, is.Probes, is.Dropped = c.Cooldowns, c.Probes, c.Dropped
	}
	if is != c {
		b.w.failf("the world counts\n%+v, the machine\n%+v", is, c)
	}
}

// closePages closes the pages of lanes that were forgotten.
func (b *book) closePages() {
	kept := b.pages[:0]
	for _, l := range b.pages {
		name := l.name
		if b.w.m.lanes[name] == l.of {
			kept = append(kept, l)
			continue
		}
		if l.inFlight > 0 || l.phase == Cooling || l.phase == Ramping || l.phase == Stopped && b.needed(name) {
			b.w.failf("lane %s was forgotten while it was %v with %d in flight", name, l.phase, l.inFlight)
		}
		delete(b.lanes, name)
	}
	b.pages = kept
}

// sameLane compares a lane with its page.
func (b *book) sameLane(name string, l *bookLane, look bool) {
	is := l.of
	now := b.w.m.now
	if is.phase != l.phase || is.epoch != l.epoch || is.inFlight != l.inFlight || int(is.inEpoch) != l.inEpoch || is.answers != l.answers {
		b.w.failf("lane %s is %+v, in epoch %d, answers %d; the book says %+v", name, is.status(now), is.inEpoch, is.answers, *l)
	}
	if !look {
		return
	}
	v := is.law.View(now, is.nextCost())
	b.checkDebts(is, &v)
	if v.Errors > 0 && !l.slowed {
		b.w.failf("lane %s: %v of its calls broke, and the book knows of none", name, v.Errors)
	}
}

// largestCall bounds the charge of a call of the simulation, in tokens. Its input may count
// twice, and its output five times by its lane's rule and ten times by earlier answers.
const largestCall = 2*20_000 + 5*10*1000

// checkDebts: a lane's debt is at most a minute of the limit, be it learned or shown, or an
// hour of a configured one, or a call. The plain law bounds that by a minute, too.
func (b *book) checkDebts(l *lane, v *limiter.View) {
	server := b.w.servers[l.name]
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		most := l.cfg.Limits.PerMinute(d)*plain.DebtBudget + 1e-6
		if l.cfg.Law == limiter.Model {
			most = max(60*most, largestCall, 60*v.Rate+1e-6, server.shownPerMinute(d))
		}
		if level := v.Level(d); level < -most {
			b.w.failf("lane %s owes %v %v, %v at most", l.name, -level, d, most)
		}
	}
}
