package node

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/provider"
)

// A foreman stops a job at its deadline, and none before; a job that is resumed has none any more.
func TestADeadlineStopsAJob(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, clock := c.foremanAlone(n)
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 10), Bounds: job.Bounds{Deadline: clock.Now().Add(time.Minute)}})
	state := func() job.Record {
		t.Helper()
		f.look(t.Context())
		r, err := job.Load(t.Context(), n.home, r.Job)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if s := state(); s.State == job.Stopped {
		t.Errorf("before its deadline it has stopped: %s", s.Why)
	}
	clock.Advance(time.Minute)
	if s := state(); s.State != job.Stopped || !s.Bound || !strings.Contains(s.Why, "--deadline") {
		t.Errorf("at its deadline it is %s (%s), bound %v", s.State, s.Why, s.Bound)
	}
	if err := n.Resume(t.Context(), r.Job); err != nil {
		t.Fatal(err)
	}
	if s := state(); s.State == job.Stopped || s.Bound {
		t.Errorf("resumed it is %s (%s)", s.State, s.Why)
	}
}

// A deadline counts in whatever zone its submitter's clock is.
func TestADeadlineOfAnotherZoneStopsAJob(t *testing.T) {
	c := newCluster(t)
	n := c.join(nil)
	defer n.Close()
	f, clock := c.foremanAlone(n)
	zone := time.FixedZone("", 5*60*60+45*60)
	r := c.submitRecord(n, job.Record{Inputs: c.inputs(0, 10), Bounds: job.Bounds{Deadline: clock.Now().In(zone).Truncate(time.Second)}})
	clock.Advance(time.Minute)
	f.look(t.Context())
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
	if _, err := job.Change(t.Context(), n.home, r.Job, func(r *job.Record) error {
		r.State, r.Why, r.Bound = job.Stopped, "its deadline was reached", true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := n.Add(t.Context(), r.Job, c.inputs(1, 10), false); err != nil { // it goes on
		t.Fatal(err)
	}
	if r, changed := n.stopJob(t.Context(), r.Job, "an input is missing"); !changed || r.Bound {
		t.Errorf("stopped by another reason: %v, bound %v", changed, r.Bound)
	}
}

// A foreman that begins when parts are there counts the failures in them, and counts an announced part once.
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
	r, err := job.Load(t.Context(), n.home, r.Job)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := c.foremanAlone(n)
	o := &overseen{record: r}
	o.record.Bounds.Failures = 1000
	if err := f.count(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	footer, _ := json.Marshal(o.counted[1])
	o.hearSums(&doneWord{Chunk: 1, Footer: footer})
	failed := 0
	for _, sums := range o.counted {
		failed += sums.Failed
	}
	if failed != 120 {
		t.Errorf("%d failures are counted, want 120", failed)
	}
}
