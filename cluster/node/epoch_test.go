package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/provider"
)

// farEpoch is one that no keeper has ever had.
const farEpoch = 1 << 62

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
	epoch, err := n.epochs.Latest(ctx)
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
