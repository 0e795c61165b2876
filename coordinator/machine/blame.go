package machine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Whose failure is it: the item's, the lane's, or nobody's?
//
// A witness of a failure is an answered call of another item on the same lane that left after
// the failure was seen. Answers of calls that were under way by then prove nothing: a server
// that goes down still answers many of them. A failure is in doubt until a witness makes it the
// item's, or until the breaker opens and makes it nobody's.
//
//	broke ─▶ in doubt ──witness──────▶ the item's: all its doubts together are one attempt
//	                  └─breaker opens─▶ nobody's: taken back
//
//	no attempt left, or refused for good ─▶ Undecided ──witness, or nobody left to ask──▶ it fails
//	                                                 ├─breaker opens, and it broke──────▶ tried again
//	                                                 └─enough items alike, none answered─▶ the lane stops
//
// Doubts are settled when their item leaves or breaks next. The item then compares two numbers
// of its lane with its own: when the latest witness left, and the epoch of the breaker. So the
// lane never searches for waiting items.

const (
	// doubtBase is the wait of an item after its second failure without a witness; it doubles.
	// Five attempts then take 35 s, so the last few items outlive an outage of half a minute.
	doubtBase = 5 * time.Second
	// maxDoubtWait bounds that wait, and the one for an answer of another item.
	maxDoubtWait = 30 * time.Second
	// maxDoublings bounds how often that wait doubles, as a shift by more bits overflows: maxDoubtWait is reached before.
	maxDoublings = 8
	// maxDoubts caps the count of an item's doubts.
	maxDoubts = math.MaxUint8

	// accidentNats is −ln of the chance that a row opens a breaker by accident: one in ten million
	// rows.
	accidentNats = 16
	// besideShare caps the failures of a row per answer that came in meanwhile. Up to that
	// many, the row says nothing of the server.
	besideShare = 3
	// firstEnds is the number of first ends of items that make up the share of bad ones; older
	// ones fade.
	firstEnds = 1000
)

// blame holds a lane's record of its failures; nil for lanes without any.
type blame struct {
	lastAnswered time.Time // when the latest call left that was answered
	lastAsHoped  time.Time // and that was answered as hoped
	failingSince time.Time // when calls began to go unanswered: the first that broke, or cooled the lane, since an answer; zero: none did
	openedEpoch  uint64    // the epoch that began when the breaker last opened: what left before it and broke is nobody's

	rowBegan      time.Time // when the first call left that broke in the present row
	answeredSince uint32    // items that were answered since that row began, by calls that left later than that one

	good, bad uint32 // items whose first call was answered, and whose first call broke while no breaker opened

	undecided   []undecided
	failedAlike alike // items that ended so lately, as nobody was left to ask
}

// undecided is an item that has ended for good, unless its lane is to blame.
type undecided struct {
	it        *Item
	serial    uint64
	alikeKey  uint32
	first     uint8 // as Outcome.First
	broke     bool  // it has no attempt left
	ofAccount bool  // and these words are about the lane's account
	refused   bool  // it was refused in words about a key, a model or the like
}

// waits reports whether the item is still undecided here.
func (u *undecided) waits() bool { return u.it.serial == u.serial && u.it.place == Undecided }

// alike counts items that ended in one way.
type alike struct {
	key uint32
	n   int
}

func (l *lane) blameRecord() *blame {
	if l.blame == nil {
		l.blame = &blame{good: uint32(min(l.answers, firstEnds))}
	}
	return l.blame
}

// down reports whether the breaker takes the server to be down.
func (l *lane) down(now time.Time) bool { return l.breaker.State(now) != limiter.Closed }

// suspect reports whether the item has failed while others were answered.
func (it *Item) suspect() bool { return it.Attempts > int(it.doubts) }

// settleDoubts finds out what has become of the item's failures that were in doubt.
func (it *Item) settleDoubts() { it.Attempts, it.doubts = it.settled() }

