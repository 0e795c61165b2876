package machine

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Signal is the lesson of a call's end about its lane.
type Signal uint8

// The signals. The item's owner judges the end by its own rules (is it a result, is it tried
// again); these are only the lane's lessons.
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

// An Outcome is the lesson of one call about its lane.
type Outcome struct {
	Signal     Signal
	Latency    time.Duration      // from send to end; 0: not measured
	Detour     time.Duration      // further time for which it counted as in flight, where somebody far away makes the calls
	Directed   bool               // the server named a wait
	RetryAfter time.Duration      // that wait, if Directed; less than 0 or more than MostDirected names none
	Unclear    bool               // of a refusal: it may mean a limit by the day; the third in a row counts as one
	Timeout    bool               // of Failed: it ran out of time
	Way        uint8              // of Failed: how it broke; calls that broke alike have the same
	Unsent     bool               // of Nothing or Failed: nothing of it reached the wire, so its charge comes back
	Slow       bool               // the server minds the growth of the rate, not the rate
	On         limiter.Dimension  // of a refusal: the limit that is short; None: not said
	Sightings  []limiter.Sighting // what the headers showed
	Measured   bool               // the real cost is known
	Actual     limiter.Cost       // tokens read and written, if Measured; the Charge of the lane makes the cost from it
	Cached     float64            // the part of Actual's input that came from a cache
	Spent      limiter.Money      // what it cost, if its run has a budget; 0: it was refused, or nothing was sent
	Doubtful   bool               // it may have cost something that nobody knows: what is reserved for it stays so, or Spent if that is more
	Cause      error              // of a call that was not answered: the server's error, or what broke the call; kept and shown where it stops a lane or opens its breaker

	// Last says of a call that Failed, and is handed over, that its item has no attempt left if
	// this one counts. The item then fails, with EndFailed, once the failure proves to be its
	// own.
	Last bool

	// Alike is a key for what failures for good have in common that do not say whom they
	// concern. For example, an API key that is refused may be one item's or the lane's. 0: this
	// failure is its item's, or with Exhausted its lane's. First and Later count the different
	// items that must end in this way, with no answer between them, until the lane stops. First
	// holds if the lane was never answered, Later otherwise; 0: it never stops for this. With
	// Exhausted and a First of 2 or more, there must also be as many as there are calls under
	// way. An item that is handed over with such a failure fails, with EndFailed, when another
	// one is answered or too few end alike.
	Alike        uint32
	First, Later uint8

	// Account says of a refusal for good that it concerns the whole account of the lane: its
	// money is gone, or its key refused. All lanes of that account then stop with this one.
	Account bool

	// Again says that an earlier call of the same item has failed, too: this failure says
	// nothing new of the lane. The machine finds that out from its own items, and sets it for
	// laws that lead.
	Again bool
}

// An eventKind names a fact.
type eventKind uint8

// The facts that a machine takes.
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
	evDelivered
	evOverheard
	evSlept
	evPoolDefined
	evConcurrency
	evBudget
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
	config  any // RunConfig, PoolConfig, LaneConfig, LaneMemory, limiter.Limits, limiter.Money, an int, a word, a departure or a moment, by kind
}

// RunOpened begins a run. Its number must be new.
func RunOpened(id RunID, c RunConfig) Event { return Event{kind: evRunOpened, run: id, config: c} }

// LaneDefined sets the config of a lane. A lane that nobody defined has the machine's default. A
// lane in use keeps its lessons, and takes the new limits, window and ramp at once. A climb that is
// under way goes on in the new shape. The rest of its config holds from its next reset on. If Law
// or Local changes, the lane begins afresh by the new law, and calls in flight teach that law
// nothing. A wait that is not over, an open breaker and a stop stay.
func LaneDefined(name string, c LaneConfig) Event {
	return Event{kind: evLaneDefined, name: name, config: c}
}

// PoolDefined gives a run one more pool, as if the run had been opened with it. A pool of that name that the run has
// stays as it is. Tell it before the first item of the pool is offered.
func PoolDefined(id RunID, c PoolConfig) Event {
	return Event{kind: evPoolDefined, run: id, name: c.Name, config: c}
}

