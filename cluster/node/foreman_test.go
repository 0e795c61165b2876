package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// toldLimits notes what a foreman tells a keeper.
type toldLimits struct {
	weights []float64
	vouched []string
}

func (l *toldLimits) Job(_ context.Context, _ string, weight float64) {
	l.weights = append(l.weights, weight)
}

func (l *toldLimits) Vouch(_ context.Context, job string) { l.vouched = append(l.vouched, job) }

// foremanAlone returns a foreman that hears nothing except from the store, with a clock that the test moves.
func (c *cluster) foremanAlone(n *Node) (*foreman, *clockwork.FakeClock) {
	c.t.Helper()
	clock := clockwork.NewFakeClock()
	n.clock = clock
	f := newForeman(n, &toldLimits{})
	return f, clock
}

// runsUntilQueued has a foreman look until chunks of a job are in the queue. The inputs are read through here.
func (f *foreman) runsUntilQueued(t *testing.T, name string) {
	t.Helper()
	for range 10 {
		f.look(t.Context())
		if f.queued(t, name) > 0 {
			return
		}
		if f.jobs[name].record.State == job.Indexing {
			f.indexed(t)
			f.jobs[name].stale = true
		}
	}
	t.Fatalf("nothing is queued: %+v", f.jobs[name])
}

