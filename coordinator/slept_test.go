package coordinator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// leaping is a clock that is some time ahead, as that of a process which was stopped: its
// timers go off late.
type leaping struct {
	clockwork.Clock
	ahead atomic.Int64
}

func (c *leaping) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.ahead.Load())) }

// A wake-up that comes far later than its alarm says that the computer slept: while a limit
// holds the run back, and also while nothing but the end of a call is waited for. A short
// hiccup says nothing.
func TestLateWakeUpIsASleep(t *testing.T) {
	paced := machine.LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Second}}
	for _, c := range []struct {
		name  string
		lane  machine.LaneConfig
		run   machine.RunConfig
		ahead time.Duration
		least time.Duration
		bound machine.Bound
	}{
		{"a limit", paced, machine.RunConfig{Concurrency: 100}, time.Minute, 58 * time.Second, machine.BoundRequests},
		{"the concurrency", machine.LaneConfig{}, machine.RunConfig{Concurrency: 2}, time.Minute, time.Minute - beatEvery, machine.BoundConcurrency},
		{"a hiccup", paced, machine.RunConfig{Concurrency: 100}, 3 * time.Second, 0, machine.BoundRequests},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := &leaping{Clock: clockwork.NewRealClock()}
			inBubble(t, Config{Clock: clock, Machine: machine.Config{Lane: c.lane}}, func(t *testing.T, co *Coordinator) {
				s := open(t, co, c.run)
				s.Offer(items(200, ""))
				time.Sleep(20500 * time.Millisecond)
				out := granted(s)
				clock.ahead.Store(int64(c.ahead))
				time.Sleep(15 * time.Second)
				synctest.Wait()
				for _, g := range append(out, granted(s)...) {
					s.Settle(g, ok)
				}
				status := must.Get(s.Status(t.Context(), 1))(t)
				l := status.Run.Ledger
				slept := l[machine.BoundSlept]
				if slept < c.least || slept > c.ahead || c.least == 0 && slept > 0 {
					t.Errorf("asleep for %v of %v: %v", slept, c.ahead, l)
				}
				if awake := l.Sum() - slept; l[c.bound] < awake-5*time.Second {
					t.Errorf("%v of %v awake: %v", l[c.bound], awake, l)
				}
				s.Drain()
				finish(s)
			})
		})
	}
}
