package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/keeping"
)

// A heeder keeps a worker from running canceled jobs, and lets it run resumed ones. It hears news. It reads records
// again if news may have been lost, or if the store was away when they came. It is one goroutine, that of run.
type heeder struct {
	*Node
	cancel, resume func(job string)
	flows          func(limit string) // called when a person vouches for a limit
	end            func(ctx context.Context, job string)

	came      chan arrival
	jobs      map[string]bool // jobs that this worker has met; true: canceled here
	unread    map[string]bool // jobs whose records are still to be read
	connected time.Time       // when the bus came back
}

// An arrival is a chunk of a job that the queue gives out.
type arrival struct {
	job    string
	looked chan struct{}
}

// recordTime bounds a look at a record: an arrived chunk waits for it, without heartbeats.
const recordTime = 5 * time.Second

func (n *Node) newHeeder(cancel, resume func(job string)) *heeder {
	return &heeder{
		Node: n, cancel: cancel, resume: resume, flows: func(string) {}, end: func(context.Context, string) {}, came: make(chan arrival), jobs: map[string]bool{}, unread: map[string]bool{},
		connected: n.bus.ReconnectedAt(),
	}
}

// run hears news and reads records until ctx ends.
func (h *heeder) run(ctx context.Context) {
	news, err := h.bus.Listen(bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	ticker := h.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case n, open := <-news.C:
			if !open {
				return
			}
			h.hear(ctx, n)
		case a := <-h.came:
			h.meet(ctx, a.job)
			close(a.looked)
		case <-ticker.Chan():
			h.again(ctx)
		}
	}
}

// arrive reports that the queue gives out a chunk of a job, and returns once the heeder knows whether that job is
// canceled. It prevents this order of events. A job is canceled, and the worker hears it. The job is resumed while the
// worker has no connection. Its chunks come, and would be dropped, each time, for ever.
func (h *heeder) arrive(ctx context.Context, name string) {
	a := arrival{name, make(chan struct{})}
	select {
	case h.came <- a:
	case <-ctx.Done():
		return
	}
	select {
	case <-a.looked:
	case <-ctx.Done():
	}
}

func (h *heeder) meet(ctx context.Context, name string) {
	if h.jobs[name] || h.unread[name] {
		h.look(ctx, name)
		return
	}
	h.jobs[name] = false
}

func (h *heeder) hear(ctx context.Context, n bus.Word) {
	var word keeping.News
	switch {
	case json.Unmarshal(n.Body, &word) != nil || word.Set != nil:
	case word.Reset != "":
		h.flows(word.Reset)
	case job.CheckName(n.About) == nil:
		h.look(ctx, n.About)
	}
}

// again looks at records that could not be read. After the bus was away it looks at those of all jobs, as messages sent
// meanwhile are lost.
func (h *heeder) again(ctx context.Context) {
	if at := h.bus.ReconnectedAt(); !at.Equal(h.connected) {
		h.connected = at
		for name := range h.jobs {
			h.unread[name] = true
		}
	}
	for name := range h.unread {
		h.look(ctx, name)
	}
}

// look reads a record, and acts on it. It retries a record later that cannot be read, unless it never can be.
func (h *heeder) look(ctx context.Context, name string) {
	ctx, stop := context.WithTimeout(ctx, recordTime)
	defer stop()
	r, err := job.Load(ctx, h.home, name)
	never := errors.Is(err, job.ErrNewer) || errors.Is(err, job.ErrMissing) || errors.Is(err, job.ErrRecord)
	if err != nil && !never {
		h.unread[name] = true
		return
	}
	delete(h.unread, name)
	switch {
	case err == nil:
		h.do(ctx, name, r.State)
	case errors.Is(err, job.ErrMissing):
		if _, met := h.jobs[name]; met { // it was deleted, and has ended
			h.do(ctx, name, job.Canceled)
		}
	}
}

func (h *heeder) do(ctx context.Context, name string, s job.State) {
	switch s {
	case job.Canceled, job.Stopped, job.Refused:
		h.jobs[name] = true
		h.cancel(name)
		h.end(ctx, name)
	case job.Running:
		h.jobs[name] = false
		h.resume(name)
	case job.Done:
		h.end(ctx, name)
	case job.Indexing:
	}
}