// settled returns the attempts that the item has used up by now, and how many of them are still in
// doubt. It changes nothing.
func (it *Item) settled() (attempts int, doubts uint8) {
	attempts, doubts = it.Attempts, it.doubts
	if doubts == 0 || it.lane == nil || it.lane.blame == nil {
		return attempts, doubts
	}
	switch b := it.lane.blame; {
	case it.epoch < b.openedEpoch:
		return attempts - int(doubts), 0
	case !b.lastAnswered.Before(it.handedOverAt):
		return attempts - int(doubts) + 1, 0
	}
	return attempts, doubts
}

// countAgainstItem counts the end of a call that was handed over, and reports whether it used up an
// attempt. A breaker's probe uses up none: an outage would use up all attempts of the item that is
// first in line.
func (m *Machine) countAgainstItem(now time.Time, it *Item, o *Outcome) (used bool) {
	l := it.lane
	switch {
	case o.Signal == Throttled, o.Signal == Overloaded:
		if !it.Probe {
			it.Throttled++
			it.refused = min(it.refused, math.MaxUint8-1) + 1
		}
	case o.Signal != Failed:
	case l.remote():
		used = !it.Probe
	case it.Probe && l.down(now):
		it.probed = min(it.probed, math.MaxUint8-1) + 1
		used = it.run.cfg.KeepGoing
	case it.epoch < l.blameRecord().openedEpoch: // nobody's
	case o.Unsent: // the lane's
		it.Throttled++
	default:
		used = true
		it.doubts = min(it.doubts, maxDoubts-1) + 1
	}
	if used {
		it.Attempts++
	}
	return used
}

// tripsBreaker counts a failed call of the present epoch with the breaker, and reports whether that
// opens it. An item counts once: a few items that always fail would otherwise look like an outage.
// A call that never left says nothing of its item, and counts each time.
func (l *lane) tripsBreaker(now time.Time, it *Item, o *Outcome) bool {
	b := l.blameRecord()
	if !l.down(now) {
		if it.counted && !o.Unsent {
			return false
		}
		it.counted = it.counted || !o.Unsent
		if l.breaker.Row() == 0 {
			b.rowBegan, b.answeredSince = it.Sent, 0
		}
	}
	b.noteFailing(now)
	return l.breaker.Failure(now, max(int(l.inEpoch), b.rowNeeded(l.breaker.Row()+1)))
}

// noteFailing notes since when calls go unanswered.
func (b *blame) noteFailing(now time.Time) {
	if b.failingSince.IsZero() {
		b.failingSince = now
	}
}

// rowNeeded returns how many failures in a row must open the breaker, given the share of bad items.
// Chance alone produces a row of that length only once in ten million. The share comes from earlier
// rows. The present row decides instead if its own share is larger, and if at least a third as many
// items were answered since it began.
//
// The last rule is about this order of events: thirty calls leave at once, twenty are answered
// and ten break, by turns. No answer is a witness here. But a server that cuts all calls under
// way answers no call, and a server that drains breaks only later calls.
func (b *blame) rowNeeded(row int) int {
	good, bad := float64(b.good)+1, float64(b.bad)
	if answered := float64(b.answeredSince); besideShare*answered >= float64(row) && answered*bad < good*float64(row) {
		good, bad = answered, float64(row)
	}
	if bad == 0 {
		return 0
	}
	return int(math.Ceil(-accidentNats / math.Log(bad/(good+bad))))
}

// countFirstCalls counts items by whether their first call was answered or broke.
func (b *blame) countFirstCalls(good, bad uint32) {
	b.good, b.bad = b.good+good, b.bad+bad
	if b.good+b.bad > firstEnds {
		b.good, b.bad = b.good/2, b.bad/2
	}
}

// absorbAnswer records an answer on a lane that has failed before, and reports whether it ends the
// present row of failures. asHoped says that the answer shows nothing wrong with the lane.
func (m *Machine) absorbAnswer(now time.Time, l *lane, n *limiter.News, asHoped bool) (endsRow bool) {
	b := l.blame
	b.lastAnswered = latest(b.lastAnswered, n.Sent)
	if asHoped {
		b.lastAsHoped, b.failedAlike = latest(b.lastAsHoped, n.Sent), alike{}
		if !n.Again {
			b.countFirstCalls(1, 0)
		}
	}
	switch endsRow = n.Present && !n.Sent.Before(b.failingSince); {
	case endsRow:
		if b.failingSince = (time.Time{}); !l.down(now) {
			b.countFirstCalls(0, uint32(l.breaker.Row()))
		}
	case n.Sent.After(b.failingSince) && l.down(now):
		m.closeBreaker(now, l)
	case asHoped && !n.Again && n.Sent.After(b.rowBegan):
		b.answeredSince++
	}
	m.decideAfterAnswer(now, l)
	return endsRow
}

