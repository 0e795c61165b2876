package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// Jobs that ask alike share one caller. It is closed when the last of them has ended, and a job that goes on after that has
// another.
func TestJobsShareTheirCaller(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	made, closed := 0, 0
	j := n.newJobs(n.newRefusals(), func(r *job.Record) (*Caller, error) {
		made++
		caller, err := opening(answer)(r)
		caller.Close = func() { closed++ }
		return caller, err
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { j.run(ctx) })
	are := func(what string, wantMade, wantClosed int) {
		t.Helper()
		if _, err := j.open(ctx, "none"); err == nil { // so that all before is done
			t.Error("there is a job that nobody has submitted")
		}
		if made != wantMade || closed != wantClosed {
			t.Errorf("%s: %d callers and %d closed, want %d and %d", what, made, closed, wantMade, wantClosed)
		}
	}
	var names []string
	for _, provider := range []string{"a", "a", "b"} {
		r := c.submitRecord(n, job.Record{Inputs: c.inputs(len(names), 10), Asking: job.Asking{Provider: provider}})
		names = append(names, r.Job)
		for range 2 {
			must.Get(j.open(ctx, r.Job))(t)
		}
	}
	are("three jobs", 2, 0)
	j.reportEnd(ctx, names[0])
	j.reportEnd(ctx, names[0])
	j.reportEnd(ctx, "none")
	are("another asks alike", 2, 0)
	j.reportEnd(ctx, names[1])
	are("the last one that asks so has ended", 2, 1)
	must.Get(j.open(ctx, names[1]))(t)
	are("it goes on", 3, 1)
	stop()
	running.Wait()
	if closed != 3 {
		t.Errorf("%d of 3 are closed at the end", closed)
	}
}

// Inputs that are added while a job is read through, while it runs and when all that was there has ended are read by
// workers that opened the job before, and each item is called once.
func TestInputsAreAddedAtAnyTime(t *testing.T) {
	c := newCluster(t)
	gate, begun, calls := make(chan struct{}), make(chan struct{}, 1000), atomic.Int64{}
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		begun <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return answer(ctx, it)
	})
	n := c.join(nil)
	t.Cleanup(func() { _ = n.Close() })
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 200), Open: true})
	add := func(number int, closed bool) {
		t.Helper()
		must.Do(t, n.Add(t.Context(), r.Job, c.inputs(number, 60), closed))
	}
	add(1, false) // while it is read through, or before
	add(2, false)
	<-begun
	add(3, false)
	close(gate)
	for {
		s := must.Get(n.Job(t.Context(), r.Job))(t)
		if s.Items == 380 && s.Parts == s.Chunks {
			break
		}
		n.pause(t.Context())
	}
	add(4, true)
	s := c.waitFor(n, r.Job, job.Done)
	if s.Items != 440 || calls.Load() != 440 {
		t.Errorf("%d items and %d calls, want 440 of both", s.Items, calls.Load())
	}
	out := filepath.Join(c.dir, "out.jsonl")
	got, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false)
	if err != nil || got.Done != 440 || got.Failed != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// inputs is one input of so many lines, with a number in its name and in its ids.
func (c *cluster) inputs(number, lines int) []job.Input {
	c.t.Helper()
	path := filepath.Join(c.dir, fmt.Sprintf("in-%d.jsonl", number))
	var text []byte
	for i := range lines {
		text = fmt.Appendf(text, "{\"id\":\"%d-%d\",\"prompt\":\"q %d\"}\n", number, i, i)
	}
	must.Do(c.t, os.WriteFile(path, text, 0o600))
	o := must.Get(ObjectOf(c.t.Context(), path))(c.t)
	return []job.Input{{Name: path, Format: job.JSONL, Objects: []job.Object{o}}}
}

