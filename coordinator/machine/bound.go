package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Bound holds a run, or a lane, back at one moment; see [limiter.Bound].
type Bound = limiter.Bound

// The bounds, and their number; what each means stands at the one of package limiter.
const (
	BoundNone         = limiter.BoundNone
	BoundRequests     = limiter.BoundRequests
	BoundTokens       = limiter.BoundTokens
	BoundInputTokens  = limiter.BoundInputTokens
	BoundOutputTokens = limiter.BoundOutputTokens
	BoundSearch       = limiter.BoundSearch
	BoundTrial        = limiter.BoundTrial
	BoundErrors       = limiter.BoundErrors
	BoundWindow       = limiter.BoundWindow
	BoundConcurrency  = limiter.BoundConcurrency
	BoundCooldown     = limiter.BoundCooldown
	BoundOverload     = limiter.BoundOverload
	BoundBreaker      = limiter.BoundBreaker
	BoundRecovery     = limiter.BoundRecovery
	BoundBackoff      = limiter.BoundBackoff
	BoundInput        = limiter.BoundInput
	BoundPaused       = limiter.BoundPaused
	BoundDraining     = limiter.BoundDraining
	BoundStopped      = limiter.BoundStopped
	BoundTail         = limiter.BoundTail
	BoundUnanswered   = limiter.BoundUnanswered
	BoundSlept        = limiter.BoundSlept

	Bounds = limiter.Bounds
)

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
