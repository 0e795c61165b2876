package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
)

// Causes that stop a run from outside.
var (
	errInterrupted = errors.New("interrupted")
	errDeadline    = errors.New("the deadline was reached")
)

// Halt stops a run from outside, in two stages.
type Halt struct {
	Drain         chan struct{} // closed by the first signal, at the deadline, or by a full disk: start nothing more
	diskFull      chan error    // one place: the disk is full
	drainRequests chan string   // one place: who told the run to end
	drainCause    error         // what closed drain; read it only once drain is closed
	drainedBy     string        // the same in the words of a sentence; likewise
	drainedAt     time.Time     // when that was; only for the goroutine that watches
	Ctx           context.Context
	Stop          context.CancelCauseFunc // by a signal after that, or by a fault: abandon the calls
	Over          chan struct{}           // closed when no more signals are watched
	deadline      time.Time               // the deadline; zero: there is none
	asking        atomic.Bool             // a question waits for its answer: no call is in flight
}

// Watch watches for signals, and for the deadline unless it is 0, until the returned Halt is closed. The first of
// them drains the run, and a signal after it abandons the calls. One more has its usual effect, in case something
// hangs.
func (w *World) Watch(ctx context.Context, deadline time.Duration, say func(event.Code, string)) *Halt {
	h := &Halt{Drain: make(chan struct{}), diskFull: make(chan error, 1), drainRequests: make(chan string, 1), Over: make(chan struct{})}
	h.Ctx, h.Stop = context.WithCancelCause(ctx)
	var expired <-chan time.Time
	if deadline > 0 {
		h.deadline = w.Clock.Now().Add(deadline)
		timer := w.Clock.NewTimer(deadline)
		expired = timer.Chan()
		context.AfterFunc(h.Ctx, func() { timer.Stop() })
	}
	go func() {
		defer close(h.Over)
		if h.waitDrain(w, deadline, expired, say) {
			h.waitAbandon(w, say)
		}
	}()
	return h
}

// waitDrain waits for the first cause that drains the run, and reports whether one came before the run's end.
func (h *Halt) waitDrain(w *World, deadline time.Duration, expired <-chan time.Time, say func(event.Code, string)) bool {
	select {
	case <-h.Ctx.Done():
		return false
	case sig := <-w.Signals:
		if h.drainCause, h.drainedBy = errInterrupted, signalName(sig); !h.asking.Load() {
			say(event.Stopping, stoppingBy(sig))
		}
	case <-expired:
		if h.drainCause, h.drainedBy = errDeadline, "your --deadline"; h.asking.Load() {
			break
		}
		say(event.Stopping, fmt.Sprintf("stopping at the deadline of %v: calls in flight finish and are saved; Ctrl-C abandons them", deadline))
	case h.drainedBy = <-h.drainRequests:
		h.drainCause = errInterrupted
		say(event.Stopping, "stopping: "+h.drainedBy+": calls in flight finish and are saved; Ctrl-C abandons them")
	case h.drainCause = <-h.diskFull:
		h.drainedBy = "a full disk"
		say(event.Stopping, fmt.Sprintf("stopping: %s: calls in flight finish, and their answers are saved if there is room by then; Ctrl-C abandons them", exit.PlainText(h.drainCause)))
	}
	h.drainedAt = w.Clock.Now()
	close(h.Drain)
	return true
}

// Expire returns at once before the deadline. After it, Expire waits until the watcher has drained the run, so that
// the run calls nothing.
func (h *Halt) Expire(now time.Time) {
	if h.deadline.IsZero() || now.Before(h.deadline) {
		return
	}
	select {
	case <-h.Drain:
	case <-h.Ctx.Done():
	}
}

// sameCall is the time within which a second SIGTERM may be the first one, sent twice:
// timeout(1) sends it to the process and to its group.
const sameCall = time.Second

// waitAbandon waits for a signal that a person sends after the first cause. It abandons the calls in flight.
func (h *Halt) waitAbandon(w *World, say func(event.Code, string)) {
	for {
		select {
		case <-h.Ctx.Done():
			return
		case sig := <-w.Signals:
			if sig == syscall.SIGHUP { // shells and kernels both report that a terminal has gone
				continue
			}
			if sig == syscall.SIGTERM && w.Clock.Since(h.drainedAt) < sameCall {
				continue
			}
			say(event.Abandoning, "abandoning the calls in flight")
			w.Release()
			h.Stop(errInterrupted)
			return
		}
	}
}

// Ask brackets a question to a person, before the first call. What stops the run in the meantime is
// not said to let calls finish: there are none.
func (h *Halt) Ask() (answered func()) {
	h.asking.Store(true)
	return func() { h.asking.Store(false) }
}

// Fault drains the run if a result cannot be kept because the disk is full. There may be room again, so the calls in
// flight are worth waiting for. For other faults the run is being abandoned.
func (h *Halt) Fault(err error) {
	if !promptfile.DiskFull(err) {
		return
	}
	select {
	case h.diskFull <- err:
	default: // the other file reported it: the run is stopping already
	}
}

// Tell drains the run as a first signal does. by names who asked, as in a sentence.
func (h *Halt) Tell(by string) {
	select {
	case h.drainRequests <- by:
	default: // the first one counts
	}
}

// Close ends the watch.
func (h *Halt) Close() {
	h.Stop(nil)
	<-h.Over
}

// Called reports whether a signal, the deadline, ctl or a full disk has stopped the run.
func (h *Halt) Called() bool {
	select {
	case <-h.Drain:
		return true
	default:
		return h.Interrupted()
	}
}

// Interrupted reports whether a signal has abandoned the calls in flight.
func (h *Halt) Interrupted() bool { return errors.Is(context.Cause(h.Ctx), errInterrupted) }

// Reason returns what drains the run, as it stands in a sentence; "" if nothing does.
func (h *Halt) Reason() string {
	select {
	case <-h.Drain:
		return h.drainedBy
	default:
		return ""
	}
}

// signalName names a signal as it stands in a sentence.
func signalName(sig os.Signal) string {
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
	if by := signalName(sig); by != event.CtrlC {
		return "stopping: " + by + ": calls in flight finish and are saved; Ctrl-C abandons them"
	}
	return "stopping: calls in flight finish and are saved; Ctrl-C again abandons them"
}

// ByDeadline reports whether the deadline, and no signal, stopped the run.
func (h *Halt) ByDeadline() bool {
	select {
	case <-h.Drain:
		return errors.Is(h.drainCause, errDeadline) && !h.Interrupted()
	default:
		return false
	}
}
