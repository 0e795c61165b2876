package machine

import (
	"fmt"
	"time"
)

// An AlikeError says that a lane has stopped because different items failed alike and none was
// ever answered: the mistake is in all of them. errors.Is finds [ErrAlike] in it, and the
// server's error.
type AlikeError struct {
	Lane  string
	Items int   // that failed alike
	Cause error // what the server said of the latest of them
}

func (e *AlikeError) Error() string {
	return fmt.Sprintf("%v: %s on lane %s: %v", ErrAlike, items(e.Items), e.Lane, e.Cause)
}

// Is reports the kind of the error.
func (e *AlikeError) Is(target error) bool { return target == ErrAlike }

// Unwrap returns the server's error.
func (e *AlikeError) Unwrap() error { return e.Cause }

// An OutageError says that a lane has stopped because nothing was answered for longer than
// [Config].OutagePatience. errors.Is finds [ErrOutage] in it, and the error of the latest call.
type OutageError struct {
	Lane    string
	Since   time.Time     // when the first call failed, or was refused, after the latest answer
	For     time.Duration // how long ago that was
	Waiting int           // items that waited for the lane
	Cause   error         // what the latest call met; nil: that is not known
}

func (e *OutageError) Error() string {
	text := fmt.Sprintf("%v: lane %s, for %v, %s waiting", ErrOutage, e.Lane, e.For.Round(time.Second), items(e.Waiting))
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is reports the kind of the error.
func (e *OutageError) Is(target error) bool { return target == ErrOutage }

// Unwrap returns the error of the latest call.
func (e *OutageError) Unwrap() error { return e.Cause }

func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}
