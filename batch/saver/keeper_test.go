package saver

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/jonboulle/clockwork"
)

// watched is a saver that reports its writes and syncs, under a clock that stands still.
type watched struct {
	*Saver
	clock   *clockwork.FakeClock
	written chan int   // lines, one message for each write
	syncs   chan error // asks what the next sync is to say
	faults  chan error
}

func watch(t *testing.T) *watched {
	w := &watched{clock: clockwork.NewFakeClock(), written: make(chan int, 1000), syncs: make(chan error), faults: make(chan error, 1)}
	cfg := Config{Clock: w.clock, Written: func(n int) { w.written <- n }, Fault: func(err error) { w.faults <- err }}
	w.Saver, _ = newSaver(t, cfg, func(s *Saver) {
		s.keeper.disk.SyncData = func(*os.File) error { return <-w.syncs }
	})
	return w
}

// save saves n lines for which nobody waits, from number from on, and sees them written.
func (w *watched) save(from, n int) {
	for i := range n {
		w.Save(savedLine(from+i), nil)
	}
	for n > 0 {
		n -= <-w.written
	}
}

// pass lets time pass, once the saver waits for it.
func (w *watched) pass(t *testing.T, d time.Duration) {
	t.Helper()
	must.Do(t, w.clock.BlockUntilContext(t.Context(), 1))
	w.clock.Advance(d)
}

// still reports that no sync is asked for: whatever the saver had to do it has done, as
// a line more is written.
func (w *watched) still(t *testing.T, line int) {
	t.Helper()
	w.Save(savedLine(line), nil)
	select {
	case <-w.written:
	case w.syncs <- nil:
		t.Fatal("a sync that need not be")
	}
}

// A line that comes after a rest is synced at once; those that follow share one sync,
// when 10 ms are over.
func TestLinesShareASyncInTime(t *testing.T) {
	w := watch(t)
	w.save(0, 1)
	w.syncs <- nil
	w.save(1, 10)
	w.still(t, 11)
	w.pass(t, syncEvery)
	w.syncs <- nil
	w.save(12, 1)
	w.still(t, 13)
	go func() { w.syncs <- nil }()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// What a loss of power takes is bounded: so many lines are synced though the time has
// not come.
func TestUnsyncedLinesAreBounded(t *testing.T) {
	w := watch(t)
	w.save(0, 1)
	w.syncs <- nil
	w.save(1, syncLines-2)
	w.still(t, syncLines-1)
	w.save(syncLines, 1)
	w.syncs <- nil
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Who waits for a line is not kept waiting for others.
func TestWhoWaitsIsSyncedAtOnce(t *testing.T) {
	w := watch(t)
	w.save(0, 1)
	w.syncs <- nil
	w.save(1, 1)
	safe := make(chan error, 1)
	w.Save(savedLine(2), func(err error) { safe <- err })
	w.syncs <- nil
	if err := <-safe; err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A sync that fails loses all lines written since the last one: each line is named, by
// Fault at once, and at the end.
func TestFailedSyncTakesAllSinceTheLast(t *testing.T) {
	broken := errors.New("broken")
	w := watch(t)
	w.save(0, 1)
	w.syncs <- nil
	w.save(1, 3)
	w.pass(t, syncEvery)
	w.syncs <- broken
	if err := <-w.faults; !errors.Is(err, broken) {
		t.Errorf("the fault is %v", err)
	}
	w.Save(savedLine(4), nil)
	err := w.Close()
	var unsaved *Error
	if !errors.As(err, &unsaved) || unsaved.Lines != 4 || !errors.Is(err, broken) {
		t.Fatalf("%v", err)
	}
	if got := strings.Join(unsaved.IDs, " "); got != "item-1 item-2 item-3 item-4" {
		t.Errorf("named are %s", got)
	}
}

// A timer of a sync that was made for another reason makes none by itself, and the next
// one is not forgotten for it.
func TestOldTimerMakesNoSync(t *testing.T) {
	w := watch(t)
	w.save(0, 1)
	w.syncs <- nil
	w.save(1, 1) // at 0 ms: its sync is due at 10
	w.pass(t, 4*time.Millisecond)
	safe := make(chan error, 1)
	w.Save(savedLine(2), func(err error) { safe <- err })
	<-w.written
	w.syncs <- nil // and made at 4
	<-safe
	w.clock.Advance(5 * time.Millisecond) // no timer runs: nothing is due
	w.save(3, 1)                          // at 9: due at 14
	w.pass(t, time.Millisecond)
	w.still(t, 4)
	w.pass(t, 4*time.Millisecond)
	w.syncs <- nil
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Fault gets the first fault, and no other: here a write fails, then the sync of the lines
// before it.
func TestOneFaultIsReported(t *testing.T) {
	reported := 0
	k := newKeeper(&writer{name: "out"}, Config{Fault: func(error) { reported++ }})
	k.fail(errors.New("first"))
	k.fail(errors.New("second"))
	if reported != 1 || k.fault.Error() != "first" {
		t.Errorf("%d faults were told; the one that stays is %v", reported, k.fault)
	}
}

// What is kept for another try is bounded: what does not fit is given up and named, and told
// once. What is held already stays, and is saved when there is room.
func TestUnwrittenIsBounded(t *testing.T) {
	var faults []error
	out := &sized{}
	k := newKeeper(&writer{name: "out", out: out}, Config{Fault: func(err error) { faults = append(faults, err) }})
	k.maxHeld = 100
	lost := map[string]error{}
	keep := func(id string, sizes ...int) {
		b := new(bundle)
		for n, size := range sizes {
			id := id + strings.Repeat("'", n)
			b.buf = append(b.buf, make([]byte, size)...)
			b.items = append(b.items, bundleLine{end: len(b.buf), id: id, done: func(err error) { lost[id] = err }})
		}
		k.keep(b)
	}
	keep("a", 60)
	keep("b", 40)
	keep("c", 1)
	keep("d", 1)
	if len(k.unwritten.items) != 2 || len(faults) != 2 || !errors.Is(faults[0], syscall.ENOSPC) || !errors.Is(faults[1], ErrHeld) {
		t.Errorf("%d held, told %v", len(k.unwritten.items), faults)
	}
	out.room = 60 // before a line is lost there is another try
	keep("e", 50, 11, 9)
	if out.size != 60 || len(k.unwritten.buf) != 90 {
		t.Errorf("%d written, %d bytes held", out.size, len(k.unwritten.buf))
	}
	out.room = 100
	k.close()
	var unsaved *Error
	if !errors.As(k.err, &unsaved) || strings.Join(unsaved.IDs, " ") != "c d e' e''" || unsaved.Lines != 4 || out.size != 150 {
		t.Errorf("%v, %d written", k.err, out.size)
	}
	for _, id := range []string{"a", "b", "e"} {
		if err, reported := lost[id]; !reported || err != nil {
			t.Errorf("%s: %t, %v", id, reported, err)
		}
	}
}

// sized takes whole writes for which it has room, and counts their bytes.
type sized struct{ room, size int }

func (s *sized) Write(p []byte) (int, error) {
	n := min(len(p), s.room)
	s.room, s.size = s.room-n, s.size+n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}
