package machine

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Machine decides which call may leave, and when. It is a value in the care of one owner: no
// method may be called while another runs.
//
// Create one with [New]; pass facts to Step; ask Ready what follows.
type Machine struct {
	cfg     Config
	backoff limiter.Backoff
	rng     *rand.Rand
	now     time.Time // of the latest call: time never goes back in here

	runs           map[RunID]*run
	awake          list[run] // those that may be given something now; they take turns
	touched        []*run    // those whose books may have changed since the latest decision
	woken          []*lane   // those whose first in line is to be asked
	lanes          map[string]*lane
	defined        map[string]*LaneConfig
	usual          *LaneConfig           // of the others
	memory         map[string]LaneMemory // of lanes that were not used yet
	items          map[string]ItemMemory // of items that were not offered yet, or let go; nil: there are none
	idle           laneList
	alarms         alarms
	expiry         heap[*Item] // handed over, not over, and with a deadline
	waiting        int         // items that wait, in all
	inFlight       int         // calls in flight, in all
	totals         tally
	checkWaitsAt   time.Time           // when to look for long waits; zero: nobody waits
	waitsCheckedAt time.Time           // when that was last done and nothing else
	budgetSpent    bool                // a budget was spent since the latest look at the releases
	stepped        bool                // a fact was absorbed since the latest Ready
	sayQueue       []*lane             // those whose law may have something to say
	accused        []*lane             // those with items that are Undecided
	accounts       map[string]*account // of known lanes; nil: none has one
	faulty         []*lane             // those whose law has failed, to be stopped
	askings        uint64              // how often one was asked
	out            Ready
	transitionsOut int // transitions in the latest answer
}

// Ready is everything that follows from the facts that a machine took. Its slices are valid
// until the next call of the machine.
type Ready struct {
	Grants      []Grant
	Transitions []Transition
	LongWaits   []LongWait
	Words       []Word      // words of laws to the outside; see [limiter.Speaker]
	Stranded    []Stranding // runs that lost their last lane, or need too many: feed them no more
	Finished    []Finish    // runs that are over; they are forgotten
	Lengthened  bool        // a cooldown lasts longer than its transition said
	WakeAt      time.Time   // when to ask again if nothing happens; zero: only when something does
}

// A Finish says that a run is over, with the counts of its items and calls.
type Finish struct {
	Run      RunID
	Counters Counters
	Stopped  error         // why the first item that ended by EndStopped or EndUnpaid did; nil: none did
	Held     Ledger        // its time by what held it back
	Ran      time.Duration // from when it was opened: the sum of Held
	Money    Spending      // against its budget; zero: it has none
}

// A Stranding says that no lane is left for any pool of a run, and why; or that the run needs
// more lanes than there may be, which is [ErrTooManyLanes].
type Stranding struct {
	Run   RunID
	Cause error
}

// A Verdict says what a grant is for.
type Verdict uint8

// The verdicts. All but Call end the item without a further call.
const (
	Call         Verdict = iota // make the call, and report its end
	EndExpired                  // the item's own time is up
	EndDrained                  // its run drains
	EndStopped                  // no lane is left that could take it, or none may be made for it
	EndWithdrawn                // it was withdrawn
	EndFailed                   // a call of it, handed over, was its failure; Attempts counts that one too
	EndUnpaid                   // the budget of its run does not cover the next call
)

var verdictWords = [...]string{"call", "expired", "drained", "stopped", "withdrawn", "failed", "unpaid"}

func (v Verdict) String() string { return verdictWords[v] }

// A Grant lends an item to one worker: to call, or to end without one. Each is
// answered by exactly one [Settled] or [HandedOver].
type Grant struct {
	Item    *Item
	Run     RunID
	Verdict Verdict
	Lane    string
	Config  *LaneConfig // of the lane, shared with others: to be read only; nil unless it is to be called
	Epoch   uint64      // of the lane: news from an older one cannot start a cooldown
	Serial  uint64      // of the item: news of an older grant is dropped
	Cause   error       // for EndStopped: the error that stopped the lane, or ErrTooManyLanes; for EndFailed: the server's error; for EndUnpaid: a *BudgetError
}

