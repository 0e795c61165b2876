package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/jonboulle/clockwork"
)

// recordedLimits notes what a scheduler tells a keeper.
type recordedLimits struct {
	weights []float64
	vouched []string
}

func (l *recordedLimits) Job(_ context.Context, _ string, weight float64) {
	l.weights = append(l.weights, weight)
}

func (l *recordedLimits) Vouch(_ context.Context, job string) { l.vouched = append(l.vouched, job) }

// schedulerAlone returns a scheduler that hears nothing except from the store, with a clock that the test moves.
func (c *cluster) schedulerAlone(n *Node) (*scheduler, *clockwork.FakeClock) {
	c.t.Helper()
	clock := clockwork.NewFakeClock()
	n.clock = clock
	f := newScheduler(n, &recordedLimits{})
	return f, clock
}

// runsUntilQueued has a scheduler look until chunks of a job are in the queue. The inputs are read through here.
func (f *scheduler) runsUntilQueued(t *testing.T, name string) {
	t.Helper()
	for range 10 {
		f.overseeAll(t.Context())
		switch f.jobs[name].record.State {
		case job.Indexing:
			f.indexed(t)
			f.jobs[name].stale = true
		case job.Running:
			if f.queuedWhen(t, name, func(n int) bool { return n > 0 }) > 0 {
				return
			}
		}
	}
	t.Fatalf("nothing is queued: %+v", f.jobs[name])
}

// indexed does what a worker does of the tasks in the queue.
func (f *scheduler) indexed(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := f.newRefusals()
	x := &indexer{f.Node, f.newJobs(r, opening(answer)), r}
	var running sync.WaitGroup
	running.Go(func() { x.jobs.run(ctx) })
	x.indexNext(ctx)
	stop()
	running.Wait()
}

func (n *Node) queued(t *testing.T, name string) int {
	t.Helper()
	queued, err := n.bus.Queued(t.Context(), bus.Chunks, name)
	if err != nil && !errors.Is(err, bus.ErrGone) { // none was ever offered
		t.Fatal(err)
	}
	return queued
}

