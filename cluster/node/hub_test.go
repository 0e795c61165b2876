package node

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/store"
)

// Of many hubs that begin at once on one store one is named, and all others are foreign. A bus without a name that lasts
// is let in.
func TestAStoreNamesOneHub(t *testing.T) {
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	var all sync.WaitGroup
	for _, hub := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			if err := nameHub(t.Context(), s, hub); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	named, number, err := hubOf(t.Context(), s)
	if err != nil || number != 1 {
		t.Fatalf("%q is number %d: %v", named, number, err)
	}
	for _, hub := range []string{"", "a", "b", "c", "d"} {
		if err := sameHub(t.Context(), s, "home", hub); errors.Is(err, ErrForeign) != (hub != "" && hub != named) {
			t.Errorf("the store names %q, and %q gets %v", named, hub, err)
		}
	}
}

// A second hub takes over: its workers are let in then, and those of the first hub end by themselves.
func TestTakingOverEndsTheWorkersOfTheOtherHub(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	first := c.join(nil)
	defer first.Close()
	ended := make(chan error, 1)
	go func() { ended <- first.Work(ctx, Worker{Open: opening(answer)}) }()

	second, err := bus.StartHub(bus.HubConfig{Dir: filepath.Join(c.dir, "second"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Shutdown()
	line := JoinLine(second.JoinURL(), filepath.Join(c.dir, "home"))
	join := func(takesOver bool) (*Node, error) {
		return Join(ctx, Config{Line: line, Founds: !takesOver, TakesOver: takesOver, Seed: seeds.Add(1)})
	}
	if _, err := join(false); !errors.Is(err, ErrForeign) {
		t.Fatalf("a process of the second hub is let in: %v", err)
	}
	n, err := join(true)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if before, err := n.TakeOver(ctx); before != first.bus.Identity() || err != nil {
		t.Errorf("it was %q, %v", before, err)
	}
	if before, err := n.TakeOver(ctx); before != "" || err != nil {
		t.Errorf("a second take-over finds %q, %v", before, err)
	}
	if err := <-ended; !errors.Is(err, ErrForeign) {
		t.Errorf("the worker of the first hub ends with %v", err)
	}
	third, err := join(false)
	if err != nil {
		t.Fatal(err)
	}
	_ = third.Close()
}

// A worker that never keeps sees that another hub has taken over, too: on its hub nobody gives it a permit any more.
func TestTakingOverEndsAWorkerThatNeverKeeps(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n, err := Join(ctx, Config{Line: c.line, Times: Times{AckWait: testAckWait, Term: testTerm / 4}, Seed: seeds.Add(1), Founds: true})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ended := make(chan error, 1)
	go func() { ended <- n.Work(ctx, Worker{Open: opening(answer), Keeper: keeping.NeverKeeps}) }()
	for founder := ""; founder == "" && ctx.Err() == nil; n.pause(ctx) { // until it is let in
		founder, _ = n.bus.Founder(ctx)
	}
	if err := store.CreateBytes(ctx, n.home, keeping.Numbered(hubPrefix, 2), []byte("another\n")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrForeign) {
		t.Errorf("the worker of the first hub ends with %v", err)
	}
}