// New returns a machine that knows only what its config tells.
func New(c Config) *Machine {
	c = c.withDefaults()
	m := &Machine{
		cfg:     c,
		backoff: limiter.NewBackoff(c.Backoff),
		rng:     rand.New(rand.NewPCG(c.Seed, 0x6865616472616365)), // any second word will do; this one spells the name
		runs:    map[RunID]*run{},
		lanes:   map[string]*lane{},
		defined: map[string]*LaneConfig{},
		memory:  map[string]LaneMemory{},
		alarms:  newAlarms(),
		expiry:  heap[*Item]{before: byExpiry, moved: expiryMoved},
	}
	m.usual = &m.cfg.Lane
	for name, lane := range c.Lanes {
		m.defined[name] = &lane
	}
	for name, memory := range c.Memory {
		m.remember(name, memory)
	}
	m.items = maps.Clone(c.Items)
	maps.DeleteFunc(m.items, func(_ string, k ItemMemory) bool { return k.Validate() != nil })
	return m
}

// Waiting returns the number of items that wait in the machine. A driver bounds it by closing its
// door to offers.
func (m *Machine) Waiting() int { return m.waiting }

// Step absorbs one fact. It decides nothing: [Machine.Ready] does, once for all absorbed facts.
func (m *Machine) Step(now time.Time, e Event) {
	now = m.tick(now)
	m.stepped = true
	switch e.kind {
	case evSettled, evHandedOver:
		m.absorbEnd(now, &e)
	case evOffered:
		m.absorbOffer(now, m.runs[e.run], e.items)
	case evRunOpened:
		m.open(e.run, e.config.(RunConfig))
	case evLaneDefined:
		m.defineLane(now, e.name, e.config.(LaneConfig))
	case evPoolDefined:
		m.runs[e.run].definePool(e.config.(PoolConfig))
	case evLimitsChanged:
		m.setLimits(now, e.name, e.config.(limiter.Limits))
	case evWithdrawn:
		m.withdraw(e.item)
	case evLaneRestored:
		m.remember(e.name, e.config.(LaneMemory))
	case evDelivered:
		m.deliver(now, e.name, e.config)
	case evOverheard:
		m.learnOverheard(now, e.name, e.config.(departure), &e.outcome)
	case evLaneReset:
		m.resetLane(now, e.name)
	case evSlept:
		m.bookSleep(now, e.config.(time.Time))
	case evConcurrency:
		m.setConcurrency(e.run, e.config.(int))
	case evBudget:
		m.setBudget(m.runs[e.run], e.config.(limiter.Money))
	default:
		m.steer(m.runs[e.run], e.kind)
	}
}

// tick keeps time from going back, so that no bucket is refilled twice and no wait is computed
// from a moment that is over. It is a guard: times with a monotonic reading do not go back.
// Until such a clock has caught up, time stands still.
func (m *Machine) tick(now time.Time) time.Time {
	if now.After(m.now) {
		m.now = now
	}
	return m.now
}

// Ready decides: it grants all that time or facts have made possible. Runs take turns, and within
// each pool the order holds.
func (m *Machine) Ready(now time.Time) Ready {
	m.clearAnswer()
	if !m.onlyChecksWaits(now) {
		now = m.tick(now)
		m.decide(now)
	}
	m.checkWaits(now)
	for len(m.faulty) > 0 { // a law failed while it was looked at, or asked for its word
		m.decide(m.tick(now))
	}
	m.out.WakeAt = m.wakeAt()
	ready := m.out
	m.transitionsOut = len(ready.Transitions)
	m.out.Transitions, m.out.Stranded, m.out.LongWaits = m.out.Transitions[:0], nil, m.out.LongWaits[:0] // Step adds to these,
	m.out.Lengthened = false                                                                             // and sets this
	return ready
}

// decide makes one pass. It first grants all that the facts and the time allow. Then it stops lanes
// whose law has failed, and settles undecided items. Either may set items free, so it grants again.
func (m *Machine) decide(now time.Time) {
	m.stepped = false
	m.ringAlarms(now)
	m.expire(now)
	m.grant(now)
	m.evict(now, maxEvictions) // it closes pools, and the last one that could speak may be among them
	for len(m.faulty) > 0 && m.stopFaulty(now) || len(m.accused) > 0 && m.decideUndecided(now) {
		m.ringAlarms(now) // an item that is set free may have been due long ago
		m.grant(now)
	}
	m.finish(now)
	m.askSpeakers(now) // last, when it is known what still waits
}

// clearAnswer empties the latest answer before its arrays are used again. Otherwise they would keep
// items alive whose run is over.
func (m *Machine) clearAnswer() {
	clear(m.out.Grants)
	clear(m.out.Finished)
	clear(m.out.Words)
	m.out.Grants, m.out.Finished, m.out.Words = m.out.Grants[:0], m.out.Finished[:0], m.out.Words[:0]
	if n := len(m.out.Transitions); n < m.transitionsOut {
		clear(m.out.Transitions[n:m.transitionsOut])
	}
}