// queuedWhen waits until the number of a job's chunks in the queue is as wanted, and returns it. The server counts a chunk
// a moment after it has taken it in, and later under load.
func (n *Node) queuedWhen(t *testing.T, name string, isWanted func(int) bool) (queued int) {
	t.Helper()
	for range 3000 {
		if queued = n.queued(t, name); isWanted(queued) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return queued
}

// announced gives a function that waits until the workers hear of a change of a job.
func (c *cluster) announced(n *Node, name string) func() {
	c.t.Helper()
	news := must.Get(bus.Listen[bus.Change](n.bus, bus.News, name, 10))(c.t)
	c.t.Cleanup(news.Close)
	return func() {
		c.t.Helper()
		select {
		case <-news.C:
		case <-time.After(time.Minute):
			c.t.Fatal("the workers are not told")
		}
	}
}

// silently changes a job's state, and tells nobody.
func silently(t *testing.T, n *Node, name string, state job.State) {
	t.Helper()
	must.Get(job.Change(t.Context(), n.home, name, func(r *job.Record) error {
		r.State = state
		return nil
	}))(t)
}

// A message sent while the scheduler's connection is away is lost. So a resumed job has its record changed without his
// knowledge. He looks at all jobs when he is back, and each minute at those under way.
func TestSchedulerSeesWhatNobodyAnnounced(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	announced := c.announced(n, r.Job)
	for _, state := range []job.State{job.Canceled, job.Running, job.Stopped, job.Running} {
		silently(t, n, r.Job, state)
		if state == job.Running {
			f.connected = time.Time{} // so the connection is another
		} else {
			clock.Advance(listEvery)
		}
		f.overseeAll(t.Context())
		if got := f.jobs[r.Job].record.State; got != state {
			t.Fatalf("the scheduler takes it for %s, and it is %s", got, state)
		}
		isRight := func(n int) bool { return (n > 0) == (state == job.Running) }
		if queued := f.queuedWhen(t, r.Job, isRight); !isRight(queued) {
			t.Errorf("%s, and %d chunks are queued", state, queued)
		}
		announced() // workers that have not heard of it either
	}
}

// A job whose folder is deleted without a message ends within a minute, and the scheduler tells the workers.
func TestSchedulerSeesADeletedFolder(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	announced := c.announced(n, r.Job)
	must.Do(t, job.Remove(t.Context(), n.home, r.Job))
	clock.Advance(listEvery)
	f.overseeAll(t.Context())
	if queued := f.queuedWhen(t, r.Job, func(n int) bool { return n == 0 }); queued > 0 {
		t.Errorf("%d chunks are queued", queued)
	}
	announced()
}

// The scheduler hears its own words. That a job is deleted is said once, or each word would bring forth the next.
func TestSchedulerSaysOnceThatAJobIsDeleted(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, _ := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	heard := must.Get(bus.Listen[bus.Change](n.bus, bus.News, r.Job, 10))(t)
	defer heard.Close()
	must.Do(t, job.Remove(t.Context(), n.home, r.Job))
	n.announceChange(r.Job)
	for range 2 { // the one that was said here, and the scheduler's own
		f.hearNews(t.Context(), <-heard.C)
	}
	select {
	case <-heard.C:
		t.Error("the scheduler answers its own word")
	case <-time.After(time.Second): // it would have come in a millisecond
	}
}

// The order of events: a job is canceled; the keeper dies before he takes its chunks out of the queue. Then the
// next one does: workers that begin later know nothing of the end of the job.
func TestTheNextSchedulerEmptiesTheQueue(t *testing.T) {
	for _, state := range []job.State{job.Canceled, job.Stopped} {
		t.Run(string(state), func(t *testing.T) {
			c := newCluster(t)
			n := c.join(nil)
			defer n.Close()
			r := c.submit(n, c.input(200), 1)
			f, _ := c.schedulerAlone(n)
			f.runsUntilQueued(t, r.Job)
			silently(t, n, r.Job, state)
			next, _ := c.schedulerAlone(n)
			away, cancel := context.WithCancel(t.Context())
			next.beginOverseeing(away, r.Job)
			cancel()
			if err := next.nextStep(away, next.jobs[r.Job]); err == nil {
				t.Fatal("the queue was emptied without the bus")
			}
			next.overseeAll(t.Context())
			if queued := next.queuedWhen(t, r.Job, func(n int) bool { return n == 0 }); queued != 0 {
				t.Errorf("%d chunks are left", queued)
			}
		})
	}
}

// A scheduler keeps no more in the queue than he should, and does not queue again what is there.
func TestSchedulerQueuesOnce(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	for range 3 {
		clock.Advance(overseeEvery)
		f.overseeAll(t.Context())
	}
	chunks := f.jobs[r.Job].chunks.Len()
	queued := f.queuedWhen(t, r.Job, func(n int) bool { return n == chunks })
	if queued != chunks || chunks != 4 {
		t.Errorf("%d are queued of %d", queued, chunks)
	}
}

// A word about a job concerns that job alone: a hundred that are submitted at once are not each looked at a hundred times.
func TestAMessageConcernsOneJob(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	f, _ := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	other := c.submit(n, c.input(10), 1)
	f.beginOverseeing(t.Context(), other.Job)
	silently(t, n, r.Job, job.Canceled)
	silently(t, n, other.Job, job.Canceled)
	f.jobs[other.Job].stale = true
	f.hearNews(t.Context(), bus.Message[bus.Change]{About: r.Job})
	if got := f.jobs[r.Job].record.State; got != job.Canceled {
		t.Errorf("the job of the word is %s", got)
	}
	if !f.jobs[other.Job].stale {
		t.Error("the other job was looked at as well")
	}
}

// The queue has no chunk of a paused job, and the keeper no share for it, until it is resumed. A pause does not keep a job
// from its deadline.
func TestAPausedJobHasNothingQueued(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	chunks := f.jobs[r.Job].chunks.Len()
	f.queuedWhen(t, r.Job, func(n int) bool { return n == chunks })
	see := func(change error) int {
		t.Helper()
		must.Do(t, change)
		f.jobs[r.Job].stale = true
		f.overseeAll(t.Context())
		return f.queued(t, r.Job)
	}
	for range 2 {
		if queued := see(n.Pause(t.Context(), r.Job)); queued > 0 {
			t.Errorf("%d chunks of a paused job are queued", queued)
		}
	}
	see(n.Resume(t.Context(), r.Job))
	if queued := f.queuedWhen(t, r.Job, func(n int) bool { return n == chunks }); queued != chunks {
		t.Errorf("%d chunks of %d are queued again", queued, chunks)
	}
	if announced := f.keeper.(*recordedLimits); !slices.Equal(announced.weights, []float64{1, 0, 1}) || len(announced.vouched) > 0 {
		t.Errorf("%+v", announced)
	}
	must.Get(job.Change(t.Context(), n.home, r.Job, func(r *job.Record) error {
		r.Bounds.Deadline = clock.Now()
		return nil
	}))(t)
	see(n.Pause(t.Context(), r.Job))
	if s := must.Get(n.Job(t.Context(), r.Job))(t); s.Record.State != job.Stopped || !s.Record.Bound || s.Record.IsPaused() {
		t.Errorf("%+v", s.Record)
	}
}

// A job whose last part is done has no weight any more: the keeper would keep its share for it.
func TestADoneJobHasNoWeight(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	r := c.submit(n, c.input(10), 2)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	announced := f.keeper.(*recordedLimits)
	if !slices.Equal(announced.weights, []float64{r.Weight}) {
		t.Fatalf("a job of weight %v has %v", r.Weight, announced.weights)
	}
	silently(t, n, r.Job, job.Done)
	clock.Advance(listEvery)
	f.overseeAll(t.Context())
	if !slices.Equal(announced.weights, []float64{r.Weight, 0}) || f.jobs[r.Job].announced {
		t.Errorf("weights %v of a job that is done", announced.weights)
	}
}

// A job that a person has go on after it had stopped vouches for its limits, once; no other change does.
func TestAResumedJobVouchesOnce(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	announced := f.keeper.(*recordedLimits)
	for _, change := range []struct {
		state job.State
		want  int
	}{{job.Canceled, 0}, {job.Running, 0}, {job.Stopped, 0}, {job.Running, 1}, {job.Canceled, 1}, {job.Running, 1}} {
		silently(t, n, r.Job, change.state)
		clock.Advance(listEvery)
		f.jobs[r.Job].stale = true
		f.overseeAll(t.Context())
		if len(announced.vouched) != change.want {
			t.Fatalf("it is %s now, and %d words vouch for its limits, want %d", change.state, len(announced.vouched), change.want)
		}
	}
}

// A part of which nobody has told the scheduler is seen within a minute.
func TestSchedulerListsPartsAgain(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.schedulerAlone(n)
	f.runsUntilQueued(t, r.Job)
	must.Do(t, store.CreateBytes(t.Context(), n.home, job.PartName(r.Job, 2, 0), []byte("a part")))
	clock.Advance(listEvery - 1)
	f.overseeAll(t.Context())
	ledger := f.jobs[r.Job].ledger
	if ledger.Has(2) {
		t.Error("parts are listed at each look")
	}
	clock.Advance(1)
	f.jobs[r.Job].stale = false
	if err := f.countParts(t.Context(), f.jobs[r.Job]); err != nil || !ledger.Has(2) || ledger.Done() != 1 {
		t.Errorf("%v, %d parts", err, ledger.Done())
	}
}

// A scheduler stops a job at its deadline, and none before; a job that is resumed has none any more.
func TestADeadlineStopsAJob(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, clock := c.schedulerAlone(n)
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 10), Bounds: job.Bounds{Deadline: clock.Now().Add(time.Minute)}})
	state := func() job.Record {
		t.Helper()
		f.overseeAll(t.Context())
		r := must.Get(job.Load(t.Context(), n.home, r.Job))(t)
		return r
	}
	if s := state(); s.State == job.Stopped {
		t.Errorf("before its deadline it has stopped: %s", s.Why)
	}
	clock.Advance(time.Minute)
	if s := state(); s.State != job.Stopped || !s.Bound || !strings.Contains(s.Why, "--deadline") {
		t.Errorf("at its deadline it is %s (%s), bound %v", s.State, s.Why, s.Bound)
	}
	must.Do(t, n.Resume(t.Context(), r.Job))
	if s := state(); s.State == job.Stopped || s.Bound {
		t.Errorf("resumed it is %s (%s)", s.State, s.Why)
	}
}

