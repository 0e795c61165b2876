package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// order offers n items to each of some (run, pool) pairs that share the lane "x",
// which takes one call at a time, and gives the order in which they are served.
func order(n int, runs ...RunConfig) string {
	m := New(Config{Lane: LaneConfig{Law: limiter.Plain, Window: 1}})
	now := storyStart
	for i, c := range runs {
		m.Step(now, RunOpened(RunID(i+1), c))
		for _, p := range c.Pools {
			for range n {
				m.Step(now, Offered(RunID(i+1), []*Item{{Pool: p.Name}}))
			}
		}
	}
	var served []string
	for grants := m.Ready(now).Grants; len(grants) > 0; grants = m.Ready(now).Grants {
		g := grants[0]
		served = append(served, fmt.Sprintf("%d%s", g.Run, g.Item.Pool))
		now = now.Add(time.Second)
		m.Step(now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second}))
	}
	return strings.Join(served, " ")
}

func drawingOnX(names ...string) (c RunConfig) {
	for _, name := range names {
		c.Pools = append(c.Pools, PoolConfig{Name: name, Lanes: []string{"x"}})
	}
	return c
}

// Runs that share a lane take turns, where it lets one call go at a time. Else the
// first would be served to its end before the second began.
func TestRunsTakeTurns(t *testing.T) {
	if got, want := order(3, drawingOnX("a"), drawingOnX("a"), drawingOnX("a")), "1a 2a 3a 1a 2a 3a 1a 2a 3a"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

// Pools of one run that share a lane take turns too.
func TestPoolsTakeTurns(t *testing.T) {
	if got, want := order(3, drawingOnX("a", "b", "c")), "1a 1b 1c 1a 1b 1c 1a 1b 1c"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

// A lane is not forgotten while an item that may come back to it is in flight on
// another: the item would come back to a pool that is closed.
func TestLaneOfAPoolInUseIsKept(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"first", "second"}, Tiers: each(2)}}})
	b.offer(1, "p", 0)
	b.wait(2 * DefaultIdleTTL)
	if b.Machine.lanes["second"] == nil {
		t.Fatal("the fallback was forgotten")
	}
	b.end(time.Second, Outcome{Signal: Throttled})
	if g := b.calls[0]; g.Lane != "second" {
		t.Errorf("the refused item went to %q, want the fallback", g.Lane)
	}
}

// A run is stranded when it has lost the lanes of all its pools, not when it has
// lost those that it happened to use first.
func TestPoolThatWasNotUsedYetIsALaneLeft(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{Pools: []PoolConfig{{Name: "p", Lanes: []string{"x"}}, {Name: "q", Lanes: []string{"y"}}}})
	b.offer(1, "p", 0)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Exhausted}))
	if ready := b.decide(); len(ready.Stranded) > 0 {
		t.Error("stranded, and pool q was never tried")
	}
	b.offer(1, "q", 0)
	b.Step(b.now, Settled(b.calls[1], Outcome{Signal: Exhausted}))
	if ready := b.decide(); len(ready.Stranded) != 1 || !errors.Is(ready.Stranded[0].Cause, ErrLaneStopped) {
		t.Errorf("stranded: %v, want once, as no lane is left", ready.Stranded)
	}
}

// Who resets a lane vouches for it: an old call that says that the account is empty
// does not stop it again.
func TestResetOutlivesOldNews(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(2, "", 0)
	b.end(time.Second, Outcome{Signal: Exhausted})
	b.Step(b.now, LaneReset(DefaultPool))
	b.end(time.Second, Outcome{Signal: Exhausted})
	if got := b.Status(b.now, 1).Lanes[0].Phase; got != Flowing {
		t.Errorf("the lane is %v", got)
	}
	g := b.calls[len(b.calls)-1]
	b.Step(b.now, HandedOver(g, Outcome{Signal: Exhausted}))
	if got := b.Status(b.now, 1).Lanes[0].Phase; got != Stopped {
		t.Errorf("new news: the lane is %v", got)
	}
}

// Calls that were refused in a wave do not refill the bucket that the first refusal
// emptied: the server said that nothing is left, and that included them.
func TestStragglersRefillNothingThatWasEmptied(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}, RunConfig{})
	b.offer(50, "", 0)
	for range 50 {
		b.end(0, Outcome{Signal: Throttled})
	}
	if got := b.Status(b.now, 1).Lanes[0].Level.Requests; got != 0 {
		t.Errorf("%v requests left", got)
	}
}

// An item that says nothing of requests is one request.
func TestCallIsOneRequest(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60}}, RunConfig{})
	b.offer(5, "", 0)
	if got := len(b.calls); got != 1 {
		t.Errorf("%d calls left at 60 a minute, want 1", got)
	}
}

// A latency that was not measured teaches nothing about how long a refusal takes.
func TestUnmeasuredLatencyIsNoLatency(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(2, "", 0)
	b.end(time.Second, Outcome{Signal: Throttled})
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Throttled}))
	l := b.lanes[DefaultPool]
	if got := l.probeWait(); got != 2*time.Second {
		t.Errorf("a probe has passed after %v, want twice the one second that a refusal took", got)
	}
}

// Deadlines do not keep ended items alive.
func TestDeadlinesOfWhatIsOverAreForgotten(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{ItemTimeout: time.Hour})
	b.offer(10, "", 0)
	for range 10 {
		b.end(0, Outcome{})
	}
	for range 10 {
		b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
		b.calls = b.calls[1:]
	}
	if got := b.expiry.len(); got != 0 {
		t.Errorf("%d deadlines are kept", got)
	}
	if wake := b.decide().WakeAt; !wake.IsZero() {
		t.Errorf("and the machine wants to be woken for them at %v", wake)
	}
}

// A run without a ceiling of its own has the default one.
func TestConcurrency(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
	b.offer(2*DefaultConcurrency, "", 0)
	if got := len(b.calls); got != DefaultConcurrency {
		t.Errorf("%d calls, want %d", got, DefaultConcurrency)
	}
}
