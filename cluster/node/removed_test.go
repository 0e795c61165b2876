package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/provider"
)

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
	if err := os.RemoveAll(filepath.Join(c.dir, "home", filepath.FromSlash(job.Folder(r.Job)))); err != nil {
		t.Fatal(err)
	}
	n.tellChanged(r.Job) // or it is seen within a minute
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
	gate, begun, end := c.heldWorker()
	n, r := c.submitted(60)
	<-begun
	if err := n.Remove(t.Context(), r.Job); !errors.Is(err, ErrState) {
		t.Errorf("a job that runs was deleted: %v", err)
	}
	close(gate)
	c.waitFor(n, r.Job, job.Done)
	if err := n.Remove(t.Context(), r.Job); err != nil {
		t.Fatal(err)
	}
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
