package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
)

// Causes with which a run is stopped from outside.
var (
	errInterrupted = errors.New("interrupted")
	errDeadline    = errors.New("the deadline was reached")
)

// halt is how a run is stopped from outside, in two stages.
type halt struct {
	drain chan struct{} // closed by the first signal, at the deadline, or by a full disk: start nothing more
	full  chan error    // one place: the disk is full
	why   error         // what closed drain; to be read when it is closed
	by    string        // the same as it stands in a sentence; likewise
	at    time.Time     // when that was; of the goroutine that watches
	ctx   context.Context
	stop  context.CancelCauseFunc // by a signal after that, or by a fault: abandon the calls
	over  chan struct{}           // closed when no more signals are watched
	ends  time.Time               // the deadline; zero: there is none
}

// watch waits for signals, and for the deadline unless it is 0, until the returned
// halt is closed. The first of them drains, a signal after it abandons, and one
// more has its usual effect, should something hang.
func (w *World) watch(ctx context.Context, deadline time.Duration, say func(event.Code, string)) *halt {
	h := &halt{drain: make(chan struct{}), full: make(chan error, 1), over: make(chan struct{})}
	h.ctx, h.stop = context.WithCancelCause(ctx)
	var expired <-chan time.Time
	if deadline > 0 {
		h.ends = w.clock.Now().Add(deadline)
		timer := w.clock.NewTimer(deadline)
		expired = timer.Chan()
		context.AfterFunc(h.ctx, func() { timer.Stop() })
	}
	go func() {
		defer close(h.over)
		if h.first(w, deadline, expired, say) {
			h.second(w, say)
		}
	}()
	return h
}

// first waits for whatever drains the run; false if the run is over before.
func (h *halt) first(w *World, deadline time.Duration, expired <-chan time.Time, say func(event.Code, string)) bool {
	select {
	case <-h.ctx.Done():
		return false
	case sig := <-w.signals:
		h.why, h.by = errInterrupted, calledBy(sig)
		say(event.Stopping, stoppingBy(sig))
	case <-expired:
		h.why, h.by = errDeadline, "your --deadline"
		say(event.Stopping, fmt.Sprintf("stopping at the deadline of %v: calls in flight finish and are saved; Ctrl-C abandons them", deadline))
	case h.why = <-h.full:
		h.by = "a full disk"
		say(event.Stopping, fmt.Sprintf("stopping: %s: calls in flight finish, and their answers are kept until there is room; Ctrl-C abandons them", plainText(h.why)))
	}
	h.at = w.clock.Now()
	close(h.drain)
	return true
}

// expire waits, where the deadline has passed, until that is heard: the run is drained
// before it begins, and calls nothing.
func (h *halt) expire(now time.Time) {
	if h.ends.IsZero() || now.Before(h.ends) {
		return
	}
	select {
	case <-h.drain:
	case <-h.ctx.Done():
	}
}

// sameCall is for how long a SIGTERM may be the one of before, sent twice: timeout(1) sends
// it to the process and to its group.
const sameCall = time.Second

// second waits for a signal that abandons the calls: one from somebody who is there.
func (h *halt) second(w *World, say func(event.Code, string)) {
	for {
		select {
		case <-h.ctx.Done():
			return
		case sig := <-w.signals:
			if sig == syscall.SIGHUP { // shells and kernels both say that a terminal has gone
				continue
			}
			if sig == syscall.SIGTERM && w.clock.Since(h.at) < sameCall {
				continue
			}
			say(event.Abandoning, "abandoning the calls in flight")
			w.release()
			h.stop(errInterrupted)
			return
		}
	}
}

// fault says that a result cannot be kept, if there may be room again: what is in flight
// is then worth waiting for. Else the run is being abandoned.
func (h *halt) fault(err error) {
	if !promptfile.DiskFull(err) {
		return
	}
	select {
	case h.full <- err:
	default: // of the other file: it is stopping already
	}
}

// close ends the watch.
func (h *halt) close() {
	h.stop(nil)
	<-h.over
}

// called reports whether the run was told to stop from outside.
func (h *halt) called() bool {
	select {
	case <-h.drain:
		return true
	default:
		return h.interrupted()
	}
}

// interrupted reports whether a signal has abandoned the calls in flight.
func (h *halt) interrupted() bool { return errors.Is(context.Cause(h.ctx), errInterrupted) }

// reason is what drains the run, as it stands in a sentence; "": nothing does.
func (h *halt) reason() string {
	select {
	case <-h.drain:
		return h.by
	default:
		return ""
	}
}

// calledBy is a signal as it stands in a sentence.
func calledBy(sig os.Signal) string {
	switch sig {
	case syscall.SIGTERM:
		return "a SIGTERM"
	case syscall.SIGHUP:
		return "a SIGHUP"
	}
	return event.CtrlC
}

// stoppingBy says what a first signal does. Only who has pressed Ctrl-C can do so again.
func stoppingBy(sig os.Signal) string {
	if by := calledBy(sig); by != event.CtrlC {
		return "stopping: " + by + ": calls in flight finish and are saved; Ctrl-C abandons them"
	}
	return "stopping: calls in flight finish and are saved; Ctrl-C again abandons them"
}

// byDeadline reports whether it was the deadline, and no signal, that stopped the run.
func (h *halt) byDeadline() bool {
	select {
	case <-h.drain:
		return errors.Is(h.why, errDeadline) && !h.interrupted()
	default:
		return false
	}
}