// closeBreaker closes a breaker that opened by chance, because a call was answered that left while
// the row grew. The lane is tried at once.
//
// An example: half of the items break at once, and the others take two seconds. Within one
// second thirty have broken, and no answer can be there yet.
func (m *Machine) closeBreaker(now time.Time, l *lane) {
	l.blame.countFirstCalls(0, uint32(l.breaker.Row()))
	l.blame.failingSince = time.Time{}
	l.breaker.Close()
	if l.phase == Cooling && l.reason == ByBreaker {
		l.until = latest(now, l.law.View(now, l.nextCost()).Hold)
		m.alarms.set(&l.alarm, l.until)
	}
}

// blameThreshold returns how many items must end like this one until the lane is to blame; 0: it
// never is. A refusal with a First of 2 or more is often about its item. Such refusals arrive long
// before answers do. So there must be as many of them as calls under way, each of which may yet be
// answered.
func (l *lane) blameThreshold(o *Outcome) int {
	need := int(o.First)
	if l.answered {
		need = int(o.Later)
	}
	if o.Signal == Exhausted && o.First > 1 {
		return max(need, l.inFlight)
	}
	return need
}

// itemAtFault reports whether an item was refused for good on a lane that is never to blame for
// such refusals, whatever their number.
func (l *lane) itemAtFault(it *Item, o *Outcome) bool {
	open := o.Alike != 0 && (o.Signal == Answered || o.Signal == Exhausted && it.epoch >= l.vouchedEpoch)
	return open && !l.remote() && l.phase != Stopped && l.blameThreshold(o) == 0
}

// holdUndecided keeps an item that has failed for good until the machine knows whether the lane is
// to blame. Such an item has no attempt left, or its refusal does not say whom it concerns.
func (m *Machine) holdUndecided(now time.Time, it *Item, o *Outcome) {
	l := it.lane
	need, broke := l.blameThreshold(o), o.Signal == Failed
	b := l.blameRecord()
	if len(b.undecided) == 0 {
		m.accused = append(m.accused, l)
	}
	b.undecided = append(b.undecided, undecided{
		it: it, serial: it.serial, alikeKey: o.Alike, first: o.First, broke: broke, refused: o.Signal == Exhausted, ofAccount: o.Account,
	})
	it.place, it.cause = Undecided, o.Cause
	if broke {
		it.due = m.backoffEnd(now, it, o)
	}
	it.pool.undecided++
	l.delayed++
	it.run.delayed++
	if n := b.countAlike(o.Alike); need > 0 && n >= need {
		m.stopLaneOrAccount(now, l, o.Account, it.Sent, l.blamedFor(o.Signal == Exhausted, n, o.Cause))
	}
}

// failItem releases an item that failed by its own fault. broke says that its call broke, so that
// the attempt was counted when the item came back.
func (m *Machine) failItem(it *Item, broke bool, cause error) {
	if !broke { // what broke was counted when it came back
		it.Attempts++
	}
	m.release(it, EndFailed, cause)
}

// countAlike returns the number of items that ended in this way with no answer between them.
func (b *blame) countAlike(key uint32) (n int) {
	if b.failedAlike.key == key {
		n = b.failedAlike.n
	}
	for _, u := range b.waiting() {
		if u.alikeKey == key {
			n++
		}
	}
	return n
}

// waiting returns the undecided items that still wait.
func (b *blame) waiting() (all []*undecided) {
	for i := range b.undecided {
		if u := &b.undecided[i]; u.waits() {
			all = append(all, u)
		}
	}
	return all
}

// blamedFor returns the error that stops a lane which n items blame alike. If the provider's
// words named a key or a model, they are the whole error.
func (l *lane) blamedFor(said bool, n int, cause error) error {
	if said {
		return cause
	}
	return &AlikeError{Lane: l.name, Items: n, Cause: cause}
}

