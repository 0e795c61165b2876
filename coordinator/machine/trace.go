package machine

import (
	"fmt"
	"math"
	"strings"
	"time"
)

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

	Slowed float64       // of ByErrors: the part of the pace that is left, 0..1
	Errors float64       // of ByErrors and ByAnswers: the share of calls that broke, 0..1,
	Span   time.Duration // in so long
}

// String describes the transition as a line of a story.
func (t Transition) String() string {
	var b strings.Builder
	switch t.Reason {
	case ByErrors:
		fmt.Fprintf(&b, "lane %s: %v, slowed down to %.3g, as %.0f %% broke in %v", t.Lane, t.To, t.Slowed, 100*t.Errors, t.Span)
	case ByAnswers:
		fmt.Fprintf(&b, "lane %s: %v, slowed down no more, as %.0f %% broke in %v", t.Lane, t.To, 100*t.Errors, t.Span)
	default:
		fmt.Fprintf(&b, "lane %s: %v → %v", t.Lane, t.From, t.To)
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

// String describes the wait as a line of a story.
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

// String describes the grant as a line of a story.
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

// String describes the outcome in words of a story.
func (o Outcome) String() string {
	s := o.Signal.String()
	if o.Directed {
		s += fmt.Sprintf(", retry after %v", o.RetryAfter)
	}
	return s
}

// String describes the event as a line of a story.
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
	case evTold:
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