// A deadline counts in whatever zone its submitter's clock is.
func TestADeadlineOfAnotherZoneStopsAJob(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, clock := c.schedulerAlone(n)
	zone := time.FixedZone("", 5*60*60+45*60)
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 10), Bounds: job.Bounds{Deadline: clock.Now().In(zone).Truncate(time.Second)}})
	clock.Advance(time.Minute)
	f.overseeAll(t.Context())
	if s, err := job.Load(t.Context(), n.home, r.Job); err != nil || s.State != job.Stopped || !s.Bound {
		t.Errorf("after its deadline it is %s, bound %v, %v", s.State, s.Bound, err)
	}
}

// A job that goes on after a bound has stopped it, and stops for another reason, is not said to have reached a bound.
func TestAnotherReasonIsNoBound(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 10), Open: true})
	must.Get(job.Change(t.Context(), n.home, r.Job, func(r *job.Record) error {
		r.State, r.Why, r.Bound = job.Stopped, "its deadline was reached", true
		return nil
	}))(t)
	if err := n.Add(t.Context(), r.Job, c.inputs(1, 10), false); err != nil { // it goes on
		t.Fatal(err)
	}
	if r, changed := n.stopJob(t.Context(), r.Job, "an input is missing", false); !changed || r.Bound {
		t.Errorf("stopped by another reason: %v, bound %v", changed, r.Bound)
	}
}

