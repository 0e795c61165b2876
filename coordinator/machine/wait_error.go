package machine

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A WaitError says which wait is longer than the machine accepts, and who asked for it.
// errors.Is finds [ErrWaitTooLong] in it, and the server's error.
type WaitError struct {
	Lane  string
	Wait  time.Duration // as the server named it
	Until time.Time     // when it ends
	Most  time.Duration // the longest that the machine accepts
	Cause error         // the server's error; nil: unknown
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("%v: %v on lane %s, until %s, at most %v is waited", ErrWaitTooLong, e.Wait, e.Lane, e.Until.Format(time.RFC3339), e.Most)
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is reports the kind of the error.
func (e *WaitError) Is(target error) bool { return target == ErrWaitTooLong }

// Unwrap returns the server's error.
func (e *WaitError) Unwrap() error { return e.Cause }

// waitFor returns the error that stops a lane which would have to wait so long.
func (l *lane) waitFor(now time.Time, wait time.Duration, cause error) error {
	return &WaitError{Lane: l.name, Wait: wait, Until: now.Add(wait), Most: l.cfg.longestWait(), Cause: cause}
}

// longLimit is the shortest period of a limit that stops its lane when it is used up: a shorter
// one is whole again within a run.
const longLimit = 24 * time.Hour

// usedUp returns a limit by the day or longer that the headers of a call show as used up. It is
// one that is whole again only after the longest wait; nil if there is none. Units that flow in
// meanwhile do not count: a lane that lets a call go every few seconds looks alive, and is not.
// News from before a person vouched for the lane never comes here.
func (l *lane) usedUp(o *Outcome) *limiter.Sighting {
	for i := range o.Sightings {
		s := &o.Sightings[i]
		if s.Window >= longLimit && s.Limit > 0 && s.Remaining < 1 && s.HasReset && s.Reset > l.cfg.longestWait() {
			return s
		}
	}
	return nil
}

// A UsedUpError names a limit of which nothing is left. It is the cause of a [WaitError], which
// says when the limit is whole again.
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
