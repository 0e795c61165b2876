package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

func manyItems(n int) (lines []string) {
	for i := range n {
		lines = append(lines, ask(fmt.Sprint(i)))
	}
	return lines
}

// failing is a disk that takes an hour to say that it is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { time.Sleep(time.Hour); return 0, syscall.ENOSPC }

// stalled runs a file whose results go to out, one call a second, two at once.
func (d *jobFixture) stalled(ctx func(*testing.T) context.Context, out io.Writer) (sums Sums, err error) {
	d.t.Helper()
	d.cfg.Errors, d.cfg.Concurrency, d.cfg.Stdout = d.dir+"/errors", 2, out
	synctest.Test(d.t, func(t *testing.T) {
		d.cfg.Input, _ = File(d.in)
		job := must.Get(Open(d.cfg))(t)
		sums, err = job.Run(ctx(t), func(_ context.Context, it *Item) (provider.Reply, error) {
			time.Sleep(time.Second)
			d.asked <- it.ID
			return d.answer(it)
		})
		if fault := job.Close(); fault != nil {
			t.Error(fault)
		}
	})
	return sums, err
}

// Who waits for a place at a disk that turns out to be full is let in: its call is in
// flight, and finishes.
func TestFullDiskLetsInWhoWaits(t *testing.T) {
	d := newFixture(t, manyItems(20)...)
	sums, err := d.stalled(func(t *testing.T) context.Context { return t.Context() }, failing{})
	if n := len(d.asked); !errors.Is(err, syscall.ENOSPC) || n < 3 || n > 4 || sums.Unsaved != n || sums.NotRun == 0 {
		t.Errorf("%v, %d asked: %+v", err, n, sums)
	}
}

// A run that is abandoned does not wait for a place.
func TestAbandonedRunWaitsForNoPlace(t *testing.T) {
	d := newFixture(t, manyItems(20)...)
	sums, err := d.stalled(func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		return ctx
	}, stalling{time.Hour})
	if !errors.Is(err, context.DeadlineExceeded) || sums.Elapsed > 2*time.Minute || len(d.asked) != 2 {
		t.Errorf("%v, %d asked: %+v", err, len(d.asked), sums)
	}
}

// Where results stand in the order of the input, a call that comes back late finds its way
// in, though all places are taken by answers that wait for it.
func TestWhoseTurnItIsComesIn(t *testing.T) {
	const items = 20
	d := newFixture(t, manyItems(items)...)
	d.cfg.InputOrder = true
	tries := 0
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID != "0" {
			return good, nil
		}
		if tries++; tries == 1 {
			return provider.Reply{}, &provider.Error{Kind: provider.Server, Status: 500}
		}
		return good, nil
	}
	if sums, err := d.stalled(func(t *testing.T) context.Context { return t.Context() }, io.Discard); err != nil || sums.Succeeded != items || len(d.asked) != items+1 {
		t.Errorf("%v, %d asked: %+v", err, len(d.asked), sums)
	}
}

// reorder makes turns that hold at most limit bytes in memory and pass their text to emit.
func reorder(folder string, limit int, emit func([]byte) error) *turns {
	o := newTurns(folder, nil, func(error) {})
	if o.emit = emit; limit > 0 {
		o.limit = limit
	}
	return o
}

// waiting counts the lines that wait for an earlier one.
func waiting(o *turns) int { return len(o.memory) + o.spilled }

