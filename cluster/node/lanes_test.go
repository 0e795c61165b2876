package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// The lanes of a job are forgotten some time after its end, and not while items of it are in the stream: their ends must
// reach the keeper. A job that goes on keeps its lanes.
func TestLanesOfEndedJobsAreForgotten(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	j := &jobLanes{}
	pool, lane := laneName("route", "a"), laneName("limit", "a")
	if j.enter(pool) {
		t.Error("a pool is there that nobody has added")
	}
	j.addPool(pool)
	if !j.add(lane) || j.add(lane) || !j.enter(pool) {
		t.Error("a lane is added twice, or its pool is not there")
	}
	j.add(laneName("limit", "b"))
	forgets := func(s int, want bool) {
		t.Helper()
		lanes, pools := j.takeIdle(at(s))
		if got := slices.Equal(lanes, []string{lane}) && slices.Equal(pools, []string{pool}); got != want || !got && len(lanes)+len(pools) > 0 {
			t.Errorf("at %d s it forgets %q and %q", s, lanes, pools)
		}
	}
	j.end("a", true, at(0))
	forgets(100, false)
	j.leave(pool, at(100))
	j.leave(pool, at(101))
	forgets(110, false)
	j.end("a", false, at(110))
	forgets(200, false)
	j.end("a", true, at(200))
	forgets(209, false)
	forgets(210, true)
	forgets(300, false)
	if len(j.byJob) != 1 {
		t.Errorf("%d jobs are left", len(j.byJob))
	}
	if !j.add(lane) {
		t.Error("a lane that was forgotten is not new")
	}
}

// limitsOf waits for a worker's report of as many limits.
func limitsOf(t *testing.T, n *Node, wanted func(limits int) bool) {
	t.Helper()
	reports := must.Get(bus.Listen[bus.WorkerStatus](n.bus, bus.Status, "", newsKept))(t)
	defer reports.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		select {
		case r := <-reports.C:
			if wanted(len(r.Body.Limits)) {
				return
			}
		case <-ctx.Done():
			t.Fatal("no such report")
		}
	}
}

// A limit of which only a worker knows starts from that worker's settings, also if the worker stalls and reports late. If all
// are silent there is nothing to start from.
func TestALimitIsLearnedFromAWorkerThatIsLate(t *testing.T) {
	t.Parallel()
	for name, speaks := range map[string]bool{"late": true, "never": false} {
		t.Run(name, func(t *testing.T) {
			n := newCluster(t).join(nil)
			defer n.Close()
			clock := clockwork.NewFakeClock()
			n.clock = clock
			want := machine.LaneConfig{}
			learned := make(chan machine.LaneConfig, 1)
			go func() {
				lane, err := n.limitOfWorkers(t.Context(), "org", time.Second)
				if err != nil {
					t.Error(err)
				}
				learned <- lane
			}()
			must.Do(t, clock.BlockUntilContext(t.Context(), 1))
			clock.Advance(time.Second)
			if speaks {
				want.Limits.TPM = 5_000_000
				must.Do(t, n.bus.Say(bus.Status, "worker", bus.WorkerStatus{Limits: map[string]machine.LaneConfig{"org": want}}))
			} else {
				must.Do(t, clock.BlockUntilContext(t.Context(), 1))
				clock.Advance(silentWait)
			}
			if got := <-learned; got.Limits != want.Limits {
				t.Errorf("it learns %+v, want %+v", got.Limits, want.Limits)
			}
		})
	}
}

// Workers that report, and of which none knows a limit, are not listened to for longer.
func TestALimitThatNoWorkerKnows(t *testing.T) {
	t.Parallel()
	n := newCluster(t).join(nil)
	defer n.Close()
	clock := clockwork.NewFakeClock()
	began := clock.Now()
	n.clock = clock
	learned := make(chan machine.LaneConfig, 1)
	go func() {
		lane, err := n.limitOfWorkers(t.Context(), "org", time.Second)
		if err != nil {
			t.Error(err)
		}
		learned <- lane
	}()
	for {
		select {
		case got := <-learned:
			if listened := clock.Since(began); got.Limits != (batch.Limits{}) || listened > silentWait/2 {
				t.Errorf("it learns %+v in %v", got.Limits, listened)
			}
			return
		case <-time.After(10 * time.Millisecond):
			must.Do(t, n.bus.Say(bus.Status, "worker", bus.WorkerStatus{}))
			clock.Advance(10 * time.Millisecond)
		}
	}
}

// Many jobs, each under a limit of its own, leave nothing in a worker some seconds after their ends. A job whose limit had
// stopped goes on after that, though the worker has forgotten its lane.
func TestAWorkerForgetsItsJobs(t *testing.T) {
	t.Parallel()
	const jobs = 12
	c := newCluster(t)
	var paid atomic.Bool
	end := c.workers(1, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		if it.Model == "dear" && !paid.Load() {
			return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: http.StatusTooManyRequests, Message: "your balance is used up"}
		}
		return answer(ctx, it)
	})
	n := c.join(nil)
	defer func() { _ = n.Close() }()
	path := c.input(3)
	o := must.Get(ObjectOf(t.Context(), path))(t)
	under := func(limit, model string) job.Record {
		r := job.Record{Inputs: []job.Input{{Name: path, Format: job.JSONL, Objects: []job.Object{o}}}, Weight: 1, Cut: job.Cut{ChunkLines: 50}}
		r.Limit, r.Reading = limit, job.Reading{Model: model}
		caller, _ := opening(nil)(nil)
		return must.Get(n.Submit(t.Context(), r, caller, 0))(t)
	}
	for i := range jobs {
		c.waitFor(n, under(fmt.Sprint("limit-", i), "m").Job, job.Done)
	}
	dear := under("limit-dear", "dear").Job
	c.waitFor(n, dear, job.Stopped)
	limitsOf(t, n, func(limits int) bool { return limits == 0 })
	paid.Store(true)
	must.Do(t, errors.Join(n.ResetLimit("limit-dear")))
	c.resumes(n, dear)
	c.waitFor(n, under("limit-0", "m").Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}
