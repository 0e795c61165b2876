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

// ErrClosed says that the [Shared] of a run was closed, before the run began or while it
// ran. A run that was under way is drained, and its error is [ErrDrained] too. Queries to a
// closed Shared, or to a run that is over, also return ErrClosed.
var ErrClosed = coordinator.ErrClosed

// The kinds of a run's error. errors.Is tells them apart.
var (
	// ErrConfig: the options are invalid, or contradict each other. Nothing was called.
	ErrConfig = errors.New("batch: configuration")
	// ErrStopped: the provider no longer serves this run, or one of its pools, and items
	// were left because of that. The causes are: quota or balance used up, key refused, too
	// long a wait asked for, never an answer, an outage without end, a mistake in every
	// item, a law that failed. The error of each such item includes ErrStopped, too.
	// errors.As with *[provider.Error] tells what the provider said. The items of a pool
	// with no lane left are [ErrNotRun] with that cause. Items of other pools are run, and
	// the input is read to its end, unless no pool has a lane left.
	ErrStopped = errors.New("batch: stopped by the provider")
	// ErrDrained: the run was asked to finish the calls in flight and start nothing more,
	// and items were left.
	ErrDrained = errors.New("batch: drained")
	// ErrTooManyFailures: as many items failed for good as [WithMaxFailures] allows, or a
	// larger share of them than [WithMaxFailureShare] allows. errors.Is and errors.As also
	// find the error of the first failed item.
	ErrTooManyFailures = errors.New("batch: too many failures")
	// ErrInput: the input panicked while the run read it. errors.As with *[PanicError]
	// tells where.
	ErrInput = errors.New("batch: input")
	// ErrObserver: the observer, or a function of [WithCalls] or [WithEnds], panicked. The
	// observer is not called again; a measuring function is not called again by that
	// worker. The run goes on, so ErrObserver is joined to any other error of the run.
	// Alone, it is the error of a run whose items all ended by a call. errors.As with
	// *[PanicError] tells where.
	ErrObserver = errors.New("batch: observer")
)

// ErrTooManyLanes is the kind of a run's error if its items need more lanes than may be
// known at once (100,000 by default). As a rule, a field that differs from item to item was
// taken for the name of a pool. The text names the first lane that was too many. The items
// of that lane, and the input not read by then, are not run; items that have a lane are.
// Once the mistake is corrected, the rest can be run.
var ErrTooManyLanes = machine.ErrTooManyLanes

// ErrNoAnswer is the cause of an [ErrStopped] whose lane was never answered: see
// [WithFirstAnswer]. errors.Is and errors.As also find the error of the latest call.
var ErrNoAnswer = machine.ErrNoAnswer

// ErrOutage is the cause of an [ErrStopped] whose lane had no answer for as long as
// [WithOutagePatience] allows. errors.As with *[OutageError] tells since when.
var ErrOutage = machine.ErrOutage

// ErrAlike is the cause of an [ErrStopped] whose items all failed alike: see
// [WithAlikeFailures]. errors.As with *[AlikeError] tells how many, and with
// *[provider.Error] why.
var ErrAlike = machine.ErrAlike

// ErrLaw is the cause of an [ErrStopped] whose lane has a law made by a [limiter.Maker]
// that failed. The law or its maker panicked, or the maker returned no law. Other lanes
// go on, and a reset of the lane by hand makes another law. errors.As with *[LawError]
// gives the value of the panic and its stack.
var ErrLaw = machine.ErrLaw

// ErrWaitTooLong is the cause of an [ErrStopped] whose provider asked for a wait of more
// than 15 minutes. errors.As with *[WaitError] gives the wait, its end, and what the
// provider said.
var ErrWaitTooLong = machine.ErrWaitTooLong

// ErrMaxCost is the kind of a run's error if its budget, which [WithMaxCost] sets, does not cover
// the next call, and no call in flight can give anything back. The items that were left are
// [ErrNotRun]. errors.As with *[BudgetError] gives the sums.
var ErrMaxCost = machine.ErrMaxCost

// ErrNotRun is the kind of the error of an item that was taken from the input but not
// answered, because the run ended first. Any calls it had were refused or cut off; it is
// safe to run the item again.
var ErrNotRun = errors.New("batch: item not run")

// ErrItemTimeout is the kind of the error of an item whose own time was up.
var ErrItemTimeout = errors.New("batch: item timeout")

// errAttemptTimeout is the cause with which a call's context ends when its time is up. The
// error of the context can only be Canceled; its cause is a deadline.
var errAttemptTimeout = fmt.Errorf("batch: attempt timeout: %w", context.DeadlineExceeded)

// errGone is the error of an item whose function ended the goroutine that it ran
// in, as the FailNow of a test does.
var errGone = errors.New("batch: function did not return: it called runtime.Goexit")

// Permanent marks err as an error that another try cannot help: the item fails at once.
// Permanent(nil) is nil.
func Permanent(err error) error { return provider.Permanent(err) }

// DoesNotFit says that an answer came whose form err finds fault with, such as JSON without a
// field that must be there. The item fails with kind [Misfit], or is asked again; see
// [WithMisfitRetries]. DoesNotFit(nil) is nil.
func DoesNotFit(err error) error { return provider.DoesNotFit(err) }

// RetryAfter says that the call behind err was refused for now, and that its lane must wait
// for d (at least). The item is run again and uses no attempt. RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error { return provider.RetryAfter(d, err) }

// A PanicError is the error of an item whose function panicked, or whose Pool, Cost or
// ItemKey did, be it the item's method or an option. In the latter case the item is not
// called at all. [ErrInput] and [ErrObserver] also have a PanicError behind them.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked; the text of the error does not include it
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
