package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
)

// held is a server's part of a cluster, at work.
func (c *cluster) held(weight float64) (h *Holding, shared *batch.Shared) {
	c.t.Helper()
	n := c.join(func(text string) { c.t.Log(text) })
	shared = must.Get(batch.NewShared(batch.WithConcurrency(8)))(c.t)
	h = must.Get(n.Hold(Holder{Shared: shared, Weight: weight, Concurrency: 8, Serves: func() bus.Serving { return bus.Serving{At: "here", Waiting: 3} }}))(c.t)
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- h.Run(ctx) }()
	c.t.Cleanup(func() {
		shared.Close()
		stop()
		must.Do(c.t, errors.Join(<-over, n.Close()))
	})
	return h, shared
}

// A holder's calls leave by permits of the cluster's keeper, which may be the holder itself. Others see it, and no
// scheduler takes it for a worker.
func TestAHolderCallsUnderTheLimitsOfItsCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	h, shared := c.held(2)
	known := machine.LaneConfig{Limits: batch.Limits{RPM: 60_000}}
	must.Do(t, shared.Define("lane", must.Get(h.Lane("lane", "org", known, machine.LaneConfig{}))(t)))
	for i := range 20 {
		got, err := batch.Do(t.Context(), shared, i, func(_ context.Context, n int) (int, error) { return n + 1, nil }, batch.WithPoolOf(func(int) string { return "lane" }))
		if err != nil || got != i+1 {
			t.Fatalf("call %d: %d, %v", i, got, err)
		}
	}
	other := c.join(nil)
	defer func() { _ = other.Close() }()
	var o Office
	for limit := time.Now().Add(time.Minute); len(o.Workers) == 0 || len(o.Limits) == 0 || o.Limits[0].Given < 20; {
		if time.Now().After(limit) {
			t.Fatalf("%+v", o)
		}
		o = must.Get(other.Office(t.Context(), 2*statusEvery))(t)
	}
	if w := o.Workers[0]; w.Serves == nil || w.Serves.At != "here" || w.Serves.Weight != 2 || w.Calls < 20 {
		t.Errorf("%+v", w)
	}
	if l := o.Limits[0]; l.Name != "org" || len(l.Jobs) != 1 || !IsServer(l.Jobs[0].Job) || l.Jobs[0].Weight != 2 {
		t.Errorf("%+v", l)
	}
	if s := h.Held(); !s.Connected || s.Keeper != s.Name || len(s.Limits) != 1 || s.Limits[0].Name != "org" || s.Limits[0].Lane != "lane" {
		t.Errorf("%+v", s)
	}
}

// A lane goes on with its law, and another limit gives it another one. A client that names any number of models does not
// fill the keeper.
func TestAHolderHasABoundOnItsLimits(t *testing.T) {
	n := newCluster(t).join(nil)
	defer func() { _ = n.Close() }()
	h := must.Get(n.Hold(Holder{Weight: 1}))(t)
	defer h.link.close()
	lane := func(name, limit string) machine.LaneConfig {
		return must.Get(h.Lane(name, limit, machine.LaneConfig{}, machine.LaneConfig{}))(t)
	}
	first := lane("a", "one")
	if again := lane("a", "one"); again.Maker != first.Maker {
		t.Error("a lane loses its law")
	}
	if other := lane("a", "two"); other.Maker == first.Maker || len(h.Held().Limits) != 1 {
		t.Errorf("another limit: %+v", h.Held())
	}
	if !h.Uses("a") || h.Uses("b") {
		t.Error("it does not know whose limits it holds")
	}
	for i := range MostHeld - 2 {
		lane(fmt.Sprint(i), fmt.Sprint(i))
	}
	if _, err := h.Lane("b", "more", machine.LaneConfig{}, machine.LaneConfig{}); !errors.Is(err, ErrHeld) {
		t.Errorf("one more: %v", err)
	}
}

// A limit that nobody uses for an hour is forgotten, and its keeper hears no more of it. One whose calls wait or are under
// way stays, and so does one that requests name. Where there is no room, the one that was not used for longest goes sooner.
func TestAHolderForgetsLimitsThatNobodyUses(t *testing.T) {
	n := newCluster(t).join(nil)
	defer func() { _ = n.Close() }()
	clock := clockwork.NewFakeClock()
	n.clock = clock
	h := must.Get(n.Hold(Holder{Weight: 1}))(t)
	defer h.link.close()
	hold := func(name string) error {
		_, err := h.Lane(name, "limit of "+name, machine.LaneConfig{}, machine.LaneConfig{})
		return err
	}
	for _, name := range []string{"idle", "named", "called", "waits", "delayed"} {
		must.Do(t, hold(name))
	}
	lanes := []batch.LaneStatus{{Name: "idle"}, {Name: "called", InFlight: 1}, {Name: "waits", Draw: batch.Cost{Requests: 1}}, {Name: "delayed", Delayed: 1}}
	for range 61 {
		clock.Advance(time.Minute)
		h.Uses("named")
		h.forgetIdle(lanes)
	}
	if _, is := h.limits()["limit of idle"]; is || len(h.limits()) != 4 || len(h.link.known.under("limit of idle")) > 0 || h.Uses("idle") {
		t.Errorf("%v are held", h.Held().Limits)
	}
	for i := range MostHeld - 4 {
		must.Do(t, hold(fmt.Sprint(i)))
	}
	h.forgetIdle(lanes)
	clock.Advance(forgetAfter - time.Second)
	h.forgetIdle(lanes)
	if err := hold("more"); !errors.Is(err, ErrHeld) {
		t.Errorf("a limit that was just used gives way: %v", err)
	}
	clock.Advance(time.Second)
	h.Uses("named")
	must.Do(t, hold("more"))
	if left := h.limits(); len(left) != MostHeld || !h.Uses("called") || !h.Uses("named") {
		t.Errorf("%d are held", len(left))
	}
}

