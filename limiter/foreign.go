package limiter

import (
	"math"
	"math/rand/v2"
	"time"
)

// This file is about laws of other packages: a lane's law made by somebody else, words that
// reach it from outside, and words of its own.
//
//	Maker ──makes──▶ Law ◀──Hear── a word from outside    ──▶ Reply: stop the lane, let it flow again
//	                  └──Say──▶ a word to the outside     ◀── Upcoming: what waits, and what is free
//
// The owner of the lane asks all of it, between its other questions: nothing here needs a lock,
// and nothing may wait.

// A Maker makes the laws of lanes, in place of those that [LawConfig].Law names. Examples are a
// law that asks a keeper elsewhere for each call, one that counts, one of an experiment.
//
// Its laws may embed another law, and override what they know better. They embed [Unlimited] if
// they know all of it, and the law that laws.New makes of c if they only add to it.
//
// Configurations are compared: a lane with another Maker begins afresh. So a Maker must be
// comparable, and a pointer is best. The owner of the lanes calls it for each lane that is
// used. It does so again when the lane is reset by hand, or is used after it was forgotten. A
// lane that is led by its law (machine.Leader) keeps the law when it is reset.
//
// A Maker that panics or returns nil stops its lane, and so does a law of it that panics in any
// method: the lane's cause is then a machine.LawError. A law that has panicked is not used
// again. A reset by hand makes another one, also on a lane that it led.
type Maker interface {
	// NewLaw makes a law by c, whose Maker is nil, so that laws.New(c, now, rng) is the named
	// law. The generator is the owner's. The law may keep it, and draw from it whenever a
	// method of the law runs.
	NewLaw(c LawConfig, now time.Time, rng *rand.Rand) Law
}

// UntilTold is the wait of a call that no time will let go, but only a word from outside or the
// end of another call. A law that returns it from Wait says by Reply, or by its Wait after the
// next word, that there is room. Where several pools share a lane, the first in line has no
// promise meanwhile: it and the others are asked again in turn.
const UntilTold = time.Duration(math.MaxInt64)

// A Listener is a law that hears words from outside.
type Listener interface {
	// Hear takes a word. The lane's pools are asked again at once, whatever it returns.
	Hear(now time.Time, word any) Reply
}

// A Reply is a law's wish for its lane after a word. The zero Reply wishes nothing.
type Reply struct {
	Stop     error // stop the lane, for this reason: its items end, as after a refusal for good; nil: do not
	Resume   bool  // a lane that has stopped flows again, with nothing held against it; Stop wins
	Answered bool  // another client was answered on this lane: an item that is refused as not found is itself at fault
}

// A Speaker is a law that has something to say to the outside.
//
// The owner asks it after each change of its lane: a call left or ended, an item must wait, a
// word came. It also asks at the time that the law named. So the law keeps its own pace, and
// returns nil when it is asked too early.
//
// A word is everything that the outside must know, not only what is new since the last one. If
// the reader is slow, a later word of the lane replaces an earlier one that was not read yet.
type Speaker interface {
	// Say returns a word, nil if there is nothing to say, and when to ask again at the latest.
	// A time that is not after now means after the next change. The owner hands the word on and
	// never looks into it. Another goroutine reads it, so the law must not change what is in
	// it.
	Say(now time.Time, up Upcoming) (word any, next time.Time)
}

// MostUpcoming is the most costs that [Upcoming].Costs yields: a tenth of a second of 640 calls
// a second.
const MostUpcoming = 64

// Upcoming describes the calls to come on a lane, as far as its owner knows. It is true only
// while Say runs. Items that draw on several lanes count on each of them. Items of runs that
// are paused or drain count nowhere.
type Upcoming struct {
	Waiting  int // items that could leave, if the law let them
	Delayed  int // items that wait for themselves: in backoff, or refused alone
	Free     int // places for calls: how many more the runs that draw on the lane may have in flight
	Busy     int // places that are taken: calls of those runs in flight, on any lane
	InFlight int // calls on the lane

	// Costs yields the charges of the next calls, in the order in which they would leave: at
	// most MostUpcoming of Waiting. It looks at the items only when it is called.
	Costs func(yield func(Cost) bool)
}
