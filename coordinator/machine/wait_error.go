package machine

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A WaitError says which wait is longer than is waited, and who asked for it. errors.Is
// finds [ErrWaitTooLong] in it, and what the server said.
type WaitError struct {
	Lane  string
	Wait  time.Duration // as the server named it
	Until time.Time     // when it ends
	Most  time.Duration // that would be waited
	Cause error         // what the server said; nil: that is not known
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("%v: %v on lane %s, until %s, at most %v is waited", ErrWaitTooLong, e.Wait, e.Lane, e.Until.Format(time.RFC3339), e.Most)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is says of which kind it is.
func (e *WaitError) Is(target error) bool { return target == ErrWaitTooLong }

// Unwrap gives what the server said.
func (e *WaitError) Unwrap() error { return e.Cause }

// waitFor is why the lane stops that would have to wait so long.
func (l *lane) waitFor(now time.Time, wait time.Duration, cause error) error {
	return &WaitError{Lane: l.name, Wait: wait, Until: now.Add(wait), Most: l.cfg.longestWait(), Cause: cause}
}

// longLimit is from which period on a limit that is used up stops a lane: what is left of
// a shorter one comes back within a run.
const longLimit = 24 * time.Hour

// usedUp is the limit by the day of which the headers of a call say that nothing is left,
// and that it is not whole again for longer than is waited; nil if there is none. Units
// that flow in meanwhile are not waited for: a lane that lets a call go every few seconds
// looks alive, and is not. News from before a person vouched for the lane never comes here.
func (l *lane) usedUp(o *Outcome) *limiter.Sighting {
	for i := range o.Sightings {
		s := &o.Sightings[i]
		if s.Window >= longLimit && s.Limit > 0 && s.Remaining < 1 && s.HasReset && s.Reset > l.cfg.longestWait() {
			return s
		}
	}
	return nil
}

// A UsedUpError says of which limit nothing is left. It is the cause of a [WaitError],
// which says when it is whole again.
type UsedUpError struct {
	Dimension limiter.Dimension
	Limit     float64       // units per Window
	Window    time.Duration // a day or more
}

func (e *UsedUpError) Error() string {
	period := "day"
	if e.Window > longLimit {
		period = e.Window.String()
	}
	return fmt.Sprintf("all %.0f %s of the %s are used", e.Limit, e.Dimension, period)
}
