package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/claim/executor"
	"github.com/headrace/headrace/cluster/job"
)

const (
	// fetchWait bounds one look into the queue for a chunk.
	fetchWait = 5 * time.Second
	// offersEvery is the time between two looks at which jobs have chunks. A new job waits for the next look.
	offersEvery = time.Second
	// takenKept bounds the messages about chunks taken over that wait to be heard.
	takenKept = 256
)

// queue is the bus's queue, for chunks.
type queue struct {
	bus      *bus.Bus
	watch    *recordWatch
	refusals *refusals
}

// Fetch implements [executor.Queue]. It puts back the chunk of a job that is refused here.
func (q queue) Fetch(ctx context.Context, job string) (executor.Delivery, bool, error) {
	d, came, err := q.bus.Fetch(ctx, bus.Chunks, job, fetchWait)
	if came {
		q.watch.arrive(ctx, d.Work.Job)
	}
	if came && q.refusals.refuses(d.Work.Job) {
		return nil, false, errors.Join(errRefused, d.Return(ctx, refusedAfter))
	}
	return delivery{d, q.refusals}, came, err
}

// errRefused lets the executor pause before it looks for the next chunk.
var errRefused = errors.New("node: the job of a chunk is refused here")

type delivery struct {
	*bus.Delivery
	refusals *refusals
}

// Return wraps the bus's Return. A chunk of a job that is refused here goes to another worker soon, whatever delay was
// asked for.
func (d delivery) Return(ctx context.Context, after time.Duration) error {
	if d.refusals.isRefused(d.Work.Job) {
		after = min(after, refusedAfter)
	}
	return d.Delivery.Return(ctx, after)
}

func (d delivery) Body() []byte { return d.Delivery.Body }

// Working wraps the bus's Working.
func (d delivery) Working(ctx context.Context) error {
	err := d.Delivery.Working(ctx)
	if errors.Is(err, bus.ErrGone) {
		err = errors.Join(executor.ErrForgotten, err)
	}
	return err
}

// Done wraps the bus's Done. If the bus has forgotten the chunk, there is nothing to take out: should it come again,
// its part is found.
func (d delivery) Done(ctx context.Context) error {
	err := d.Delivery.Done(ctx)
	if errors.Is(err, bus.ErrGone) {
		err = nil
	}
	return err
}

// workOf returns a chunk as the queue names it.
func workOf(c claim.Chunk) bus.Work {
	return bus.Work{Kind: bus.Chunks, Job: c.Job, Name: strconv.Itoa(c.Number) + "." + strconv.Itoa(c.Round)}
}

// chunkOf reverses workOf.
func chunkOf(w bus.Work) (c claim.Chunk, ok bool) {
	if w.Kind != bus.Chunks {
		return c, false
	}
	c.Job = w.Job
	n, round, _ := strings.Cut(w.Name, ".")
	var err, err2 error
	c.Number, err = strconv.Atoi(n)
	c.Round, err2 = strconv.Atoi(round)
	return c, err == nil && err2 == nil && workOf(c) == w
}

// peers reaches the other workers, by the bus.
type peers struct{ node *Node }

func (p peers) Holds(ctx context.Context, who string, c claim.Chunk) (holds, answered bool, err error) {
	return p.node.bus.Holds(ctx, who, workOf(c))
}

func (p peers) Tell(_ context.Context, who string, c claim.Chunk, name claim.Name) error {
	return p.node.bus.Tell(who, bus.Taken{Work: workOf(c), Turn: name.Turn, By: name.String()})
}

// SayDone tells the scheduler of a part. If the message is lost, it sees the part when it lists.
func (p peers) SayDone(c job.Chunk, footer []byte) {
	_ = p.node.bus.Say(bus.Done, c.Job, bus.PartDone{Chunk: c.Number, Round: c.Round, Footer: json.RawMessage(footer)})
}

// holds answers another worker's question whether this worker works on a chunk.
func (w *worker) holds(work bus.Work) bool {
	c, ok := chunkOf(work)
	return ok && w.exec.Answer(c)
}

// hearTaken brings to the executor the news of chunks that other workers have taken over, until
// ctx ends.
func (w *worker) hearTaken(ctx context.Context, taken *bus.Feed[bus.Taken]) {
	for {
		select {
		case <-ctx.Done():
			return
		case t, open := <-taken.C:
			if !open {
				return
			}
			c, ok := chunkOf(t.Work)
			name, named := claim.ParseName(t.By)
			if ok && named {
				w.exec.ClaimedByOther(c, name)
			}
		}
	}
}

// watchOffers tells the executor which jobs have chunks, without those that are refused here. While the bus is away the
// last offers stay.
func (w *worker) watchOffers(ctx context.Context) {
	ticker := w.clock.NewTicker(offersEvery)
	defer ticker.Stop()
	for {
		if jobs, err := w.bus.Offered(ctx); err == nil {
			w.exec.Offer(slices.DeleteFunc(jobs, w.refusals.refuses))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
		}
	}
}

