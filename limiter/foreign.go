package limiter

import (
	"math"
	"math/rand/v2"
	"time"
)

// What a law may be, and be asked, that another package makes: a lane's law made by
// somebody else, words that reach it from outside, and words of its own.
//
//	Maker ──makes──▶ Law ◀──Hear── a word from outside    ──▶ Reply: stop the lane, let it flow again
//	                  └──Say──▶ a word to the outside     ◀── Upcoming: what waits, and what is free
//
// All of it is asked by the owner of the lane, between its other questions: nothing here
// needs a lock, and nothing may wait.

// A Maker makes the laws of lanes, in place of those that [LawConfig].Law names: a law that
// asks a keeper elsewhere for each call, one that counts, one of an experiment.
//
// Its laws may embed another law, and override what they know better:
// [Unlimited] where they know all of it, the law that laws.New makes of c where they only add
// to it.
//
// Configurations are compared: a lane whose Maker is another begins afresh. So a Maker must
// be comparable, and a pointer is best. It is called by the owner of the lanes, for each
// lane that is used, again when the lane is reset by hand, and again after it was
// forgotten for a while; a lane that was led by its law (machine.Leader) keeps it when it
// is reset.
//
// A Maker that panics or returns nil stops its lane, and so does a law of it that panics in
// any method: the lane's cause is then a machine.LawError. A law that has panicked is asked
// nothing more, and a reset by hand makes another one, also on a lane that it led.
type Maker interface {
	// NewLaw makes a law by c, whose Maker is nil, so that NewLaw(c, now, rng) is the named
	// law. The generator is the owner's: it may be kept, and drawn from when the law is
	// asked or told something.
	NewLaw(c LawConfig, now time.Time, rng *rand.Rand) Law
}

// UntilTold is the wait of a call that no time will let go, but only a word from outside
// or the end of another call. A law that answers it in Wait says by Reply, or by its Wait
// after the next word, that there is room. Where several pools share a lane, nothing is
// promised to the first in line meanwhile: it and the others are asked again in turn.
const UntilTold = time.Duration(math.MaxInt64)

// A Listener is a law that may be told something from outside.
type Listener interface {
	// Hear takes a word. Its pools are asked again at once, whatever it answers.
	Hear(now time.Time, word any) Reply
}

// A Reply is what a law wants of its lane after a word. The zero Reply is nothing.
type Reply struct {
	Stop     error // stop the lane, for this reason: its items end, as after a refusal for good; nil: do not
	Resume   bool  // a lane that has stopped flows again, with nothing held against it; Stop wins
	Answered bool  // somebody else was answered on this lane: what is refused as not found is the item's own fault
}

// A Speaker is a law that has something to say to the outside.
//
// It is asked after whatever has changed something on its lane (a call left or ended, an
// item must wait, a word came) and when the time has come that it named; so it keeps its
// own pace, and answers nil when it is asked too early.
//
// A word is everything that the outside must know, not what is new since the last one: if
// the reader is slow, a later word of the lane takes the place of an earlier one that was
// not read yet.
type Speaker interface {
	// Say answers with a word, nil if there is nothing to say, and with when to be asked
	// again at the latest: not after now means when something changes. The owner hands the
	// word on and never looks into it; it is read by another goroutine, so the law must not
	// change what is in it.
	Say(now time.Time, up Upcoming) (word any, next time.Time)
}

// MostUpcoming is how many costs [Upcoming].Costs tells at most: a tenth of a second of 640
// calls a second.
const MostUpcoming = 64

// Upcoming is what is to come on a lane, as far as its owner knows. It is true only while
// Say runs. What draws on several lanes counts on each of them, and what is paused or
// drains counts nowhere.
type Upcoming struct {
	Waiting  int // items that could leave, if the law let them
	Delayed  int // items that wait for themselves: in backoff, or refused alone
	Free     int // places for calls: what the runs that draw on the lane may have in flight besides
	Busy     int // places that are taken: calls of those runs in flight, on any lane
	InFlight int // calls on the lane

	// Costs yields what the next calls would be charged, in the order in which they would
	// leave: MostUpcoming of Waiting at most. Nothing is looked at before it is called.
	Costs func(yield func(Cost) bool)
}
