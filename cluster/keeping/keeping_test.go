package keeping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/lease"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"
)

// keeps runs a keeper of the limits "l" and "m", and gives what ends it and waits for it.
func keeps(t *testing.T, n *Config) (k *Keeper, end func()) {
	t.Helper()
	limit := machine.LaneConfig{Limits: batch.Limits{RPM: 60_000}}
	k = newKeeper(n, 7, 1, snapshot{Limits: map[string]machine.LaneConfig{"l": limit, "m": limit}})
	k.put = func(snapshot) {}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx) }()
	return k, func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// status returns the state of a limit, once all earlier orders are done and decided upon.
func (k *Keeper) status(t *testing.T, name string) (s keeper.LimitStatus) {
	t.Helper()
	is := make(chan keeper.LimitStatus, 1)
	k.tell(t.Context(), func(time.Time, *Keeper) {}) // so that what was decided before is said
	k.tell(t.Context(), func(now time.Time, k *Keeper) {
		for _, l := range k.keeper.Status(now).Limits {
			if l.Name == name {
				is <- l
				return
			}
		}
		is <- keeper.LimitStatus{}
	})
	return <-is
}

// asks has a worker ask for one call.
func (k *Keeper) asks(t *testing.T, limit, job string, seq uint64) {
	t.Helper()
	a := permit.Ask{Version: permit.Version, Worker: "w", Job: job, Limit: limit, Seq: seq, Wants: []permit.Cost{{Requests: 1}}}
	k.tell(t.Context(), func(now time.Time, k *Keeper) {
		if err := k.keeper.Heard(now, a); err != nil {
			t.Error(err)
		}
	})
}

// A keeper whose time has run out hears, and gives nothing: another may be keeper. When its time is renewed it gives.
func TestAKeeperGivesNothingBeyondItsTime(t *testing.T) {
	n := newConfig(t)
	k, end := keeps(t, n)
	defer end()
	k.until(n.Clock.Now().Add(-time.Nanosecond))
	k.asks(t, "l", "j", 1)
	for range 5 {
		if s := k.status(t, "l"); s.Counts.Given != 0 || len(s.Jobs) != 1 {
			t.Fatalf("%+v", s)
		}
	}
	k.until(n.Clock.Now().Add(time.Hour))
	for s := k.status(t, "l"); s.Counts.Given == 0; s = k.status(t, "l") {
		if t.Context().Err() != nil {
			t.Fatal("nothing is given")
		}
	}
}

// What people and workers say of limits: the first word of a worker counts, a person's always does; who has a job go on vouches
// for the limits that it is under, and for no others.
func TestOrders(t *testing.T) {
	n := newConfig(t)
	k, end := keeps(t, n)
	defer end()
	k.until(n.Clock.Now().Add(time.Hour))
	rpm := func(r float64) machine.LaneConfig { return machine.LaneConfig{Limits: batch.Limits{RPM: r}} }
	is := func(want float64) {
		t.Helper()
		got := make(chan float64, 1)
		k.tell(t.Context(), func(_ time.Time, k *Keeper) { got <- k.limits["new"].Limits.RPM })
		if g := <-got; g != want {
			t.Errorf("%v calls a minute, want %v", g, want)
		}
	}
	k.tell(t.Context(), limitOrder("new", rpm(100)))
	k.tell(t.Context(), limitOrder("new", rpm(200)))
	is(100)
	k.tell(t.Context(), setOrder("new", rpm(300)))
	is(300)
	stops := map[string]*permit.Cause{"l": {Kind: "quota_exhausted", Text: "paid up"}, "m": {Kind: "quota_exhausted", Text: "paid up"}}
	k2 := newKeeper(n, 8, 1, snapshot{Limits: map[string]machine.LaneConfig{"l": rpm(100), "m": rpm(100)}, Stops: stops})
	now := n.Clock.Now()
	for i, limit := range []string{"l", "m"} {
		a := permit.Ask{Version: permit.Version, Worker: "w", Job: []string{"j1", "j2"}[i], Limit: limit, Seq: 1, Wants: []permit.Cost{{Requests: 1}}}
		must.Do(t, k2.keeper.Heard(now, a))
	}
	k2.keeper.Ready(now)
	var left snapshot
	k2.keeperUntil, k2.put = now.Add(time.Hour), func(s snapshot) { left = s }
	now = now.Add(snapshotEvery)
	k2.storeAndReport(now)
	now = now.Add(2 * permit.Forgotten) // under a limit that has stopped nobody asks
	k2.keeper.Ready(now)
	k3 := newKeeper(n, 9, 1, left)
	for _, limit := range []string{"l", "m"} {
		a := permit.Ask{Version: permit.Version, Worker: "w", Job: "j3", Limit: limit, Seq: 1, Wants: []permit.Cost{{Requests: 1}}}
		must.Do(t, k3.keeper.Heard(now, a))
	}
	k3.keeper.Ready(now)
	for _, k2 := range []*Keeper{k2, k3} {
		vouchOrder("j1")(now, k2)
		k2.keeper.Ready(now)
		for _, l := range k2.keeper.Status(now).Limits {
			if stopped := l.Stopped != nil; stopped != (l.Name == "m") {
				t.Errorf("%s is stopped: %v", l.Name, stopped)
			}
		}
		if len(k2.halted["l"]) > 0 || len(k2.halted["m"]) == 0 {
			t.Errorf("jobs under limits that have stopped: %v", k2.halted)
		}
		resetOrder("m")(now, k2)
		k2.keeper.Ready(now)
		s := k2.keeper.Status(now)
		k2.noteStops(&s)
		if len(k2.halted) > 0 {
			t.Errorf("no limit has stopped, and there are jobs under such: %v", k2.halted)
		}
	}
}