// watchBus tells the executor of each new connection.
func (w *worker) watchBus(ctx context.Context) {
	ticker := w.clock.NewTicker(connectionEvery)
	defer ticker.Stop()
	known := w.bus.ReconnectedAt()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			if at := w.bus.ReconnectedAt(); !at.Equal(known) {
				known = at
				w.exec.Connected(at)
			}
		}
	}
}

// connectionEvery is the time between two looks for a new connection. It is short compared with the seconds for which
// others' silence then means nothing.
const connectionEvery = 200 * time.Millisecond

// A recordWatch keeps a worker from running canceled jobs, and lets it run resumed ones. It hears news. It reads records
// again if news may have been lost, or if the store was away when they came. It is one goroutine, that of run.
type recordWatch struct {
	*Node
	cancel, resume func(job string)
	resetLimit     func(limit string) // called when a person vouches for a limit
	end            func(ctx context.Context, job string)

	arrivals  chan arrival
	jobs      map[string]bool // jobs that this worker has met; true: canceled here, or paused
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

func (n *Node) newRecordWatch(cancel, resume func(job string)) *recordWatch {
	return &recordWatch{
		Node: n, cancel: cancel, resume: resume, resetLimit: func(string) {}, end: func(context.Context, string) {}, arrivals: make(chan arrival), jobs: map[string]bool{}, unread: map[string]bool{},
		connected: n.bus.ReconnectedAt(),
	}
}

// run hears news and reads records until ctx ends.
func (h *recordWatch) run(ctx context.Context) {
	news, err := bus.Listen[bus.Change](h.bus, bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	ticker := h.clock.NewTicker(overseeEvery)
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
		case a := <-h.arrivals:
			h.checkArrived(ctx, a.job)
			close(a.looked)
		case <-ticker.Chan():
			h.recheck(ctx)
		}
	}
}

// arrive reports that the queue gives out a chunk of a job, and returns once the recordWatch knows whether that job is
// canceled. It prevents this order of events. A job is canceled, and the worker hears it. The job is resumed while the
// worker has no connection. Its chunks come, and would be dropped, each time, for ever.
func (h *recordWatch) arrive(ctx context.Context, name string) {
	a := arrival{name, make(chan struct{})}
	select {
	case h.arrivals <- a:
	case <-ctx.Done():
		return
	}
	select {
	case <-a.looked:
	case <-ctx.Done():
	}
}

// checkArrived looks at the record of a job that is new here, or was canceled or paused when it was last read. The queue may have
// chunks of such a job that no scheduler has taken out yet.
func (h *recordWatch) checkArrived(ctx context.Context, name string) {
	off, met := h.jobs[name]
	h.jobs[name] = off
	if !met || off || h.unread[name] {
		h.check(ctx, name)
	}
}

// hear acts on a message about a job, or about a limit that was reset.
func (h *recordWatch) hear(ctx context.Context, n bus.Message[bus.Change]) {
	switch {
	case n.Body.Set != nil:
	case n.Body.Reset != "":
		h.resetLimit(n.Body.Reset)
	case job.CheckName(n.About) == nil:
		h.check(ctx, n.About)
	}
}

// recheck reads the records again that could not be read before. After the bus was away it reads those of all jobs,
// because messages sent meanwhile are lost.
func (h *recordWatch) recheck(ctx context.Context) {
	if at := h.bus.ReconnectedAt(); !at.Equal(h.connected) {
		h.connected = at
		for name := range h.jobs {
			h.unread[name] = true
		}
	}
	for name := range h.unread {
		h.check(ctx, name)
	}
}

// check reads a record, and acts on it. It retries a record later that cannot be read, unless it never can be.
func (h *recordWatch) check(ctx context.Context, name string) {
	ctx, stop := context.WithTimeout(ctx, recordTime)
	defer stop()
	r, err := job.Load(ctx, h.home, name)
	unreadable := errors.Is(err, job.ErrNewer) || errors.Is(err, job.ErrMissing) || errors.Is(err, job.ErrRecord)
	if err != nil && !unreadable {
		h.unread[name] = true
		return
	}
	delete(h.unread, name)
	switch {
	case err == nil:
		h.apply(ctx, name, &r)
	case errors.Is(err, job.ErrMissing):
		if _, met := h.jobs[name]; met { // it was deleted, and has ended
			h.apply(ctx, name, &job.Record{State: job.Canceled})
		}
	}
}

// apply acts on the state of a job: it cancels the job here, or resumes it. It also releases a job that has ended.
func (h *recordWatch) apply(ctx context.Context, name string, r *job.Record) {
	if r.IsPaused() { // it keeps its purse and its lanes: it goes on later
		h.jobs[name] = true
		h.cancel(name)
		return
	}
	switch r.State {
	case job.Canceled, job.Stopped, job.Refused:
		h.jobs[name] = true
		h.cancel(name)
		h.end(ctx, name)
	case job.Running:
		h.jobs[name] = false
		h.resume(name)
	case job.Done:
		delete(h.jobs, name) // a chunk that comes yet finds its part
		h.end(ctx, name)
	case job.Indexing:
	}
}