// A server's share is by weight among those that want permits now.
func TestAServerSharesWithThoseThatWant(t *testing.T) {
	pace := 30.0
	h := &Holding{job: holderMark + "x", config: Holder{Weight: 2}}
	l := &bus.LimitPicture{Pace: &pace, Jobs: []bus.JobPicture{{Job: h.job, Weight: 2, Wanted: 5}, {Job: "a", Weight: 1, Wanted: 9}, {Job: "b", Weight: 7}}}
	if got := h.share(l); got != 20 {
		t.Errorf("%v of 30, want 20", got)
	}
	if l.Pace = nil; h.share(l) != 0 {
		t.Error("a limit without a bound has a share")
	}
}

// While a limit rests, whatever for, a server knows until when nothing leaves. Any other wait is only for the next call's
// turn.
func TestAServerHearsHowLongALimitRests(t *testing.T) {
	now := time.Now()
	h := &Holding{job: holderMark + "x", config: Holder{Weight: 1}}
	pace := 0.0
	for word, rests := range map[string]bool{"cooldown": true, "overload": true, "breaker": true, "requests": false, "recovery": false, "": false} {
		p := h.paceWord(&bus.LimitPicture{Bound: word, WaitS: 60, Pace: &pace}, now)
		if p.Hold.Equal(now.Add(time.Minute)) != rests || p.Hold.IsZero() == rests {
			t.Errorf("bound %q: it holds until %v", word, p.Hold)
		}
	}
	if p := h.paceWord(&bus.LimitPicture{Bound: "cooldown"}, now); !p.Hold.IsZero() {
		t.Errorf("without a known end: it holds until %v", p.Hold)
	}
}

// The last words of a server that ends tell what it did, and not that it did nothing.
func TestAServerEndsWithItsLastCounts(t *testing.T) {
	n := newCluster(t).join(nil)
	defer func() { _ = n.Close() }()
	shared := must.Get(batch.NewShared())(t)
	defer shared.Close()
	worked := func(s bus.WorkerStatus) {
		if s.Calls != 1 {
			t.Errorf("%d calls", s.Calls)
		}
	}
	h := must.Get(n.Hold(Holder{Shared: shared, Weight: 1, Serves: func() bus.Serving { return bus.Serving{} }, Watch: Watch{Worked: worked}}))(t)
	defer h.link.close()
	must.Get(batch.Do(t.Context(), shared, 1, func(_ context.Context, n int) (int, error) { return n, nil }))(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for range 100 { // the news and the end come together, and chance takes one of the two
		h.limitAdded <- struct{}{}
		h.sayStatus(ctx)
		select {
		case <-h.limitAdded:
		default:
		}
	}
}

// A server says nothing of jobs, so that a job that all workers refuse still stops, and shows no worker that it has not.
func TestAServerIsNoWorker(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer func() { _ = n.Close() }()
	f := newScheduler(n, nil)
	w := must.Get(f.listen())(t)
	defer w.close()
	ticker := n.clock.NewTicker(time.Hour)
	defer ticker.Stop()
	for _, s := range []bus.WorkerStatus{{Serves: &bus.Serving{}}, {}} {
		must.Do(t, n.bus.Say(bus.Status, fmt.Sprint("worker-", s.Serves == nil), s))
		f.hearNext(t.Context(), w, ticker)
	}
	if _, is := f.heard["worker-true"]; !is || len(f.heard) != 1 {
		t.Errorf("%v", f.heard)
	}
	s := &watching{heard: map[string]workerHeard{}, doneBefore: map[string]int{}, s: Standing{JobStatus: JobStatus{Record: job.Record{}}}}
	s.hearWorker(bus.Message[bus.WorkerStatus]{About: "s", Body: bus.WorkerStatus{Serves: &bus.Serving{}}}, time.Now())
	if len(s.heard) > 0 {
		t.Errorf("%v", s.heard)
	}
}
