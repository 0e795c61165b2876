package limiter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Law decides when the calls of one lane may leave, and learns from how they
// end. The caller passes the time; a law does nothing by itself.
//
// Its owner keeps the epochs. It calls Refused for a refusal of a call that left in the present
// epoch, and Straggled for those that left before it. After Broken, or a Refused that is not
// only the item's affair, it lets no call leave until Resume.
//
//	Tick ─▶ Wait ─0─▶ Sent ─▶ Answered | Failed | Vanished | Straggled | Refused
//	                                                                       │ alone: the item waits
//	                                                                       └─until─▶ Resume ─▶ (a probe) ─▶ Climb
//
// Time teaches in Tick alone, and news in the methods that take [News]; questions to a law
// change nothing.
//
// A type of another package is a law as well; it may embed [Unlimited] and override what it
// knows better. A [Maker] gives it to lanes. It may be a [Listener] and a [Speaker] besides.
type Law interface {
	// Tick reports that time has passed and that a call wants to leave. blocked is whether
	// Wait has held one back since the latest Sent.
	Tick(now time.Time, blocked bool)
	// Wait returns the time until a call of that cost may leave: 0 is now. It may be an
	// estimate from below, so ask again then.
	Wait(now time.Time, c Cost) (time.Duration, Bound)
	// ProbeWait is Wait for a single call that is to find out whether calls are let in again.
	ProbeWait(now time.Time, c Cost) time.Duration
	// Sent notes that a call leaves while so many others are in flight, and returns the ticket
	// that its News must bring back.
	Sent(now time.Time, c Cost, beside int) Ticket

	// Answered: the server answered, whether it liked the item or not.
	Answered(now time.Time, n News)
	// Failed: the call broke (500, reset, timeout).
	Failed(now time.Time, n News)
	// Refused: a call of the present epoch was refused. The result says whether the item alone
	// waits, or the lane does, and until when.
	Refused(now time.Time, n News) Refusal
	// Straggled: a call was refused in a wave that the law has reacted to. The result is the
	// longer wait that the refusal asks for; zero: none.
	Straggled(now time.Time, n News) (until time.Time)
	// Vanished: the call ended without news: it was cancelled, or never left.
	Vanished(now time.Time, n News)
	// Broken: the breaker has opened. Until Climb nothing counts as broken.
	Broken(now time.Time)

	// Resume: the wait is over. The result says whether there is anything to probe: no, if the
	// level is known.
	Resume(now time.Time) (known bool)
	// Climb: calls are let in again. The result is when the full pace is reached; not after now
	// means at once.
	Climb(now time.Time) (until time.Time)

	// Window returns the bound on calls in flight; 0: only the run's own.
	Window(now time.Time) int

	// Remaining passes the cost of all calls still to come, once that is known; the zero Cost:
	// it is not. Near the end the law need not keep a reserve.
	Remaining(c Cost)
	// SetLimits: the user sets the limits from now on.
	SetLimits(now time.Time, l Limits)
	// SetRamp: the user sets how the lane climbs from now on. A climb that is under way goes on
	// in the new shape, at the rate where that would be by now. The result is when it ends, or
	// the zero time if there is none.
	SetRamp(now time.Time, c RampConfig) (until time.Time)

	// Slowed returns the remaining part of the pace that calls left at, in 0..1, while too many
	// of them break; 0: the lane is not slowed down.
	Slowed(now time.Time) float64
	// View returns the present beliefs, and what binds a call of that cost. It is for people to
	// look at: it is not cheap, and changes nothing.
	View(now time.Time, c Cost) View

	// Save returns what is worth keeping over a restart; see [Memory].
	Save(now time.Time) Memory
	// Restore takes up the memory of an earlier law of the same lane, before the first call.
	// This law's own limits win over the earlier one's. Restore leaves out values that cannot
	// be true. It ignores a memory that another kind of law saved, and returns an [ErrMemory].
	Restore(now time.Time, m Memory) error
}