// ringAlarms acts on each alarm whose moment has come: of a law that wants to speak, of a line, a
// lane or a pool.
func (m *Machine) ringAlarms(now time.Time) {
	for a := m.alarms.due(now); a != nil; a = m.alarms.due(now) {
		if l := a.lane; l != nil {
			switch {
			case l.outside != nil && a == &l.outside.alarm:
				m.scheduleSay(l)
			case l.line != nil && a == &l.line.alarm:
				m.wake(l)
			default:
				m.advance(now, l)
			}
			continue
		}
		a.pool.makeDueReady(now)
		m.tryTiers(now, a.pool)
		a.pool.wake()
		m.setAlarm(a.pool)
	}
}

// grant gives each run in turn as many items as its priority says, until no run can take more. Then
// the lanes on which something has happened ask the pools in their lines. Once as many calls are in
// flight as may be, the runs that are awake keep their turns.
func (m *Machine) grant(now time.Time) {
	m.lendReleases()
	kept := 0 // of the woken lanes: those that are to be asked again
	asked := 0
	for {
		if r := m.awake.first; r != nil && !m.full() {
			m.serve(now, r.of)
			continue
		}
		if asked == len(m.woken) {
			break
		}
		l := m.woken[asked]
		asked++
		if l.line.woken { // or it was asked for another lane's sake
			m.askLine(now, l)
		}
		if l.line.listed = l.line.woken; l.line.listed {
			m.woken[kept] = l
			kept++
		}
	}
	clear(m.woken[kept:])
	m.woken = m.woken[:kept]
	if m.budgetSpent { // a budget was spent meanwhile: its items end in this pass, too
		m.budgetSpent = false
		m.lendReleases()
	}
}

// lendReleases lends the items that end without a further call. They need no place among the calls
// in flight.
func (m *Machine) lendReleases() {
	for _, r := range m.touched {
		for r.releases.n > 0 && r.hasRoom() {
			it := r.releases.pop()
			m.lend(r, Grant{Item: it, Verdict: it.verdict, Cause: it.cause})
		}
	}
}

// serve grants one call of r, whose turn it is. If none can go, r goes to sleep, and its seats in
// the lines keep the rest of its turn: the lane is the reason, not the run.
func (m *Machine) serve(now time.Time, r *run) {
	if !r.hasRoom() || !m.grantOne(now, r) {
		m.touch(r)
		m.awake.remove(&r.turn)
		r.given = 0
		return
	}
	if r.given++; r.given >= r.cfg.Priority {
		r.given = 0
		m.awake.moveBack()
	}
}

// grantOne grants one item of r, and reports whether one could go. A pool that has its share of the
// places lets pools with fewer calls in flight go first.
func (m *Machine) grantOne(now time.Time, r *run) bool {
	if r.paused {
		return false
	}
	mayYield, least := r.runnable.fewestInFlight()
	for p := r.runnable.pop(); p != nil; p = r.runnable.pop() {
		if mayYield > 0 && p.inFlight > least && m.hasItsPlaces(p) {
			mayYield--
			r.runnable.push(p)
			continue
		}
		if m.grantFrom(now, p) {
			p.wake()
			return true
		}
	}
	return false
}

// grantFrom grants the head of p, and reports whether it could. If the head must wait, the pool
// sleeps.
func (m *Machine) grantFrom(now time.Time, p *pool) bool {
	it := p.head()
	if it == nil {
		return false
	}
	purse := p.run.purse
	l := m.laneFor(now, p, it)
	if l == nil {
		if purse != nil {
			purse.setWaiting(p, false) // it waits for a lane instead
		}
		return false
	}
	if l.phase == Probing {
		it = p.probeOn(now, l, it)
	}
	var price limiter.Money
	if purse != nil {
		var fits bool
		if price, fits = m.affords(p, it, l); !fits {
			return false
		}
		purse.setWaiting(p, false)
	}
	m.send(now, it, l)
	if purse != nil {
		purse.reserve(int(it.pos), price)
	}
	switch m.endTurn(p); {
	case p.head() == nil:
		p.clearWaits()
		m.leaveLines(p)
	case p.tiers != nil:
		m.nextOfTiers(now, p, l)
	}
	return true
}

// laneFor returns the lane on which the head of p can go now. If there is none, the pool sleeps,
// and it returns nil.
func (m *Machine) laneFor(now time.Time, p *pool, head *Item) *lane {
	l, wait, asked := p.pick(now, head)
	if wait == 0 {
		return l
	}
	m.sleep(now, p, l, asked)
	m.mustWait(now, p, asked)
	if p.tiers != nil {
		m.waitForTiers(now, p)
	}
	m.schedulePoolSays(p)
	return nil
}

