package machine

import (
	"errors"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// newAccountBed is a bed whose lanes a and b share an account.
func newAccountBed() *bed {
	of := LaneConfig{Law: limiter.Plain, Account: "x"}
	b := &bed{Machine: New(Config{Lanes: map[string]LaneConfig{"a": of, "b": of}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{}))
	return b
}

// A person vouches for the account of a lane, too. The refusal of a call that a sister lane let go
// before is old news of the account, and stops that lane alone. A call that left later stops all.
func TestOldNewsOfASisterLaneStopsNoAccount(t *testing.T) {
	for name, refusal := range map[string]Outcome{
		"for good":    {Signal: Exhausted, Account: true, Cause: errors.New("no money")},
		"of its kind": {Signal: Exhausted, Account: true, Alike: 401, First: 1, Later: 1, Cause: errors.New("key refused")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newAccountBed()
			b.offer(1, "a", 0)
			b.offer(1, "b", 0)
			b.offer(1, "b", 0)
			for range 2 { // a is refused, and then b, for which nobody has vouched
				b.now = b.now.Add(time.Second)
				b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Exhausted, Account: true}))
				b.decide()
				b.calls = b.calls[1:]
				if b.lanes["a"].phase != Stopped || b.lanes["b"].phase != Stopped {
					t.Fatalf("a is %v, b is %v", b.lanes["a"].phase, b.lanes["b"].phase)
				}
			}
			b.wait(time.Second)
			b.Step(b.now, LaneReset("a"))
			b.wait(time.Second)
			b.Step(b.now, HandedOver(b.calls[0], refusal))
			b.decide()
			if a := b.lanes["a"]; a.phase != Flowing {
				t.Fatalf("a is %v: %v", a.phase, a.cause)
			}
			b.Step(b.now, LaneReset("b"))
			b.wait(time.Second)
			b.calls = nil
			b.offer(1, "b", 0)
			b.wait(time.Second)
			b.Step(b.now, HandedOver(b.calls[0], refusal))
			b.decide()
			if a := b.lanes["a"]; a.phase != Stopped || a.account.cause == nil {
				t.Errorf("a call that left later was refused, and a is %v", a.phase)
			}
		})
	}
}

// The refusal of a call that left a flowing sister lane before the reset stops that lane alone.
func TestAFlowingSisterLaneStopsAlone(t *testing.T) {
	b := newAccountBed()
	b.offer(1, "b", 0)
	b.wait(time.Second)
	b.Step(b.now, LaneReset("a"))
	b.offer(1, "a", 0)
	b.wait(time.Second)
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Exhausted, Account: true}))
	b.decide()
	if a, sister := b.lanes["a"], b.lanes["b"]; a.phase != Flowing || sister.phase != Stopped {
		t.Errorf("a is %v, b is %v", a.phase, sister.phase)
	}
}
