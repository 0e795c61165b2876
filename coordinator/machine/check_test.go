package machine

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/model"
	"github.com/headrace/headrace/limiter/plain"
)

// check recounts everything that the machine keeps count of, and walks through
// all that it has linked together.
func (m *Machine) check(b *book) {
	c := newCensus(m, b)
	for _, x := range b.living {
		if place := x.item.place; place != Nowhere && place != Over {
			c.count(x)
		}
		if x.item.place == InFlight {
			c.flying++
		}
	}
	if m.inFlight != c.flying || m.cfg.Concurrency > 0 && c.flying > max(m.cfg.Concurrency, b.beyond) {
		b.w.failf("%d calls are in flight, counted %d, of %d", m.inFlight, c.flying, m.cfg.Concurrency)
	}
	b.beyond = min(b.beyond, c.flying)
	total := 0
	for _, r := range m.runs {
		if waiting := b.runs[r.id].waiting; r.waiting != waiting || r.busy != b.runs[r.id].busy {
			b.w.failf("run %d: %d held, %d busy; counted %d, %d", r.id, r.waiting, r.busy, waiting, b.runs[r.id].busy)
		}
		if counted := b.runs[r.id]; r.parked != counted.parked || r.delayed != counted.delayed {
			b.w.failf("run %d: %d parked, %d delayed; counted %d, %d", r.id, r.parked, r.delayed, counted.parked, counted.delayed)
		}
		total += r.waiting
		m.checkRun(b, r, c)
		m.checkBooks(b, r)
		m.checkMoney(b, r)
	}
	if m.waiting != total {
		b.w.failf("the machine holds %d; counted %d", m.waiting, total)
	}
	for l, n := range c.lanes {
		if (laneCensus{l.inFlight, int(l.inEpoch), int(l.parked), int(l.delayed)}) != *n {
			b.w.failf("lane %s: %d %d %d %d; counted %+v", l.name, l.inFlight, l.inEpoch, l.parked, l.delayed, *n)
		}
		m.checkLane(b, l)
	}
	m.checkAlarms(b)
	m.checkIdle(b)
}

// A census counts the items by what the machine counts them by. It is taken at each
// decision, so an item remembers where it was counted last.
type census struct {
	m     *Machine
	b     *book
	lanes map[*lane]*laneCensus
	pools map[*pool]*poolCensus

	flying int // calls of all runs
}

type laneCensus struct{ inFlight, inEpoch, parked, delayed int }

type poolCensus struct {
	inFlight, lined int    // lined: items that wait in it
	out             [8]int // of a pool with several lanes: its calls in flight on each
}

// newCensus is one in which nothing is counted.
func newCensus(m *Machine, b *book) census {
	c := b.census
	if c.m != m {
		c = census{m, b, map[*lane]*laneCensus{}, map[*pool]*poolCensus{}, 0}
	}
	for _, r := range b.runs {
		r.waiting, r.parked, r.delayed = 0, 0, 0
	}
	for p, n := range c.pools {
		if *n = (poolCensus{}); m.runs[p.run.id] != p.run {
			delete(c.pools, p)
		}
	}
	for l, n := range c.lanes {
		if *n = (laneCensus{}); m.lanes[l.name] != l {
			delete(c.lanes, l)
		}
	}
	for _, l := range m.lanes {
		if c.lanes[l] == nil {
			c.lanes[l] = &laneCensus{}
		}
	}
	b.census = c
	return c
}

func (c census) count(x *bookItem) {
	it := x.item
	if it.place == Releasing {
		if x.place != Releasing { // not lent yet
			x.run.waiting++
		}
		return
	}
	n := c.pool(x)
	if it.place == InFlight {
		if n.inFlight++; len(it.pool.lanes) > 1 {
			n.out[slices.Index(it.pool.lanes, it.lane)]++
		}
	} else {
		x.run.waiting++
		switch it.place {
		case Parked:
			x.run.parked++
		case Delayed, Undecided:
			x.run.delayed++
		}
		n.lined++
		c.m.checkIn(c.b, it)
	}
	if it.lane != nil {
		c.countLane(x)
	}
}

