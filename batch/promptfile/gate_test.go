package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
func (d *desk) stalled(ctx func(*testing.T) context.Context, out io.Writer) (sums Sums, err error) {
	d.t.Helper()
	d.cfg.Errors, d.cfg.Concurrency, d.cfg.Stdout = d.dir+"/errors", 2, out
	synctest.Test(d.t, func(t *testing.T) {
		d.cfg.Input, _ = File(d.in)
		job, fault := Open(d.cfg)
		if fault != nil {
			t.Fatal(fault)
		}
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
	d := newDesk(t, manyItems(20)...)
	sums, err := d.stalled(func(t *testing.T) context.Context { return t.Context() }, failing{})
	if n := len(d.asked); !errors.Is(err, syscall.ENOSPC) || n < 3 || n > 4 || sums.Unsaved != n || sums.NotRun == 0 {
		t.Errorf("%v, %d asked: %+v", err, n, sums)
	}
}

// A run that is abandoned does not wait for a place.
func TestAbandonedRunWaitsForNoPlace(t *testing.T) {
	d := newDesk(t, manyItems(20)...)
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
	d := newDesk(t, manyItems(items)...)
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
