package limiter

import (
	"fmt"
	"math"
	"time"
)

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