// once submits a job of small chunks that may be submitted again.
func (c *cluster) once(n *Node, path string) (r job.Record, met bool) {
	c.t.Helper()
	o, err := ObjectOf(c.t.Context(), path)
	if err != nil {
		c.t.Fatal(err)
	}
	caller, _ := opening(nil)(nil)
	r, met, err = n.SubmitOnce(c.t.Context(), job.Record{
		Inputs: []job.Input{{Name: path, Format: job.JSONL, Objects: []job.Object{o}}}, Submission: &job.Submission{Output: "/out"},
		Reading: job.Reading{Model: "m"}, Cut: job.Cut{ChunkLines: 50},
	}, caller, 0, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return r, met
}

// A submitter that dies before its job is there leaves it to the next. A job whose folder was deleted by hand is made anew
// by the same command, under the name that it had, and runs.
func TestAJobIsMadeAnewUnderItsName(t *testing.T) {
	c := newCluster(t)
	calls := atomic.Int64{}
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		return answer(ctx, it)
	})
	n := c.join(nil)
	defer n.Close()
	first, met := c.once(n, c.input(100))
	if met {
		t.Error("it was there before it was submitted")
	}
	c.waitFor(n, first.Job, job.Done)
	if again, met := c.once(n, filepath.Join(c.dir, "in.jsonl")); again.Job != first.Job || !met {
		t.Errorf("the same again is %s, met %v", again.Job, met)
	}
	must.Do(t, os.RemoveAll(filepath.Join(c.dir, "home", "jobs", first.Job)))
	if again, met := c.once(n, filepath.Join(c.dir, "in.jsonl")); again.Job != first.Job || met {
		t.Errorf("after its folder is deleted it is %s, met %v", again.Job, met)
	}
	c.waitFor(n, first.Job, job.Done)
	if n := calls.Load(); n != 200 {
		t.Errorf("%d calls, want 200", n)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// The scheduler takes a job that was made anew for what it is, also before it has seen that the old one is gone.
func TestTheSchedulerSeesAJobMadeAnew(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, _ := c.schedulerAlone(n)
	r, _ := c.once(n, c.input(10))
	f.beginOverseeing(t.Context(), r.Job)
	must.Do(t, os.RemoveAll(filepath.Join(c.dir, "home", "jobs", r.Job)))
	o := f.jobs[r.Job]
	f.reload(t.Context(), r.Job, o)
	c.once(n, filepath.Join(c.dir, "in.jsonl"))
	o.stale = true
	f.reload(t.Context(), r.Job, o)
	if o.record.State != job.Indexing {
		t.Errorf("to the scheduler it is %s", o.record.State)
	}
}

// An input that is not what was submitted any more stops its job, and says why; when it is again what it was, the job goes on.
func TestAChangedInputStopsTheJob(t *testing.T) {
	c := newCluster(t)
	gate, begun, end := c.blockedWorker()
	n := c.join(nil)
	defer n.Close()
	path := c.input(400)
	info := must.Get(os.Stat(path))(t)
	text := must.Get(os.ReadFile(path))(t)
	r := c.submit(n, path, 1)
	<-begun
	must.Do(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("q"), []byte("another")), 0o600))
	close(gate)
	s := c.waitFor(n, r.Job, job.Stopped)
	if !strings.Contains(s.Record.Why, "changed") || !strings.Contains(s.Record.Why, "in.jsonl") {
		t.Error(s.Record.Why)
	}
	must.Do(t, errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()), n.Resume(t.Context(), r.Job)))
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}