// A scheduler that begins when parts are there counts the failures in them, and counts an announced part once.
func TestFailuresThatWereThereAreCounted(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, func(_ context.Context, it *promptfile.Item) (provider.Reply, error) {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Message: "no"}
	})
	n, r := c.submitted(120) // three parts
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
	r = must.Get(job.Load(t.Context(), n.home, r.Job))(t)
	f, _ := c.schedulerAlone(n)
	o := &overseen{record: r}
	o.record.Bounds.Failures = 1000
	must.Do(t, f.countParts(t.Context(), o))
	footer, _ := json.Marshal(o.counted[1])
	o.addSums(&bus.PartDone{Chunk: 1, Footer: footer})
	failed := 0
	for _, sums := range o.counted {
		failed += sums.Failed
	}
	if failed != 120 {
		t.Errorf("%d failures are counted, want 120", failed)
	}
}

// heeding is a recordWatch alone, and what it has told the worker last of each job.
func (c *cluster) heeding(n *Node) (h *recordWatch, heard map[string]string) {
	heard = map[string]string{}
	h = n.newRecordWatch(func(name string) { heard[name] = "canceled" }, func(name string) { heard[name] = "resumed" })
	return h, heard
}

// A job that was canceled, and resumed when the worker did not hear it, is run again when a chunk of it comes.
func TestAChunkOfACanceledJobIsLookedAt(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	h.checkArrived(t.Context(), r.Job)
	silently(t, n, r.Job, job.Canceled)
	h.hear(t.Context(), bus.Message[bus.Change]{About: r.Job})
	h.checkArrived(t.Context(), r.Job)
	if heard[r.Job] != "canceled" {
		t.Fatalf("%v", heard)
	}
	silently(t, n, r.Job, job.Running)
	h.checkArrived(t.Context(), r.Job)
	if heard[r.Job] != "resumed" {
		t.Errorf("%v", heard)
	}
}

// What is said while the connection is away is looked for when it is back, once.
func TestNewsAreLookedForAfterAReconnect(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	h.checkArrived(t.Context(), r.Job)
	silently(t, n, r.Job, job.Canceled)
	h.recheck(t.Context())
	if len(heard) > 0 {
		t.Fatalf("%v", heard)
	}
	h.connected = h.connected.Add(-1)
	h.recheck(t.Context())
	if heard[r.Job] != "canceled" || len(h.unread) > 0 {
		t.Errorf("%v %v", heard, h.unread)
	}
}

// A worker that is new drops the chunks of a paused job that are in the queue, before any call, and takes them once the job is
// resumed.
func TestAChunkOfAPausedJobIsDropped(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	must.Do(t, n.Pause(t.Context(), r.Job))
	h, heard := c.heeding(n)
	ended := false
	h.end = func(context.Context, string) { ended = true }
	h.checkArrived(t.Context(), r.Job)
	if heard[r.Job] != "canceled" || ended {
		t.Fatalf("%v, and its lanes and purse are ended: %v", heard, ended)
	}
	silently(t, n, r.Job, job.Running)
	must.Do(t, n.Resume(t.Context(), r.Job))
	h.checkArrived(t.Context(), r.Job)
	if heard[r.Job] != "resumed" {
		t.Errorf("%v", heard)
	}
}

// News that come while the store is away are heeded when it is back.
func TestNewsWaitForTheStore(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	silently(t, n, r.Job, job.Canceled)
	home := n.home
	n.home = storetest.Broken{Err: store.ErrAway}
	h.hear(t.Context(), bus.Message[bus.Change]{About: r.Job})
	h.recheck(t.Context())
	if len(heard) > 0 {
		t.Fatalf("%v", heard)
	}
	n.home = home
	h.recheck(t.Context())
	if heard[r.Job] != "canceled" {
		t.Errorf("%v", heard)
	}
	for _, other := range []bus.Message[bus.Change]{{About: "-limits"}, {About: r.Job, Body: bus.Change{Reset: "x"}}, {About: "none"}} {
		delete(heard, r.Job)
		h.hear(t.Context(), other)
		h.recheck(t.Context())
		if len(heard) > 0 || len(h.unread) > 0 {
			t.Errorf("%v: %v, %v", other, heard, h.unread)
		}
	}
}
