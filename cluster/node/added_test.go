package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/provider"
)

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
		if err := n.Add(t.Context(), r.Job, c.inputs(number, 60), closed); err != nil {
			t.Fatal(err)
		}
	}
	add(1, false) // while it is read through, or before
	add(2, false)
	<-begun
	add(3, false)
	close(gate)
	for {
		s, err := n.Job(t.Context(), r.Job)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	o, err := ObjectOf(c.t.Context(), path)
	if err != nil {
		c.t.Fatal(err)
	}
	return []job.Input{{Name: path, Format: job.JSONL, Objects: []job.Object{o}}}
}
