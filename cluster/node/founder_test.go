package node

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
)

// Of many that begin at once one founds the cluster, and all others find him; who only looks founds nothing.
func TestOneOfManyFoundsTheCluster(t *testing.T) {
	ctx := t.Context()
	s, err := store.Open(ctx, filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	if founder, err := founderOf(ctx, s, false, "who-looks"); founder != "" || err != nil {
		t.Errorf("who looks finds %q, %v", founder, err)
	}
	const many = 8
	var all sync.WaitGroup
	var founders [many]string
	for i := range many {
		all.Go(func() {
			founder, err := founderOf(ctx, s, true, "worker-"+string(rune('a'+i)))
			if err != nil {
				t.Error(err)
			}
			founders[i] = founder
		})
	}
	all.Wait()
	for i, founder := range founders {
		if founder != founders[0] || founder == "" {
			t.Errorf("%d finds %q, the first %q", i, founder, founders[0])
		}
	}
	if founder, err := founderOf(ctx, s, false, "who-looks"); founder != founders[0] || err != nil {
		t.Errorf("who looks finds %q, %v", founder, err)
	}
}

// elsewhere is the line of a cluster whose store is another one here, as where a folder is not mounted.
func (c *cluster) elsewhere() string {
	c.t.Helper()
	line, _, err := SplitHome(c.line)
	if err != nil {
		c.t.Fatal(err)
	}
	return JoinLine(line, filepath.Join(c.dir, "elsewhere"))
}

// founderIn returns the founder of the cluster, by its store.
func founderIn(t *testing.T, n *Node) string {
	t.Helper()
	founder, err := readFounder(t.Context(), n.home)
	if err != nil {
		t.Fatal(err)
	}
	return founder
}

// Many processes that begin at once with one store may all join, whichever of them founds the cluster and makes the
// queue.
func TestManyBeginAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			n, err := Join(t.Context(), Config{Line: c.line, Founds: true, Seed: seeds.Add(1)})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(n.ensure(t.Context(), n.bus.Ensure), n.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A late store shows what was written only when it was asked for so many times, as the client of a file server may, and as
// it looks to who asked just before somebody else wrote.
type late struct {
	store.Store
	times int
}

func (l *late) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if l.times--; l.times >= 0 {
		return nil, store.ErrMissing
	}
	return l.Store.Open(ctx, name, offset, length)
}

// A founder who is seen late is waited for; one of another store is not, and one who never comes is not waited for for ever.
func TestAFounderMayBeSeenLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	if err := n.ensure(t.Context(), n.bus.Ensure); err != nil {
		t.Fatal(err)
	}
	clock := clockwork.NewFakeClock()
	for times, want := range map[int]error{0: nil, 1: nil, founderTries - 1: nil, founderTries: ErrForeign} {
		ended := make(chan error)
		go func() {
			ended <- sameStore(t.Context(), n.bus, &late{n.home, times}, "home", clock)
		}()
		for range min(times, founderTries-1) {
			if err := clock.BlockUntilContext(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			clock.Advance(time.Second)
		}
		if err := <-ended; !errors.Is(err, want) {
			t.Errorf("seen after %d looks: %v", times, err)
		}
	}
}

// A process that finds another store than its cluster has may not join, whether it works or looks, and writes nothing
// there. Its error names both founders.
func TestAnotherStoreIsNotLetIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	end := c.workers(1, answer)
	defer end()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n, _ := c.submitted(1)
	if there, err := n.bus.Founder(ctx); err != nil || there == "" || there != founderIn(t, n) {
		t.Fatalf("the queue is of %q, the store of %q; %v", there, founderIn(t, n), err)
	}
	refused := func(founds bool, says string) {
		t.Helper()
		_, err := Join(ctx, Config{Line: c.elsewhere(), Settles: founds, Founds: founds, Seed: seeds.Add(1)})
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), founderIn(t, n)) || !strings.Contains(err.Error(), "mounted") {
			t.Errorf("founds %v: %v", founds, err)
		}
	}
	refused(false, "nobody has worked with it")
	refused(true, "nobody has worked with it")
	if _, err := os.Stat(filepath.Join(c.dir, "elsewhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other store was written to: %v", err)
	}
	s, err := store.Open(ctx, filepath.Join(c.dir, "elsewhere"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(s)
	if _, err := founderOf(ctx, s, true, "another"); err != nil {
		t.Fatal(err)
	}
	refused(true, "its founder is another")
}

// Two that begin at once with different stores are both let in by a bus that has no queue yet; then one makes it, and the
// other learns that it is not his.
func TestTwoStoresBeginAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	first := c.join(nil)
	defer first.Close()
	second, err := Join(ctx, Config{Line: c.elsewhere(), Times: Times{AckWait: testAckWait, Term: testTerm}, Seed: seeds.Add(1), Founds: true})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.bus.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if err := second.Work(ctx, Worker{Open: opening(answer)}); !errors.Is(err, ErrForeign) {
		t.Errorf("the second ends with %v", err)
	}
}

// A queue that is lost is made again for the same store.
func TestAQueueIsMadeAgainForItsStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n := c.join(nil)
	defer n.Close()
	for round := range 2 {
		if err := n.ensure(ctx, n.bus.Ensure); err != nil { // it waits for the hub to be back
			t.Fatal(err)
		}
		if there, err := n.bus.Founder(ctx); there != founderIn(t, n) || there == "" || err != nil {
			t.Errorf("round %d: %q, %v", round, there, err)
		}
		c.hub.Shutdown()
		if err := os.RemoveAll(filepath.Join(c.dir, "hub", "jetstream")); err != nil {
			t.Fatal(err)
		}
		c.startHub()
	}
}

// A queue of which nobody has said for which store it is, as that of an earlier version, lets in who comes; then it is
// for his.
func TestAQueueOfNobodyIsForWhoComes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	line, _, err := SplitHome(c.line)
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := bus.Connect(t.Context(), bus.Config{URL: line, Name: "earlier"})
	if err != nil {
		t.Fatal(err)
	}
	defer earlier.Close()
	if err := earlier.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := c.join(nil)
	defer n.Close()
	if there, err := n.bus.Founder(t.Context()); there != "" || err != nil {
		t.Errorf("%q, %v", there, err)
	}
	if err := n.ensure(t.Context(), n.bus.Ensure); err != nil {
		t.Error(err)
	}
	if there, err := earlier.Founder(t.Context()); there != founderIn(t, n) || there == "" || err != nil {
		t.Errorf("%q, %v", there, err)
	}
}
