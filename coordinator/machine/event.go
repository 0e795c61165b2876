package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Signal is what the end of a call says about its lane.
type Signal uint8

// The signals. What an item's owner thinks of the end (is it a result, is it
// tried again) is a matter of its own; these are only the lane's lessons.
const (
	Nothing    Signal = iota // no lesson: it was cancelled, or never reached the wire
	Succeeded                // answered as hoped
	Answered                 // the server works; this item is not to its liking (400, 404, 413)
	Throttled                // slow down (429)
	Overloaded               // too busy (503, 529): a refusal like Throttled; one of a probe counts for the breaker
	Failed                   // the call broke (500, reset, timeout): counts for the breaker
	Exhausted                // the lane has no more to give: quota, balance, or key refused
)

var signalWords = [...]string{"nothing", "succeeded", "answered", "throttled", "overloaded", "failed", "exhausted"}

func (s Signal) String() string { return signalWords[s] }

// An Outcome is what one call taught us about its lane.
type Outcome struct {
	Signal     Signal
	Latency    time.Duration      // from send to end; 0: not measured
	Detour     time.Duration      // for how long it counted as in flight beside that, where somebody far away makes the calls
	Directed   bool               // the server named a wait
	RetryAfter time.Duration      // that wait, if Directed; less than 0 or more than MostDirected names none
	Unclear    bool               // of a refusal: it may mean a limit by the day; the third in a row is taken for that
	Timeout    bool               // of Failed: it ran out of time
	Way        uint8              // of Failed: how it broke; calls that broke alike have the same
	Unsent     bool               // of Nothing or Failed: nothing of it reached the wire, so its charge comes back
	Slow       bool               // the server minds the growth of the rate, not the rate
	On         limiter.Dimension  // of a refusal: what it is short of; None: not said
	Sightings  []limiter.Sighting // what the headers showed
	Measured   bool               // the real cost is known
	Actual     limiter.Cost       // what was read and written, if Measured; the Charge of the lane makes the cost of it
	Cached     float64            // of Actual's input, what came from a cache
	Cause      error              // of a call that was not answered: what was said, or what broke it; kept and shown where it stops a lane or opens its breaker

	// Last says of a call that Failed, and is handed over, that its item has no attempt left
	// if this one counts. It then fails, with EndFailed, once the failure is known to be its
	// own.
	Last bool

	// Alike is what failures for good have in common that do not say whom they concern: a
	// key that is refused may be one item's or the lane's. 0: this one is its item's, or with
	// Exhausted its lane's. First and Later are how many different items must end so, none
	// answered between, until the lane stops: First if it was never answered, Later else. 0:
	// none do. With Exhausted and a First of 2 or more there must be as many as there are
	// calls under way, too. An item that is handed over so fails, with EndFailed, when another
	// one is answered or there are too few of them.
	Alike        uint32
	First, Later uint8

	// Again says that an earlier call of the same item has failed, too: it says nothing new of
	// the lane. The machine finds that out of its own items, and tells it to laws that lead.
	Again bool
}

// An eventKind names a fact.
type eventKind uint8

// The facts that a machine can be told.
const (
	evRunOpened eventKind = iota
	evLaneDefined
	evOffered
	evInputEnded
	evSettled
	evHandedOver
	evWithdrawn
	evLimitsChanged
	evPaused
	evResumed
	evDrained
	evLaneReset
	evLaneRestored
	evTold
	evOverheard
	evSlept
)

// An Event is one fact, as [Machine.Step] takes it. The functions below make
// them; the zero Event is not a fact.
type Event struct {
	kind    eventKind
	run     RunID
	serial  uint64
	item    *Item
	items   []*Item
	name    string
	outcome Outcome
	config  any // RunConfig, LaneConfig, LaneMemory, limiter.Limits, a word, a departure or a moment, by kind
}

// RunOpened says that a run begins. Its number must be new.
func RunOpened(id RunID, c RunConfig) Event { return Event{kind: evRunOpened, run: id, config: c} }

// LaneDefined says what a lane is like. A lane that nobody defined has the machine's
// default. One that is in use keeps what it has learned, and has the new limits, window
// and ramp at once (a climb that is under way goes on in the new shape); the rest of its
// config holds from its next reset on. If Law or Local is another, the lane begins afresh
// by the new one, and what is in flight teaches that nothing; a wait that is not over, an
// open breaker and a stop stay.
func LaneDefined(name string, c LaneConfig) Event {
	return Event{kind: evLaneDefined, name: name, config: c}
}

// Offered says that these items are to be run. They change owner.
func Offered(id RunID, items []*Item) Event { return Event{kind: evOffered, run: id, items: items} }

// InputEnded says that a run will offer nothing more.
func InputEnded(id RunID) Event { return Event{kind: evInputEnded, run: id} }

// Settled says that the call of a grant ended, and the item with it. It also
// ends a grant whose verdict was not Go.
func Settled(g Grant, o Outcome) Event {
	return Event{kind: evSettled, item: g.Item, serial: g.Serial, outcome: o}
}

// HandedOver says that the call of a grant ended and that the item comes back: delayed if it
// failed, or if it was refused and its lane flows on without it; parked if it was refused
// with its lane; undecided if it failed for the last time, or was refused for good. It is
// given out again, or released as failed.
func HandedOver(g Grant, o Outcome) Event {
	return Event{kind: evHandedOver, item: g.Item, serial: g.Serial, outcome: o}
}

// Withdrawn says that nobody wants this item run any more. One that waits is
// released; one that is in flight is not touched: its call will say how it ended,
// and is its last. One that was not offered yet is released when it is; until then it
// may not be withdrawn from any other machine, nor overwritten. One that another machine
// has, or that is over, is not touched.
func Withdrawn(it *Item) Event { return Event{kind: evWithdrawn, item: it} }

// LimitsChanged says what a lane may now draw.
func LimitsChanged(lane string, l limiter.Limits) Event {
	return Event{kind: evLimitsChanged, name: lane, config: l}
}

// Paused says that a run is to be given nothing until it is Resumed.
func Paused(id RunID) Event { return Event{kind: evPaused, run: id} }

// Resumed takes Paused back.
func Resumed(id RunID) Event { return Event{kind: evResumed, run: id} }

// Drained says that a run starts no further call: what flies may end, what
// waits is released.
func Drained(id RunID) Event { return Event{kind: evDrained, run: id} }

// LaneReset says that a person vouches for a lane: it flows again at once, with nothing
// held against it, and items that wait for themselves after a call on it may go. Calls that
// are in flight then teach it nothing when they end, and give nothing back to its limits; a
// refusal among them can do no more than lengthen, by the wait that it names, a cooldown
// that begins later.
func LaneReset(lane string) Event { return Event{kind: evLaneReset, name: lane} }