// A job whose folder is deleted while it runs has ended: nothing more of it is called, and nothing of it is queued.
func TestADeletedFolderIsAnEndedJob(t *testing.T) {
	c := newCluster(t)
	var calls atomic.Int64
	gate := make(chan struct{})
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return answer(ctx, it)
	})
	n, r := c.submitted(2000)
	for calls.Load() == 0 {
		n.pause(t.Context())
	}
	must.Do(t, os.RemoveAll(filepath.Join(c.dir, "home", filepath.FromSlash(job.Folder(r.Job)))))
	n.announceChange(r.Job) // or it is seen within a minute
	for n.queued(t, r.Job) > 0 {
		n.pause(t.Context())
	}
	n.pause(t.Context())
	before := calls.Load()
	close(gate)
	for range 5 {
		n.pause(t.Context())
	}
	if after := calls.Load(); after > before {
		t.Errorf("%d calls after the end of the job", after-before)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A job that has ended is deleted whole, and one that runs is not deleted.
func TestRemove(t *testing.T) {
	c := newCluster(t)
	gate, begun, end := c.blockedWorker()
	n, r := c.submitted(60)
	<-begun
	if err := n.Remove(t.Context(), r.Job); !errors.Is(err, ErrState) {
		t.Errorf("a job that runs was deleted: %v", err)
	}
	close(gate)
	c.waitFor(n, r.Job, job.Done)
	must.Do(t, n.Remove(t.Context(), r.Job))
	if _, err := n.Job(t.Context(), r.Job); !errors.Is(err, job.ErrMissing) {
		t.Errorf("it is there: %v", err)
	}
	time.Sleep(2 * time.Second) // what nobody should write
	for o, err := range n.home.List(t.Context(), job.Folder(r.Job), "") {
		t.Errorf("%v %v", o, err)
	}
	if err := n.Remove(t.Context(), r.Job); !errors.Is(err, job.ErrMissing) {
		t.Errorf("it was deleted twice: %v", err)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A part of a finished job that the store has lost is named by a fetch. Who resumes the job has its items asked again, and
// no others; also where the part is of a round in which what failed was tried again.
func TestALostPartIsAskedAgain(t *testing.T) {
	c := newCluster(t)
	var calls atomic.Int64
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		if calls.Add(1); it.Line == 60 {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: http.StatusBadRequest, Message: "no"}
		}
		return answer(ctx, it)
	})
	n, r := c.submitted(200)
	c.waitFor(n, r.Job, job.Done)
	if err := n.Resume(t.Context(), r.Job); !errors.Is(err, ErrState) {
		t.Errorf("a job that is whole was resumed: %v", err)
	}
	for round, asked := range []int64{50, 1} { // of the second chunk; a round asks the one that failed
		if round > 0 {
			must.Do(t, n.RetryFailed(t.Context(), r.Job))
			c.waitFor(n, r.Job, job.Done)
		}
		part := job.PartName(r.Job, 1, round)
		must.Do(t, n.home.Delete(t.Context(), part))
		out := filepath.Join(c.dir, "out.jsonl")
		if _, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), part) {
			t.Fatalf("%s is lost, and a fetch says %v", part, err)
		}
		before := calls.Load()
		must.Do(t, n.Resume(t.Context(), r.Job))
		c.waitFor(n, r.Job, job.Done)
		got, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false)
		if err != nil || got.Done != 199 || got.Failed != 1 || len(ids(t, out)) != 199 {
			t.Errorf("%+v %v", got, err)
		}
		if again := calls.Load() - before; again != asked {
			t.Errorf("%d calls for what was lost of round %d, want %d", again, round, asked)
		}
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A line that permits only watching changes nothing, not even what says that a round is over.
func TestAWatcherReopensNothing(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, answer)
	n, r := c.submitted(100)
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
	must.Do(t, n.home.Delete(t.Context(), job.PartName(r.Job, 1, 0)))
	watcher := c.joinAs(bus.WatchRole)
	defer watcher.Close()
	if err := watcher.Resume(t.Context(), r.Job); !errors.Is(err, bus.ErrRole) {
		t.Errorf("a watcher resumes a job: %v", err)
	}
	if _, err := parts.LoadDone(t.Context(), n.home, r.Job, 0); err != nil {
		t.Errorf("the round is open: %v", err)
	}
}

// A job that has lost a part tries nothing again before the part is there: its rounds would never end.
func TestALostPartComesBeforeAnotherRound(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		if it.Line == 60 {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: http.StatusBadRequest, Message: "no"}
		}
		return answer(ctx, it)
	})
	n, r := c.submitted(100)
	c.waitFor(n, r.Job, job.Done)
	must.Do(t, n.home.Delete(t.Context(), job.PartName(r.Job, 0, 0)))
	if err := n.RetryFailed(t.Context(), r.Job); !errors.Is(err, ErrLost) {
		t.Errorf("what failed is tried again: %v", err)
	}
	must.Do(t, n.Resume(t.Context(), r.Job))
	c.waitFor(n, r.Job, job.Done)
	must.Do(t, n.RetryFailed(t.Context(), r.Job))
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}