// A job has the weight that the scheduler has told.
func TestAJobHasItsWeight(t *testing.T) {
	n := newConfig(t)
	k, end := keeps(t, n)
	defer end()
	k.until(n.Clock.Now().Add(time.Hour))
	k.Job(t.Context(), "j", 3)
	k.asks(t, "l", "j", 1)
	if s := k.status(t, "l"); len(s.Jobs) != 1 || s.Jobs[0].Weight != 3 {
		t.Errorf("%+v", s.Jobs)
	}
}

// A job that is over wants nothing any more, so that its share is the others'.
func TestAJobThatIsOverWantsNothing(t *testing.T) {
	n := newConfig(t)
	k, now := newKeeper(n, 7, 1, snapshot{}), n.Clock.Now()
	k.hear(now, permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: 1, Wants: []permit.Cost{{Requests: 1}}})
	limitOrder("l", machine.LaneConfig{Limits: batch.Limits{RPM: 60_000}})(now, k)
	k.hear(now, permit.Ask{Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: 2, Wants: []permit.Cost{{Requests: 1}}})
	wanted := func() int { return k.keeper.Status(now).Limits[0].Jobs[0].Wanted }
	before := wanted()
	jobOrder("j", 0)(now, k)
	if after := wanted(); before != 1 || after != 0 {
		t.Errorf("%d permits are wanted for it before the keeper hears that it is over, and %d after", before, after)
	}
}

// Who is no keeper any more by its lease ends the one that runs.
func TestACandidateEndsItsKeeper(t *testing.T) {
	n := newConfig(t)
	k := n.candidate(MayKeep)
	stopped := false
	k.running = &term{epoch: 7, keep: newKeeper(n, 7, 1, snapshot{}), stop: func() { stopped = true }, ended: make(chan struct{}, 1)}
	k.running.ended <- struct{}{}
	k.startOrEnd(t.Context(), n.Clock.Now())
	if !stopped || k.running != nil {
		t.Error("it goes on")
	}
}

// A snapshot that the bus does not take in one value is left out of the lease, or no lease could be written.
func TestALargeSnapshotIsNotInTheLease(t *testing.T) {
	n := newConfig(t)
	for _, size := range []int{10, maxSnapshotBytes} {
		k := n.candidate(PrefersKeep)
		k.saveSnapshot(t.Context(), snapshot{Stops: map[string]*permit.Cause{"l": {Text: strings.Repeat("x", size)}}})
		now := n.Clock.Now()
		k.lease.Ready(now)
		k.lease.Step(now, lease.ReadEnded{})
		for _, a := range k.lease.Ready(now.Add(2 * testTerm)).Do {
			w, is := a.(lease.Write)
			if !is {
				t.Fatalf("%#v", a)
			}
			if has := json.Valid(w.Value.Snapshot); has != (size < maxSnapshotBytes) {
				t.Errorf("a snapshot of %d bytes is in the lease: %v", size, has)
			}
		}
	}
}

