package batch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

var errSlow = errors.New("slow")

func newLeash(t *testing.T, clock clockwork.Clock) *leash {
	l := &leash{clock: clock, parent: t.Context()}
	t.Cleanup(l.drop)
	return l
}

// The timer of one call never cuts off the next: where it fired as its call ended,
// the next has a context of its own.
func TestLateTimerDoesNotCutOffTheNextCall(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	first := l.take(time.Second, errSlow)
	clock.Advance(time.Second) // first: the timer fires; second: the call ends, too late to stop it
	<-first.Done()
	l.put(time.Second)
	second := l.take(time.Second, errSlow)
	if second.Err() != nil || second == first {
		t.Fatalf("the second call begins with a context that ended: %v", context.Cause(second))
	}
	l.put(time.Second)
}

// A call is ended after its own limit, counted from its own start, with the cause
// that was given for it.
func TestEachCallHasItsOwnTime(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.take(3*time.Second, errSlow)
	clock.Advance(2 * time.Second)
	l.put(3 * time.Second)
	ctx := l.take(3*time.Second, errSlow)
	clock.Advance(2 * time.Second)
	if ctx.Err() != nil {
		t.Fatal("the second call was ended by the first one's timer")
	}
	clock.Advance(time.Second)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errSlow) {
		t.Errorf("ended with %v", context.Cause(ctx))
	}
	l.put(3 * time.Second)
	l.take(time.Second, errSlow)
	l.put(time.Second)
	other := errors.New("other")
	ctx = l.take(time.Second, other)
	clock.Advance(time.Second)
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), other) {
		t.Errorf("ended with %v, want %v", context.Cause(ctx), other)
	}
	l.put(time.Second)
}

// Without a limit no timer runs, and one that ran for the call before is stopped.
func TestCallWithoutLimitIsNotEnded(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.take(time.Second, nil)
	l.put(time.Second)
	ctx := l.take(0, nil)
	clock.Advance(time.Hour)
	if ctx.Err() != nil {
		t.Errorf("ended: %v", context.Cause(ctx))
	}
	l.put(0)
}

// What a careless function left on its context is let go after leashCalls calls.
func TestLeashLetsGo(t *testing.T) {
	l := newLeash(t, clockwork.NewFakeClock())
	child, cancel := context.WithCancel(l.take(time.Second, errSlow))
	defer cancel()
	l.put(time.Second)
	for range leashCalls - 1 {
		l.take(time.Second, errSlow)
		l.put(time.Second)
	}
	if child.Err() != nil {
		t.Error("let go too early: the price is paid more often than it need be")
	}
	l.take(time.Second, errSlow)
	if child.Err() == nil {
		t.Error("still held")
	}
	l.put(time.Second)
}

// Calls on one leash allocate next to nothing.
func TestLeashIsShared(t *testing.T) {
	l := newLeash(t, clockwork.NewRealClock())
	allocs := testing.AllocsPerRun(10*leashCalls, func() {
		l.take(time.Hour, errSlow)
		l.put(time.Hour)
	})
	if allocs >= 1 {
		t.Errorf("%v allocations a call", allocs)
	}
}
