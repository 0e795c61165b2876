package store

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// Waits double from 0.1 s to 5 s, each shorter by up to a half, and after eight tries there is none.
func TestBackoff(t *testing.T) {
	for seed := range uint64(20) {
		clock := clockwork.NewFakeClock()
		w := (&bucket{clock: clock, seed: seed}).backoff()
		for _, most := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000} {
			most *= time.Millisecond
			if waited := waits(t, clock, w, most); waited < most/2 || waited > most {
				t.Errorf("seed %d: %v is not half of %v to all of it", seed, waited, most)
			}
		}
		if err := w.next(t.Context()); err == nil {
			t.Errorf("seed %d: there is an eighth wait", seed)
		}
	}
}

// waits returns the length of the next wait.
func waits(t testing.TB, clock *clockwork.FakeClock, w *backoff, most time.Duration) time.Duration {
	t.Helper()
	watch := &watching{Clock: clock, asked: make(chan time.Duration, 1)}
	w.clock = watch
	done := make(chan error)
	go func() { done <- w.next(t.Context()) }()
	waited := <-watch.asked
	clock.Advance(most)
	if err := <-done; err != nil {
		t.Error(err)
	}
	return waited
}

// watching is a clock that says what timers are made.
type watching struct {
	clockwork.Clock
	asked chan time.Duration
}

func (w *watching) NewTimer(d time.Duration) clockwork.Timer {
	defer func() { w.asked <- d }()
	return w.Clock.NewTimer(d)
}

// Two that were refused together do not come back together.
func TestBackoffByChance(t *testing.T) {
	clock := clockwork.NewFakeClock()
	a, b := (&bucket{clock: clock, seed: newSeed()}).backoff(), (&bucket{clock: clock, seed: newSeed()}).backoff()
	if a.chance.Uint64() == b.chance.Uint64() {
		t.Error("they would")
	}
}