// indexed does what a worker does of the tasks in the queue.
func (f *foreman) indexed(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := f.newRefusals()
	x := &indexer{f.Node, f.newJobs(r, opening(answer)), r}
	var running sync.WaitGroup
	running.Go(func() { x.jobs.run(ctx) })
	x.next(ctx)
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

// told gives a function that waits until the workers hear of a change of a job.
func (c *cluster) told(n *Node, name string) func() {
	c.t.Helper()
	news, err := n.bus.Listen(bus.News, name, 10)
	if err != nil {
		c.t.Fatal(err)
	}
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
	_, err := job.Change(t.Context(), n.home, name, func(r *job.Record) error {
		r.State = state
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A message sent while the foreman's connection is away is lost. So a resumed job has its record changed without his
// knowledge. He looks at all jobs when he is back, and each minute at those under way.
func TestForemanSeesWhatNobodyTold(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	told := c.told(n, r.Job)
	for _, state := range []job.State{job.Canceled, job.Running, job.Stopped, job.Running} {
		silently(t, n, r.Job, state)
		if state == job.Running {
			f.connected = time.Time{} // so the connection is another
		} else {
			clock.Advance(listEvery)
		}
		f.look(t.Context())
		if got := f.jobs[r.Job].record.State; got != state {
			t.Fatalf("the foreman takes it for %s, and it is %s", got, state)
		}
		if queued := f.queued(t, r.Job); (queued > 0) != (state == job.Running) {
			t.Errorf("%s, and %d chunks are queued", state, queued)
		}
		told() // workers that have not heard of it either
	}
}

// A job whose folder is deleted without a message ends within a minute, and the foreman tells the workers.
func TestForemanSeesADeletedFolder(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	told := c.told(n, r.Job)
	if err := job.Remove(t.Context(), n.home, r.Job); err != nil {
		t.Fatal(err)
	}
	clock.Advance(listEvery)
	f.look(t.Context())
	if queued := f.queued(t, r.Job); queued > 0 {
		t.Errorf("%d chunks are queued", queued)
	}
	told()
}

// The foreman hears its own words. That a job is deleted is said once, or each word would bring forth the next.
func TestForemanSaysOnceThatAJobIsDeleted(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, _ := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	heard, err := n.bus.Listen(bus.News, r.Job, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer heard.Close()
	if err := job.Remove(t.Context(), n.home, r.Job); err != nil {
		t.Fatal(err)
	}
	n.tellChanged(r.Job)
	for range 2 { // the one that was said here, and the foreman's own
		f.hearNews(t.Context(), <-heard.C)
	}
	select {
	case <-heard.C:
		t.Error("the foreman answers its own word")
	case <-time.After(time.Second): // it would have come in a millisecond
	}
}

// The order of events: a job is canceled; the keeper dies before he takes its chunks out of the queue. Then the
// next one does: workers that begin later know nothing of the end of the job.
func TestTheNextForemanEmptiesTheQueue(t *testing.T) {
	for _, state := range []job.State{job.Canceled, job.Stopped} {
		t.Run(string(state), func(t *testing.T) {
			c := newCluster(t)
			n := c.join(nil)
			defer n.Close()
			r := c.submit(n, c.input(200), 1)
			f, _ := c.foremanAlone(n)
			f.runsUntilQueued(t, r.Job)
			silently(t, n, r.Job, state)
			next, _ := c.foremanAlone(n)
			away, cancel := context.WithCancel(t.Context())
			next.meet(away, r.Job)
			cancel()
			if err := next.serve(away, next.jobs[r.Job]); err == nil {
				t.Fatal("the queue was emptied without the bus")
			}
			next.look(t.Context())
			if queued := next.queued(t, r.Job); queued != 0 {
				t.Errorf("%d chunks are left", queued)
			}
		})
	}
}

// A foreman keeps no more in the queue than he should, and does not queue again what is there.
func TestForemanQueuesOnce(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	for range 3 {
		clock.Advance(lookEvery)
		f.look(t.Context())
	}
	chunks := f.jobs[r.Job].chunks.Len()
	queued := f.queued(t, r.Job)
	for range 600 { // the server counts what it has just taken in a moment later
		if queued == chunks {
			break
		}
		time.Sleep(100 * time.Millisecond)
		queued = f.queued(t, r.Job)
	}
	if queued != chunks || chunks != 4 {
		t.Errorf("%d are queued of %d", queued, chunks)
	}
}

// A word about a job concerns that job alone: a hundred that are submitted at once are not each looked at a hundred times.
func TestAWordConcernsOneJob(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	f, _ := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	other := c.submit(n, c.input(10), 1)
	f.meet(t.Context(), other.Job)
	silently(t, n, r.Job, job.Canceled)
	silently(t, n, other.Job, job.Canceled)
	f.jobs[other.Job].stale = true
	f.hearNews(t.Context(), bus.Word{About: r.Job, Body: []byte("{}")})
	if got := f.jobs[r.Job].record.State; got != job.Canceled {
		t.Errorf("the job of the word is %s", got)
	}
	if !f.jobs[other.Job].stale {
		t.Error("the other job was looked at as well")
	}
}

// A job whose last part is done has no weight any more: the keeper would keep its share for it.
func TestADoneJobHasNoWeight(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	r := c.submit(n, c.input(10), 2)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	told := f.keep.(*toldLimits)
	if !slices.Equal(told.weights, []float64{r.Weight}) {
		t.Fatalf("a job of weight %v has %v", r.Weight, told.weights)
	}
	silently(t, n, r.Job, job.Done)
	clock.Advance(listEvery)
	f.look(t.Context())
	if !slices.Equal(told.weights, []float64{r.Weight, 0}) || f.jobs[r.Job].told {
		t.Errorf("weights %v of a job that is done", told.weights)
	}
}

// A job that a person has go on after it had stopped vouches for its limits, once; no other change does.
func TestAResumedJobVouchesOnce(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	told := f.keep.(*toldLimits)
	for _, change := range []struct {
		state job.State
		want  int
	}{{job.Canceled, 0}, {job.Running, 0}, {job.Stopped, 0}, {job.Running, 1}, {job.Canceled, 1}, {job.Running, 1}} {
		silently(t, n, r.Job, change.state)
		clock.Advance(listEvery)
		f.jobs[r.Job].stale = true
		f.look(t.Context())
		if len(told.vouched) != change.want {
			t.Fatalf("it is %s now, and %d words vouch for its limits, want %d", change.state, len(told.vouched), change.want)
		}
	}
}

// A part of which nobody has told the foreman is seen within a minute.
func TestForemanListsPartsAgain(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	f, clock := c.foremanAlone(n)
	f.runsUntilQueued(t, r.Job)
	if err := store.CreateBytes(t.Context(), n.home, job.PartName(r.Job, 2, 0), []byte("a part")); err != nil {
		t.Fatal(err)
	}
	clock.Advance(listEvery - 1)
	f.look(t.Context())
	ledger := f.jobs[r.Job].ledger
	if ledger.Has(2) {
		t.Error("parts are listed at each look")
	}
	clock.Advance(1)
	f.jobs[r.Job].stale = false
	if err := f.count(t.Context(), f.jobs[r.Job]); err != nil || !ledger.Has(2) || ledger.Done() != 1 {
		t.Errorf("%v, %d parts", err, ledger.Done())
	}
}
