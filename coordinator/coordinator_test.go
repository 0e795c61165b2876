package coordinator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// As many grants are out as the run may have calls in flight, and each call that
// ends lets exactly one more go.
func TestGrantsFlow(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 4})
		s.Offer(items(10, ""))
		out := granted(s)
		if len(out) != 4 {
			t.Fatalf("%d grants, want 4", len(out))
		}
		for next := uint64(4); len(out) > 0; next++ {
			s.Settle(out[0], ok)
			more := granted(s)
			if next < 10 && (len(more) != 1 || more[0].Item.Seq != next) || next >= 10 && len(more) > 0 {
				t.Fatalf("after a call ended, want item %d: %v", next, more)
			}
			out = append(out[1:], more...)
		}
		proves(t, finish(s), 10, 10)
	})
}

// counted is a clock that counts the timers it made, and how often they were set.
type counted struct {
	clockwork.Clock
	timers, resets atomic.Int64
}

type countedTimer struct {
	clockwork.Timer
	clock *counted
}

func (c *counted) NewTimer(d time.Duration) clockwork.Timer {
	c.timers.Add(1)
	return countedTimer{c.Clock.NewTimer(d), c}
}

func (t countedTimer) Reset(d time.Duration) bool {
	t.clock.resets.Add(1)
	return t.Timer.Reset(d)
}

// A cooldown is one timer, set once, however many items wait for its end; and it
// ends at the instant that was asked for.
func TestCooldownIsOneTimerAndEndsExactly(t *testing.T) {
	clock := &counted{Clock: clockwork.NewRealClock()}
	inBubble(t, Config{Clock: clock, Machine: machine.Config{Lane: exact}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 8})
		s.Offer(items(500, ""))
		begun := time.Now()
		for _, g := range granted(s) {
			s.HandOver(g, within(10*time.Second))
		}
		synctest.Wait()
		timers, resets := clock.timers.Load(), clock.resets.Load()
		probe := <-s.Work() // nothing but time brings it
		if after := time.Since(begun); after != 10*time.Second {
			t.Errorf("the first call after a cooldown of 10 s left after %v", after)
		}
		if timers != 1 || resets != 1 {
			t.Errorf("%d timers, set %d times: want one, set once", timers, resets)
		}
		if rest := granted(s); len(rest) > 0 {
			t.Errorf("%d calls left beside the probe", len(rest))
		}
		s.Settle(probe, ok)
		n := finish(s)
		proves(t, n, 500, 508)
		if n.Cooldowns != 1 || n.Participants != 8 || n.Parked != 8 || n.Redistributed != 8 {
			t.Errorf("%+v", n)
		}
	})
}

// Items that are paced leave one by one at their exact instants while nothing else
// happens: the timer is set again after each tick.
func TestPacedItemsAreWokenEachTime(t *testing.T) {
	lane := machine.LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60, Burst: time.Second}}
	inBubble(t, Config{Machine: machine.Config{Lane: lane}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{Concurrency: 100})
		begun := time.Now()
		s.Offer(items(20, ""))
		s.EndInput()
		for i := range 20 {
			g := <-s.Work()
			if at := time.Since(begun); at != time.Duration(i)*time.Second {
				t.Fatalf("call %d left at %v", i, at)
			}
			defer s.Settle(g, ok)
		}
	})
}

// A wake-up that becomes due before the one that the timer is set for is not
// missed: of two lanes that cool, the one that cools shorter goes first.
func TestEarlierWakeUpShortensTheTimer(t *testing.T) {
	inBubble(t, Config{Machine: machine.Config{Lane: exact}}, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, "long"))
		s.Offer(items(1, "short"))
		begun := time.Now()
		for _, g := range granted(s) {
			wait := time.Second
			if g.Lane == "long" {
				wait = time.Minute
			}
			s.HandOver(g, within(wait))
			synctest.Wait()
		}
		for _, want := range []time.Duration{time.Second, time.Minute} {
			g := <-s.Work()
			if at := time.Since(begun); at != want {
				t.Errorf("%s came back after %v, want %v", g.Lane, at, want)
			}
			s.Settle(g, ok)
		}
		proves(t, finish(s), 2, 4)
	})
}

// hasty is a clock whose timers go off half-way.
type hasty struct{ clockwork.Clock }

type hastyTimer struct{ clockwork.Timer }

func (c hasty) NewTimer(d time.Duration) clockwork.Timer { return hastyTimer{c.Clock.NewTimer(d)} }

func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d/2 + d%2) }

// A tick that comes too early does no harm: the timer is set again, and the wake-up
// comes when it is due.
func TestEarlyTickDoesNoHarm(t *testing.T) {
	cfg := Config{Clock: hasty{clockwork.NewRealClock()}, Machine: machine.Config{Lane: exact}}
	inBubble(t, cfg, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		begun := time.Now()
		s.HandOver(<-s.Work(), within(time.Minute))
		g := <-s.Work()
		if at := time.Since(begun); at != time.Minute {
			t.Errorf("it came back after %v", at)
		}
		s.Settle(g, ok)
		proves(t, finish(s), 1, 2)
	})
}

// A call that broke comes back after its own backoff, woken by the timer alone.
func TestBackoffEndsByItself(t *testing.T) {
	cfg := Config{Machine: machine.Config{Lane: exact, Backoff: limiter.BackoffConfig{Base: time.Minute, Max: time.Minute}}}
	inBubble(t, cfg, func(t *testing.T, c *Coordinator) {
		s := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		g := <-s.Work()
		begun := time.Now()
		s.HandOver(g, broken)
		g = <-s.Work()
		if waited := time.Since(begun); waited < 6*time.Second || waited > time.Minute || g.Item.Waited != waited {
			t.Errorf("back after %v, and says %v", waited, g.Item.Waited)
		}
		s.Settle(g, ok)
		proves(t, finish(s), 1, 2)
	})
}
