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

// Causes that stop a run from outside.
var (
	errInterrupted = errors.New("interrupted")
	errDeadline    = errors.New("the deadline was reached")
)

// halt stops a run from outside, in two stages.
type halt struct {
	drain chan struct{} // closed by the first signal, at the deadline, or by a full disk: start nothing more
	full  chan error    // one place: the disk is full
	why   error         // what closed drain; read it only once drain is closed
	by    string        // the same in the words of a sentence; likewise
	at    time.Time     // when that was; only for the goroutine that watches
	ctx   context.Context
	stop  context.CancelCauseFunc // by a signal after that, or by a fault: abandon the calls
	over  chan struct{}           // closed when no more signals are watched
	ends  time.Time               // the deadline; zero: there is none
}

// watch waits for signals, and for the deadline unless it is 0, until the returned halt is
// closed. The first of them drains, a signal after it abandons, and one more has its usual
// effect, in case something hangs.
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

// first waits for the cause that drains the run; false if the run ends before.
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

// expire waits, once the deadline has passed, until the watcher has noticed: the run is
// drained before it begins, and calls nothing.
func (h *halt) expire(now time.Time) {
	if h.ends.IsZero() || now.Before(h.ends) {
		return
	}
	select {
	case <-h.drain:
	case <-h.ctx.Done():
	}
}

// sameCall is the time within which a second SIGTERM may be the first one, sent twice:
// timeout(1) sends it to the process and to its group.
const sameCall = time.Second

// second waits for a signal that abandons the calls: one that a person sends.
func (h *halt) second(w *World, say func(event.Code, string)) {
	for {
		select {
		case <-h.ctx.Done():
			return
		case sig := <-w.signals:
			if sig == syscall.SIGHUP { // shells and kernels both report that a terminal has gone
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

// fault reports that a result cannot be kept, if there may be room again: then it is worth
// waiting for the calls in flight. Otherwise the run is being abandoned.
func (h *halt) fault(err error) {
	if !promptfile.DiskFull(err) {
		return
	}
	select {
	case h.full <- err:
	default: // the other file reported it: the run is stopping already
	}
}

// close ends the watch.
func (h *halt) close() {
	h.stop(nil)
	<-h.over
}

// called reports whether something outside has stopped the run.
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

// reason returns what drains the run, as it stands in a sentence; "" if nothing does.
func (h *halt) reason() string {
	select {
	case <-h.drain:
		return h.by
	default:
		return ""
	}
}

// calledBy names a signal as it stands in a sentence.
func calledBy(sig os.Signal) string {
	switch sig {
	case syscall.SIGTERM:
		return "a SIGTERM"
	case syscall.SIGHUP:
		return "a SIGHUP"
	}
	return event.CtrlC
}

// stoppingBy says what a first signal does. Only a user who has pressed Ctrl-C can do so
// again.
func stoppingBy(sig os.Signal) string {
	if by := calledBy(sig); by != event.CtrlC {
		return "stopping: " + by + ": calls in flight finish and are saved; Ctrl-C abandons them"
	}
	return "stopping: calls in flight finish and are saved; Ctrl-C again abandons them"
}

// byDeadline reports whether the deadline, and no signal, stopped the run.
func (h *halt) byDeadline() bool {
	select {
	case <-h.drain:
		return errors.Is(h.why, errDeadline) && !h.interrupted()
	default:
		return false
	}
}
