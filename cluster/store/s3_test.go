package store

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
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
		if err := w.wait(t.Context()); err == nil {
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
	go func() { done <- w.wait(t.Context()) }()
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

// A connection on which nothing moves is given up, in both directions; one on which something does is not.
func TestStallingConnections(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	conn := &stallConn{here, 50 * time.Millisecond}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	conn.after = time.Hour
	go func() { _, _ = there.Write([]byte("x")) }()
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	go func() { _, _ = there.Read(make([]byte, 1)) }()
	if n, err := conn.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// The connections that a bucket makes are such.
func TestTransportStalls(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	conn := must.Get(newTransport().DialContext(t.Context(), "tcp", listener.Addr().String()))(t)
	defer conn.Close()
	if s, ok := conn.(*stallConn); !ok || s.after != stallTimeout {
		t.Errorf("%T", conn)
	}
}
