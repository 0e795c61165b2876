package machine

import (
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/model"
	"github.com/headrace/headrace/limiter/plain"
)

// A book is what the world knows by itself of its runs, lanes and items: from what
// it told and was granted, never from what the machine believes. The machine is
// looked into for these things only: epoch and escalation before and after a
// fact, whether a breaker is open, whether a lane was forgotten, whether a refused item
// waits alone and until when, whether a backoff is over, whether an item was turned away
// when it came, and by what factor a call was charged.
type book struct {
	w        *world
	runs     map[RunID]*bookRun
	lanes    map[string]*bookLane
	items    []*bookItem // offered, in that order
	living   []*bookItem // those that are not over, and some that lately were
	of       map[*Item]*bookItem
	early    map[*Item]bool  // withdrawn before they were offered
	pages    []*bookLane     // of lanes
	later    []Grant         // of the decision that is being booked, after the present one
	stopped  map[string]bool // lanes that did at some time, also if they were forgotten since
	out      int             // grants that were not ended
	beyond   int             // calls in flight when the ceiling of all runs was changed, or fewer since
	finished int             // runs
	total    tally           // of the kinds that the world can count
	census   census
	ended    int         // items that are over, and may be among the living
	doubted  []*bookItem // whose end was not decided when their latest call ended
	turns    bookTurns
	moment   moment // that of the latest fact
}

type bookRun struct {
	id       RunID
	config   RunConfig
	paused   int
	draining bool
	ended    bool // its input
	finished bool
	stranded bool
	crowded  bool // it needs more lanes than may be known
	unserved bool // some item ended because no lane could take it
	busy     int
	open     int // items that are not over
	waiting  int // of the census, as are the next two
	parked   int
	delayed  int
	counts   tally
	money    bookMoney
	line     map[string][]*bookItem // by pool: who waits, in order of offer
	waits    map[string]time.Time   // by pool: its head has not waited for longer
	yields   map[string]bool        // by pool: one has gone that had failed, so the next is one that was never called
}

type bookLane struct {
	name           string
	of             *lane // the machine's: one that was forgotten and is made again is another
	config         LaneConfig
	charge         limiter.Charge // of the present law
	phase          Phase
	epoch          uint64
	inFlight       int
	inEpoch        int
	answers        int
	began          uint64    // the epoch in which its law did
	slowed         bool      // at some time its error window may have, as a call broke
	halved         bool      // by the latest report
	letIn          time.Time // when a call was last let in while it was well
	said           time.Time // when its wait was last said
	unhealthySince time.Time // since when it is ill and items wait for it
	buckets        buckets
	silence        bookSilence
	blame          bookBlame
	givenUp        bool          // as it was never answered, by the fact that is being absorbed
	ruined         bool          // its account has stopped it
	before         Phase         // before its latest transition
	fell           time.Time     // when it fell ill; zero: a call that left since then was answered
	lay            time.Duration // how long it was ill when it was let in again
}

type bookItem struct {
	item   *Item
	run    *bookRun
	pool   string
	lanes  []string  // that its pool may use
	cost   float64   // tokens
	place  Place     // Nowhere: the machine has not heard of it; Waiting: never called, or back for no reason
	grant  Grant     // the latest
	last   Outcome   // of the latest call
	sent   time.Time // when that left
	back   time.Time
	failed time.Time // when it was last handed over
	blame  bookDoubts
	judged bool      // it has failed for good, and that was just
	alone  time.Time // until when it alone waits after a refusal; zero: it does not
	first  time.Time // its first call
	wanted bool
	noRoom bool // a lane of its pool would have been one too many

	in       *pool // where it was counted last
	inCensus *poolCensus
	on       *lane // likewise
	onCensus *laneCensus
}

func newBook(w *world) *book {
	return &book{w: w, runs: map[RunID]*bookRun{}, lanes: map[string]*bookLane{}, of: map[*Item]*bookItem{}, early: map[*Item]bool{}, stopped: map[string]bool{}}
}

func (b *book) open(id RunID, c RunConfig) {
	b.runs[id] = &bookRun{id: id, config: c, line: map[string][]*bookItem{}, yields: map[string]bool{}, waits: map[string]time.Time{}, money: bookMoney{spent: c.Spent, excess: max(0, c.Spent-c.Budget)}}
}

