package node

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
)

// farEpoch is one that no keeper has ever had.
const farEpoch = 1 << 62

// A counted store counts how often it is listed.
type counted struct {
	store.Store
	lists int
}

func (c *counted) List(ctx context.Context, prefix, from string) iter.Seq2[store.Object, error] {
	c.lists++
	return c.Store.List(ctx, prefix, from)
}

// An epoch is believed once the store has it, and costs no look from then on. One that the store does not have costs one
// look in each interval, however many messages name it.
func TestAnEpochIsBelievedIfTheStoreHasIt(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	clock, looks := clockwork.NewFakeClock(), &counted{Store: s}
	n := &Node{clock: clock, home: looks, epochs: newEpochs()}
	says := func(epoch uint64, want bool, lists int) {
		t.Helper()
		for range 100 {
			if n.believes(t.Context(), epoch) != want || looks.lists != lists {
				t.Fatalf("epoch %d is believed: %v, want %v; %d looks, want %d", epoch, !want, want, looks.lists, lists)
			}
		}
	}
	says(0, true, 0)
	says(farEpoch, false, 1)
	if err := store.CreateBytes(t.Context(), s, numbered(epochPrefix, 3), nil); err != nil {
		t.Fatal(err)
	}
	says(3, false, 1)
	clock.Advance(believeEvery)
	says(3, true, 2)
	says(2, true, 2)
	says(farEpoch, false, 2)
	clock.Advance(believeEvery)
	says(farEpoch, false, 3)
}

// Messages that name a keeper of whom the store knows nothing, or a version that the keeper does not speak, stop nobody:
// workers go on under the real keeper, none of them drains, and nothing is asked twice.
func TestFalseWordsStopNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var said sync.Map
	var calls atomic.Int64
	drain, ended := make(chan struct{}), make(chan error, 2)
	for range 2 {
		n := c.join(func(text string) { said.Store(text, true) })
		go func() {
			ended <- errors.Join(n.Work(context.Background(), Worker{Open: opening(func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
				calls.Add(1)
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
				}
				return answer(ctx, it)
			}), Concurrency: 2, Drain: drain}), n.Close())
		}()
	}
	n, r := c.submitted(600)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	progress := func() {
		t.Helper()
		for at := calls.Load(); calls.Load() < min(at+10, 600); {
			select {
			case <-ctx.Done():
				t.Fatalf("%d calls", calls.Load())
			case <-time.After(time.Millisecond):
			}
		}
	}
	progress()
	epoch, err := n.latestEpoch(ctx)
	if err != nil || epoch == 0 {
		t.Fatalf("%d, %v", epoch, err)
	}
	limit := "test/m"
	picture := func(epoch uint64) Picture { return Picture{Version: permit.Version + 1, Epoch: epoch} }
	for _, lie := range []func() error{
		func() error {
			return n.bus.SendCool(permit.Cool{Version: permit.Version, Limit: limit, Epoch: farEpoch, Wave: 1})
		},
		func() error {
			return n.bus.SendAsk(permit.Ask{Version: permit.Version, Worker: "liar", Job: r.Job, Limit: limit, Seq: 1, Epoch: farEpoch})
		},
		func() error { return n.bus.Say(bus.Keeper, "liar", picture(farEpoch)) },
		func() error { return n.bus.Say(bus.Keeper, "liar", picture(epoch)) },
		func() error {
			held, err := n.bus.ReadLease(ctx, time.Minute)
			for err == nil {
				_, err = n.bus.UpdateLease(ctx, lease.Value{Holder: "liar", Counter: 1, Epoch: farEpoch}.Marshal(), held.Revision, time.Minute)
				if !errors.Is(err, bus.ErrTaken) {
					break
				}
				held, err = n.bus.ReadLease(ctx, time.Minute)
			}
			return err
		},
	} {
		if err := lie(); err != nil {
			t.Fatal(err)
		}
		progress()
	}
	o, err := n.Office(ctx, time.Millisecond)
	if err != nil || o.Keeper == "liar" || o.Epoch == 0 || o.Epoch >= farEpoch {
		t.Errorf("%s keeps, by epoch %d: %v", o.Keeper, o.Epoch, err)
	}
	c.waitFor(n, r.Job, job.Done)
	if calls.Load() != 600 {
		t.Errorf("%d calls for 600 items", calls.Load())
	}
	said.Range(func(text, _ any) bool {
		if strings.Contains(text.(string), "another version") {
			t.Error(text)
		}
		return true
	})
	close(drain)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