// Where the bus has forgotten what the keeper before knew, the store tells it; and who does not know yet that it is keeper no
// more does not put its own in the place of a later one's.
func TestTheStoreTellsWhatTheKeeperBeforeKnew(t *testing.T) {
	n := newConfig(t)
	known := func(limit string) []byte {
		return fmt.Appendf(nil, `{"limits":{%q:{}},"memory":{}}`, limit)
	}
	for _, said := range []struct {
		epoch uint64
		limit string
		want  string
	}{{2, "a", "a"}, {2, "b", "b"}, {3, "c", "c"}, {2, "late", "c"}, {3, "d", "d"}} {
		storeLaw(t.Context(), n.Home, said.epoch, known(said.limit))
		s := n.candidate(PrefersKeep).loadSnapshot(t.Context())
		if _, has := s.Limits[said.want]; !has || len(s.Limits) != 1 {
			t.Errorf("after %d has left %s: %+v", said.epoch, said.limit, s.Limits)
		}
	}
	kept := 0
	for _, err := range n.Home.List(t.Context(), lawPrefix, "") {
		if kept++; err != nil {
			t.Fatal(err)
		}
	}
	if kept != 1 {
		t.Errorf("%d snapshots are kept, want the latest alone", kept)
	}
}

// A keeper passes on to the next one what it has learned, and the limits that users set: it knows that the provider answers before
// any call has ended under it.
func TestTheNextKeeperKnowsWhatThisOneLearned(t *testing.T) {
	n := newConfig(t)
	now, seq := n.Clock.Now(), uint64(0)
	given := func(k *Keeper, reports ...permit.Report) permit.Give {
		t.Helper()
		for range 100 {
			seq++
			k.hear(now, permit.Ask{
				Version: permit.Version, Worker: "w", Job: "j", Limit: "l", Seq: seq, Wants: []permit.Cost{{Requests: 1}}, First: 1, Reports: reports,
			})
			now = now.Add(100 * time.Millisecond)
			for _, g := range k.keeper.Ready(now).Gives {
				if len(g.Permits) > 0 {
					return g
				}
			}
		}
		t.Fatal("nothing is given")
		return permit.Give{}
	}
	k := newKeeper(n, 7, 1, snapshot{Limits: map[string]machine.LaneConfig{"l": {Limits: batch.Limits{RPM: 60_000}}}})
	first := given(k)
	if first.Answered {
		t.Fatal("nobody was answered, and the first keeper says so")
	}
	answered := permit.OutcomeOf(machine.Outcome{Signal: machine.Succeeded, Latency: time.Second})
	given(k, permit.Report{Epoch: 7, Number: first.Permits[0].Number, Cost: first.Permits[0].Cost, Ended: answered})
	var left snapshot
	k.put = func(s snapshot) { left = s }
	k.storeAndReport(now)
	if g := given(newKeeper(n, 8, 1, left)); !g.Answered {
		t.Error("the next keeper does not know that the provider answers")
	}
}

// What a keeper knows goes into the store, for where the bus forgets it.
func TestALawIsStored(t *testing.T) {
	n := newConfig(t)
	k := n.candidate(MayKeep)
	k.running = &term{epoch: 7, keep: newKeeper(n, 7, 1, snapshot{}), stop: func() {}, ended: make(chan struct{}, 1)}
	k.saveSnapshot(t.Context(), snapshot{Limits: map[string]machine.LaneConfig{"l": {}}, Memory: map[string]machine.LaneMemory{}})
	k.work.Wait()
	if _, has := loadLaw(t.Context(), n.Home).Limits["l"]; !has {
		t.Error("the store does not have it")
	}
}

// A keeper begins with the snapshot that it finds in the lease.
func TestAKeeperBeginsWithTheLeasesSnapshot(t *testing.T) {
	n := newConfig(t)
	n.Scheduler = func(ctx context.Context, _ *Keeper) { <-ctx.Done() }
	k := n.candidate(PrefersKeep)
	now := n.Clock.Now()
	k.lease.Ready(now)
	left := json.RawMessage(`{"limits":{"l":{}},"memory":{}}`)
	k.lease.Step(now, lease.ReadEnded{Found: true, Value: lease.Value{Holder: "another", Counter: 1, Epoch: 3, Snapshot: left}, Revision: 1})
	k.start(t.Context(), 4)
	_, known := k.running.keep.limits["l"]
	k.end()
	k.work.Wait()
	if !known {
		t.Error("it does not know what the keeper before has left")
	}
}

