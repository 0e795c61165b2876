package promptfile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// lender answers at length out of a room for one answer, which Done gives back.
type lender struct {
	room chan struct{}
	slow string // the item whose answer comes last
	lent int    // answers that gave their room back
	body []byte
}

// long is more than a saver takes without looking at it, longer a quarter of a bundle.
var long, longer = answerOf(100_000), answerOf(1 << 20)

func answerOf(n int) []byte { return []byte(`{"a":"` + strings.Repeat("a", n) + `"}`) }

func (l *lender) call(ctx context.Context, it *Item) (provider.Reply, error) {
	if it.ID == l.slow {
		time.Sleep(time.Second) // others come first; less than a call may take
	}
	select {
	case l.room <- struct{}{}:
	case <-ctx.Done():
		return provider.Reply{}, ctx.Err()
	}
	reply := good
	reply.Body = l.body
	reply.Done = func() { l.lent++; <-l.room }
	return reply, nil
}

// lend runs a file of that many items over a room for one answer.
func (d *desk) lend(l *lender, items int) Sums {
	d.t.Helper()
	var sums Sums
	synctest.Test(d.t, func(t *testing.T) {
		l.room = make(chan struct{}, 1)
		job := d.open()
		var err error
		sums, err = job.Run(t.Context(), l.call)
		if fault := job.Close(); err != nil || fault != nil {
			t.Error(err, fault)
		}
	})
	if l.lent != items {
		d.t.Errorf("%d of %d answers gave their room back", l.lent, items)
	}
	return sums
}

// Each answer gives its room back as soon as its line is taken over, so where there is
// room for one all come through; also where they wait for the first in the input, which
// comes last and finds no room but what they give back.
func TestAnswersGiveTheirRoomBack(t *testing.T) {
	const items = 20
	for _, ordered := range []bool{false, true} {
		d := newDesk(t, manyItems(items)...)
		d.cfg.InputOrder, d.cfg.Concurrency = ordered, 8
		if sums := d.lend(&lender{slow: "0", body: long}, items); sums.Succeeded != items {
			t.Errorf("ordered: %t: %+v", ordered, sums)
		}
		if p := d.progress(); p.Done != items {
			t.Errorf("ordered: %t: %+v", ordered, p)
		}
	}
}

// halting is a disk that stands still until it is let go.
type halting struct{ free chan struct{} }

func (h halting) Write(p []byte) (int, error) { <-h.free; return len(p), nil }

// While the disk stands still, answers keep their room but for some megabytes that are on
// their way to it.
func TestAnswersKeepTheirRoomWhileTheDiskStalls(t *testing.T) {
	const items = 30
	d := newDesk(t, manyItems(items)...)
	d.cfg.Errors, d.cfg.Concurrency, d.cfg.Checked = d.dir+"/errors", items, true
	synctest.Test(t, func(t *testing.T) {
		disk, l := halting{make(chan struct{})}, &lender{room: make(chan struct{}, items), body: longer}
		d.cfg.Stdout = disk
		d.cfg.Input, _ = File(d.in)
		job, err := Open(d.cfg)
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan error)
		go func() { _, err := job.Run(t.Context(), l.call); over <- err }()
		time.Sleep(time.Minute)
		if held := len(l.room); held < items-10 || held == items {
			t.Errorf("%d of %d answers have their room still", held, items)
		}
		close(disk.free)
		if err := <-over; err != nil || len(l.room) > 0 || l.lent != items {
			t.Errorf("%v, %d of %d gave their room back", err, l.lent, items)
		}
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	})
}
