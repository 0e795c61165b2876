package machine

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
)

// Items that always fail, and what the book says to whom the machine blames.

// simAttempts is the number of attempts of an item of a world.
const simAttempts = 3

// How an item may be poison.
const (
	breaksSlowly = iota + 1 // as slowly as an answer
	breaksAtOnce
	isForbidden // refused for good, in words that do not say whom that concerns
	isInvalid   // likewise, as an answer to the item
)

// fromPoison draws from a stream of its own, so that worlds that are known by their seed
// stay what they were but for items that always fail.
func (p *plan) fromPoison() {
	rng := rand.New(rand.NewPCG(p.seed, 11))
	share, kind := []float64{0, 0, 0.05, 0.3, 0.6}[rng.IntN(5)], 1+rng.IntN(isInvalid)
	mixed, strict, keepGoing := rng.IntN(3) == 0, rng.IntN(2) == 0, rng.IntN(8) == 0
	patience := time.Duration(1 + rng.Int64N(int64(2*time.Hour)))
	p.machine.AnsweredBefore = rng.IntN(4) == 0
	if p.without&poisons != 0 {
		return
	}
	p.machine.OutagePatience = patience
	p.poison = func(seq uint64) (how int) {
		one := rand.New(rand.NewPCG(p.seed, 1000+seq))
		switch {
		case one.Float64() >= share:
			return 0
		case mixed:
			return 1 + one.IntN(isInvalid)
		}
		return kind
	}
	p.strict = strict
	for i := range p.runs {
		p.runs[i].config.KeepGoing = keepGoing
	}
}

// spoil returns the end of a poisonous item's call that the server would have let in.
func (w *world) spoil(g Grant, a answer) answer {
	if w.plan.poison == nil || a.outcome.Signal != Succeeded {
		return a
	}
	s, first := w.servers[g.Lane], uint8(0)
	if w.plan.strict {
		first = 6
	}
	switch w.plan.poison(g.Item.Seq) {
	case breaksSlowly:
		return s.breaks(byError, a.latency)
	case breaksAtOnce:
		return s.breaks(byError, time.Millisecond)
	case isForbidden:
		a.outcome = Outcome{Signal: Exhausted, Alike: 403, First: 3, Later: 5, Cause: errSimExhausted}
	case isInvalid:
		a.outcome = Outcome{Signal: Answered, Alike: 400, First: first, Cause: errSimExhausted}
	}
	return a
}

// bookBlame is the book's record of a lane's failures.
type bookBlame struct {
	proof  time.Time // when the latest call left that was answered
	hoped  time.Time // and as hoped
	opened uint64    // the epoch that began when its breaker last opened
	ever   bool      // a call was answered as hoped
}

// bookDoubts is the book's record of an item's failures.
type bookDoubts struct {
	attempts, doubts, probed int

	failed, failedRemote bool // a call of it has, ever; and on a remote lane that may not be to blame
}

func (d *bookDoubts) suspect() bool { return d.attempts > d.doubts }

// settles finds out what has become of an item's failures. The book calls it before the item's
// call ends, and when the next one leaves.
func (b *book) settles(x *bookItem) {
	l := b.lanes[x.grant.Lane]
	switch d := &x.blame; {
	case d.doubts == 0 || l == nil || x.grant.Verdict != Call:
	case x.grant.Epoch < l.blame.opened:
		d.attempts -= d.doubts
		d.doubts = 0
	case !l.blame.proof.Before(x.failed):
		d.attempts -= d.doubts - 1
		d.doubts = 0
	}
}

// isAboutToEnd settles what was in doubt of the item of a call, before the lane learns how
// the call ended.
func (b *book) isAboutToEnd(e Event) {
	if x := b.of[e.item]; x != nil && x.place == InFlight && x.grant.Serial == e.serial && (e.kind == evSettled || e.kind == evHandedOver) {
		b.settles(x)
	}
}

// isBlamed writes down whom the end of a call may be held against.
func (b *book) isBlamed(x *bookItem, o Outcome, remote, late bool) {
	l := b.lanes[x.grant.Lane]
	if (o.Signal == Succeeded || o.Signal == Answered) && !remote {
		l.answeredBy(x.item.Sent, o)
	}
	if o.Signal == Failed || o.Signal == Exhausted && o.Alike != 0 {
		x.blame.failed, x.blame.failedRemote = true, x.blame.failedRemote || remote
	}
	if o.Signal != Failed {
		return
	}
	down := l.of.breaker.State(b.w.m.now) != limiter.Closed
	switch {
	case remote:
		if !x.item.Probe {
			x.blame.attempts++
		}
	case x.item.Probe && down:
		x.blame.probed = min(x.blame.probed+1, math.MaxUint8)
		if x.run.config.KeepGoing {
			x.blame.attempts++
		}
	case x.grant.Epoch < l.blame.opened, o.Unsent:
	default:
		x.blame.attempts++
		x.blame.doubts++
	}
}

