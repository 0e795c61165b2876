package tests

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// blankLines are so many that to read them takes a second of processor time or more; nothing is asked of them.
const blankLines = 100_000_000

// reading is after how much processor time a worker is known to read inputs through: it has nothing else to do.
const reading = 500 * time.Millisecond

// All workers die while one of them reads a job's inputs through. It is read through again by those that come, and each
// item is asked once.
func TestWorkersDieWhileOneReadsAJobThrough(t *testing.T) {
	t.Parallel()
	f := newFleet(t, plan{workers: 3, inFlight: 32, provider: strict(time.Second)})
	q := writePrompts(t, f.dir, "padded", 2*rate)
	pad(t, q.path)
	before := f.processors()
	customer, output := f.customer(q, "padded")
	for !f.readsThrough(before) && customer.running() {
		time.Sleep(10 * time.Millisecond)
	}
	for _, w := range f.workers {
		w.struck = true
		w.freeze() // all at one time, so that no other takes over
	}
	home, err := store.Open(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := job.Load(t.Context(), home, f.jobOf(customer)); err != nil || r.State != job.Indexing {
		t.Logf("they die late: the job is %s (%v)", r.State, err)
	}
	for _, w := range f.workers {
		w.kill()
		w.start()
		w.struck = false
	}
	f.finishes(customer)
	if n := linesOf(t, output) + linesOf(t, strings.TrimSuffix(output, ".jsonl")+".errors.jsonl"); n != q.items {
		t.Errorf("%d lines for %d items", n, q.items)
	}
	f.judged(false)
}

// pad adds blank lines to a file.
func pad(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	some := bytes.Repeat([]byte{'\n'}, 1<<20)
	for left := blankLines; left > 0; left -= len(some) {
		if _, err := file.Write(some[:min(left, len(some))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// readsThrough reports whether a worker has been busy since its processor time was taken.
func (f *fleet) readsThrough(before []time.Duration) bool {
	for i, now := range f.processors()[1:] {
		if now-before[i+1] > reading {
			return true
		}
	}
	return false
}
