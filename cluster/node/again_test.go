package node

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/provider"
)

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
	if err := os.RemoveAll(filepath.Join(c.dir, "home", "jobs", first.Job)); err != nil {
		t.Fatal(err)
	}
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

// The foreman takes a job that was made anew for what it is, also before it has seen that the old one is gone.
func TestTheForemanSeesAJobMadeAnew(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, _ := c.foremanAlone(n)
	r, _ := c.once(n, c.input(10))
	f.meet(t.Context(), r.Job)
	if err := os.RemoveAll(filepath.Join(c.dir, "home", "jobs", r.Job)); err != nil {
		t.Fatal(err)
	}
	o := f.jobs[r.Job]
	f.reload(t.Context(), r.Job, o)
	c.once(n, filepath.Join(c.dir, "in.jsonl"))
	o.stale = true
	f.reload(t.Context(), r.Job, o)
	if o.record.State != job.Indexing {
		t.Errorf("to the foreman it is %s", o.record.State)
	}
}
