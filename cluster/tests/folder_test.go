//go:build linux

package tests

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
)

// A job whose folder is full for seconds now and then comes to its end while workers are killed.
// Nothing is lost or written twice, and no saved question is asked again.
func TestTheFolderHasABadDay(t *testing.T) {
	t.Parallel()
	chance := seeded(t)
	length := usually(12*time.Second, time.Hour)
	f := unstarted(t, plan{workers: 3, inFlight: 64, provider: strict(5 * time.Second)})
	disk := newSmallDisk(t, f.home)
	f.command, f.savesLate = command(t), true
	f.launch()
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "folder", int(length.Seconds()*rate))
	customer, output := f.customer(q, "out", "--chunk-lines", "150")
	f.begun(rate, customer)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		disk.fillNowAndThen(chance.Uint64(), stop)
	}()
	end := sync.OnceFunc(func() {
		close(stop)
		<-over
	})
	t.Cleanup(end) // the test may end before its end
	f.weather(schedule(rand.New(rand.NewPCG(chance.Uint64(), 0)), length, habit{aWorker, killing, often, brief}), customer.over)
	f.finishes(customer)
	end()
	f.delivers(q, customer, output)
	f.judged(false)
	if disk.filled == 0 || f.struck() == 0 {
		t.Errorf("the disk was full %d times, and %d workers were killed: the day was not bad", disk.filled, f.struck())
	}
}

// A smallDisk is a file system of its own, which can be full.
type smallDisk struct {
	t      *testing.T
	dir    string
	filled int
}

// diskSize is so much that the fleet's job has room in it, and little enough to be filled in no time.
const diskSize = "64m"

// newSmallDisk makes one in a folder. That needs the right to mount.
func newSmallDisk(t *testing.T, dir string) *smallDisk {
	t.Helper()
	if err := syscall.Mount("headrace", dir, "tmpfs", 0, "size="+diskSize); err != nil {
		t.Skipf("no disk can be made that would be full: %v: whoever may mount file systems can run this", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil { // those who have files open are killed later
			t.Errorf("%s stays: %v", dir, err)
		}
	})
	return &smallDisk{t: t, dir: dir}
}

const (
	fullEvery = 6 * time.Second
	fullFor   = 3 * time.Second
)

// fillNowAndThen fills the disk, and frees it again, until stop is closed.
func (d *smallDisk) fillNowAndThen(seed uint64, stop <-chan struct{}) {
	chance := rand.New(rand.NewPCG(seed, 0))
	ballast := filepath.Join(d.dir, ".ballast")
	for {
		waits(stop, time.Now().Add(around(chance, fullEvery-fullFor)))
		select {
		case <-stop:
			return
		default:
		}
		if err := fill(ballast); !errors.Is(err, syscall.ENOSPC) {
			d.t.Errorf("the disk is not full: %v", err)
		}
		d.filled++
		waits(stop, time.Now().Add(around(chance, fullFor)))
		if err := os.Remove(ballast); err != nil {
			d.t.Error(err)
		}
	}
}

// fill writes to a file until nothing more goes in, byte by byte at the end.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for block := make([]byte, 1<<20); ; {
		if _, err = file.Write(block); err == nil {
			continue
		}
		if len(block) == 1 {
			return err
		}
		block = block[:1]
	}
}

// foul is a bucket on a bad day: it is busy, loses answers, lets connections hang, lists slowly, and is
// away for seconds now and then.
func foul(seed uint64) s3test.Weather {
	return s3test.Weather{
		Seed: seed, Busy: 0.05, Broken: 0.04, Unheard: 0.08, Hanging: 0.01, Hang: 3 * time.Second, SlowList: 400 * time.Millisecond,
		Every: 15 * time.Second, Away: 5 * time.Second,
	}
}

// A job whose home and input are in a bucket comes to its end on the bucket's bad day, while workers are
// killed. Nothing is lost or written twice, and no saved question is asked again.
func TestTheBucketHasABadDay(t *testing.T) {
	t.Parallel()
	chance := seeded(t)
	length := usually(12*time.Second, time.Hour)
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: strict(5 * time.Second), bucket: true})
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "bucket", int(length.Seconds()*rate))
	customer, output := f.customer(q, "out", "--chunk-lines", "150")
	f.begun(rate, customer)
	f.bucket.Fault(foul(chance.Uint64()).From(time.Now()))
	f.weather(schedule(chance, length, habit{aWorker, killing, often, brief}), customer.over)
	f.delivers(q, customer, output)
	f.judged(false)
	f.oneWroteEach()
	for name, fault := range map[string]s3test.Fault{"too busy": s3test.SlowDown, "a lost answer": s3test.LoseAnswer, "a lost request": s3test.LoseAsk} {
		if f.bucket.Faults(fault) == 0 {
			t.Errorf("there was no request with %s: the day was not bad", name)
		}
	}
	if f.struck() == 0 {
		t.Error("nobody was killed")
	}
}

// oneWroteEach fails the test if the bucket let two write what only one may: parts, records of jobs, epochs.
func (f *fleet) oneWroteEach() {
	f.t.Helper()
	parts := 0
	for name, times := range f.bucket.Created() {
		switch {
		case strings.Contains(name, "/parts/"):
			parts++
		case strings.Contains(name, "/job-"), strings.Contains(name, "/epoch-"):
		default:
			continue
		}
		if times > 1 {
			f.t.Errorf("%s was written %d times", name, times)
		}
	}
	if parts == 0 {
		f.t.Error("no part was written to the bucket")
	}
	f.t.Logf("%d parts; %d requests", parts, f.bucket.Requests())
}

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