// takeUndecided removes the lane's undecided items that accept wants from their pools, and returns
// them. They are Waiting but in no queue: the caller must place them. It drops items that no longer
// wait.
func (m *Machine) takeUndecided(l *lane, accept func(*undecided) bool) (taken []undecided) {
	b := l.blame
	if b == nil || len(b.undecided) == 0 {
		return nil
	}
	b.undecided = slices.DeleteFunc(b.undecided, func(u undecided) bool {
		switch {
		case !u.waits():
			return true
		case !accept(&u):
			return false
		}
		taken = append(taken, u)
		return true
	})
	if len(b.undecided) == 0 {
		b.undecided = nil // or the array would keep items alive
		m.accused = slices.DeleteFunc(m.accused, func(x *lane) bool { return x == l })
	}
	for _, u := range taken {
		m.removeFromPool(u.it)
		u.it.place = Waiting
	}
	return taken
}

// decideAfterAnswer settles the undecided items of a lane that has answered another item. An item
// that broke fails, unless its settled doubts gave an attempt back. An item that was refused for
// good needs an answer as hoped.
func (m *Machine) decideAfterAnswer(now time.Time, l *lane) {
	b := l.blame
	for _, u := range m.takeUndecided(l, func(u *undecided) bool { return !b.witnessOf(u).Before(u.it.handedOverAt) }) {
		before := u.it.Attempts
		if u.it.settleDoubts(); u.broke && u.it.Attempts < before {
			m.delayUntil(u.it, latest(now, u.it.due))
			continue
		}
		m.failItem(u.it, u.broke, u.it.cause)
	}
}

// witnessOf returns when the latest call left that may be a witness for an item.
func (b *blame) witnessOf(u *undecided) time.Time {
	if u.broke {
		return b.lastAnswered
	}
	return b.lastAsHoped
}

// clearFailures notes that the breaker has opened: calls that left earlier and broke are nobody's
// failures.
func (m *Machine) clearFailures(l *lane) {
	l.blameRecord().openedEpoch = l.epoch
	for _, u := range m.takeUndecided(l, func(u *undecided) bool { return u.broke }) {
		u.it.settleDoubts()
		m.delayUntil(u.it, latest(l.until, u.it.due))
	}
}

// giveBackUndecided returns the undecided items of a stopped lane to their pools, so that other
// lanes may take them.
func (m *Machine) giveBackUndecided(l *lane) {
	for _, u := range m.takeUndecided(l, func(*undecided) bool { return true }) {
		if u.it.settleDoubts(); u.broke {
			m.delayUntil(u.it, u.it.due)
			continue
		}
		u.it.pool.returned.push(u.it)
		u.it.pool.wake()
	}
}

// decideUndecided settles the items of lanes on which no call can be a witness any more, and
// reports whether there were any. Lanes that are to blame go first, because the items that they
// give back may be witnesses on other lanes.
func (m *Machine) decideUndecided(now time.Time) (decided bool) {
	for _, l := range slices.Clone(m.accused) {
		if r := m.runWithoutWitness(now, l); r != nil && m.stopIfToBlame(now, l, r) {
			return true
		}
	}
	for _, l := range slices.Clone(m.accused) {
		for r := m.runWithoutWitness(now, l); r != nil; r = m.runWithoutWitness(now, l) {
			m.failUndecided(l, r)
			decided = true
		}
	}
	return decided
}

// runWithoutWitness returns a run with undecided items on the lane for which no witness can come;
// nil: there is none.
func (m *Machine) runWithoutWitness(now time.Time, l *lane) *run {
	var checked *run
	for i := range l.blame.undecided {
		u := &l.blame.undecided[i]
		switch {
		case u.it.run == checked || !u.waits():
		case !m.mayYetAnswer(now, l, u.it.run):
			return u.it.run
		default:
			checked = u.it.run
		}
	}
	return nil
}

// stopIfToBlame stops a lane that is to blame for the undecided items of a run, and reports whether
// it did. A lane is to blame if it was never answered, all items ended alike, and no more will
// come. A single item is not enough, unless the provider spoke of a key or a model.
func (m *Machine) stopIfToBlame(now time.Time, l *lane, r *run) bool {
	all := l.blame.undecidedOf(r)
	first := all[0]
	if l.answered || !l.inputEnded() || first.first == 0 || !first.refused && len(all) == 1 || !areAlike(all) {
		return false
	}
	m.stopLaneOrAccount(now, l, first.ofAccount, first.it.Sent, l.blamedFor(first.refused, len(all), first.it.cause))
	return true
}

