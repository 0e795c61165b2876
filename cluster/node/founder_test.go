package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/jonboulle/clockwork"
)

// Of many that begin at once one founds the cluster, and all others find him; who only looks founds nothing.
func TestOneOfManyFoundsTheCluster(t *testing.T) {
	ctx := t.Context()
	s := must.Get(store.Open(ctx, filepath.Join(t.TempDir(), "home")))(t)
	defer store.Close(s)
	if creator, err := creatorOf(ctx, s, false, "who-looks"); creator != "" || err != nil {
		t.Errorf("who looks finds %q, %v", creator, err)
	}
	const many = 8
	var all sync.WaitGroup
	var founders [many]string
	for i := range many {
		all.Go(func() {
			creator, err := creatorOf(ctx, s, true, "worker-"+string(rune('a'+i)))
			if err != nil {
				t.Error(err)
			}
			founders[i] = creator
		})
	}
	all.Wait()
	for i, creator := range founders {
		if creator != founders[0] || creator == "" {
			t.Errorf("%d finds %q, the first %q", i, creator, founders[0])
		}
	}
	if creator, err := creatorOf(ctx, s, false, "who-looks"); creator != founders[0] || err != nil {
		t.Errorf("who looks finds %q, %v", creator, err)
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

// creatorIn returns the creator of the cluster, by its store.
func creatorIn(t *testing.T, n *Node) string {
	t.Helper()
	creator := must.Get(readCreator(t.Context(), n.home))(t)
	return creator
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

// A creator who is seen late is waited for; one of another store is not, and one who never comes is not waited for for ever.
func TestACreatorMayBeSeenLate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	must.Do(t, n.ensure(t.Context(), n.bus.Ensure))
	clock := clockwork.NewFakeClock()
	for times, want := range map[int]error{0: nil, 1: nil, creatorTries - 1: nil, creatorTries: ErrOtherStore} {
		ended := make(chan error)
		go func() {
			ended <- checkSameStore(t.Context(), n.bus, &late{n.home, times}, "home", clock)
		}()
		for range min(times, creatorTries-1) {
			must.Do(t, clock.BlockUntilContext(t.Context(), 1))
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
	if there, err := n.bus.Creator(ctx); err != nil || there == "" || there != creatorIn(t, n) {
		t.Fatalf("the queue is of %q, the store of %q; %v", there, creatorIn(t, n), err)
	}
	refused := func(founds bool, says string) {
		t.Helper()
		_, err := Join(ctx, Config{Line: c.elsewhere(), Settles: founds, Founds: founds, Seed: seeds.Add(1)})
		if !errors.Is(err, ErrOtherStore) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), creatorIn(t, n)) || !strings.Contains(err.Error(), "mounted") {
			t.Errorf("founds %v: %v", founds, err)
		}
	}
	refused(false, "nobody has worked with it")
	refused(true, "nobody has worked with it")
	if _, err := os.Stat(filepath.Join(c.dir, "elsewhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the other store was written to: %v", err)
	}
	s := must.Get(store.Open(ctx, filepath.Join(c.dir, "elsewhere")))(t)
	defer store.Close(s)
	must.Get(creatorOf(ctx, s, true, "another"))(t)
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
	second := must.Get(Join(ctx, Config{Line: c.elsewhere(), Times: Times{AckWait: testAckWait, Term: testTerm}, Seed: seeds.Add(1), Founds: true}))(t)
	defer second.Close()
	must.Do(t, first.bus.Ensure(ctx))
	if err := second.Work(ctx, Worker{Open: opening(answer)}); !errors.Is(err, ErrOtherStore) {
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
		if there, err := n.bus.Creator(ctx); there != creatorIn(t, n) || there == "" || err != nil {
			t.Errorf("round %d: %q, %v", round, there, err)
		}
		c.hub.Shutdown()
		must.Do(t, os.RemoveAll(filepath.Join(c.dir, "hub", "jetstream")))
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
	earlier := must.Get(bus.Connect(t.Context(), bus.Config{URL: line, Name: "earlier"}))(t)
	defer earlier.Close()
	must.Do(t, earlier.Ensure(t.Context()))
	n := c.join(nil)
	defer n.Close()
	if there, err := n.bus.Creator(t.Context()); there != "" || err != nil {
		t.Errorf("%q, %v", there, err)
	}
	if err := n.ensure(t.Context(), n.bus.Ensure); err != nil {
		t.Error(err)
	}
	if there, err := earlier.Creator(t.Context()); there != creatorIn(t, n) || there == "" || err != nil {
		t.Errorf("%q, %v", there, err)
	}
}

// Of many hubs that begin at once on one store one is named, and all others are foreign. A bus without a name that lasts
// is let in.
func TestAStoreNamesOneHub(t *testing.T) {
	s := must.Get(store.Open(t.Context(), filepath.Join(t.TempDir(), "home")))(t)
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
		if err := checkSameHub(t.Context(), s, "home", hub); errors.Is(err, ErrOtherStore) != (hub != "" && hub != named) {
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

	second := must.Get(bus.StartHub(bus.HubConfig{Dir: filepath.Join(c.dir, "second"), Listen: "127.0.0.1:0"}))(t)
	defer second.Shutdown()
	line := JoinLine(second.JoinURL(), filepath.Join(c.dir, "home"))
	join := func(takesOver bool) (*Node, error) {
		return Join(ctx, Config{Line: line, Founds: !takesOver, TakesOver: takesOver, Seed: seeds.Add(1)})
	}
	if _, err := join(false); !errors.Is(err, ErrOtherStore) {
		t.Fatalf("a process of the second hub is let in: %v", err)
	}
	n := must.Get(join(true))(t)
	defer n.Close()
	if before, err := n.TakeOver(ctx); before != first.bus.Identity() || err != nil {
		t.Errorf("it was %q, %v", before, err)
	}
	if before, err := n.TakeOver(ctx); before != "" || err != nil {
		t.Errorf("a second take-over finds %q, %v", before, err)
	}
	if err := <-ended; !errors.Is(err, ErrOtherStore) {
		t.Errorf("the worker of the first hub ends with %v", err)
	}
	third := must.Get(join(false))(t)
	_ = third.Close()
}

// A worker that never keeps sees that another hub has taken over, too: on its hub nobody gives it a permit any more.
func TestTakingOverEndsAWorkerThatNeverKeeps(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	n := must.Get(Join(ctx, Config{Line: c.line, Times: Times{AckWait: testAckWait, Term: testTerm / 4}, Seed: seeds.Add(1), Founds: true}))(t)
	defer n.Close()
	ended := make(chan error, 1)
	go func() { ended <- n.Work(ctx, Worker{Open: opening(answer), Keeper: keeping.NeverKeeps}) }()
	for creator := ""; creator == "" && ctx.Err() == nil; n.pause(ctx) { // until it is let in
		creator, _ = n.bus.Creator(ctx)
	}
	must.Do(t, store.CreateBytes(ctx, n.home, keeping.Numbered(hubPrefix, 2), []byte("another\n")))
	if err := <-ended; !errors.Is(err, ErrOtherStore) {
		t.Errorf("the worker of the first hub ends with %v", err)
	}
}

// The first process that works settles the times of a cluster. A process without given times takes them, and one with
// other times is refused. A process that does not work settles nothing.
func TestTheFirstWorkerSettlesTheTimes(t *testing.T) {
	ctx := t.Context()
	s := must.Get(store.Open(ctx, filepath.Join(t.TempDir(), "home")))(t)
	defer store.Close(s)
	for i, c := range []struct {
		configured Times
		settles    bool
		want       Times
		refused    string
	}{
		{Times{AckWait: time.Minute}, false, Times{time.Minute, DefaultTerm}, ""},
		{Times{Term: 6 * time.Second}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{}, false, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{AckWait: 30 * time.Second}, true, Times{30 * time.Second, 6 * time.Second}, ""},
		{Times{AckWait: 2 * time.Second}, true, Times{}, "--ack-wait 2s: in this cluster it is 30s"},
		{Times{Term: 3 * time.Second}, true, Times{}, "--lease 3s: in this cluster it is 6s"},
		{Times{Term: 3 * time.Second}, false, Times{}, "--lease 3s: in this cluster it is 6s"},
	} {
		got, err := timesOf(ctx, s, c.configured, c.settles, "me", time.Now())
		if c.refused != "" {
			if !errors.Is(err, ErrTimes) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%d: %v, want %s", i, err, c.refused)
			}
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%d: %v %v, want %v", i, got, err, c.want)
		}
	}
	must.Do(t, s.Delete(ctx, timesName))
	must.Do(t, store.CreateBytes(ctx, s, timesName, []byte(`{"ack_wait":"soon"}`)))
	if _, err := timesOf(ctx, s, Times{}, true, "me", time.Now()); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("what is damaged gives %v", err)
	}
}

// Of many that begin at once with different times one settles them, and all others are refused.
func TestOneOfManySettlesTheTimes(t *testing.T) {
	s := must.Get(store.Open(t.Context(), filepath.Join(t.TempDir(), "home")))(t)
	defer store.Close(s)
	const many = 8
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		all.Go(func() {
			_, errs[i] = timesOf(t.Context(), s, Times{AckWait: time.Duration(i+1) * time.Second}, true, "me", time.Now())
		})
	}
	all.Wait()
	settled := 0
	for _, err := range errs {
		switch {
		case err == nil:
			settled++
		case !errors.Is(err, ErrTimes):
			t.Error(err)
		}
	}
	if settled != 1 {
		t.Errorf("%d of %d have settled the times", settled, many)
	}
}

// A patient process waits for a bucket that is away, and reports it once; any other returns an error. Both return an
// error for a lasting fault, such as a bucket that does not exist.
func TestABucketThatIsAwayIsWaitedFor(t *testing.T) {
	server := s3test.Start(t)
	clock := clockwork.NewFakeClock()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for clock.BlockUntilContext(ctx, 1) == nil {
			clock.Advance(time.Second)
		}
	}()
	defer func() { stop(); <-over }()
	all := func(*http.Request) bool { return true }
	said := 0
	cfg := Config{Clock: clock, Say: func(string) { said++ }}
	server.Fault(s3test.First(20, s3test.SlowDown, all))
	if _, err := openHome(ctx, server.Address("home"), &cfg); !errors.Is(err, store.ErrAway) {
		t.Errorf("%v", err)
	}
	server.Fault(s3test.First(20, s3test.SlowDown, all))
	cfg.Patient = true
	s, err := openHome(ctx, server.Address("home"), &cfg)
	if err != nil || said != 1 {
		t.Fatalf("%v, and it was said %d times", err, said)
	}
	if err := store.Close(s); err != nil {
		t.Error(err)
	}
	server.Fault(nil)
	if _, err := openHome(ctx, "s3://another-bucket?endpoint="+server.Endpoint, &cfg); err == nil || errors.Is(err, store.ErrAway) {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

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
	picture := func(epoch uint64) bus.Picture { return bus.Picture{Version: permit.Version + 1, Epoch: epoch} }
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
			content, err := n.bus.ReadLease(ctx, time.Minute)
			for err == nil {
				_, err = n.bus.UpdateLease(ctx, lease.Value{Holder: "liar", Counter: 1, Epoch: farEpoch}.Marshal(), content.Revision, time.Minute)
				if !errors.Is(err, bus.ErrTaken) {
					break
				}
				content, err = n.bus.ReadLease(ctx, time.Minute)
			}
			return err
		},
	} {
		must.Do(t, lie())
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

// The version that counts is the latest keeper's: what an earlier one has said may come after it, and one that says
// none is of the first version. A speaker that is not the keeper of its epoch by the store is not heard, and the store is
// asked once a second at most.
func TestAWorkerFollowsTheLatestKeeper(t *testing.T) {
	s := must.Get(store.Open(t.Context(), filepath.Join(t.TempDir(), "home")))(t)
	defer store.Close(s)
	for epoch := range uint64(7) {
		must.Do(t, store.CreateBytes(t.Context(), s, keeping.Numbered("keeper/epoch-", epoch), []byte("keeper\n")))
	}
	clock := clockwork.NewFakeClock()
	a := &keeperVersion{Node: &Node{clock: clock, home: s, epochs: keeping.NewEpochs(s, clock)}}
	const other = permit.Version + 1
	for _, said := range []struct {
		by      string
		body    string
		after   time.Duration
		differs bool
	}{
		{"keeper", `null`, keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":9,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":%d,"v":%d}`, uint64(1)<<62, other), keeping.BelieveEvery, false},
		{"liar", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), keeping.BelieveEvery - 1, false},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, other), 1, true},
		{"keeper", fmt.Sprintf(`{"epoch":2,"v":%d}`, permit.Version), keeping.BelieveEvery, true},
		{"liar", fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version), keeping.BelieveEvery, true},
		{"keeper", fmt.Sprintf(`{"epoch":3,"v":%d}`, permit.Version), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":2,"v":%d}`, other), keeping.BelieveEvery, false},
		{"keeper", fmt.Sprintf(`{"epoch":5,"v":%d}`, other), keeping.BelieveEvery, true},
		{"keeper", `{"epoch":6}`, keeping.BelieveEvery, permit.Version != 1},
	} {
		clock.Advance(said.after)
		m := bus.Message[bus.Picture]{About: said.by}
		must.Do(t, json.Unmarshal([]byte(said.body), &m.Body))
		a.hear(t.Context(), m)
		if a.differs() != said.differs {
			t.Fatalf("after %s of %s the keeper differs: %v", said.body, said.by, a.differs())
		}
	}
}

// Only an admin sets a limit: what another role says of one reaches neither the keeper nor the store, where a keeper would
// read it.
func TestOnlyAnAdminSetsALimit(t *testing.T) {
	c := newCluster(t)
	for _, r := range []bus.Role{bus.WorkRole, bus.WatchRole} {
		n := c.joinAs(r)
		defer n.Close()
		if err := n.SetLimit(t.Context(), "l", machine.LaneConfig{Limits: batch.Limits{RPM: 60}}); !errors.Is(err, bus.ErrRole) {
			t.Errorf("%s sets a limit: %v", r, err)
		}
		for o, err := range n.home.List(t.Context(), "limits/", "") {
			t.Errorf("%s has put %s into the store: %v", r, o.Name, err)
		}
	}
}
