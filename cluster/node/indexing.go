package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/store"
)

const (
	// taskWait bounds one look into the queue for inputs to read through.
	taskWait = 5 * time.Second
	// passesAtOnce is the number of jobs that a worker reads through at a time: a small one does not wait for a large
	// one.
	passesAtOnce = 2
)

// indexer reads the inputs of any job through.
type indexer struct {
	node     *Node
	jobs     *jobs
	refusals *refusals
}

// run indexes until ctx ends.
func (x *indexer) run(ctx context.Context) {
	var passes sync.WaitGroup
	for range passesAtOnce {
		passes.Go(func() {
			for ctx.Err() == nil {
				x.indexNext(ctx)
			}
		})
	}
	passes.Wait()
}

// indexNext waits for a task and does it. It puts back a task of a job that is refused here.
func (x *indexer) indexNext(ctx context.Context) {
	d, found, err := x.node.bus.Fetch(ctx, bus.Tasks, "", taskWait)
	switch {
	case err != nil:
		x.node.pause(ctx)
	case !found:
	case x.refusals.refuses(d.Work.Job):
		x.giveBack(ctx, d, refusedAfter)
		x.node.pause(ctx)
	default:
		x.index(ctx, d)
	}
}

// index does one task, and sends heartbeats meanwhile. A task that fails goes back to the queue.
func (x *indexer) index(ctx context.Context, d *bus.Delivery) {
	var t bus.Task
	if err := json.Unmarshal(d.Body, &t); err != nil {
		_ = d.Done(ctx) // no process can ever read it
		return
	}
	working, stop := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { x.sendHeartbeats(working, d) })
	err := x.makePlan(ctx, t)
	x.refusals.noteRead(ctx, t.Job, err)
	stop()
	beats.Wait()
	switch {
	case err == nil:
		_ = d.Done(ctx) // if it fails, the next worker to get the task finds the plan
	case ctx.Err() != nil:
		x.giveBack(ctx, d, 0)
	case errors.Is(err, store.ErrChanged): // else it would be read in vain for ever
		x.node.stopJob(ctx, t.Job, err.Error(), false)
		_ = d.Done(ctx)
	default:
		x.node.sayf("job %s cannot be indexed, and is tried again: %v", t.Job, err)
		x.giveBack(ctx, d, refusedAfter)
	}
}

// giveBack puts a task back, even after the end of ctx: another worker then takes it at once.
func (x *indexer) giveBack(ctx context.Context, d *bus.Delivery, after time.Duration) {
	ctx, stop := clockwork.WithTimeout(context.WithoutCancel(ctx), x.node.clock, bus.RequestWait)
	defer stop()
	_ = d.Return(ctx, after) // the queue notices by itself
}

// beatsOfAckWait is the number of heartbeats in the time after which work goes to another worker.
const beatsOfAckWait = 4

// sendHeartbeats sends heartbeats for a task until ctx ends, so that the queue gives it to nobody else.
func (x *indexer) sendHeartbeats(ctx context.Context, d *bus.Delivery) {
	ticker := x.node.clock.NewTicker(x.node.cfg.Times.AckWait / beatsOfAckWait)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
			_ = d.Working(ctx) // the next one may get through
		}
	}
}

// makePlan makes the plan of a job and starts the job, or refuses it. If two workers do so at once, the first one counts.
func (x *indexer) makePlan(ctx context.Context, t bus.Task) error {
	o, err := x.jobs.open(ctx, t.Job)
	if err != nil {
		return err
	}
	r, err := job.Load(ctx, x.node.home, t.Job)
	if err != nil {
		return err
	}
	if r.State != job.Indexing { // the scheduler has missed the change
		x.node.announceChange(t.Job)
		return nil
	}
	plan, err := x.node.sourceOf(&r, o.caller.Caller).Plan(ctx, t.Workers, x.node.objectName())
	if err != nil {
		return err
	}
	return x.node.startJob(ctx, &r, plan)
}

// startJob saves a job's plan, and sets the job to running, or to refused if the plan says so. A job that got more inputs
// meanwhile stays in indexing, so that these are read through next.
func (n *Node) startJob(ctx context.Context, read *job.Record, plan *index.Plan) error {
	name, err := plan.Save(ctx, n.home, n.objectName())
	if err != nil {
		return err
	}
	_, err = job.Change(ctx, n.home, read.Job, func(r *job.Record) error {
		if r.State != job.Indexing || r.Plan != read.Plan {
			return errChanged
		}
		r.Plan = name
		if len(r.Inputs) == len(read.Inputs) {
			r.State = job.Running
		}
		if bad := plan.Refused(); bad != nil {
			r.State, r.Why = job.Refused, bad.Error()
		}
		return nil
	})
	if errors.Is(err, errChanged) {
		return nil
	}
	if err == nil {
		n.announceChange(read.Job)
	}
	return err
}

// errChanged says that another process has changed a job meanwhile.
var errChanged = errors.New("node: the job has changed")

// sourceOf returns the source from which this machine reads a job's input.
func (n *Node) sourceOf(r *job.Record, c *Caller) *index.Source {
	takes := c.Reader.Takes
	if len(r.Caps) > 0 {
		takes = pricedOnly(c)
	}
	return &index.Source{
		Store: n.home, Record: *r, Serves: c.Reader.Serves, Takes: takes,
		Open: n.openInputStore,
	}
}

// storeCache holds the stores of inputs, each opened once: all jobs share their connections.
type storeCache struct {
	mu     sync.Mutex
	opened map[string]store.Store
}

// open returns the store of an address. It holds the lock while it opens one, so that no store is
// opened twice.
func (o *storeCache) open(ctx context.Context, address string) (store.Store, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.opened[address]; s != nil {
		return s, nil
	}
	s, err := store.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if o.opened == nil {
		o.opened = map[string]store.Store{}
	}
	o.opened[address] = s
	return s, nil
}

func (o *storeCache) close() (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.opened {
		err = errors.Join(err, store.Close(s))
	}
	o.opened = nil
	return err
}

// objectName returns this process's name with a new number each time, so that objects of several writers have different
// names.
func (n *Node) objectName() string {
	return fmt.Sprintf("%s-%d", n.Name(), n.objects.Add(1))
}

// pause waits a second before another try.
func (n *Node) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-n.clock.After(time.Second):
	}
}