// pool returns the census that counts the items of an item's pool.
func (c census) pool(x *bookItem) *poolCensus {
	p := x.item.pool
	if x.in == p {
		return x.inCensus
	}
	if p.run.pools[p.name] != p {
		c.b.w.failf("item %d is in a pool that was closed", x.item.Seq)
	}
	n := c.pools[p]
	if n == nil {
		n = &poolCensus{}
		c.pools[p] = n
	}
	x.in, x.inCensus = p, n
	return n
}

func (c census) countLane(x *bookItem) {
	it := x.item
	if x.on != it.lane || c.m.lanes[it.lane.name] != it.lane {
		x.on, x.onCensus = it.lane, c.lanes[it.lane]
	}
	n := x.onCensus
	if n == nil {
		c.b.w.failf("item %d is %v on a lane that was forgotten", it.Seq, it.place)
	}
	switch it.place {
	case InFlight:
		n.inFlight++
		if it.epoch == it.lane.epoch {
			n.inEpoch++
		}
	case Parked:
		n.parked++
	case Delayed, Undecided:
		n.delayed++
	}
}

// checkIn: an item that waits is where it says.
func (m *Machine) checkIn(b *book, it *Item) {
	p := it.pool
	in := false
	switch {
	case it.place == Delayed:
		in = int(it.pos) < p.delayed.len() && p.delayed.items[it.pos] == it
	case it.place == Undecided:
		in = it.lane.blame != nil && slices.ContainsFunc(it.lane.blame.waiting(), func(u *undecided) bool { return u.it == it }) && slices.Contains(m.accused, it.lane)
	case it.Calls > 0:
		in = int(it.pos) < p.returned.len() && p.returned.items[it.pos] == it
	default:
		in = p.waiting.first == it || it.prev != nil && it.prev.next == it
	}
	if !in {
		b.w.failf("item %d is %v, but not there", it.Seq, it.place)
	}
	if !it.Expires.IsZero() && (it.expiryPos == 0 || m.expiry.items[it.expiryPos-1] != it) {
		b.w.failf("nobody will notice when the time of item %d is up", it.Seq)
	}
}

func (m *Machine) checkRun(b *book, r *run, c census) {
	fail := b.w.failf
	if len(r.opened) != len(r.pools) {
		fail("run %d opened %d pools and names %d", r.id, len(r.opened), len(r.pools))
	}
	for _, p := range r.opened {
		if r.pools[p.name] != p {
			fail("pool %s of run %d was closed", p.name, r.id)
		}
	}
	queued := 0
	for p := r.runnable.first; p != nil; p = p.next {
		if queued++; !p.queued {
			fail("pool %s is in line and does not know", p.name)
		}
	}
	if queued != r.runnable.n {
		fail("run %d has %d pools in line, counted %d", r.id, r.runnable.n, queued)
	}
	for _, p := range r.opened {
		var counted poolCensus
		if n := c.pools[p]; n != nil {
			counted = *n
		}
		is := poolCensus{inFlight: p.inFlight, lined: p.waiting.n + p.returned.len() + p.delayed.len() + p.undecided}
		for i := range p.seats {
			is.out[i] = int(p.seats[i].inFlight)
		}
		if is != counted {
			fail("pool %s: %+v; counted %+v", p.name, is, counted)
		}
		m.checkCost(b, p)
		if !p.returned.isHeap() || !p.delayed.isHeap() {
			fail("pool %s: its heaps are no heaps", p.name)
		}
		if it := p.delayed.top(); it != nil && (p.alarm.pos < 0 || p.alarm.at.After(it.due)) {
			fail("pool %s: nobody will notice the end of a backoff", p.name)
		}
		for i, l := range p.lanes {
			of, at := 0, 0
			for k, q := range l.pools {
				if q == p {
					of, at = of+1, k
				}
			}
			if m.lanes[l.name] != l || of != 1 || p.seats == nil && at != 0 || p.seats != nil && int(p.seats[i].poolIndex) != at {
				fail("pool %s draws on lane %s, which knows it %d times", p.name, l.name, of)
			}
		}
	}
}

