package tests

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A target is what a blow is meant for.
type target string

const (
	aWorker   target = "worker"
	theKeeper target = "keeper"
	aHub      target = "hub"
)

// A harm is what is done to it.
type harm string

const (
	killing  harm = "kill"    // and started again after a while
	freezing harm = "freeze"  // and thawed after a while
	wiping   harm = "wipe"    // killed, and its folder deleted
	tearing  harm = "tear"    // killed, and its files cut short
	flipping harm = "flip"    // killed, and bits of its files flipped
	cutting  harm = "cut"     // its link swallows or holds all, or one direction
	slowing  harm = "slow"    // its link is as long as a lease
	draining harm = "drain"   // SIGTERM: it finishes what flies, and is started again
	staying  harm = "nothing" // for the steps in which something ends
)

// A habit is one kind of blow that comes again and again.
type habit struct {
	target target
	harm   harm
	every  time.Duration // on average
	lasts  time.Duration // how long it is down, frozen or cut; on average
}

// A step is one thing that a storm does, at an instant counted from its start.
type step struct {
	at     time.Duration
	target target
	harm   harm
	pick   uint64 // which of those that can be struck
	begin  int    // of the step that this one ends; -1: it begins something
	how    uint64 // its choices, such as the direction of a cut
}

// schedule returns a storm of these habits, drawn from chance alone. Blows of one habit come
// between half and one and a half times its time apart and last as unevenly.
func schedule(chance *rand.Rand, length time.Duration, habits ...habit) (steps []step) {
	for _, h := range habits {
		for at := around(chance, h.every); at < length; at += around(chance, h.every) {
			begin := step{at: at, target: h.target, harm: h.harm, pick: chance.Uint64(), begin: -1, how: chance.Uint64()}
			steps = append(steps, begin, step{at: at + around(chance, h.lasts), harm: staying, begin: len(steps)})
		}
	}
	return inOrder(steps)
}

// around is between half and one and a half times d.
func around(chance *rand.Rand, d time.Duration) time.Duration {
	return d/2 + time.Duration(chance.Int64N(int64(d)+1))
}

// inOrder sorts the steps by time, and lets those that end something point to its new place.
func inOrder(steps []step) []step {
	places := make([]int, len(steps))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(steps[a].at, steps[b].at) })
	sorted, moved := make([]step, len(steps)), make([]int, len(steps))
	for to, from := range places {
		sorted[to], moved[from] = steps[from], to
	}
	for i, s := range sorted {
		if s.begin >= 0 {
			sorted[i].begin = moved[s.begin]
		}
	}
	return sorted
}
