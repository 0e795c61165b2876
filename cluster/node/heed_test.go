package node

import (
	"testing"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
)

// heeding is a heeder alone, and what it has told the worker last of each job.
func (c *cluster) heeding(n *Node) (h *heeder, heard map[string]string) {
	heard = map[string]string{}
	h = n.newHeeder(func(name string) { heard[name] = "canceled" }, func(name string) { heard[name] = "resumed" })
	return h, heard
}

// A job that was canceled, and resumed when the worker did not hear it, is run again when a chunk of it comes.
func TestAChunkOfACanceledJobIsLookedAt(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	h.meet(t.Context(), r.Job)
	silently(t, n, r.Job, job.Canceled)
	h.hear(t.Context(), bus.Word{About: r.Job, Body: []byte("{}")})
	h.meet(t.Context(), r.Job)
	if heard[r.Job] != "canceled" {
		t.Fatalf("%v", heard)
	}
	silently(t, n, r.Job, job.Running)
	h.meet(t.Context(), r.Job)
	if heard[r.Job] != "resumed" {
		t.Errorf("%v", heard)
	}
}

// What is said while the connection is away is looked for when it is back, once.
func TestNewsAreLookedForAfterAReconnect(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	h.meet(t.Context(), r.Job)
	silently(t, n, r.Job, job.Canceled)
	h.again(t.Context())
	if len(heard) > 0 {
		t.Fatalf("%v", heard)
	}
	h.connected = h.connected.Add(-1)
	h.again(t.Context())
	if heard[r.Job] != "canceled" || len(h.unread) > 0 {
		t.Errorf("%v %v", heard, h.unread)
	}
}

// News that come while the store is away are heeded when it is back.
func TestNewsWaitForTheStore(t *testing.T) {
	c := newCluster(t)
	n, r := c.submitted(10)
	h, heard := c.heeding(n)
	silently(t, n, r.Job, job.Canceled)
	home := n.home
	n.home = storetest.Broken{Err: store.ErrAway}
	h.hear(t.Context(), bus.Word{About: r.Job, Body: []byte("{}")})
	h.again(t.Context())
	if len(heard) > 0 {
		t.Fatalf("%v", heard)
	}
	n.home = home
	h.again(t.Context())
	if heard[r.Job] != "canceled" {
		t.Errorf("%v", heard)
	}
	for _, other := range []bus.Word{{About: "-limits", Body: []byte("{}")}, {About: r.Job, Body: []byte(`{"reset":"x"}`)}, {About: "none", Body: []byte("{}")}} {
		delete(heard, r.Job)
		h.hear(t.Context(), other)
		h.again(t.Context())
		if len(heard) > 0 || len(h.unread) > 0 {
			t.Errorf("%v: %v, %v", other, heard, h.unread)
		}
	}
}
