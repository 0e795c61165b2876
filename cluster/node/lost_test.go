package node

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/provider"
)

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
			if err := n.RetryFailed(t.Context(), r.Job); err != nil {
				t.Fatal(err)
			}
			c.waitFor(n, r.Job, job.Done)
		}
		part := job.PartName(r.Job, 1, round)
		if err := n.home.Delete(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(c.dir, "out.jsonl")
		if _, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), part) {
			t.Fatalf("%s is lost, and a fetch says %v", part, err)
		}
		before := calls.Load()
		if err := n.Resume(t.Context(), r.Job); err != nil {
			t.Fatal(err)
		}
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
	if err := n.home.Delete(t.Context(), job.PartName(r.Job, 1, 0)); err != nil {
		t.Fatal(err)
	}
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
	if err := n.home.Delete(t.Context(), job.PartName(r.Job, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := n.RetryFailed(t.Context(), r.Job); !errors.Is(err, ErrLost) {
		t.Errorf("what failed is tried again: %v", err)
	}
	if err := n.Resume(t.Context(), r.Job); err != nil {
		t.Fatal(err)
	}
	c.waitFor(n, r.Job, job.Done)
	if err := n.RetryFailed(t.Context(), r.Job); err != nil {
		t.Fatal(err)
	}
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}