// A keeper died before it put aside that it had stopped a limit. The next one tells the workers that the limit flows once a person
// vouches for it or has a job go on; limits whose stop it knows stay as they are.
func TestAForgottenStopIsLifted(t *testing.T) {
	limit := machine.LaneConfig{Limits: batch.Limits{RPM: 100}}
	n := newConfig(t)
	now := n.Clock.Now()
	for name, o := range map[string]order{"job": vouchOrder("job"), "limit": resetOrder("forgotten")} {
		k := newKeeper(n, 8, 1, snapshot{
			Limits: map[string]machine.LaneConfig{"forgotten": limit, "known": limit},
			Stops:  map[string]*permit.Cause{"known": {Kind: "quota_exhausted", Text: "paid up"}}, Jobs: map[string][]string{"known": {"other"}},
		})
		o(now, k)
		said := map[string]bool{"known": true}
		for _, c := range k.keeper.Ready(now).Cools {
			said[c.Limit] = c.Stopped != nil
		}
		if stopped, is := said["forgotten"]; !is || stopped || !said["known"] {
			t.Errorf("%s: limits, and whether they have stopped: %v", name, said)
		}
	}
}

// hanging is a store that answers when its context ends, and counts those who wait.
type hanging struct {
	store.Store
	waiting chan struct{}
}

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
	h := hanging{waiting: make(chan struct{}, 100)}
	n.Home, n.Epochs = h, NewEpochs(h, n.Clock)
	k := n.candidate(MayKeep)
	ctx, cancel := context.WithCancel(t.Context())
	k.running = &term{epoch: 7}
	for range 5 {
		k.stored = time.Time{}
		k.saveSnapshot(ctx, snapshot{})
		k.begin(ctx, lease.FindEpoch{})
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
	s := must.Get(store.Open(t.Context(), filepath.Join(t.TempDir(), "home")))(t)
	defer store.Close(s)
	clock, looks := clockwork.NewFakeClock(), &counted{Store: s}
	e := NewEpochs(looks, clock)
	says := func(epoch uint64, want bool, lists int) {
		t.Helper()
		for range 100 {
			if e.Believes(t.Context(), epoch) != want || looks.lists != lists {
				t.Fatalf("epoch %d is believed: %v, want %v; %d looks, want %d", epoch, !want, want, looks.lists, lists)
			}
		}
	}
	says(0, true, 0)
	says(farEpoch, false, 1)
	must.Do(t, store.CreateBytes(t.Context(), s, Numbered(epochPrefix, 3), nil))
	says(3, false, 1)
	clock.Advance(BelieveEvery)
	says(3, true, 2)
	says(2, true, 2)
	says(farEpoch, false, 2)
	clock.Advance(BelieveEvery)
	says(farEpoch, false, 3)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTerm = time.Second

// newConfig returns the config of a process with a hub and a home in the test's folders.
func newConfig(t *testing.T) *Config {
	t.Helper()
	dir, clock := t.TempDir(), clockwork.NewRealClock()
	hub := must.Get(bus.StartHub(bus.HubConfig{Dir: filepath.Join(dir, "hub"), Listen: "127.0.0.1:0", Say: func(err error) { t.Log(err) }}))(t)
	t.Cleanup(hub.Shutdown)
	b := must.Get(bus.Connect(t.Context(), bus.Config{URL: hub.JoinURL(), Name: "test", Clock: clock}))(t)
	t.Cleanup(b.Close)
	s := must.Get(store.Open(t.Context(), filepath.Join(dir, "home")))(t)
	t.Cleanup(func() { _ = store.Close(s) })
	return &Config{
		Bus: b, Home: s, Clock: clock, Epochs: NewEpochs(s, clock), Term: testTerm, Seed: 1,
		SameHub: func(context.Context) (bool, error) { return false, nil },
		Status:  func(keeper.Status) {}, Say: func(string) {},
	}
}

// candidate is one that does not run yet.
func (cfg *Config) candidate(c Candidacy) *Election {
	one := *cfg
	one.Candidacy = c
	return New(one)
}