// Offered brings items that are to be run. They change owner.
func Offered(id RunID, items []*Item) Event { return Event{kind: evOffered, run: id, items: items} }

// InputEnded says that a run will offer nothing more.
func InputEnded(id RunID) Event { return Event{kind: evInputEnded, run: id} }

// Settled reports that the call of a grant ended, and the item with it. It also ends a grant
// whose verdict was not Call.
func Settled(g Grant, o Outcome) Event {
	return Event{kind: evSettled, item: g.Item, serial: g.Serial, outcome: o}
}

// HandedOver reports that the call of a grant ended and that the item comes back. It comes back
// delayed if it failed, or if it was refused and its lane flows on without it. It is parked if
// it was refused with its lane, and undecided if it failed for the last time, or was refused
// for good. It is given out again, or released as failed.
func HandedOver(g Grant, o Outcome) Event {
	return Event{kind: evHandedOver, item: g.Item, serial: g.Serial, outcome: o}
}

// Withdrawn says that nobody wants this item run any more. A waiting item is released. An item
// in flight is not touched: its call will report its end, and is its last. An item that was not
// offered yet is released when it is. Until then no other machine may withdraw it, and nobody
// may overwrite it. An item of another machine, or one that is over, is not touched.
func Withdrawn(it *Item) Event { return Event{kind: evWithdrawn, item: it} }

// LimitsChanged sets the limits of a lane from now on; "": of every lane, also of those to come.
func LimitsChanged(lane string, l limiter.Limits) Event {
	return Event{kind: evLimitsChanged, name: lane, config: l}
}

// Paused keeps grants from a run until it is Resumed.
func Paused(id RunID) Event { return Event{kind: evPaused, run: id} }

// Resumed takes Paused back.
func Resumed(id RunID) Event { return Event{kind: evResumed, run: id} }

// Drained says that a run starts no further call: calls in flight may end, and waiting items
// are released.
func Drained(id RunID) Event { return Event{kind: evDrained, run: id} }

// ConcurrencyChanged sets how many calls of a run may be in flight from now on: at least 1, and at
// most its MostConcurrency. Run 0 stands for all runs together, which may have up to
// [MaxConcurrency]. Calls beyond a lower number end as they do; none leaves until there is room.
func ConcurrencyChanged(id RunID, n int) Event {
	return Event{kind: evConcurrency, run: id, config: n}
}

// BudgetChanged sets the budget of a run from now on. A run that has none gets none, and a run that
// lack of money has stopped stays so. A budget below what is spent stops the run at its next call.
func BudgetChanged(id RunID, most limiter.Money) Event {
	return Event{kind: evBudget, run: id, config: most}
}

// LaneReset says that a person vouches for a lane. It flows again at once, with nothing held
// against it, and items that wait for themselves after a call on it may go. Calls that are in
// flight then teach it nothing when they end, and give nothing back to its limits. A refusal
// among them can only lengthen, by the wait that it names, a cooldown that begins later.
func LaneReset(lane string) Event { return Event{kind: evLaneReset, name: lane} }

// A Transition is a lane's step from one phase to the next. From and To are the same
// where it only goes slower because calls break (ByErrors), or as fast as before (ByAnswers).
type Transition struct {
	At       time.Time
	Lane     string
	From, To Phase
	Reason   Reason
	Epoch    uint64
	Until    time.Time // when time alone ends To; zero: it does not
	Wave     int       // calls that met the refusals of the latest cooldown so far
	Rate     float64   // calls per second that were learned; +Inf: unlimited
	Cause    error     // of Stopped, and of Cooling by ByBreaker: the error that broke the calls; nil: nobody said
	Belief   string    // the law's belief, in words; "": there was none
	Account  string    // of Stopped: the account that is of no use; "": the lane stopped by itself

	Slowed float64       // of ByErrors: the part of the pace that is left, 0..1
	Errors float64       // of ByErrors and ByAnswers: the share of calls that broke, 0..1,
	Span   time.Duration // in so long
}

