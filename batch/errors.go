package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// ErrClosed says that the [Shared] of a run was closed, before it began or while it ran;
// one that ran was drained, and its error is [ErrDrained] too. It is also the error of
// whatever is asked of a Shared that is closed, or of a run that is over.
var ErrClosed = coordinator.ErrClosed

// The kinds of a run's error. errors.Is tells them apart.
var (
	// ErrConfig: the options cannot be meant. Nothing was called.
	ErrConfig = errors.New("batch: configuration")
	// ErrStopped: this run, or one of its pools, is served no more (quota or balance used up,
	// key refused, too long a wait asked for, never an answer, an outage without end, a mistake
	// in every item, a law that failed), and items were left for that. It is also found in the error of each such
	// item. errors.As with *[provider.Error] tells what the provider said. The items of a pool with no lane left are
	// [ErrNotRun] with that cause; those of another are run, and the input is read to its
	// end, unless no pool has a lane left.
	ErrStopped = errors.New("batch: stopped by the provider")
	// ErrDrained: the run was asked to finish what was in flight and start nothing
	// more, and items were left.
	ErrDrained = errors.New("batch: drained")
	// ErrTooManyFailures: as many items failed for good as [WithMaxFailures] allows, or as
	// large a share of them as [WithMaxFailureShare] does.
	// errors.Is and errors.As find the error of the first of them as well.
	ErrTooManyFailures = errors.New("batch: too many failures")
	// ErrInput: the input panicked while it was read. errors.As with *[PanicError] tells
	// where.
	ErrInput = errors.New("batch: input")
	// ErrObserver: the observer, or who measures by [WithCalls] or [WithEnds], panicked, and
	// was told nothing from then on. It comes
	// beside whatever else is to be said of the run, which went on without it: alone, it
	// is the error of a run whose items all ended by a call. errors.As with *[PanicError]
	// tells where.
	ErrObserver = errors.New("batch: observer")
)

// ErrTooManyLanes is the kind of a run's error whose items need more lanes than are known
// at once (100,000 if nobody says otherwise): as a rule a field that differs from item to
// item was taken for the name of a pool. The text names the first lane that was too many.
// Its items, and what was not read of the input by then, are not run, and those that have
// a lane are: once the mistake is corrected, what is left can be.
var ErrTooManyLanes = machine.ErrTooManyLanes

// ErrNoAnswer is behind an [ErrStopped] whose lane was never answered: see
// [WithFirstAnswer]. errors.Is and errors.As find what the latest call broke of as well.
var ErrNoAnswer = machine.ErrNoAnswer

// ErrOutage is behind an [ErrStopped] on whose lane nothing was answered for as long as
// [WithOutagePatience] says. errors.As with *[OutageError] tells since when.
var ErrOutage = machine.ErrOutage

// ErrAlike is behind an [ErrStopped] whose items all failed alike: see [WithAlikeFailures].
// errors.As with *[AlikeError] tells how many, and with *[provider.Error] of what.
var ErrAlike = machine.ErrAlike

// ErrLaw is behind an [ErrStopped] whose lane has a law made by a [limiter.Maker] that failed:
// the law or its maker panicked, or there was no law. Other lanes go on, and a reset of the
// lane by hand makes another law. errors.As with *[LawError] tells the value of the panic and
// its stack.
var ErrLaw = machine.ErrLaw

// ErrWaitTooLong is behind an [ErrStopped] whose provider asked for a wait of more than 15
// minutes. errors.As with *[WaitError] tells which, when it ends, and what was said.
var ErrWaitTooLong = machine.ErrWaitTooLong

// ErrNotRun is the kind of the error of an item that was taken from the input
// but not answered, because the run ended first. Its calls, if it had any, were
// refused or cut off; it is safe to run again.
var ErrNotRun = errors.New("batch: item not run")

// ErrItemTimeout is the kind of the error of an item whose own time was up.
var ErrItemTimeout = errors.New("batch: item timeout")

// errAttemptTimeout is the cause with which a call's context ends when its time
// is up. The context itself can only say Canceled; whoever asks for the cause
// finds a deadline.
var errAttemptTimeout = fmt.Errorf("batch: attempt timeout: %w", context.DeadlineExceeded)

// errGone is the error of an item whose function ended the goroutine that it ran
// in, as the FailNow of a test does.
var errGone = errors.New("batch: function did not return: it called runtime.Goexit")

// Permanent says of err that trying again cannot help: the item fails at once.
// Permanent(nil) is nil.
func Permanent(err error) error { return provider.Permanent(err) }

// RetryAfter says that the call behind err was refused for now, and that its
// lane is to wait for d (at least). The item is run again and uses no attempt.
// RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error { return provider.RetryAfter(d, err) }

// A PanicError is the error of an item whose function panicked, or whose Pool or Cost did,
// by its own method or an option; that one is not called at all. It is also what is behind
// [ErrInput] and [ErrObserver].
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked; the text of the error does not have it
}

// Error names the value, in one line.
func (e *PanicError) Error() string {
	return "batch: function panicked: " + strings.Join(strings.Fields(fmt.Sprint(e.Value)), " ")
}

// Unwrap returns the value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
