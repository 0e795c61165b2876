package promptfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// What becomes of calls and their places while the disk is full or slow, and when calls break.

// filling is a disk that is full at its second write, and has room again after that.
type filling struct{ writes, lines int }

func (f *filling) Write(p []byte) (int, error) {
	if f.writes++; f.writes == 2 {
		return 0, syscall.ENOSPC
	}
	f.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// A disk that is full ends the run, though there is room again before its end: all that
// was answered is saved then, and the sums say why the rest was not run. So they do where the
// caller drains the run as it hears of the disk.
func TestFullDiskThatHasRoomAgain(t *testing.T) {
	for _, drains := range []bool{false, true} {
		t.Run(fmt.Sprint("drains ", drains), func(t *testing.T) { roomAgain(t, drains) })
	}
}

func roomAgain(t *testing.T, drains bool) {
	var lines []string
	for n := range 200 {
		lines = append(lines, ask(fmt.Sprint(n)))
	}
	d, disk := newFixture(t, lines...), new(filling)
	d.cfg.Errors = filepath.Join(d.dir, "errors")
	d.cfg.Stdout, d.cfg.Concurrency = disk, 2
	synctest.Test(t, func(t *testing.T) {
		drain := make(chan struct{})
		d.cfg.Drain = drain
		d.cfg.Watch.Fault = func(error) {
			if drains {
				close(drain)
			}
		}
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		sums, err := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			time.Sleep(time.Second)
			return good, nil
		})
		if fault := job.Close(); !errors.Is(err, batch.ErrDrained) || fault != nil {
			t.Errorf("%v, %v", err, fault)
		}
		if !errors.Is(sums.Full, syscall.ENOSPC) || sums.FilesErr != nil || sums.Unsaved != 0 || sums.Succeeded != disk.lines || disk.lines > 20 {
			t.Errorf("%+v, %d lines", sums, disk.lines)
		}
	})
}

// A disk that fills up when the run was drained already has not drained it.
func TestDrainedBeforeTheDiskWasFull(t *testing.T) {
	d, drain := newFixture(t, ask("a"), ask("b"), ask("c")), make(chan struct{})
	d.cfg.Errors = filepath.Join(d.dir, "errors")
	d.cfg.Stdout, d.cfg.Concurrency, d.cfg.Drain = &filling{writes: 1}, 1, drain
	synctest.Test(t, func(t *testing.T) {
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		sums, _ := job.Run(t.Context(), func(context.Context, *Item) (provider.Reply, error) {
			close(drain)
			time.Sleep(time.Second)
			return good, nil
		})
		if err := job.Close(); err != nil || sums.Full != nil || sums.Succeeded != 1 {
			t.Errorf("%v, %+v", err, sums)
		}
	})
}

// A call that fails gives its place back: with one place, many failures are not the end.
func TestFailedCallsGiveTheirPlaceBack(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	d.answer = func(*Item) (provider.Reply, error) { return provider.Reply{}, batch.Permanent(errors.New("no")) }
	d.cfg.Durability = saver.OS
	if sums, asked, err := d.run(batch.WithAttemptTimeout(time.Minute)); err != nil || asked != "a b c" || sums.Failed != 3 || sums.Elapsed > 30*time.Second {
		t.Errorf("%s, %+v, %v", asked, sums, err)
	}
}

// stalling is a disk that takes its time for each write.
type stalling struct{ d time.Duration }

func (s stalling) Write(p []byte) (int, error) { time.Sleep(s.d); return len(p), nil }

// A disk that stalls is not the provider's fault: no call is cut off for it, no latency
// counts it, and no cooldown follows.
func TestStallIsNotTheProviders(t *testing.T) {
	var lines []string
	for n := range 20 {
		lines = append(lines, ask(fmt.Sprint(n)))
	}
	d := newFixture(t, lines...)
	d.cfg.Errors = filepath.Join(d.dir, "errors")
	d.cfg.Stdout, d.cfg.Concurrency = stalling{10 * time.Minute}, 2
	d.cfg.Watch.Ended = func(r *Result) {
		if r.Latency != time.Second || r.Calls != 1 {
			t.Errorf("%s: latency %v, %d calls, %v", r.Item.ID, r.Latency, r.Calls, r.Err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		sums, err := job.Run(t.Context(), func(ctx context.Context, _ *Item) (provider.Reply, error) {
			select {
			case <-time.After(time.Second):
				return good, nil
			case <-ctx.Done():
				return provider.Reply{}, ctx.Err()
			}
		}, batch.WithAttemptTimeout(time.Minute))
		if err := errors.Join(err, job.Close()); err != nil || sums.Succeeded != len(lines) || sums.Counters.Cooldowns != 0 {
			t.Errorf("%+v, %v", sums, err)
		}
		if sums.Elapsed < 10*time.Minute {
			t.Errorf("nothing has stalled: %v", sums.Elapsed)
		}
	})
}

// Watch.Written counts each line that is written, of either file, and bad ones too.
func TestWrittenIsReported(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), "{", ask("c"))
	d.cfg.SkipBad = true
	written := make(chan int, 4)
	d.cfg.Watch.Written = func(lines int) { written <- lines }
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "b" {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid}
		}
		return good, nil
	}
	sums, _, err := d.run()
	close(written)
	all := 0
	for n := range written {
		all += n
	}
	if err != nil || sums.Failed != 1 || sums.Skipped != 1 || all != 4 {
		t.Errorf("%d lines, %+v, %v", all, sums, err)
	}
}

// A call that panics gives its place back, as one that fails.
func TestPanicsGiveTheirPlaceBack(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	d.answer = func(*Item) (provider.Reply, error) { panic("no") }
	if sums, asked, err := d.run(); err != nil || asked != "a b c" || sums.Kinds["panic"] != 3 {
		t.Errorf("%s, %+v, %v", asked, sums, err)
	}
}

// fullUntilTheEnd is a disk that is full from its second write on, until all calls have ended.
type fullUntilTheEnd struct {
	over          chan struct{}
	writes, lines int
}

func (f *fullUntilTheEnd) Write(p []byte) (int, error) {
	select {
	case <-f.over:
	default:
		if f.writes++; f.writes > 1 {
			return 0, syscall.ENOSPC
		}
	}
	f.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

// Large answers of all calls in flight are kept while the disk is full, and saved once it has
// room. Where no more can be kept, no further call is made: that is no full disk to wait for.
func TestFullDiskKeepsLargeAnswers(t *testing.T) {
	const items = 78
	d, disk := newFixture(t, manyItems(items)...), &fullUntilTheEnd{over: make(chan struct{})}
	d.cfg.Errors, d.cfg.Stdout, d.cfg.Concurrency, d.cfg.Checked = filepath.Join(d.dir, "errors"), disk, items, true
	synctest.Test(t, func(t *testing.T) {
		disk.over = make(chan struct{})
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		all := time.Now().Add(time.Hour) // when each is in flight
		sums, _ := job.Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) {
			time.Sleep(time.Until(all.Add(time.Duration(it.Line) * time.Second)))
			if it.Line == items { // the others have answered, and the disk was full
				close(disk.over)
			}
			reply := good
			reply.Body = longer
			return reply, nil
		}, batch.WithAttemptTimeout(0))
		if fault := job.Close(); fault != nil || sums.Unsaved != 0 || sums.Succeeded != items || disk.lines != items {
			t.Errorf("%v, %+v, %d lines", fault, sums, disk.lines)
		}
	})
	if DiskFull(fmt.Errorf("saver: %w", saver.ErrHeld)) {
		t.Error("calls go on where their answers cannot be kept")
	}
}