func (l *bookLane) answeredBy(sent time.Time, o Outcome) {
	l.blame.proof = latest(l.blame.proof, sent)
	if o.asHoped() {
		l.blame.hoped, l.blame.ever = latest(l.blame.hoped, sent), true
	}
}

// leaves: the machine counts of an item what the book does.
func (b *book) leaves(g Grant, x *bookItem) {
	b.settles(x)
	if x.grant.Lane != g.Lane {
		x.blame.doubts = 0
	}
	if was := b.w.m.lanes[x.grant.Lane]; was != nil && (was.phase == Stopped || x.grant.Epoch < was.vouchedEpoch) {
		x.blame.failedRemote = false
	}
	it := g.Item
	if is := (bookDoubts{it.Attempts, int(it.doubts), int(it.probed), x.blame.failed, x.blame.failedRemote}); is != x.blame {
		b.w.failf("%v: it has %+v, and the book says %+v", g, is, x.blame)
	}
}

// findDecided finds the items whose failure was found to be their own, or not to be. Those
// that a stopped lane has given back within a decision were not there for its first grants.
func (b *book) findDecided(given bool) {
	kept := b.doubted[:0]
	for _, x := range b.doubted {
		switch it := x.item; {
		case x.place == Undecided && it.place == Delayed:
			b.settles(x)
			x.place = Delayed
		case x.place == Undecided && it.place == Waiting && given:
			b.settles(x)
			x.place = Waiting
		case it.place == Releasing && it.verdict == EndFailed && !x.judged:
			if x.judged = b.isJust(x); !x.judged {
				b.w.failf("item %d of run %d has failed for good: that is not so", it.Seq, x.run.id)
			}
		}
		if x.place == Undecided {
			kept = append(kept, x)
		}
	}
	b.doubted = kept
}

// maySkip: where the breaker is open and the head of the line has failed before, another
// that never has goes instead: the first that was never called. It is every second probe's
// right.
func (b *book) maySkip(g Grant, x, head *bookItem) bool {
	l := b.lanes[g.Lane]
	if l.phase != Probing || l.of.breaker.State(b.w.m.now) == limiter.Closed || l.of.breaker.Reopened()%2 == 1 && !head.first.IsZero() || head.blame.attempts == 0 && head.blame.probed == 0 {
		return false
	}
	for _, y := range x.run.line[x.pool] {
		if y.first.IsZero() && y.place == Waiting && y.item.place != Releasing && y.wanted {
			return y == x
		}
	}
	return false
}

// isJust: an item fails for good by words that say it is to blame, with a witness, or with
// nobody left who could be one.
func (b *book) isJust(x *bookItem) bool {
	l, o := b.lane(x.grant.Lane), x.last
	broke := o.Signal == Failed
	switch {
	case broke && !o.Last, !broke && o.Alike == 0:
		return false
	case l.isRemote(), broke && x.run.config.KeepGoing && x.item.Probe:
		return true
	case !broke && l.blame.ever && o.Later == 0, !broke && !l.blame.ever && o.First == 0:
		return true
	case broke && !l.blame.proof.Before(x.failed), !l.blame.hoped.Before(x.failed):
		return true
	}
	return !b.someoneMaySpeak(x)
}

func (b *book) someoneMaySpeak(x *bookItem) bool {
	lane := b.w.m.lanes[x.grant.Lane]
	for _, y := range b.living {
		c := y.run.poolOf(y.pool)
		later := c.Tiers != nil && c.Lanes[0] != x.grant.Lane // whether it would go there depends on the others
		switch {
		case later && y.item.place == InFlight && y.item.Sent.Equal(b.w.m.now): // its pool spilled after the verdict
		case y.item.place == InFlight && y.item.lane == lane:
			if b.w.m.now.Sub(lane.used) < minOverdue {
				return true
			}
		case y.run != x.run && y.run.paused > 0:
		case later:
		case y.item.place != Waiting && y.item.place != Parked && y.item.place != Delayed:
		default:
			for _, name := range c.Lanes {
				if name == x.grant.Lane {
					return true
				}
			}
		}
	}
	return false
}
