package claim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/seeds"
)

// simSeeds is the number of worlds in a plain test run: each of the mutations below shows in a
// hundred of them or fewer.
const simSeeds = 2000

// In no world is an item lost, or twice in the parts, or called again without an excuse, and
// each world ends. SEEDS=n simulates n worlds, SEED_BASE=n those from that seed on, SEED=n only the
// one of that seed, and tells it.
func TestSimulation(t *testing.T) {
	if seed, ok := seeds.One(); ok {
		tellWorld(t, seed)
		return
	}
	sums := make(chan tally, 1)
	sums <- tally{}
	seeds.Each(t, simSeeds, 1, func(seed uint64) {
		sum, why := simulate(plan{seed: seed}, nil)
		if why != "" {
			t.Errorf("seed %d: %s", seed, why)
			report(t, plan{seed: seed})
		}
		all := <-sums
		all.add(sum)
		sums <- all
	})
	t.Log(<-sums)
}

// simulate lets one world happen, and says what broke; "" if nothing did.
func simulate(p plan, log func(string, ...any)) (sum tally, why string) {
	w := newWorld(p, log)
	defer func() {
		sum = w.tally
		switch x := recover().(type) {
		case nil:
		case fault:
			why = string(x)
		default:
			why = fmt.Sprintf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	w.run()
	return w.tally, ""
}

// report leaves out troubles as long as a failing world still fails, and tells it.
func report(t *testing.T, p plan) {
	for i := range troubles {
		less := p
		less.without |= 1 << i
		if _, why := simulate(less, nil); why != "" {
			p = less
		}
	}
	lines := &seeds.Tail{}
	_, why := simulate(p, lines.Add)
	t.Errorf("To repeat it: SEED=%d go test -run TestSimulation ./claim\nThe world of that seed without %b:\n%s\n%s",
		p.seed, p.without, lines, why)
}

func tellWorld(t *testing.T, seed uint64) {
	p := plan{seed: seed}
	if _, why := simulate(p, nil); why != "" {
		report(t, p)
		return
	}
	lines := &seeds.Tail{}
	simulate(p, lines.Add)
	t.Log(lines)
}

// tally counts what worlds have seen.
type tally struct {
	worlds, kills, freezes, cuts, restarts, wipes, doubles, drains int
	claims, overlaps, takeovers, calls, repeats                    int
}

func (t *tally) add(o tally) {
	t.worlds += o.worlds
	t.kills += o.kills
	t.freezes += o.freezes
	t.cuts += o.cuts
	t.restarts += o.restarts
	t.wipes += o.wipes
	t.doubles += o.doubles
	t.drains += o.drains
	t.claims += o.claims
	t.overlaps += o.overlaps
	t.takeovers += o.takeovers
	t.calls += o.calls
	t.repeats += o.repeats
}

func (t tally) String() string {
	return fmt.Sprintf("%d worlds: %d kills, %d freezes, %d cuts, %d restarts of the hub, %d wipes of the queue, %d doubled messages, %d drains; "+
		"%d claims, %d overlapping, %d takeovers; %d calls, %d repeated, each with an excuse",
		t.worlds, t.kills, t.freezes, t.cuts, t.restarts, t.wipes, t.doubles, t.drains,
		t.claims, t.overlaps, t.takeovers, t.calls, t.repeats)
}

// called notes a call, and fails if the same was called before without an excuse.
func (w *world) called(c *call) {
	w.tally.calls++
	w.log("%s calls %v item %d", c.state.l.name, c.state.chunk, c.item)
	key := itemKey{c.state.chunk, c.item}
	for _, before := range w.calls[key] {
		if !before.broke {
			w.excuse(before, c)
		}
	}
	w.calls[key] = append(w.calls[key], c)
}

// excuse finds why an item is called a second time. Of the two claims the later one has taken the chunk
// over from the earlier one: it must not have been able to read the earlier one's answer, and the
// earlier one must have been dead to it, or its journal broken.
func (w *world) excuse(a, b *call) {
	w.tally.repeats++
	earlier, later := a, b
	if a.state == b.state {
		w.fail("item %d of %v is called twice by one claim", a.item, a.state.chunk)
	}
	if later.state.name.Compare(earlier.state.name) < 0 {
		earlier, later = b, a
	}
	w.log("item %d of %v is called again, by %v after %v", a.item, a.state.chunk, later.state.name, earlier.state.name)
	read, did := later.state.readAt[earlier.state.name]
	if !did {
		read = later.state.listed
	}
	if earlier.saved && earlier.savedAt < read {
		w.fail("%v calls item %d of %v, which %v had saved", later.state.name, a.item, a.state.chunk, earlier.state.name)
	}
	if !w.lost(earlier) && !(earlier.state.broke && !earlier.saved) {
		w.fail("%v and %v both call item %d of %v", earlier.state.name, later.state.name, a.item, a.state.chunk)
	}
}

// countOverlaps counts claims of a chunk that another worker has not ended.
func (w *world) countOverlaps(d *claimState) {
	for _, l := range w.slots {
		for _, o := range l.desks {
			if l != d.l && !l.dead && !o.over && o.chunk == d.chunk && o.name.Turn > 0 {
				w.tally.overlaps++
				return
			}
		}
	}
}

// slack bounds the calls of a worker that does not know yet who has taken its chunk over. It counts from the
// time when the worker hears again, or when another has told it. The message may be lost if the bus goes in that
// moment, and the worker calls without the bus for that long. Then it looks.
const slack = permitLife

// question is a claim's question to a worker, with the time it waited; won: it then took the chunk over.
type question struct {
	by       *claimState
	who      string
	from, to time.Duration
	won      bool
}

// lost reports whether a claim's chunk was taken over while its worker was dead, frozen or cut off, and
// it made the call before it could know better.
func (w *world) lost(c *call) bool {
	l := c.state.l
	return slices.ContainsFunc(w.asks[c.state.chunk], func(q *question) bool {
		if !q.won || q.who != l.name {
			return false
		}
		if l.dead && l.died <= q.to && !l.ended {
			return true
		}
		until, deaf := l.hearsAfter(q)
		return deaf && c.from <= max(q.to, until)+slack
	})
}

// hearsAfter returns when a worker that was deaf to a question hears again. A gap too short to hear
// anything in does not count.
func (l *life) hearsAfter(q *question) (until time.Duration, deaf bool) {
	for _, s := range l.deaf { // in the order in which they began
		if s.from <= q.to && q.from <= s.to || deaf && s.from <= until+thaw+way {
			until, deaf = max(until, s.to), true
		}
	}
	return until, deaf
}

// checkEnd looks whether the parts have each item once, in order.
func (w *world) checkEnd() {
	for n := range w.chunks {
		for round := range w.round + 1 {
			w.checkPart(Chunk{"j", n, round})
		}
	}
}

func (w *world) checkPart(c Chunk) {
	want := w.items(c)
	p := w.store.parts[c]
	if p == nil {
		if len(want) > 0 {
			w.fail("%v has no part", c)
		}
		return
	}
	var got []int
	for _, l := range p.lines {
		got = append(got, l.item)
	}
	if !slices.Equal(got, want) {
		w.fail("the part of %v has items %v, not %v", c, got, want)
	}
}

const (
	// enough bounds the worlds needed to find each mutant,
	enough = 100
	// and these are the first of them; from other seeds on one of fifty searches takes longer.
	firstSeed = 1000
)

// The checker finds every mutant that breaks a rule of the protocol: it is not blind.
func TestMutantsAreFound(t *testing.T) {
	for m := whole + 1; m <= keeperForgets; m++ {
		t.Run(mutants[m].name, func(t *testing.T) {
			for seed := range uint64(enough) {
				p := plan{seed: firstSeed + seed, theme: mutants[m].theme, mutant: m}
				if _, why := simulate(p, nil); why != "" {
					t.Logf("in world %d: %s", seed, why)
					return
				}
			}
			t.Errorf("not found within %d worlds", enough)
		})
	}
}

// A trouble is something that may go wrong in a world.
type trouble uint32

const (
	kills trouble = 1 << iota
	freezes
	cuts
	restarts
	wipes
	doubles
	drains
	cancels
	storeFaults
	slowStore
	brokenCalls
	unruns
	retries
	pieces // the store has no append: results are saved in pieces, ten seconds apart
	drift
)

const troubles = 15

// A theme is what kind of world it is.
type theme int

const (
	mixed   theme = iota // the seed says which
	storm                // anything may go wrong, all the time
	duel                 // few workers meet at few chunks again and again, and seldom die
	unlucky              // a few things go wrong, each just when it matters
	stalls               // who is asked about a chunk is often away, for a moment or for some seconds
	themes
)

// A plan is a world before it happens.
type plan struct {
	seed    uint64
	theme   theme
	without trouble
	mutant  mutant
}

// fate holds the values that the seed draws for a plan.
type fate struct {
	has         trouble
	chunks      int
	lines       int // of a chunk, at most
	workers     int
	concurrency int
	lasts       time.Duration   // for so long things go wrong
	every       time.Duration   // and so often
	lengths     []time.Duration // and for so long, at most
	flush       time.Duration   // a journal is saved so long after a result
	call        time.Duration   // a call takes, at most
	twice       int             // one of so many messages is given out twice
	bad         int             // one of so many steps that matter goes wrong
	strikes     int             // bound on injected faults, besides those that happen by themselves
}

func (p plan) draw(rng *rand.Rand) fate {
	f := fate{
		has:         trouble(rng.Uint32()), // half of them
		chunks:      1 + rng.IntN(4),
		lines:       1 + rng.IntN(12),
		workers:     1 + rng.IntN(4),
		concurrency: 1 + rng.IntN(4),
		lasts:       time.Duration(60+rng.IntN(240)) * time.Second,
		every:       time.Duration(1+rng.IntN(15)) * time.Second,
		lengths:     []time.Duration{3 * time.Second, 12 * time.Second, 50 * time.Second, 90 * time.Second},
		flush:       10 * time.Millisecond,
		twice:       12,
		bad:         25,
		strikes:     1000,
		call:        pick(rng, time.Second, 10*time.Second, 60*time.Second),
	}
	if p.theme == mixed {
		p.theme = storm + theme(rng.IntN(int(themes-storm)))
	}
	switch p.theme {
	case storm:
		f.has |= pick(rng, 0, trouble(rng.Uint32()))           // three quarters,
		f.has &= pick(rng, ^trouble(0), trouble(rng.Uint32())) // or a quarter
	case duel:
		f.duel(rng)
	case unlucky:
		f.unlucky(rng)
	case stalls:
		f.stalls(rng)
	}
	f.has &^= p.without
	if f.has&pieces != 0 {
		f.flush = 10 * time.Second
	}
	return f
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (f *fate) duel(rng *rand.Rand) {
	f.has &= freezes | cuts | restarts | doubles | slowStore | pieces | drift | brokenCalls
	f.has |= pick(rng, freezes, cuts, freezes|cuts) | pick(rng, doubles, restarts, 0)
	f.chunks, f.lines = 1+rng.IntN(2), 8+rng.IntN(16)
	f.workers, f.concurrency = 2+rng.IntN(2), 1+rng.IntN(2)
	f.every, f.twice = time.Duration(10+rng.IntN(30))*time.Second, 3
	f.call = pick(rng, 4*time.Second, 20*time.Second)
}

func (f *fate) unlucky(rng *rand.Rand) {
	f.has &^= wipes | restarts | cancels | drains | kills | freezes | cuts
	f.has |= pick(rng, kills, freezes, cuts, kills|freezes, freezes|cuts, restarts)
	f.has |= pick(rng, doubles, restarts, doubles, doubles|slowStore)
	f.workers, f.concurrency = 2+rng.IntN(3), 1+rng.IntN(2)
	f.every = time.Duration(20+rng.IntN(60)) * time.Second
	f.twice, f.bad, f.strikes = 2, 6, 16
	f.lengths = pick(rng, f.lengths, []time.Duration{50 * time.Second, 90 * time.Second})
}

func (f *fate) stalls(rng *rand.Rand) {
	f.has &= slowStore | pieces | drift
	f.has |= pick(rng, cuts, freezes|cuts, freezes|cuts) | pick(rng, doubles, doubles|restarts)
	f.chunks, f.lines = 1+rng.IntN(2), 20+rng.IntN(20)
	f.workers, f.concurrency = 2+rng.IntN(2), 1+rng.IntN(2)
	f.every, f.twice, f.bad = time.Duration(20+rng.IntN(60))*time.Second, 2, 12
	f.lengths = []time.Duration{3 * time.Second, 20 * time.Second}
	f.call = pick(rng, 6*time.Second, 20*time.Second)
}

// A mutant is a worker, a queue or a store that breaks a rule of the protocol.
type mutant uint8

const (
	whole           mutant = iota
	overwrites             // a part is written over
	trustsQueue            // what the queue gives out for the first time is taken to be new
	ignoresJournals        // of other claims
	deletesEarly           // journals before there is the part
	acksFirst              // before there is the part
	asksNobody             // who claimed before
	hasNoGrace             // silence is death at once after a reconnect
	needsNoBeat            // silence is death though the bus may be gone
	looksNever             // whether a stale claim was taken over
	looksNotAfter          // a reconnect, only after three quarters of AckWait
	countsFirst            // results, before they are in the journal
	settlesBlindly         // journals are not listed again
	checksNotAgain         // whether the part is there by now
	tellsNobody            // that a claim was taken over
	keeperForgets          // to queue again what has no part
)

// mutants lists the names of the mutants, and the worlds that find them.
var mutants = map[mutant]struct {
	name  string
	theme theme
}{
	overwrites:      {"overwrites", unlucky},
	trustsQueue:     {"trusts the queue", storm},
	ignoresJournals: {"ignores journals", storm},
	deletesEarly:    {"deletes early", storm},
	acksFirst:       {"acks first", storm},
	asksNobody:      {"asks nobody", duel},
	hasNoGrace:      {"has no grace", unlucky},
	needsNoBeat:     {"needs no heartbeat", stalls},
	looksNever:      {"looks never", duel},
	looksNotAfter:   {"looks not after a reconnect", stalls},
	countsFirst:     {"counts first", storm},
	settlesBlindly:  {"settles blindly", stalls},
	checksNotAgain:  {"checks not again", unlucky},
	tellsNobody:     {"tells nobody", stalls},
	keeperForgets:   {"keeper forgets", storm},
}

// storms lets things go wrong until the storm is over.
func (w *world) storms() {
	w.In(w.upTo(2*w.every), func() {
		if w.Age() > w.lasts {
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
	w.In(w.upTo(pick(w.rng, 0, 50*time.Millisecond)), func() {
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
	w.In(w.upTo(40*time.Second), func() {
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
	w.In(w.upTo(6*time.Second), func() {
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
