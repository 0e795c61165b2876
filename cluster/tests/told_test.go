package tests

import (
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A limit that a worker was told holds from the first call, also while the job's first ten thousand chunks are being
// queued, and from the first call of a keeper that knows nothing.
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
	if most := perMinute*int(measured.Seconds())/60 + burst; calls > most {
		t.Errorf("%d calls in %v at %d a minute, want at most %d", calls, measured, perMinute, most)
	}
	f.cancels(customer, "many")
}
