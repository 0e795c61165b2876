//go:build linux

package tests

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Many workers whose calls take no time: what the cluster itself takes. In an hour two hundred,
// in CI a dozen, for which the same is said a worker.
func TestManyWorkers(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	workers, length, limit := usually(12, 200), usually(20*time.Second, lengthSaid()), usually(200.0, 500.0)
	f := newFleet(t, plan{workers: workers, inFlight: 32, provider: sim.Config{RPM: limit * 60, Burst: 5 * time.Second, Headers: true}})
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "many", int(limit*length.Seconds()))
	customer, output := f.customer(q, "out")
	f.begun(int(limit), customer)
	hub, keeper := f.hubs[0].process, f.keeper()
	if keeper == nil {
		t.Fatal("nobody keeps the limit")
	}
	f.reaches(q.items/3, customer)
	early := f.memories()
	before := f.processors()
	since := time.Now()
	f.reaches(q.items*9/10, customer)
	took := time.Since(since)
	spent := f.processors()
	for i := range spent {
		spent[i] -= before[i]
	}
	late := f.memories()
	keepers := spent[1+slices.Index(f.workers, keeper)] - median(spent[1:])
	t.Logf("%d workers, %.0f calls/s: of a core the hub took %.1f %%, a worker %.1f %%, keeping %.1f %%; memory of the hub %d MB, of the keeper %d MB",
		workers, limit, percent(spent[0], took), percent(median(spent[1:]), took), percent(keepers, took), hub.memory()>>20, keeper.memory()>>20)
	for i := range late {
		if late[i] > early[i]*3/2+32<<20 {
			t.Errorf("process %d had %d MB and has %d", i, early[i]>>20, late[i]>>20)
		}
	}
	if m := hub.memory(); m > 150<<20 {
		t.Errorf("the hub has %d MB, want 150 at most", m>>20)
	}
	if m := keeper.memory(); m > 100<<20 {
		t.Errorf("the keeper's process has %d MB, want 100 at most", m>>20)
	}
	f.delivers(q, customer, output)
	f.judged(false)
}

// reaches waits for so many calls, or the end.
func (f *fleet) reaches(calls int, customer *process) {
	select {
	case <-f.judge.after(calls):
	case <-customer.over:
	}
}

// memories and processors are of the hub and then of each worker.
func (f *fleet) memories() (all []int64) {
	all = append(all, f.hubs[0].memory())
	for _, w := range f.workers {
		all = append(all, w.memory())
	}
	return all
}

func (f *fleet) processors() (all []time.Duration) {
	all = append(all, f.hubs[0].processor())
	for _, w := range f.workers {
		all = append(all, w.processor())
	}
	return all
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func percent(part, whole time.Duration) float64 { return 100 * part.Seconds() / whole.Seconds() }
