package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Bound holds a run, or a lane, back at one moment: it is why the next call does not leave
// then.
type Bound uint8

// The bounds. A run always has exactly one. BoundNone of a lane says that nothing of the lane's
// own holds it back.
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
	BoundCooldown           // the lane cools, refused
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

// Bounds is the number of bounds, BoundNone included: they are 0..Bounds-1.
const Bounds = int(bounds)

var boundWords = [bounds]string{
	"", "requests", "tokens", "input_tokens", "output_tokens", "search", "trial", "errors", "window",
	"concurrency", "cooldown", "overload", "breaker", "recovery", "backoff", "input", "paused", "draining", "stopped", "tail", "unanswered", "slept",
}

// String returns the bound's word, in the letters that programs read; "" for BoundNone.
func (b Bound) String() string { return boundWords[b] }

// boundOf maps the bindings of a law to bounds.
var boundOf = [...]Bound{
	limiter.ByNothing:      BoundNone,
	limiter.ByRequests:     BoundRequests,
	limiter.ByTokens:       BoundTokens,
	limiter.ByInputTokens:  BoundInputTokens,
	limiter.ByOutputTokens: BoundOutputTokens,
	limiter.ByOthers:       BoundRequests,
	limiter.ByRamp:         BoundRecovery,
	limiter.BySearch:       BoundSearch,
	limiter.ByTrial:        BoundTrial,
	limiter.ByCap:          BoundWindow,
	limiter.ByLatency:      BoundWindow,
	limiter.ByHold:         BoundCooldown,
	limiter.ByErrors:       BoundErrors,
}

// phaseBound returns the bound of a lane whose phase lets no call go.
func (l *lane) phaseBound() Bound {
	switch {
	case l.phase == Stopped:
		return BoundStopped
	case l.reason == ByOverload:
		return BoundOverload
	case l.reason == ByBreaker:
		return BoundBreaker
	}
	return BoundCooldown
}

// heldBy returns the bound of the lane's own that holds its next call back. It changes nothing.
func (l *lane) heldBy(now time.Time) Bound {
	switch {
	case l.phase == Cooling || l.phase == Stopped:
		return l.phaseBound()
	case l.phase == Probing:
		if l.inEpoch > 0 || l.full(now) || l.law.ProbeWait(now, l.nextCost()) > 0 {
			return BoundRecovery
		}
		return BoundNone
	case l.hung:
		return BoundUnanswered
	case l.full(now):
		return BoundWindow
	}
	if wait, on := l.law.Wait(now, l.nextCost()); wait > 0 {
		return l.boundOn(on)
	}
	return BoundNone
}
