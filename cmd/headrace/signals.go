package main

import (
	"context"
	"errors"
)

// errInterrupted is the cause with which a run's context ends at the second
// signal.
var errInterrupted = errors.New("interrupted")

// halt is how a run is stopped from outside, in two stages.
type halt struct {
	drain chan struct{} // closed by the first signal: start nothing more
	ctx   context.Context
	stop  context.CancelCauseFunc // by the second, or by a fault: abandon the calls
	over  chan struct{}           // closed when no more signals are watched
}

// watch waits for signals until the returned halt is closed. The first drains, the
// second abandons, and a third has its usual effect, should something hang.
func (w *world) watch(ctx context.Context, say func(string)) *halt {
	h := &halt{drain: make(chan struct{}), over: make(chan struct{})}
	h.ctx, h.stop = context.WithCancelCause(ctx)
	finished := h.ctx.Done()
	go func() {
		defer close(h.over)
		for first := true; ; first = false {
			select {
			case <-finished:
				return
			case <-w.signals:
			}
			if !first {
				say("abandoning the calls in flight")
				w.release()
				h.stop(errInterrupted)
				return
			}
			say("stopping: calls in flight finish and are saved; Ctrl-C again abandons them")
			close(h.drain)
		}
	}()
	return h
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
		return errors.Is(context.Cause(h.ctx), errInterrupted)
	}
}
