package claim

import (
	"math/rand/v2"
	"time"
)

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
	mixed    theme = iota // the seed says which
	storm                 // anything may go wrong, all the time
	duel                  // few workers meet at few chunks again and again, and seldom die
	luckless              // a few things go wrong, each just when it matters
	stalls                // who is asked about a chunk is often away, for a moment or for some seconds
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
	case luckless:
		f.luckless(rng)
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

func (f *fate) luckless(rng *rand.Rand) {
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

// mutants are what they are called, and the worlds that find them out.
var mutants = map[mutant]struct {
	name  string
	theme theme
}{
	overwrites:      {"overwrites", luckless},
	trustsQueue:     {"trusts the queue", storm},
	ignoresJournals: {"ignores journals", storm},
	deletesEarly:    {"deletes early", storm},
	acksFirst:       {"acks first", storm},
	asksNobody:      {"asks nobody", duel},
	hasNoGrace:      {"has no grace", luckless},
	needsNoBeat:     {"needs no heartbeat", stalls},
	looksNever:      {"looks never", duel},
	looksNotAfter:   {"looks not after a reconnect", stalls},
	countsFirst:     {"counts first", storm},
	settlesBlindly:  {"settles blindly", stalls},
	checksNotAgain:  {"checks not again", luckless},
	tellsNobody:     {"tells nobody", stalls},
	keeperForgets:   {"keeper forgets", storm},
}
