package node

import (
	"context"
	"sync"
	"testing"

	"github.com/headrace/headrace/cluster/job"
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
			if _, err := j.open(ctx, r.Job); err != nil {
				t.Fatal(err)
			}
		}
	}
	are("three jobs", 2, 0)
	j.end(ctx, names[0])
	j.end(ctx, names[0])
	j.end(ctx, "none")
	are("another asks alike", 2, 0)
	j.end(ctx, names[1])
	are("the last one that asks so has ended", 2, 1)
	if _, err := j.open(ctx, names[1]); err != nil {
		t.Fatal(err)
	}
	are("it goes on", 3, 1)
	stop()
	running.Wait()
	if closed != 3 {
		t.Errorf("%d of 3 are closed at the end", closed)
	}
}
