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
	heeder   *heeder
	refusals *refusals
}

func (q queue) Fetch(ctx context.Context, job string) (executor.Delivery, bool, error) {
	d, came, err := q.bus.Fetch(ctx, bus.Chunks, job, fetchWait)
	if came {
		q.heeder.arrive(ctx, d.Work.Job)
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
	if d.refusals.has(d.Work.Job) {
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

// SayDone tells the foreman of a part. If the message is lost, he sees the part when he lists.
func (p peers) SayDone(c job.Chunk, footer []byte) {
	_ = p.node.bus.Say(bus.Done, c.Job, doneWord{Chunk: c.Number, Round: c.Round, Footer: json.RawMessage(footer)})
}

// doneWord is the message that a chunk's part is there.
type doneWord struct {
	Chunk  int             `json:"n"`
	Round  int             `json:"round,omitempty"`
	Footer json.RawMessage `json:"footer,omitempty"`
}

// holds tells other workers whether this one works on something.
func (w *worker) holds(work bus.Work) bool {
	c, ok := chunkOf(work)
	return ok && w.exec.Answer(c)
}

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
				w.exec.Told(c, name)
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
