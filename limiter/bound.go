package limiter

import (
	"math"
	"strings"
)

// A Bound names what holds a lane, or a run, back at one moment: it is why the next call does not
// leave then. A law names those of its lane, and the machine those of lanes and runs.
type Bound uint8

// The bounds. A run always has exactly one. BoundNone of a lane says that nothing of the lane's
// own holds it back. A limit's bound has the number of its [Dimension].
const (
	BoundNone         Bound = iota
	BoundRequests           // the limit on requests: its level, or the pace that it gives
	BoundTokens             // the limit on tokens
	BoundInputTokens        // the limit on input tokens
	BoundOutputTokens       // the limit on output tokens
	BoundSearch             // no limit is known yet: the pace rises until one shows
	BoundTrial              // going slower to see whether refusals cease
	BoundErrors             // calls break: slowed down
	BoundWindow             // calls in flight, as the lane or its law bounds them
	BoundConcurrency        // calls in flight, by the bound of the run, or of all runs together
	BoundCooldown           // the lane cools, refused; or its law lets nothing leave
	BoundOverload           // the lane cools, as its server says busy
	BoundBreaker            // the breaker is open
	BoundRecovery           // a probe is under way, or the lane climbs back
	BoundBackoff            // all waiting items wait for themselves
	BoundInput              // nothing waits, and the input has not ended
	BoundPaused             // the run is paused
	BoundDraining           // the run is to end: calls in flight finish
	BoundStopped            // no lane is left: calls in flight finish
	BoundTail               // nothing waits, and the input has ended: the last calls
	BoundUnanswered         // calls are overdue, and none has ended for as long
	BoundSlept              // the computer slept, or the process was stopped
	bounds
)

// Bounds is the number of bounds that a run is booked under, BoundNone included: they are
// 0..Bounds-1.
const Bounds = int(bounds)

// Finer bounds, which a [View] tells from those above. [Bound.Booked] says which of these they
// are.
const (
	BoundOthers  Bound = bounds + iota // a limit, as far as other clients draw on it
	BoundLatency                       // calls in flight at which the mean latency stays at its target; its pace is what that allows
	named
)

// BoundShort marks the bound of a call for which a limit has too little left. Without the mark
// the call waits for the pace that the limit gives.
const BoundShort Bound = 1 << 7

var boundWords = [named]string{
	"", "requests", "tokens", "input_tokens", "output_tokens", "search", "trial", "errors", "window",
	"concurrency", "cooldown", "overload", "breaker", "recovery", "backoff", "input", "paused", "draining", "stopped", "tail", "unanswered", "slept",
	"others", "latency",
}

// Booked returns the bound that a run's time is booked under: a finer one, or one that is marked,
// counts as that of which it is a part.
func (b Bound) Booked() Bound {
	switch b &^= BoundShort; b {
	case BoundOthers:
		return BoundRequests
	case BoundLatency:
		return BoundWindow
	}
	return b
}

// String returns the bound's word, in the letters that programs read; "" for BoundNone.
func (b Bound) String() string { return boundWords[b&^BoundShort] }

// Why says in a word for people why a lane waits whose law names the bound: "rate" where a call
// waits only for a pace.
func (b Bound) Why() string {
	switch {
	case b == BoundNone:
		return ""
	case b == BoundCooldown:
		return "hold"
	case b == BoundRecovery:
		return "ramp"
	case b == BoundErrors, b&BoundShort != 0:
		return strings.ReplaceAll(b.String(), "_", " ")
	}
	return "rate"
}

// A PaceBound is one thing that bounds the pace, and the calls per second that it allows.
type PaceBound struct {
	By   Bound
	Pace float64
}

var unlimited = math.Inf(1)

// nothing bounds nothing.
var nothing = PaceBound{Pace: unlimited}

// Bind puts one more bound among the two least. If two are equal, the earlier one stays.
func (v *View) Bind(by Bound, pace float64) {
	switch b := (PaceBound{By: by, Pace: pace}); {
	case math.IsNaN(pace) || math.IsInf(pace, 1):
	case pace < v.Binds.Pace:
		v.Binds, v.Next = b, v.Binds
	case pace < v.Next.Pace:
		v.Next = b
	}
}
