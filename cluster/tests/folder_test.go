package tests

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
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