func (b *book) lane(name string) *bookLane {
	l := b.lanes[name]
	if l == nil {
		l = &bookLane{name: name, of: b.w.m.lanes[name], config: *b.w.m.laneConfig(name)}
		l.charge = l.config.Charge
		l.blame.ever = b.w.m.cfg.AnsweredBefore
		l.silence.heard = l.blame.ever
		l.buckets.set(b.w.now, l.config.Limits)
		b.lanes[name], b.pages = l, append(b.pages, l)
		if page := b.w.outer.pages[name]; page != nil {
			page.renewed = false // its first law took nobody's place, though the page may be that of a lane that was forgotten
		}
	}
	return l
}

// define runs after the machine has taken the definition.
func (b *book) define(name string, c LaneConfig) {
	if l := b.lanes[name]; l != nil {
		l.config = c
		l.buckets.set(b.w.now, c.Limits)
	}
}

func (b *book) offer(id RunID, items []*Item) {
	r := b.runs[id]
	for _, it := range items {
		x := &bookItem{item: it, run: r, pool: it.Pool, lanes: r.poolOf(it.Pool).Lanes, cost: it.Cost.Tokens(), wanted: !b.early[it]}
		b.items, b.living, b.of[it] = append(b.items, x), append(b.living, x), x
		if r.line[it.Pool] = append(r.line[it.Pool], x); r.waits[it.Pool].IsZero() {
			r.waits[it.Pool] = b.w.now
		}
		r.open++
		b.count(r, offered)
	}
}

func (b *book) count(r *bookRun, kind counted) {
	b.total[kind]++
	if r != nil {
		r.counts[kind]++
	}
}

// poolOf returns the pool as the world configured it.
func (r *bookRun) poolOf(name string) PoolConfig {
	for _, c := range r.config.Pools {
		if c.Name == name {
			return c
		}
	}
	return PoolConfig{Name: name, Lanes: []string{name}}
}

// A moment is what a fact may change: the epoch and the escalation of each lane.
type moment []laneMoment

type laneMoment struct {
	of    *lane
	is    [2]uint64
	asked bool // for its escalation
}

// on returns that of one lane; zero if it was not there.
func (at moment) on(l *lane) [2]uint64 {
	for i := range at {
		if at[i].of == l {
			return at[i].is
		}
	}
	return [2]uint64{}
}

// escalation returns the number of waves that the lane has met since the last answer.
func (l *lane) escalation(now time.Time) int {
	switch law := l.ownLaw().(type) {
	case *model.Law:
		return law.View(now, limiter.Cost{}).Probed
	case *plain.Law:
		return law.Save(now).Plain.Escalation
	}
	return 0 // it has failed, or somebody else made it
}

// before returns the moment before a fact. It is good until the next one. The lane that the fact is about
// is asked for its escalation, and the others are at a look.
func (b *book) before(e Event, look bool) moment {
	about := e.name
	if x := b.of[e.item]; x != nil {
		about = x.grant.Lane
	}
	b.moment = b.moment[:0]
	for _, l := range b.w.m.lanes {
		asked := look || l.name == about
		b.moment = append(b.moment, laneMoment{l, b.momentOf(l, asked), asked})
	}
	return b.moment
}

func (b *book) momentOf(l *lane, asked bool) (is [2]uint64) {
	if is[0] = l.epoch; asked {
		is[1] = uint64(l.escalation(b.w.now))
	}
	return is
}