// failUndecided fails the undecided items of a run for which no witness came. It keeps their
// number, so that later items that end alike add to it.
func (m *Machine) failUndecided(l *lane, r *run) {
	b := l.blame
	all := b.undecidedOf(r)
	if key := all[0].alikeKey; areAlike(all) {
		b.failedAlike = alike{key, b.countAlike(key)}
	} else {
		b.failedAlike = alike{}
	}
	for _, u := range m.takeUndecided(l, func(u *undecided) bool { return u.it.run == r }) {
		m.failItem(u.it, u.broke, u.it.cause)
	}
}

// undecidedOf returns the undecided items of a run.
func (b *blame) undecidedOf(r *run) []*undecided {
	return slices.DeleteFunc(b.waiting(), func(u *undecided) bool { return u.it.run != r })
}

// areAlike reports whether all of them ended in one way.
func areAlike(all []*undecided) bool {
	return !slices.ContainsFunc(all, func(u *undecided) bool { return u.alikeKey != all[0].alikeKey })
}

// inputPatience is the time for which a lane waits for more items when nothing else is left and
// the input has not ended. It is longer than reading an item takes, and short for a caller who
// offers one item at a time.
const inputPatience = time.Second

// mayYetAnswer reports whether the lane may yet answer an item that could be a witness for those of
// a run. Such an item has a call under way that is not overdue, or waits for a call and not only
// for a decision. The lane does not wait for another run that is paused.
func (m *Machine) mayYetAnswer(now time.Time, l *lane, r *run) bool {
	if l.inFlight > 0 && !l.allOverdue(now) || l.inFlight == 0 && !l.inputEnded() && now.Sub(l.used) < inputPatience {
		return true
	}
	return slices.ContainsFunc(l.pools, func(p *pool) bool {
		return (p.run == r || !p.run.paused) && p.couldUse(now, l) && (p.head() != nil || p.delayed.len() > 0)
	})
}

// undecidedDueAt returns the next moment at which time alone may settle undecided items; zero:
// there is none.
func (m *Machine) undecidedDueAt() (at time.Time) {
	for _, l := range m.accused {
		due := l.used.Add(minOverdue)
		if l.inFlight == 0 {
			if l.inputEnded() {
				continue
			}
			due = l.used.Add(inputPatience)
		} else if !due.After(m.now) { // only then is it worth while to find out how long answers take
			after := l.overdueAfter()
			if after == forever {
				continue
			}
			due = l.used.Add(after)
		}
		if due.After(m.now) && (at.IsZero() || due.Before(at)) {
			at = due
		}
	}
	return at
}

// inputEnded reports whether no run that draws on the lane will offer more.
func (l *lane) inputEnded() bool {
	return !slices.ContainsFunc(l.pools, func(p *pool) bool { return !p.run.inputEnded })
}

// forgiveItems takes back the doubts about items whose calls left before now, because a person
// vouches for the lane.
func (m *Machine) forgiveItems(l *lane) {
	b := l.blameRecord()
	b.openedEpoch = l.epoch
	m.giveBackUndecided(l)
	*b = blame{openedEpoch: l.epoch, good: b.good, bad: b.bad}
}

// An AlikeError says that a lane has stopped because different items failed alike and none was
// ever answered: the mistake is in all of them. errors.Is finds [ErrAlike] in it, and the
// server's error.
type AlikeError struct {
	Lane  string
	Items int   // that failed alike
	Cause error // what the server said of the latest of them
}

func (e *AlikeError) Error() string {
	return fmt.Sprintf("%v: %s on lane %s: %v", ErrAlike, items(e.Items), e.Lane, e.Cause)
}

// Is reports the kind of the error.
func (e *AlikeError) Is(target error) bool { return target == ErrAlike }

// Unwrap returns the server's error.
func (e *AlikeError) Unwrap() error { return e.Cause }

func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}
