package node

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/job"
)

// An input that is not what was submitted any more stops its job, and says why; when it is again what it was, the job goes on.
func TestAChangedInputStopsTheJob(t *testing.T) {
	c := newCluster(t)
	gate, begun, end := c.heldWorker()
	n := c.join(nil)
	defer n.Close()
	path := c.input(400)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := c.submit(n, path, 1)
	<-begun
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("q"), []byte("another")), 0o600); err != nil {
		t.Fatal(err)
	}
	close(gate)
	s := c.waitFor(n, r.Job, job.Stopped)
	if !strings.Contains(s.Record.Why, "changed") || !strings.Contains(s.Record.Why, "in.jsonl") {
		t.Error(s.Record.Why)
	}
	if err := errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()), n.Resume(t.Context(), r.Job)); err != nil {
		t.Fatal(err)
	}
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}