// String describes the transition in one line.
func (t Transition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lane %s: ", t.Lane)
	switch broke := fmt.Sprintf("%.0f %% of calls broke in %v", 100*t.Errors, t.Span); t.Reason {
	case ByErrors:
		fmt.Fprintf(&b, "%v, slowed down to %.3g of its pace, as %s", t.To, t.Slowed, broke)
	case ByAnswers:
		fmt.Fprintf(&b, "%v, no longer slowed down, as only %s", t.To, broke)
	default:
		fmt.Fprintf(&b, "%v → %v", t.From, t.To)
	}
	if t.Reason != NoReason {
		fmt.Fprintf(&b, " (%v)", t.Reason)
	}
	if !t.Until.IsZero() && t.From != t.To {
		fmt.Fprintf(&b, " for %v", t.Until.Sub(t.At).Round(time.Millisecond))
	}
	fmt.Fprintf(&b, ", epoch %d", t.Epoch)
	if !math.IsInf(t.Rate, 1) {
		fmt.Fprintf(&b, ", %.3g/s", t.Rate)
	}
	if t.Cause != nil {
		fmt.Fprintf(&b, ": %v", t.Cause)
	}
	if t.Belief != "" {
		fmt.Fprintf(&b, " — %s", t.Belief)
	}
	return b.String()
}

// String describes the wait in one line.
func (w LongWait) String() string {
	var b strings.Builder
	if !w.Own {
		fmt.Fprintf(&b, "lane %s: %v, and %d wait for it: %s, for %v so far", w.Lane, w.Phase, w.Items, w.Why, w.At.Sub(w.Since).Round(time.Millisecond))
	} else {
		fmt.Fprintf(&b, "item %d: waits for itself on %s: %s", w.Item, w.Lane, w.Why)
	}
	if !w.Until.IsZero() {
		fmt.Fprintf(&b, ", %v more", w.Until.Sub(w.At).Round(time.Millisecond))
	}
	return b.String()
}

// String describes the grant in one line.
func (g Grant) String() string {
	if g.Verdict != Call {
		return fmt.Sprintf("item %d: ends, %v", g.Item.Seq, g.Verdict)
	}
	again := ""
	if g.Item.Calls > 1 {
		again = fmt.Sprintf(", call %d", g.Item.Calls)
	}
	return fmt.Sprintf("item %d: call on %s, epoch %d%s", g.Item.Seq, g.Lane, g.Epoch, again)
}

// String describes the outcome in words.
func (o Outcome) String() string {
	s := o.Signal.String()
	if o.Directed {
		s += fmt.Sprintf(", retry after %v", o.RetryAfter)
	}
	return s
}

// String describes the event in one line.
func (e Event) String() string {
	switch e.kind {
	case evOffered:
		return fmt.Sprintf("run %d offers %d items", e.run, len(e.items))
	case evSettled:
		return fmt.Sprintf("item %d settles: %v", e.item.Seq, e.outcome)
	case evHandedOver:
		return fmt.Sprintf("item %d is handed over: %v", e.item.Seq, e.outcome)
	case evWithdrawn:
		return fmt.Sprintf("item %d is withdrawn", e.item.Seq)
	case evOverheard:
		return fmt.Sprintf("lane %s: a call of another machine ends: %v", e.name, e.outcome)
	case evSlept:
		return fmt.Sprintf("the computer slept since %v", e.config)
	case evPoolDefined:
		return fmt.Sprintf("run %d has pool %s", e.run, e.name)
	case evConcurrency:
		return fmt.Sprintf("run %d may have %d calls in flight", e.run, e.config)
	case evBudget:
		return fmt.Sprintf("run %d may cost %v", e.run, e.config)
	case evDelivered:
		return fmt.Sprintf("lane %s receives %+v", e.name, e.config)
	case evLaneDefined, evLimitsChanged, evLaneReset, evLaneRestored:
		return fmt.Sprintf("lane %s %s", e.name, kindWords[e.kind])
	}
	return fmt.Sprintf("run %d %s", e.run, kindWords[e.kind])
}

var kindWords = [...]string{
	evRunOpened: "opens", evLaneDefined: "is defined", evInputEnded: "has no more input",
	evLimitsChanged: "has new limits", evPaused: "pauses", evResumed: "resumes",
	evDrained: "drains", evLaneReset: "is reset by hand", evLaneRestored: "is remembered",
}