// checkLine: who sleeps on the lane has something to give, and knows where it sleeps.
func (m *Machine) checkLine(b *book, l *lane) {
	if l.line == nil {
		return
	}
	for x := l.line.runs.first; x != nil; x = x.next {
		if x.of.lane != l || x.of.pools.first == nil || x.of.given >= x.of.run.cfg.Priority {
			b.w.failf("lane %s: the seat of run %d is not as it should be", l.name, x.of.run.id)
		}
		for s := x.of.pools.first; s != nil; s = s.next {
			if p := s.of.pool; p.counted == 0 || p.run != x.of.run || p.queued || s.of.seat != x.of {
				b.w.failf("lane %s: pool %s is in its line, and awake", l.name, p.name)
			}
		}
	}
}

func (m *Machine) checkLane(b *book, l *lane) {
	m.checkLine(b, l)
	if l.remote() != (l.cfg.Maker != nil) {
		b.w.failf("lane %s is led: %v", l.name, l.remote())
	}
	if l.remote() {
		m.checkRemote(b, l)
	} else if _, plain := l.law.(*plain.Law); plain != (l.cfg.Law == limiter.Plain) {
		b.w.failf("lane %s does not follow the law that it is configured with", l.name)
	}
	breaker := l.breaker // a copy: asking takes a permit
	timed := l.phase == Cooling || l.phase == Ramping || (l.phase == Probing && !l.passAt.IsZero())
	switch {
	case timed != (l.alarm.pos >= 0):
		b.w.failf("lane %s is %v; its alarm is set: %v", l.name, l.phase, !timed)
	case l.phase == Probing && l.inEpoch > 1, l.phase != Probing && !l.passAt.IsZero(), !l.passAt.IsZero() && l.inEpoch == 0:
		b.w.failf("lane %s is %v with %d in flight, to be passed at %v", l.name, l.phase, l.inEpoch, l.passAt)
	case l.usable() && l.cause != nil:
		b.w.failf("lane %s is %v, and still says why it was not: %v", l.name, l.phase, l.cause)
	case l.usable() && l.breaker.State(m.now) != 0:
		b.w.failf("lane %s is %v; its breaker is %v", l.name, l.phase, l.breaker.State(m.now))
	case l.phase == Probing && l.inEpoch == 0 && !breaker.Allow(m.now):
		b.w.failf("lane %s is probing, and its breaker has no permit left", l.name)
	case l.account != nil && l.account.cause != nil && l.phase != Stopped:
		b.w.failf("lane %s is %v, and its account has stopped: %v", l.name, l.phase, l.account.cause)
	case (l.account != nil) != (l.cfg.Account != "") || l.account != nil && l.account.name != l.cfg.Account:
		b.w.failf("lane %s does not share the fate of account %q", l.name, l.cfg.Account)
	case int(l.inEpoch) > l.inFlight:
		b.w.failf("lane %s has more in flight in its epoch than in all", l.name)
	}
}

func (m *Machine) checkAlarms(b *book) {
	if !m.alarms.isHeap() || !m.expiry.isHeap() {
		b.w.failf("the alarms, or the deadlines, are no heap")
	}
	for i, a := range m.alarms.items {
		if a.pos != i {
			b.w.failf("an alarm is at %d and believes to be at %d", i, a.pos)
		}
		if a.lane != nil && m.lanes[a.lane.name] != a.lane || a.pool != nil && m.runs[a.pool.run.id] != a.pool.run {
			b.w.failf("an alarm is set for what was forgotten")
		}
	}
}

func (m *Machine) checkIdle(b *book) {
	n := 0
	var last *lane
	for l := m.idle.first; l != nil; last, l = l, l.next {
		if n++; l.prev != last || m.lanes[l.name] != l {
			b.w.failf("the line of lanes is broken at %s", l.name)
		}
	}
	if n > m.cfg.MaxLanes {
		b.w.failf("%d lanes are known, of %d that may be", n, m.cfg.MaxLanes)
	}
	if n != len(m.lanes) || m.idle.last != last {
		b.w.failf("%d lanes in line, %d known", n, len(m.lanes))
	}
}

