package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/store"
)

// taskWait is how long one look into the queue for a segment to be indexed waits.
const taskWait = 5 * time.Second

// indexer reads segments of inputs through, one at a time, for whatever job they are of.
type indexer struct {
	node *Node
	jobs *jobs
}

// run indexes until ctx ends.
func (x *indexer) run(ctx context.Context) {
	for ctx.Err() == nil {
		d, found, err := x.node.bus.Fetch(ctx, bus.Tasks, taskWait)
		if err != nil {
			x.node.pause(ctx)
			continue
		}
		if found {
			x.index(ctx, d)
		}
	}
}

// index does one task, and says meanwhile that it is at it. One that fails goes back to the queue.
func (x *indexer) index(ctx context.Context, d *bus.Delivery) {
	var seg index.Segment
	if err := json.Unmarshal(d.Body, &seg); err != nil {
		_ = d.Done(ctx) // nobody will ever read it
		return
	}
	working, stop := context.WithCancel(ctx)
	var beats tasks
	beats.start(func() { x.beat(working, d) })
	err := x.write(ctx, seg)
	stop()
	beats.wait()
	switch {
	case err == nil:
		_ = d.Done(ctx) // if it fails, whoever gets it finds the index
	case ctx.Err() != nil:
		x.giveBack(ctx, d, 0)
	case errors.Is(err, store.ErrChanged): // it would be read in vain for ever
		x.node.stopJob(ctx, seg.Job, err.Error())
		_ = d.Done(ctx)
	default:
		x.node.sayf("segment %d of job %s cannot be indexed, and is tried again: %v", seg.Number, seg.Job, err)
		x.giveBack(ctx, d, x.node.cfg.Times.AckWait)
	}
}

// giveBack puts a task back, also when ctx has ended: another does it at once then.
func (x *indexer) giveBack(ctx context.Context, d *bus.Delivery, after time.Duration) {
	ctx, stop := clockwork.WithTimeout(context.WithoutCancel(ctx), x.node.clock, bus.RequestWait)
	defer stop()
	_ = d.Return(ctx, after) // the queue finds out by itself
}

// beatsOfAckWait is how many heartbeats there are in the time after which work is given to another.
const beatsOfAckWait = 4

func (x *indexer) beat(ctx context.Context, d *bus.Delivery) {
	ticker := x.node.clock.NewTicker(x.node.cfg.Times.AckWait / beatsOfAckWait)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			_ = d.Working(ctx) // if it is lost, the next one may not be
		}
	}
}

func (x *indexer) write(ctx context.Context, seg index.Segment) error {
	last := -1 // the inputs of a segment follow one another
	if n := len(seg.Stretches); n > 0 {
		last = seg.Stretches[n-1].Input
	}
	o, err := x.jobs.openWith(ctx, seg.Job, last)
	if err != nil {
		return err
	}
	_, err = o.source.Write(ctx, seg, x.node.objectName())
	return err
}

// sourceOf is a job's input, as this machine reads it.
func (n *Node) sourceOf(r *job.Record, c *Caller) *index.Source {
	return &index.Source{
		Store: n.home, Record: *r, Serves: c.Reader.Serves, Takes: c.Reader.Takes,
		Open: func(ctx context.Context, address string) (store.Store, error) { return store.Open(ctx, address) },
	}
}

// objectName is this process's name with a number that is new each time, for what it writes beside others.
func (n *Node) objectName() string {
	return fmt.Sprintf("%s-%d", n.Name(), n.objects.Add(1))
}

// pause waits a little before what failed is tried again.
func (n *Node) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-n.clock.After(time.Second):
	}
}