// Whatever order lines come in, and however little memory there is, they are given
// in the order of their index, each once, and nothing is left in the folder.
func TestTurns(t *testing.T) {
	for _, limit := range []int{1, 500, 1 << 20} {
		const items = 5000
		r, dir := rand.New(rand.NewPCG(3, 4)), t.TempDir()
		var got []string
		most := 0
		o := reorder(dir, limit, func(line []byte) error { got = append(got, string(line)); return nil })
		indexes := r.Perm(items)
		slices.SortFunc(indexes, func(a, b int) int { return a/700 - b/700 }) // late by 700 at most
		for _, i := range indexes {
			line := strconv.Itoa(i) + strings.Repeat("x", i%50)
			if i%9 == 8 {
				line = "" // it failed: its line is elsewhere
			}
			must.Do(t, o.put(i, []byte(line)))
			o.emitReady()
			if most = max(most, o.buffered); o.buffered > limit {
				t.Fatalf("%d bytes in memory, allowed are %d", o.buffered, limit)
			}
		}
		if err := o.close(); err != nil || waiting(o) != 0 {
			t.Fatalf("%v, %d wait", err, waiting(o))
		}
		at := 0
		for i := range items {
			if i%9 == 8 {
				continue
			}
			if want := strconv.Itoa(i) + strings.Repeat("x", i%50); got[at] != want {
				t.Fatalf("at %d: %s, want %s", at, got[at], want)
			}
			at++
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 || at != len(got) {
			t.Errorf("%d given, left in the folder: %v", len(got), left)
		}
	}
}

// A run that ends early gives what it has, in order; an index that comes twice is
// refused; what emit says comes back.
func TestTurnsAtItsEdges(t *testing.T) {
	var got []string
	o := reorder(t.TempDir(), 3, func(line []byte) error { got = append(got, string(line)); return nil })
	for _, i := range []int{5, 2, 9, 0} {
		must.Do(t, o.put(i, []byte("i"+strconv.Itoa(i))))
		o.emitReady()
	}
	if o.put(0, nil) == nil || o.put(5, nil) == nil {
		t.Error("an index came twice and went unseen")
	}
	if err := o.close(); err != nil || !slices.Equal(got, []string{"i0", "i2", "i5", "i9"}) {
		t.Errorf("%v %v", got, err)
	}
	full := errors.New("full")
	o = reorder(t.TempDir(), 0, func([]byte) error { return full })
	if err := errors.Join(o.put(1, []byte("b")), o.put(0, []byte("a"))); !errors.Is(err, full) {
		t.Error(err)
	}
	if o = reorder(t.TempDir()+"/none", 1, nil); o.put(1, []byte("bb")) == nil {
		t.Error("a folder that is not there went unseen")
	}
}

// A line that cannot be read back is counted as lost, and those behind it are given all the same.
func TestTurnsLoseOnlyWhatCannotBeReadBack(t *testing.T) {
	var got []string
	faults := 0
	o := newTurns(t.TempDir(), func(l journal.Line) { got = append(got, l.ID) }, func(error) { faults++ })
	o.limit = 1 // all but an empty line goes to the file
	for _, i := range []int{1, 2, 3, 5} {
		o.accept(i, &journal.Line{ID: strconv.Itoa(i)})
	}
	if err := o.spill.Truncate(o.end - 1); err != nil { // of the last line a byte is gone
		t.Fatal(err)
	}
	if _, err := o.spill.WriteAt([]byte{'x'}, o.ring[2]+4); err != nil { // and index 2 begins with no brace
		t.Fatal(err)
	}
	o.accept(0, &journal.Line{ID: "0"})
	if want := []string{"0", "1", "3"}; !slices.Equal(got, want) || o.lost != 1 {
		t.Errorf("%v were given, want %v; %d are lost, want 1", got, want, o.lost)
	}
	if err := o.close(); err == nil || faults != 1 || o.lost != 2 || len(got) != 3 {
		t.Errorf("%v: %d faults, %d are lost, want 1 and 2; given are %v", err, faults, o.lost, got)
	}
}

// The spilled file has no name while it is open, so that a killed process leaves none; the
// name is free for others, whose file stays. Its room is used again once nothing is in it.
func TestTurnsSpill(t *testing.T) {
	dir := t.TempDir()
	o := reorder(dir, 1, func([]byte) error { return nil })
	line := []byte(strings.Repeat("x", 1000))
	for i := range 100 {
		must.Do(t, errors.Join(o.put(2*i+1, line), o.put(2*i, line)))
		o.emitReady()
	}
	if info, err := o.spill.Stat(); err != nil || info.Size() > 2*int64(len(line)) {
		t.Errorf("100 lines that waited one by one took %d bytes, %v", info.Size(), err)
	}
	if left, _ := os.ReadDir(dir); runtime.GOOS != "windows" && len(left) > 0 {
		t.Errorf("the open file has a name: %v", left)
	}
	others := o.spill.Name()
	must.Do(t, os.WriteFile(others, []byte("mine"), 0o600))
	if err := o.close(); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(others); runtime.GOOS != "windows" && string(text) != "mine" {
		t.Errorf("another's file holds %q", text)
	}
}