// checkAwake: each item that could go was let go, and each one that must wait has something to
// wake it. It is true after Ready only. It comes after each Ready, as the lanes are asked again: the law of a
// lane learns with time by when it was asked, so a world would differ by who looks at it.
func (m *Machine) checkAwake(b *book, look bool) {
	for _, r := range m.runs {
		if look {
			m.checkBound(b, r)
		}
		if r.releases.n > 0 && r.hasRoom() {
			b.w.failf("run %d has room, and %d items that could end", r.id, r.releases.n)
		}
		if r.paused || !r.hasRoom() || m.full() {
			continue
		}
		for _, p := range r.opened {
			if it := p.delayed.top(); it != nil && !it.due.After(m.now) {
				b.w.failf("item %d is due, and is still kept back", it.Seq)
			}
			switch it := p.head(); {
			case it != nil && p.waitsForMoney:
				m.checkShort(b, p, it)
			case it != nil:
				m.checkAsleep(b, p, it)
			}
		}
	}
}

// rounding is the most by which two answers to the same question, given at two moments, may
// differ: waits are quotients, rounded up to the nanosecond.
const rounding = time.Nanosecond

func (m *Machine) checkAsleep(b *book, p *pool, it *Item) {
	l, wait, asked := p.pick(m.now, it)
	slack := time.Duration(0)
	for _, l := range p.lanes {
		if b.lane(l.name).slowed { // an error window that clears raises the rate without a word
			slack = 2 * time.Minute
		}
		if l.cfg.Law == limiter.Model {
			slack = max(slack, model.AskAgain) // the model's rate changes with time, so its waits are asked for again by then
		}
	}
	switch {
	case p.queued:
		b.w.failf("pool %s is in line after all were served", p.name)
	case wait == 0 && slack == 0:
		b.w.failf("item %d could go on %s", it.Seq, l.name)
	case wait == forever && !p.hasWaker():
		b.w.failf("nobody will wake pool %s", p.name)
	case p.tiers != nil && !p.standsFrom(asked) && !p.tiers.nextAt(m.now).IsZero() && (p.alarm.pos < 0 || p.alarm.at.After(p.tiers.nextAt(m.now))):
		b.w.failf("nobody will notice that pool %s may use its next tier", p.name)
	}
	for i := range asked {
		k := p.index(i)
		l := p.lanes[k]
		switch {
		case p.seats[k].link.of == nil && slack > 0 && p.tiers != nil && p.tiers.spill > 0 && p.tiers.spillsAt(m.now).After(m.now):
			// The wait that the model foresees has grown: it spills when it is asked again.
		case p.seats[k].link.of == nil:
			b.w.failf("pool %s was asked, and does not sleep, on lane %s", p.name, l.name)
		case l.line.first() == p && l.delay < forever:
			if a := &l.line.alarm; a.pos < 0 || a.at.Sub(m.now) > l.delay+slack+rounding {
				b.w.failf("pool %s could go on %s in %v; the alarm is set: %v, in %v", p.name, l.name, l.delay, a.pos >= 0, a.at.Sub(m.now))
			}
		}
	}
}

// standsFrom reports whether the pool sleeps on one of its lanes from the i-th on. It is asked
// anew there. Its tiers may have changed since it joined that line: a lane of a better tier that
// had stopped rests now, and nobody need tell.
func (p *pool) standsFrom(i int) bool {
	for ; i < len(p.lanes) && p.seats != nil; i++ {
		if p.seats[p.index(i)].link.of != nil {
			return true
		}
	}
	return false
}

// hasWaker reports whether an alarm or the end of a call will wake the pool.
func (p *pool) hasWaker() bool {
	for _, l := range p.lanes {
		if l.alarm.pos >= 0 || l.inFlight > 0 || l.line != nil && l.line.alarm.pos >= 0 || l.outside != nil && l.outside.alarm.pos >= 0 {
			return true
		}
	}
	return false
}

// isHeap reports whether h keeps a heap's promise: no item comes before its parent.
func (h *heap[T]) isHeap() bool {
	for i := 1; i < len(h.items); i++ {
		if h.before(h.items[i], h.items[(i-1)/2]) {
			return false
		}
	}
	return true
}