// after writes a fact down, and sees that epoch and escalation changed by news of
// the present epoch only.
func (b *book) after(e Event, before moment) {
	b.closePages()
	b.breakSilences(e)
	defer b.findDecided(true)
	news, present := "", false
	switch e.kind {
	case evDelivered:
		b.heardFrom(e, before)
	case evOverheard:
		b.heardOf(e)
	}
	if e.kind == evSettled || e.kind == evHandedOver {
		news, present = b.end(e, before)
	}
	for i := range before {
		l, was, name := before[i].of, before[i].is, before[i].of.name
		if b.w.m.lanes[name] != l { // it was forgotten, as an offer may need room
			b.blurSilences()
			continue
		}
		is := b.momentOf(l, before[i].asked)
		if is[1] < was[1] && l.cfg.Law == limiter.Model && name == news {
			is[1] = was[1] // a model hears from any news that an earlier call was let in
		}
		if is == was {
			continue
		}
		switch {
		case (e.kind == evLaneReset || e.kind == evLaneDefined || e.kind == evDelivered) && e.name == name && is[0] == was[0]+1:
		case e.kind == evOffered && l.phase == Flowing && is[0] == was[0]+1: // a run that has not waited for it yet
		case e.kind == evOverheard && e.name == name && l.phase == Stopped && is[0] == was[0]+1:
		case l.phase == Stopped && l.account != nil && l.account.cause != nil && is[0] == was[0]+1: // by a call on another lane of its account
		case name != news:
			b.w.failf("%v changed lane %s from epoch, escalation %v to %v", e, name, was, is)
		case l.phase == Stopped && is[0] == was[0]+1 && is[1] >= was[1]:
			// refused for good, which is news of any epoch
		case !present:
			b.w.failf("%v, old news, changed lane %s from epoch, escalation %v to %v", e, name, was, is)
		case is[1] > was[1] && e.outcome.Signal != Throttled && e.outcome.Signal != Overloaded:
			b.w.failf("%v escalated lane %s", e, name)
		case is[1] < was[1] && e.outcome.Signal != Succeeded && e.outcome.Signal != Answered && e.outcome.Signal != Exhausted:
			b.w.failf("%v ended the escalation of lane %s", e, name)
		}
	}
	switch e.kind {
	case evWithdrawn:
		if x := b.of[e.item]; x != nil { // else it is not offered yet
			x.wanted = false
		}
	case evOffered:
		b.findRoom(e.items, len(before))
	case evLaneReset:
		if l := b.lanes[e.name]; l != nil {
			l.letIn = b.w.now // another law ends no wait: what holds the lane back stays
		}
	case evResumed: // its items wait from now on
		for _, l := range b.pages {
			l.unhealthySince = time.Time{}
		}
	}
}

// findRoom notes that items were offered, and which of them found no room for their
// lanes, and sees that there was none.
//
// One that came before another of the same offer may have found none where that other makes
// some: its lane was given up unheard, and is forgotten to be tried anew.
func (b *book) findRoom(items []*Item, were int) {
	known, most := len(b.w.m.lanes), b.w.plan.machine.MaxLanes
	for _, it := range items {
		x, missing := b.of[it], 0
		for _, name := range x.run.poolOf(x.pool).Lanes {
			if b.w.m.lanes[name] == nil {
				missing++
			}
		}
		early := it.pool != nil && it.pool.noRoom != nil && were+len(x.lanes) > most
		x.place, x.noRoom = Waiting, missing > 0 || early
		x.run.crowded = x.run.crowded || x.noRoom
		if missing > 0 && !early && (most == 0 || known+missing <= most) {
			b.w.failf("item %d has no lane, and there was room for %d beside %d", it.Seq, missing, known)
		}
	}
}

// end writes down the end of a grant. It answers whose news that was, and whether
// of the present epoch; none if it is an end of the past.
func (b *book) end(e Event, before moment) (lane string, present bool) {
	x := b.of[e.item]
	if x.grant.Serial != e.serial || (x.place != InFlight && x.place != Releasing) {
		b.total[dropped]++
		return "", false
	}
	b.out--
	x.run.busy--
	if x.place == Releasing {
		b.isOver(x, released)
		if x.grant.Verdict == EndFailed {
			b.count(x.run, failedLater)
		}
		return "", false
	}
	lane = x.grant.Lane
	remote, late := b.lanes[lane].isRemote(), x.grant.Epoch < b.lanes[lane].began
	b.checkEnds(e, remote, late)
	was := before.on(b.w.m.lanes[lane])
	present = x.grant.Epoch == was[0]
	b.paid(x, e.outcome)
	b.lanes[lane].ended(b.w.now, x, e.outcome, present)
	b.givesUp(lane, e.outcome.Signal == Failed && !remote && !late)
	x.last, x.back = e.outcome, b.w.now
	b.isBlamed(x, e.outcome, remote, late)
	if o := e.outcome.Signal; (o == Succeeded || o == Answered) && !remote && !late {
		b.lanes[lane].wasWell(x.sent)
	}
	b.countEnd(x, e.outcome, present)
	if e.kind == evSettled {
		b.isOver(x, settled)
		return lane, present
	}
	b.count(x.run, handedOver)
	x.place, x.failed = placeOf(e.outcome), b.w.m.now
	if is := x.item.place; is == Undecided || is == Releasing {
		b.doubted = append(b.doubted, x)
	}
	if is := x.item.place; is == Undecided || is == Waiting && e.outcome.Signal == Exhausted { // its lane has stopped by it
		x.place = is
	}
	b.waitsAlone(x, was, present)
	return lane, present
}

