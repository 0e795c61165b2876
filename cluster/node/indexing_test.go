package node

import (
	"errors"
	"testing"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
)

// planned is a job's record as a worker reads it, and the plan that it makes of it.
func planned(t *testing.T, n *Node, name string) (*job.Record, *index.Plan) {
	t.Helper()
	r, err := job.Load(t.Context(), n.home, name)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := opening(answer)(&r)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := n.sourceOf(&r, caller).Plan(t.Context(), 1, n.objectName())
	if err != nil {
		t.Fatal(err)
	}
	return &r, plan
}

// begins has a worker begin a job by its plan, and gives the record after that.
func begins(t *testing.T, n *Node, read *job.Record, plan *index.Plan) job.Record {
	t.Helper()
	if err := n.begin(t.Context(), read, plan); err != nil {
		t.Fatal(err)
	}
	r, err := job.Load(t.Context(), n.home, read.Job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A job that somebody has changed while it was cut is not begun: it would run though it was canceled.
func TestAJobThatIsChangedWhileItIsCutDoesNotBegin(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	read, plan := planned(t, n, r.Job)
	silently(t, n, r.Job, job.Canceled)
	if got := begins(t, n, read, plan); got.State != job.Canceled || got.Plan != "" {
		t.Errorf("%+v", got)
	}
}

// The order of events: a worker stalls while it reads a job through, another does it again, and the first goes on. The
// plan by which chunks are perhaps called stays.
func TestTwoReadOneJobThrough(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(200)
	late, latePlan := planned(t, n, r.Job)
	first := begins(t, n, late, latePlan)
	if again := begins(t, n, late, latePlan); first.State != job.Running || again.Plan != first.Plan || again.Version != first.Version {
		t.Errorf("%+v, then %+v", first, again)
	}
}

// Inputs that are added while others are read through are read through next, and the chunks of the others stay.
func TestInputsAreAddedWhileOthersAreReadThrough(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	t.Cleanup(func() { _ = n.Close() })
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 120), Open: true})
	read, plan := planned(t, n, r.Job)
	if err := n.Add(t.Context(), r.Job, c.inputs(1, 60), false); err != nil {
		t.Fatal(err)
	}
	if got := begins(t, n, read, plan); got.State != job.Indexing || got.Plan == "" {
		t.Errorf("%+v", got)
	}
	read, both := planned(t, n, r.Job)
	if got := begins(t, n, read, both); got.State != job.Running || both.Items != 180 || both.Segments[0] != plan.Segments[0] {
		t.Errorf("%+v, with %+v", got, both)
	}
}

// A job that is canceled before what was added to it was read through reads that when it is resumed; else it would be
// done without it.
func TestWhatWasAddedIsReadAfterAResume(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	t.Cleanup(func() { _ = n.Close() })
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 60), Open: true})
	read, plan := planned(t, n, r.Job)
	begins(t, n, read, plan)
	for _, want := range []job.State{job.Running, job.Indexing} {
		if want == job.Indexing {
			if err := n.Add(t.Context(), r.Job, c.inputs(1, 60), false); err != nil {
				t.Fatal(err)
			}
		}
		err := errors.Join(n.Cancel(t.Context(), r.Job), n.Resume(t.Context(), r.Job))
		if got, loaded := job.Load(t.Context(), n.home, r.Job); err != nil || loaded != nil || got.State != want {
			t.Errorf("%s, want %s: %v", got.State, want, err)
		}
	}
}
