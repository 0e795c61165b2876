package tests

import (
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A limit that a worker's user sets holds from the first call, also while the job's first ten thousand chunks are being
// queued. It also holds from the first call of a keeper that knows nothing.
func TestToldLimitHoldsFromTheFirstCall(t *testing.T) {
	t.Parallel()
	const perMinute, burst = 60, 2
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: sim.Config{Latency: sim.Latency{Median: 50 * time.Millisecond}}, told: []string{"--rpm", "60"}})
	q := writePrompts(t, f.dir, "many", 500_000)
	customer, _ := f.customer(q, "out", "--chunk-lines", "50")
	first := f.firstCall("many")
	measured := 25 * time.Second
	waits(customer.over, first.Add(measured))
	calls := 0
	for _, c := range f.judge.book() {
		if c.at.Before(first.Add(measured)) {
			calls++
		}
	}
	t.Logf("%d calls in %v", calls, measured)
	late := f.late.allowance() // the first call may have come so late
	if most := perMinute*int((measured+late).Seconds())/60 + burst; calls > most {
		t.Errorf("%d calls in %v at %d a minute, want at most %d", calls, measured, perMinute, most)
	}
	f.cancels(customer, "many")
}

// A limit that is set before any worker is there is kept: it holds from the first call, whatever the worker's own setting.
func TestALimitIsSetWithoutAWorker(t *testing.T) {
	t.Parallel()
	const perMinute, burst = 60, 2
	f := newFleet(t, plan{inFlight: 64, provider: sim.Config{Latency: sim.Latency{Median: 50 * time.Millisecond}}, told: []string{"--rpm", "60000"}})
	text, code := f.run("limits", "set", "org", "--rpm", "60", "--cluster", f.url())
	if want := "limit org is set, and kept in the store\n"; code != 0 || text != want {
		t.Fatalf("exit %d: %q, want %q", code, text, want)
	}
	w := f.newWorker("late")
	f.workers = append(f.workers, w)
	w.start()
	customer, _ := f.customer(writePrompts(t, f.dir, "few", 5000), "out")
	first := f.firstCall("few")
	measured := 15 * time.Second
	waits(customer.over, first.Add(measured))
	calls := 0
	for _, c := range f.judge.book() {
		if c.at.Before(first.Add(measured)) {
			calls++
		}
	}
	t.Logf("%d calls in %v", calls, measured)
	late := f.late.allowance() // the first call may have come so late
	if most := perMinute*int((measured+late).Seconds())/60 + burst; calls > most {
		t.Errorf("%d calls in %v at %d a minute, want at most %d", calls, measured, perMinute, most)
	}
	f.cancels(customer, "few")
}
