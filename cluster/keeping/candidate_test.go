package keeping

import (
	"context"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/store"
)

// hanging is a store that answers when its context ends, and counts those who wait.
type hanging struct{ waiting chan struct{} }

func (h hanging) wait(ctx context.Context) error {
	h.waiting <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (h hanging) Create(ctx context.Context, _ string, _ io.Reader, _ int64) error {
	return h.wait(ctx)
}

func (h hanging) Open(ctx context.Context, _ string, _, _ int64) (io.ReadCloser, error) {
	return nil, h.wait(ctx)
}

func (h hanging) List(ctx context.Context, _, _ string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) { yield(store.Object{}, h.wait(ctx)) }
}

func (h hanging) Delete(ctx context.Context, _ string) error { return h.wait(ctx) }

// A keeper whose store hangs goes on; what waits for the store is one of each kind, however long it takes.
func TestAStoreThatHangsHoldsOneOfEach(t *testing.T) {
	n := newConfig(t)
	h := hanging{make(chan struct{}, 100)}
	n.Home, n.Epochs = h, NewEpochs(h, n.Clock)
	k := n.candidate(MayKeep)
	ctx, cancel := context.WithCancel(t.Context())
	k.running = &term{epoch: 7}
	for range 5 {
		k.stored = time.Time{}
		k.aside(ctx, snapshot{})
		k.begin(ctx, lease.Look{})
		time.Sleep(20 * time.Millisecond) // so that the first has begun: if it has not, no more can have
	}
	for range 2 {
		<-h.waiting
	}
	if waiting := len(h.waiting); waiting > 0 {
		t.Errorf("%d more wait for the store", waiting)
	}
	cancel()
	k.work.Wait()
	if len(k.storing) > 0 || len(k.looking) > 0 {
		t.Error("the places are not given back")
	}
}
