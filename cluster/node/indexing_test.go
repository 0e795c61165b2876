package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/internal/must"
)

// planned is a job's record as a worker reads it, and the plan that it makes of it.
func planned(t *testing.T, n *Node, name string) (*job.Record, *index.Plan) {
	t.Helper()
	r := must.Get(job.Load(t.Context(), n.home, name))(t)
	caller := must.Get(opening(answer)(&r))(t)
	plan := must.Get(n.sourceOf(&r, caller).Plan(t.Context(), 1, n.objectName()))(t)
	return &r, plan
}

// begins has a worker begin a job by its plan, and gives the record after that.
func begins(t *testing.T, n *Node, read *job.Record, plan *index.Plan) job.Record {
	t.Helper()
	must.Do(t, n.startJob(t.Context(), read, plan))
	r := must.Get(job.Load(t.Context(), n.home, read.Job))(t)
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
	must.Do(t, n.Add(t.Context(), r.Job, c.inputs(1, 60), false))
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
			must.Do(t, n.Add(t.Context(), r.Job, c.inputs(1, 60), false))
		}
		err := errors.Join(n.Cancel(t.Context(), r.Job), n.Resume(t.Context(), r.Job))
		if got, loaded := job.Load(t.Context(), n.home, r.Job); err != nil || loaded != nil || got.State != want {
			t.Errorf("%s, want %s: %v", got.State, want, err)
		}
	}
}

// Results go into a store as they go into a file: again they take the place of what is there, and results of another job stay.
func TestFetchIntoAStore(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, answer)
	n, r := c.submitted(120)
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
	local := filepath.Join(c.dir, "local.jsonl")
	must.Get(n.Fetch(t.Context(), r.Job, local, local+".errors", false))(t)
	want := must.Get(os.ReadFile(local))(t)
	away := "file://" + c.dir + "/results/"
	object := func() []byte {
		t.Helper()
		text := must.Get(os.ReadFile(filepath.Join(c.dir, "results", "out.jsonl")))(t)
		return text
	}
	for range 2 {
		got, err := n.Fetch(t.Context(), r.Job, away+"out.jsonl", away+"failed.jsonl", false)
		if err != nil || got.Done != 120 || !bytes.Equal(object(), want) {
			t.Errorf("%+v %v", got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(c.dir, "results", "failed.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing has failed, and an object says what: %v", err)
	}
	half := want[:bytes.IndexByte(want, '\n')+1]
	others := append(slices.Clone(want), bytes.Replace(half, []byte("q 0"), []byte("q x"), -1)...)
	must.Do(t, os.WriteFile(filepath.Join(c.dir, "results", "out.jsonl"), others, 0o600))
	if _, err := n.Fetch(t.Context(), r.Job, away+"out.jsonl", away+"failed.jsonl", false); err == nil || !strings.Contains(err.Error(), away+"out.jsonl") {
		t.Errorf("it takes the place of other results: %v", err)
	}
	if !bytes.Equal(object(), others) {
		t.Error("the results of another are gone")
	}
	if _, err := n.Fetch(t.Context(), r.Job, away, away+"failed.jsonl", false); err == nil || errors.Is(err, parts.ErrOtherResults) {
		t.Errorf("an output without a name: %v", err)
	}
}

// A name that ends in a slash is all that it contains, in order, but for what is empty.
func TestInputsOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"b.jsonl": "b\n", "a.jsonl": "aa\n", "more/c.jsonl": "c\n", "empty": ""} {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	for input, want := range map[string][]string{
		dir + "/":               {dir + "/a.jsonl", dir + "/b.jsonl", dir + "/more/c.jsonl"},
		"file://" + dir + "/":   {"file://" + dir + "/a.jsonl", "file://" + dir + "/b.jsonl", "file://" + dir + "/more/c.jsonl"},
		dir + "/more/":          {dir + "/more/c.jsonl"},
		dir + "/more/c.jsonl":   {dir + "/more/c.jsonl"},
		t.TempDir() + "/":       nil,
		dir + "/nothing/":       nil,
		dir + "/nothing.jsonl":  nil,
		"file://" + dir + "/no": nil,
	} {
		all, err := InputsOf(t.Context(), input)
		var got []string
		for _, in := range all {
			got = append(got, in.Name)
			if o := in.Objects; len(o) != 1 || want != nil && (o[0].Identity == "" || o[0].Bytes == 0) {
				t.Errorf("%s is %+v", in.Name, o)
			}
		}
		if want == nil && err == nil || want != nil && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("%s: %v (%v), want %v", input, got, err, want)
		}
	}
}