// send grants a call of the item on l, and books it with its pool, its run and the lane.
func (m *Machine) send(now time.Time, it *Item, l *lane) {
	wasParked := it.place == Parked
	it.pool.freshGoesNext = it.Attempts > 0 && it.Calls > 0 && !wasParked
	it.pool.take(it)
	it.pool.subtractCost(it)
	if wasParked {
		it.lane.parked--
		it.run.parked--
		m.count(it.run, it.lane, redistributed)
	}
	if it.Calls == 0 {
		it.First = now
		if t := cmp.Or(l.cfg.ItemTimeout, it.run.cfg.ItemTimeout); t > 0 {
			it.Expires = now.Add(t)
		}
	} else {
		it.Waited += now.Sub(it.handedOverAt)
	}
	it.Calls++
	if it.doubts > 0 {
		if it.settleDoubts(); it.lane != l && it.lane != nil {
			it.doubts = 0 // another lane's breaker says nothing of them
		}
	}
	if it.counted && it.lane != nil && it.lane.clears(it) {
		it.counted = false
	}
	it.Sent, it.lane, it.epoch = now, l, l.epoch
	it.place, it.Probe = InFlight, l.phase == Probing
	it.pos = int32(it.run.flights.depart(now, it))
	if it.pool.inFlight++; len(it.pool.lanes) > 1 {
		k := slices.Index(it.pool.lanes, l)
		if it.pool.seats[k].inFlight++; it.pool.tiers != nil {
			it.pool.tiers.bookTurn(k)
		}
	}
	m.inFlight++
	m.noteDeparture(now, l, it)
	m.count(it.run, l, calls)
	m.lend(it.run, Grant{Item: it, Lane: l.name, Config: l.cfg, Epoch: l.epoch})
}

// lend hands out a grant, and counts its item as busy.
func (m *Machine) lend(r *run, g Grant) {
	g.Item.serial++
	g.Run, g.Serial = r.id, g.Item.serial
	m.waiting--
	r.waiting--
	r.busy++
	m.touch(r)
	m.out.Grants = append(m.out.Grants, g)
}

// finish reports and forgets the runs that are over. It updates the books of the other runs that
// have changed.
func (m *Machine) finish(now time.Time) {
	for i, r := range m.touched {
		m.touched[i], r.touched = nil, false
		if !r.finished() {
			r.updateBooks(now, m.full())
			continue
		}
		m.close(r)
		f := Finish{Run: r.id, Counters: r.counts.counters(), Stopped: r.stopped, Held: r.ledgerAt(now), Ran: now.Sub(r.books.opened)}
		if r.purse != nil {
			f.Money = r.purse.Spending
		}
		m.out.Finished = append(m.out.Finished, f)
	}
	m.touched = m.touched[:0]
}

// touch notes a change of a run on which its books, or its end, depend.
func (m *Machine) touch(r *run) {
	if !r.touched {
		r.touched = true
		m.touched = append(m.touched, r)
	}
}

// wakeAt returns the earliest moment at which time alone changes anything, or something must be
// reported.
func (m *Machine) wakeAt() time.Time {
	at := m.decidesAt()
	if !m.checkWaitsAt.IsZero() && (at.IsZero() || m.checkWaitsAt.Before(at)) {
		at = m.checkWaitsAt
	}
	return at
}

// decidesAt returns the earliest moment at which time alone may change a decision; zero: there is
// none.
func (m *Machine) decidesAt() time.Time {
	var at time.Time
	if a := m.alarms.top(); a != nil {
		at = a.at
	}
	if it := m.expiry.top(); it != nil && (at.IsZero() || it.Expires.Before(at)) {
		at = it.Expires
	}
	if c := m.undecidedDueAt(); !c.IsZero() && (at.IsZero() || c.Before(at)) {
		at = c
	}
	return at
}

// Slept says that nothing ran from then until now: the computer slept, or the process was
// stopped. That held runs back, whatever held them back before.
func Slept(from time.Time) Event { return Event{kind: evSlept, config: from} }

// bookSleep books the time in which the computer slept with all runs. The next decision finds out
// anew what holds them back.
func (m *Machine) bookSleep(now, from time.Time) {
	for _, r := range m.runs {
		b := &r.books
		last := latest(from, b.since)
		b.ledger = r.ledgerAt(last)
		b.ledger[BoundSlept] += now.Sub(last)
		if b.since = now; b.behind != nil {
			b.lineLedger = b.behind.ledgerAt(now)
		}
	}
}