// News is the report of a call's end to its law.
type News struct {
	Ticket     Ticket    // as Sent gave it
	Sent       time.Time // when it left
	Cost       Cost      // its estimated cost then
	Unsent     bool      // it never left: nothing of it reached the wire
	Overheard  bool      // another law let it go, that of a machine before this one: this law did not charge it, and its ticket is zero
	Present    bool      // it left in the present epoch
	Probe      bool      // it left to see whether calls are let in again
	Again      bool      // its item has failed before: the end says more of the item than of the server, and of each item only one end counts
	Refusals   int       // of a refusal: how often its item was refused before
	Good       bool      // it was answered as hoped
	Timeout    bool      // of a failure: it ran out of time
	Latency    time.Duration
	Detour     time.Duration // further time for which it held its place
	Overloaded bool          // a refusal that says busy (503, 529); what it means is open, as of any other
	Directed   bool          // the server named a wait
	RetryAfter time.Duration // that wait; 0 or less names none
	Slow       bool          // the server minds the growth of the rate, not the rate
	Measured   bool          // the real cost is known
	Actual     Cost          // its draw by the rule of its lane, if Measured
	Cached     float64       // further input tokens, which were read from a cache and drew nothing
	On         Dimension     // of a refusal: the limit that it says is short; None: it does not say
	Sightings  []Sighting    // what the headers showed
}

// NamesWait reports whether the server named a wait over 0.
func (n *News) NamesWait() bool { return n.Directed && n.RetryAfter > 0 }

// Sighting is one limit as the headers of a response showed it, for the moment when the server
// took the request.
type Sighting struct {
	Dimension Dimension
	Limit     float64       // units per Window
	Window    time.Duration // 0: to be found out; a minute until then
	Remaining float64
	Reset     time.Duration // until the bucket is full, if HasReset
	HasReset  bool
	Said      bool // in the words of a refusal, not in headers
}

// A LawName names one of the laws.
type LawName uint8

// The laws.
const (
	Model LawName = iota // follows the provider's own limits
	Plain                // configured limits, trial, a cooldown and a ramp
	NoLaw                // [Unlimited]: nothing is limited
)

// String returns the name of the law in a word.
func (n LawName) String() string {
	switch n {
	case Plain:
		return "plain"
	case NoLaw:
		return "none"
	}
	return "model"
}

// LawConfig chooses a law and its parts. The zero value is the model law, which
// knows nothing and learns.
type LawConfig struct {
	Law      LawName           // the zero value is Model
	Maker    Maker             // who makes the law instead, by the rest of this; nil: it is the one that Law names
	Local    bool              // of the model: a server of one's own, which queues; once it refuses, it is judged like any other
	Target   time.Duration     // latency to keep, the mean stays within MeanTolerance of it; 0: none. Of Local: what the 90th percentile is to stay under; 0: DefaultLocalTarget
	Limits   Limits            // told by the user
	Rate     RateConfig        // of the plain law; its Initial is the model's first guess
	Ramp     RampConfig        // of the plain law; zero: to the rate that was learned
	Cooldown CooldownConfig    // of the plain law
	Errors   ErrorWindowConfig // of both: when the pace is halved, as calls break
}

// A Foreseer is a [Law] whose Wait is an estimate from below. WaitInAll returns the whole wait
// at the rates to come if the law learns nothing more. Of a wait over a day it returns only a
// part. It is for people who look at a lane: it costs as much as some hundred calls of Wait, and
// changes nothing.
type Foreseer interface {
	WaitInAll(now time.Time, c Cost) time.Duration
}

// A Refusal is a law's answer to a refused call.
type Refusal struct {
	Until time.Time // no call may leave before; if Alone, the item may not
	Alone bool      // only the item waits, and the lane flows on
}

// A Ticket goes with a call, so that its end can be judged however late it comes: the law itself
// keeps only sums of old calls. The zero Ticket belongs to no call.
//
// A law of another package (see [Maker]) may use Number as it likes: the ticket that its Sent
// returns comes back unchanged. It fills in the other fields, or leaves them zero.
type Ticket struct {
	Number uint64  // of the call, from 1, in the order in which they left
	Factor float32 // what its estimate of input tokens was multiplied by,
	Longer float32 // and that of output tokens, where this is over 1
	Pace   float32 // calls per second when it left
	Beside uint16  // other calls in flight then
	Probe  bool    // the law itself sends it to see whether calls are let in again: its failure is not its item's
	AtCap  bool    // it took the last place under a cap
}

