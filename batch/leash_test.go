package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
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
	l.put(time.Second, false)
	second := l.take(time.Second, errSlow)
	if second.Err() != nil || second == first {
		t.Fatalf("the second call begins with a context that ended: %v", context.Cause(second))
	}
	l.put(time.Second, false)
}

// A call is ended after its own limit, counted from its own start, with the cause
// that was given for it.
func TestEachCallHasItsOwnTime(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.take(3*time.Second, errSlow)
	clock.Advance(2 * time.Second)
	l.put(3*time.Second, false)
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
	l.put(3*time.Second, false)
	l.take(time.Second, errSlow)
	l.put(time.Second, false)
	other := errors.New("other")
	ctx = l.take(time.Second, other)
	clock.Advance(time.Second)
	if <-ctx.Done(); !errors.Is(context.Cause(ctx), other) {
		t.Errorf("ended with %v, want %v", context.Cause(ctx), other)
	}
	l.put(time.Second, false)
}

// Without a limit no timer runs, and one that ran for the call before is stopped.
func TestCallWithoutLimitIsNotEnded(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	l.take(time.Second, nil)
	l.put(time.Second, false)
	ctx := l.take(0, nil)
	clock.Advance(time.Hour)
	if ctx.Err() != nil {
		t.Errorf("ended: %v", context.Cause(ctx))
	}
	l.put(0, false)
}

// What a careless function left on its context is let go after leashCalls calls.
func TestLeashLetsGo(t *testing.T) {
	l := newLeash(t, clockwork.NewFakeClock())
	child, cancel := context.WithCancel(l.take(time.Second, errSlow))
	defer cancel()
	l.put(time.Second, false)
	for range leashCalls - 1 {
		l.take(time.Second, errSlow)
		l.put(time.Second, false)
	}
	if child.Err() != nil {
		t.Error("let go too early: the price is paid more often than it need be")
	}
	l.take(time.Second, errSlow)
	if child.Err() == nil {
		t.Error("still held")
	}
	l.put(time.Second, false)
}

// Calls on one leash allocate next to nothing.
func TestLeashIsShared(t *testing.T) {
	l := newLeash(t, clockwork.NewRealClock())
	allocs := testing.AllocsPerRun(10*leashCalls, func() {
		l.take(time.Hour, errSlow)
		l.put(time.Hour, false)
	})
	if allocs >= 1 {
		t.Errorf("%v allocations a call", allocs)
	}
}

// What a failed call left is let go with it, and a call that did not return leaves no
// timer behind.
func TestLeashEndsWithAFailure(t *testing.T) {
	clock := clockwork.NewFakeClock()
	l := newLeash(t, clock)
	ctx := l.take(time.Second, errSlow)
	l.put(time.Second, true)
	if ctx.Err() == nil {
		t.Error("what a failed call left is still held")
	}
	ctx = l.take(time.Second, errSlow)
	l.drop()
	clock.Advance(time.Second)
	if errors.Is(context.Cause(ctx), errSlow) {
		t.Error("the timer of a call that is over has fired")
	}
}

// A call that ran out of time leaves nothing of that to the next call of its worker.
// In a bubble, as on a busy machine a millisecond is over before a call has begun.
func TestNextCallBeginsAlive(t *testing.T) {
	synctest.Test(t, nextCallBeginsAlive)
}

func nextCallBeginsAlive(t *testing.T) {
	dead := 0
	call := func(ctx context.Context, n int) (int, error) {
		if ctx.Err() != nil {
			dead++
		}
		if n%2 == 0 {
			<-ctx.Done()
		}
		return n, nil // an answer all the same: it came as the time ran out
	}
	for r, err := range Stream(t.Context(), numbers(6), call, WithPlainLaw(), WithConcurrency(1), WithAttemptTimeout(time.Millisecond)) {
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
	}
	if dead > 0 {
		t.Errorf("%d calls began with a context that had ended", dead)
	}
}