func (b *book) countEnd(x *bookItem, o Outcome, present bool) {
	if o.Signal != Throttled && o.Signal != Overloaded {
		return
	}
	b.count(x.run, throttled)
	if l := b.lanes[x.grant.Lane]; !present && l.phase != Stopped && !l.isRemote() {
		b.count(x.run, stragglers)
	}
}

// waitsAlone records whether a refused item waits by itself, and checks that this is its own
// affair: the refusal was of the present epoch, and began no other. It also checks the
// converse: an item that waits for its lane is parked.
func (b *book) waitsAlone(x *bookItem, before [2]uint64, present bool) {
	x.alone = time.Time{}
	if o := x.last; o.Signal == Exhausted && o.Alike != 0 && b.lanes[x.grant.Lane].isRemote() && b.w.m.lanes[x.grant.Lane].phase != Stopped {
		x.place, x.alone = Delayed, b.w.now.Add(HeardWithin)
		return
	}
	if x.last.Signal != Throttled && x.last.Signal != Overloaded {
		return
	}
	is, lane := x.item.place, b.w.m.lanes[x.grant.Lane]
	flows := present && lane.epoch == before[0]
	if is == Delayed {
		x.place, x.alone = Delayed, x.item.due
	}
	switch {
	case flows && lane.cfg.Law == limiter.Plain && !lane.remote():
		b.w.failf("item %d was refused, and its lane flows on by the plain law", x.item.Seq)
	case is == Delayed && !flows:
		b.w.failf("item %d waits alone: present news: %v, epoch %d after %d", x.item.Seq, present, lane.epoch, before[0])
	case is == Delayed && !x.alone.After(b.w.m.now):
		b.w.failf("item %d waits alone for what is over", x.item.Seq)
	}
}

func placeOf(o Outcome) Place {
	switch o.Signal {
	case Throttled, Overloaded, Exhausted:
		return Parked
	case Failed:
		return Delayed
	}
	return Waiting
}

func (b *book) isOver(x *bookItem, kind counted) {
	x.place = Over
	x.run.open--
	b.count(x.run, kind)
	line := x.run.line[x.pool]
	i := slices.Index(line, x)
	x.run.line[x.pool] = slices.Delete(line, i, i+1)
	if b.ended++; b.ended > 16+len(b.living)/4 { // seldom, as most of the others stay
		b.living, b.ended = slices.DeleteFunc(b.living, func(x *bookItem) bool { return x.place == Over && x.item.place == Over }), 0
	}
}

func (b *book) over() bool { return b.finished == len(b.runs) }

// close sees that the sums come out when all is over.
func (b *book) close() {
	c := b.w.m.totals.counters()
	if !c.Proves() || c.Offered != uint64(len(b.items)) {
		b.w.failf("the books are not even: %+v", c)
	}
	if b.w.m.Waiting() != 0 || len(b.w.m.runs) != 0 || b.w.m.expiry.len() != 0 || b.out != 0 {
		b.w.failf("something is left: %d held, %d runs, %d deadlines, %d grants", b.w.m.Waiting(), len(b.w.m.runs), b.w.m.expiry.len(), b.out)
	}
	for name, l := range b.lanes {
		if l.inFlight != 0 {
			b.w.failf("lane %s has %d in flight when all is over", name, l.inFlight)
		}
	}
}
