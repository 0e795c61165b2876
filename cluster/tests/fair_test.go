package tests

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A job that comes later has its part by weight of a limit that both share, though an hour of work is before it.
func TestALaterJobHasItsShare(t *testing.T) {
	t.Parallel()
	f := occupied(t)
	share := f.laterShare("--weight", "9", "--limit-name", "org")
	if share < 0.8 || share > 0.97 {
		t.Errorf("share %.3f, want 0.9", share)
	}
}

// A job under a limit of its own calls as if it were alone, whatever waits for another limit.
func TestAnotherLimitIsNotHeldUp(t *testing.T) {
	t.Parallel()
	f := occupied(t)
	share := f.laterShare("--limit-name", "another")
	if share < 0.4 || share > 0.6 {
		t.Errorf("share %.3f of what two limits of one height let through, want 0.5", share)
	}
}

// laterShare submits another job, and gives its share of the calls from when it is there.
func (f *fleet) laterShare(flags ...string) float64 {
	f.t.Helper()
	late := writeQuestions(f.t, filepath.Join(f.dir, "late.in.jsonl"), "late", 500)
	submitted := time.Now()
	f.customer(late, "late", flags...)
	first := f.firstCall("late")
	from := first.Add(settling)
	waits(f.hubs[0].over, from.Add(occupiedFor))
	share, calls := f.share("late", from, from.Add(occupiedFor))
	f.t.Logf("its first call after %v; its share of %d calls in %v: %.3f", first.Sub(submitted), calls, occupiedFor, share)
	return share
}

// slowly is a provider that is never in the way, and answers as slowly as most.
var slowly = sim.Config{Latency: sim.Latency{Median: 200 * time.Millisecond, Sigma: 0.3}}

// occupiedFor is the time over which shares are measured.
const occupiedFor = 15 * time.Second

// occupied is a fleet at work on an hour of 20,000 lines.
func occupied(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: slowly, told: []string{"--rpm", "333"}})
	hour := writeQuestions(t, filepath.Join(f.dir, "hour.in.jsonl"), "hour", 20_000)
	f.customer(hour, "hour", "--weight", "1")
	f.firstCall("hour")
	<-f.judge.after(f.judge.asked() + 50)
	return f
}
