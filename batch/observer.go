package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// An Event is one thing that a run reports to its observer. Exactly one field is set.
type Event struct {
	Transition *Transition // a lane changed its phase
	LongWait   *LongWait   // a lane or an item waits for longer than [WithLongWait] says
	Status     *Status     // a snapshot, once per period
	Summary    *Summary    // the run is over; the last event
}

// busiestLanes is the number of lanes in a snapshot: as many as package observe keeps
// apart.
const busiestLanes = 32

// WithObserver calls f with the events of the run: transitions and long waits as they come,
// a status each period, the summary at the end. All calls come from one goroutine of the
// run's. A slow f slows nothing: the run drops and counts events that f is too slow for,
// except the last event, for which it waits. An f that panics is not called again. The run
// goes on, and its error includes [ErrObserver] in the end. For a run with [ErrConfig], f
// is not called; for any other run that cannot begin, f gets the summary.
func WithObserver(f func(Event)) Option {
	return runOption(func(c *config) {
		c.observer = f
		c.fault(notNil("WithObserver", f == nil))
	}, "WithObserver()")
}

// WithProgressEvery sets the period of the observer's status. Default 1 s.
func WithProgressEvery(d time.Duration) Option {
	return runOption(func(c *config) { c.every = d }, "WithProgressEvery(%v)", d)
}

// DefaultLongWait is the time a lane or an item may wait before the observer hears of it.
const DefaultLongWait = machine.DefaultLongWait

// WithLongWait sets how long a lane or an item may wait before the observer gets an
// [Event].LongWait. It gets one for each wait, and at once if the end of the wait is known
// to be farther away than that. Default 5 minutes; 0 reports no wait.
func WithLongWait(d time.Duration) Option {
	return sharedOption(func(c *config) { c.longWait = d }, "WithLongWait(%v)", d)
}

// observe passes on the coordinator's news until the run is over, and then the summary.
func (r *run[In, Out]) observe(ctx context.Context) {
	ticker := r.clock.NewTicker(r.every)
	defer ticker.Stop()
	for news, heard := r.session.News(), true; news != nil; {
		select {
		case n, ok := <-news:
			if !ok {
				news = nil
				continue
			}
			heard = r.tell(Event{Transition: n.Transition, LongWait: n.LongWait})
		case <-ticker.Chan():
			if s, err := r.session.Status(ctx, busiestLanes); err == nil {
				heard = r.tell(Event{Status: &s})
			}
		}
		if !heard {
			return
		}
	}
	r.lastWord()
}

// lastWord waits for the summary and passes it on.
func (r *run[In, Out]) lastWord() {
	s := <-r.over
	r.tell(Event{Summary: &s})
}

// tell calls the observer, and reports whether it may be called again: an observer that
// panicked may not.
func (r *run[In, Out]) tell(e Event) (heard bool) {
	err := errGone // unless it returns
	defer func() {
		if err != nil {
			r.observerErr = fmt.Errorf("%w: %w", ErrObserver, err)
		}
	}()
	err = guarded(func() { r.observer(e) })
	return err == nil
}