// The rest is about laws of other packages: a lane's law made by somebody else, words that
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

// UntilNotified is the wait of a call that no time will let go, but only a message from outside or the
// end of another call. A law that returns it from Wait says by Reply, or by its Wait after the
// next word, that there is room. Where several pools share a lane, the first in line has no
// promise meanwhile: it and the others are asked again in turn.
const UntilNotified = time.Duration(math.MaxInt64)

// A Listener is a law that hears words from outside.
type Listener interface {
	// Hear takes a word. The lane's pools are asked again at once, whatever it returns.
	Hear(now time.Time, message any) Reply
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
	Say(now time.Time, up Upcoming) (message any, next time.Time)
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

// Unlimited is a [Law] that lets every call leave, believes nothing and learns nothing. It
// keeps the waits that a server names, and has a refused item rest where none is named. It is
// for embedding: a law of another package then has only the methods in which it differs. The
// zero value is ready.
type Unlimited struct{}

var _ Law = Unlimited{}

// Tick is part of [Law].
func (Unlimited) Tick(time.Time, bool) {}

// Wait is part of [Law].
func (Unlimited) Wait(time.Time, Cost) (time.Duration, Bound) { return 0, BoundNone }

// ProbeWait is part of [Law].
func (Unlimited) ProbeWait(time.Time, Cost) time.Duration { return 0 }

// Sent is part of [Law]. The ticket holds only the number of others in flight.
func (Unlimited) Sent(_ time.Time, _ Cost, beside int) Ticket {
	return Ticket{Beside: uint16(min(beside, math.MaxUint16))}
}

// Answered is part of [Law].
func (Unlimited) Answered(time.Time, News) {}

// Failed is part of [Law].
func (Unlimited) Failed(time.Time, News) {}

// Refused is part of [Law]: the lane waits for as long as the server names. Where it names
// nothing the lane flows, and the item waits for [DefaultCooldownBase].
func (Unlimited) Refused(now time.Time, n News) Refusal {
	if n.NamesWait() {
		return Refusal{Until: now.Add(n.RetryAfter)}
	}
	return Refusal{Alone: true, Until: now.Add(DefaultCooldownBase)}
}

// Straggled is part of [Law].
func (Unlimited) Straggled(now time.Time, n News) (until time.Time) {
	if n.NamesWait() {
		until = now.Add(n.RetryAfter)
	}
	return until
}

// Vanished is part of [Law].
func (Unlimited) Vanished(time.Time, News) {}

// Broken is part of [Law].
func (Unlimited) Broken(time.Time) {}

// Resume is part of [Law]: there is nothing to probe.
func (Unlimited) Resume(time.Time) bool { return true }

// Climb is part of [Law]: at once.
func (Unlimited) Climb(now time.Time) time.Time { return now }

// Window is part of [Law]: as many as the run allows.
func (Unlimited) Window(time.Time) int { return 0 }

// Remaining is part of [Law].
func (Unlimited) Remaining(Cost) {}

// SetLimits is part of [Law].
func (Unlimited) SetLimits(time.Time, Limits) {}

// SetRamp is part of [Law].
func (Unlimited) SetRamp(time.Time, RampConfig) time.Time { return time.Time{} }

// Slowed is part of [Law].
func (Unlimited) Slowed(time.Time) float64 { return 0 }

// View is part of [Law].
func (Unlimited) View(now time.Time, _ Cost) View {
	return View{At: now, Pace: unlimited, Most: unlimited, Rate: unlimited, Binds: nothing, Next: nothing, Weight: 1}
}

// Save is part of [Law]. It returns the zero Memory: there is nothing worth keeping.
func (Unlimited) Save(time.Time) Memory { return Memory{} }

// Restore is part of [Law]: no memory is for this law.
func (Unlimited) Restore(_ time.Time, m Memory) error {
	return fmt.Errorf("%w: it is of the law %q, and this one takes up none", ErrMemory, m.Law)
}
