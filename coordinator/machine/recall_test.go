package machine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// taught returns a bed and its memory of the default lane, after some calls were answered and
// then n ended by o.
func taught(t *testing.T, c LaneConfig, n int, o Outcome) (*bed, LaneMemory) {
	t.Helper()
	b := newBed(c, RunConfig{})
	b.offer(40, DefaultPool, 0)
	for range 2 {
		b.wait(time.Second)
		b.end(time.Second, Outcome{Signal: Succeeded})
	}
	for range n {
		for len(b.calls) == 0 {
			b.wait(100 * time.Millisecond)
		}
		b.end(50*time.Millisecond, o)
	}
	k, ok := b.SaveLane(b.now, DefaultPool)
	if !ok || k.Validate() != nil {
		t.Fatalf("%v %v", ok, k.Validate())
	}
	return b, k
}

// recalled is a machine that begins with a memory, so long after it was saved.
func recalled(c LaneConfig, now time.Time, k LaneMemory) *bed {
	b := &bed{Machine: New(Config{Lane: c}), now: now}
	b.Step(b.now, LaneRestored(DefaultPool, k))
	b.Step(b.now, RunOpened(1, RunConfig{}))
	return b
}

func (b *bed) lane() LaneStatus { return b.Status(b.now, 1).Lanes[0] }

// A lane that waits by a server's word waits on in the next machine, says why, and is not
// called before; an hour later it is.
func TestRestoredLaneCoolsOn(t *testing.T) {
	for name, c := range map[string]LaneConfig{"plain": {Law: limiter.Plain}, "model": {}} {
		b, k := taught(t, c, 8, Outcome{Signal: Throttled, Directed: true, RetryAfter: 30 * time.Second})
		next := recalled(c, b.now.Add(10*time.Second), k)
		next.offer(5, DefaultPool, 0)
		s := next.lane()
		if s.Phase != Cooling || s.Reason != ByMemory || len(next.calls) > 0 || s.Until.Sub(next.now) < 19*time.Second || s.Until.Sub(next.now) > 23*time.Second {
			t.Errorf("%s: %v (%v) for %v, %d calls", name, s.Phase, s.Reason, s.Until.Sub(next.now), len(next.calls))
		}
		next.wait(24 * time.Second)
		if len(next.calls) == 0 {
			t.Errorf("%s: nothing was called when the wait was over", name)
		}
		late := recalled(c, b.now.Add(time.Hour), k)
		late.offer(5, DefaultPool, 0)
		if s := late.lane(); s.Phase != Flowing || len(late.calls) == 0 {
			t.Errorf("%s: an hour later: %v, %d calls", name, s.Phase, len(late.calls))
		}
	}
}

// A server that was down is probed, one call at a time, before all are sent.
func TestRestoredBreakerIsProbed(t *testing.T) {
	b, k := taught(t, LaneConfig{}, limiter.DefaultBreakerConsecutive, Outcome{Signal: Failed})
	if k.Breaker.State != "open" {
		t.Fatalf("%+v", k.Breaker)
	}
	next := recalled(LaneConfig{}, b.now.Add(5*time.Second), k)
	next.offer(5, DefaultPool, 0)
	next.wait(time.Second)
	if s := next.lane(); s.Phase != Probing || len(next.calls) != 1 {
		t.Errorf("%v, %d calls", s.Phase, len(next.calls))
	}
	if again, _ := next.SaveLane(next.now, DefaultPool); again.Breaker.State != "half-open" {
		t.Errorf("the breaker is %s", again.Breaker.State)
	}
}

// A lane that is forgotten begins anew when it is used again, also where a memory came
// for it: that was taken up once, or came too late.
func TestMemoryIsUsedOnce(t *testing.T) {
	b, k := taught(t, LaneConfig{Law: limiter.Plain}, 1, Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Minute})
	for _, late := range []bool{false, true} {
		m := &bed{Machine: New(Config{IdleTTL: time.Second, Lane: LaneConfig{Law: limiter.Plain}}), now: b.now.Add(10 * time.Minute)}
		if !late {
			m.Step(m.now, LaneRestored(DefaultPool, k))
		}
		m.Step(m.now, RunOpened(1, RunConfig{}))
		m.offer(1, DefaultPool, 0)
		if late {
			m.Step(m.now, LaneRestored(DefaultPool, k))
		}
		m.Step(m.now, Settled(m.calls[0], Outcome{Signal: Succeeded}))
		m.wait(time.Hour)
		if m.Status(m.now, 1).Known != 0 || len(m.SaveLanes(m.now)) != 0 {
			t.Errorf("late %v: something is still known of a lane that was forgotten", late)
		}
	}
}

// A memory is for a lane's first use, and only once; one that cannot be read is nothing.
func TestMemoryIsForTheFirstUse(t *testing.T) {
	b, k := taught(t, LaneConfig{}, 1, Outcome{Signal: Throttled, Directed: true, RetryAfter: 5 * time.Minute})
	used := newBed(LaneConfig{}, RunConfig{})
	used.now = b.now
	used.offer(1, DefaultPool, 0)
	used.Step(used.now, LaneRestored(DefaultPool, k))
	used.offer(1, DefaultPool, 0)
	if s := used.lane(); s.Phase != Flowing {
		t.Errorf("in use: %v", s.Phase)
	}
	k.Version++
	if s := newer(b.now, k); s.Phase != Flowing || k.Validate() == nil {
		t.Errorf("newer: %v %v", s.Phase, k.Validate())
	}
	k.Version, k.Law.Version = 1, 99
	if s := newer(b.now, k); s.Phase != Flowing || !errors.Is(k.Validate(), limiter.ErrMemory) {
		t.Errorf("newer law: %v %v", s.Phase, k.Validate())
	}
}

func newer(now time.Time, k LaneMemory) LaneStatus {
	b := recalled(LaneConfig{}, now, k)
	b.offer(1, DefaultPool, 0)
	return b.lane()
}

// All lanes of which anything is known are saved: those that were called, and those that
// are still to be restored.
func TestSaveLanes(t *testing.T) {
	b, k := taught(t, LaneConfig{}, 0, Outcome{})
	b.Step(b.now, LaneRestored("later", k))
	if _, ok := b.SaveLane(b.now, "never"); ok {
		t.Error("something is known of a lane that is not there")
	}
	saved := b.SaveLanes(b.now)
	if len(saved) != 2 || saved["later"].Validate() != nil || saved[DefaultPool].Law.Answered == 0 {
		t.Errorf("%+v", saved)
	}
	m := New(Config{Memory: saved})
	if again := m.SaveLanes(b.now); len(again) != 2 {
		t.Errorf("%d lanes are passed on, of two", len(again))
	}
}

// A transition says what the law believed, and the picture of a lane shows it.
func TestBeliefIsReported(t *testing.T) {
	b := newBed(LaneConfig{Limits: limiter.Limits{RPM: 600}}, RunConfig{})
	b.offer(5, DefaultPool, 0)
	if v := b.lane().View; v.Limits[0].Source != limiter.Configured || v.String() != "600 a minute, as told" {
		t.Errorf("%v", v)
	}
	b.now = b.now.Add(time.Second)
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Exhausted, Cause: errors.New("no money")}))
	reported := slices.Clone(b.Ready(b.now).Transitions)
	if len(reported) != 1 {
		t.Fatalf("%v", reported)
	}
	if tr := reported[0]; tr.Belief != "600 a minute, as told" || !strings.HasSuffix(tr.String(), ": no money — 600 a minute, as told") {
		t.Errorf("%q in %v", tr.Belief, tr)
	}
}
