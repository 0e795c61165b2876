package node

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/claim/executor"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
)

const (
	// fetchWait is how long one look into the queue for a chunk waits.
	fetchWait = 5 * time.Second
	// aheadMost is how many items may wait in a worker's stream for their first call, and aheadTimes how many for each that may
	// be in flight: what two asks for permits are about. Of a chunk that is given up they stay there,
	// and each takes a permit to be told so, which is another's meanwhile.
	aheadMost  = batch.DefaultReadAhead
	aheadTimes = 2
	// takenKept is how many words of those who take chunks over may wait to be heard.
	takenKept = 256
)

// Worker says how a process works.
type Worker struct {
	// Open makes the calls of a job.
	Open   func(*job.Record) (*Caller, error)
	Keeper Candidacy // "" is MayKeep
	// Concurrency is how many calls may be in flight; 0 means batch.DefaultConcurrency.
	Concurrency int
	// Options say how calls are tried again, and are for every job.
	Options []batch.Option
	// SaveEvery is after how long an answer is saved at the latest, where the store cannot append;
	// 0 means store.DefaultPieceEvery.
	SaveEvery time.Duration
	// Drain, once closed, ends the work softly: nothing more is begun, what is in flight is saved.
	Drain <-chan struct{}
}

// worker is a process at work.
type worker struct {
	*Node
	how     Worker
	jobs    *jobs
	exec    *executor.Executor
	control *batch.Control
	link    *link
	lanes   map[string]bool // that the stream has met; of the goroutine that reads
	limits  chan limitSet   // that it works under
}

// limitsKept is how many limits may wait to be said: a job has one for each of its models.
const limitsKept = 1024

// Work works until it is drained, or ctx ends. Then nothing of it runs any more.
func (n *Node) Work(ctx context.Context, how Worker) error {
	if how.Concurrency == 0 {
		how.Concurrency = batch.DefaultConcurrency
	}
	w := &worker{Node: n, how: how, jobs: n.newJobs(how.Open), control: batch.NewControl(), lanes: map[string]bool{}, limits: make(chan limitSet, limitsKept)}
	if err := n.ensure(ctx, n.bus.Ensure); err != nil {
		return err
	}
	var err error
	if w.link, err = newLink(n.bus, w.control); err != nil {
		return err
	}
	defer w.link.close()
	if err = w.newExecutor(); err != nil {
		return err
	}
	return w.run(ctx)
}

func (w *worker) newExecutor() (err error) {
	w.exec, err = executor.New(executor.Config{
		Claim:     claim.Config{Who: w.Name(), Concurrency: w.how.Concurrency, InHand: w.ahead() + w.how.Concurrency, AckWait: w.cfg.Times.AckWait},
		Connected: w.bus.ReconnectedAt(), Store: w.home, Queue: queue{w.bus}, Peers: peers{w.Node}, Open: w.openJob, Clock: w.clock, Say: w.cfg.Say,
		Journal: store.JournalConfig{Every: w.how.SaveEvery},
	})
	return err
}

// run runs all parts of a worker, and waits for them. The stream ends when the executor drains; all
// else ends with the stream.
func (w *worker) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers, err := w.bus.Answer(w.Name(), w.holds)
	if err != nil {
		return err
	}
	taken, err := w.bus.Told(w.Name(), takenKept)
	if err != nil {
		answers()
		return err
	}
	var parts tasks
	parts.start(func() { w.jobs.run(ctx) })
	parts.start(func() { w.link.run(ctx) })
	parts.start(func() { (&indexer{w.Node, w.jobs}).run(ctx) })
	parts.start(func() { w.hearTaken(ctx, taken) })
	parts.start(func() { w.drain(ctx) })
	parts.start(func() { w.watchBus(ctx) })
	parts.start(func() { w.hearNews(ctx) })
	parts.start(func() { w.sayStatus(ctx) })
	if w.how.Keeper != NeverKeeps {
		parts.start(func() { w.newCandidate(w.how.Keeper, w.forePerson, w.sayKeeper).run(ctx) })
	}
	var claims tasks
	var claimed error
	claims.start(func() { claimed = w.exec.Run(ctx) })
	streamed := w.stream(ctx)
	claims.wait()
	stop()
	answers()
	taken.Close()
	parts.wait()
	return errors.Join(streamed, claimed)
}

// stream makes the calls.
func (w *worker) stream(ctx context.Context) error {
	opts := append(w.how.Options[:len(w.how.Options):len(w.how.Options)],
		batch.WithConcurrency(w.how.Concurrency), batch.WithControl(w.control), batch.WithClock(w.clock), batch.WithSeed(w.cfg.Seed),
		batch.WithPool(neverUsed, neverUsed), batch.WithReadAhead(w.ahead()))
	var ended error
	for res, err := range batch.Stream(ctx, w.items(ctx), w.exec.Call, opts...) {
		if err != nil {
			ended = err
			break
		}
		w.exec.Took(&res)
	}
	if errors.Is(ended, batch.ErrDrained) || errors.Is(ended, batch.ErrStopped) {
		return nil // why a limit has stopped stands in its jobs
	}
	return ended
}

// ahead is how many items may wait in the stream.
func (w *worker) ahead() int { return min(aheadMost, aheadTimes*w.how.Concurrency) }

// neverUsed names a pool and a lane that no item has. While there is a lane that may yet flow, a stream goes on:
// a worker whose limits have all stopped is there for the jobs that come next.
const neverUsed = laneSeparator + "never used"

// items are those of all chunks, each after its lane is there.
func (w *worker) items(ctx context.Context) iter.Seq[*executor.Item] {
	return func(yield func(*executor.Item) bool) {
		for it := range w.exec.Items() {
			if !w.lanes[it.Pool()] {
				w.defineLane(ctx, it.Pool())
			}
			if !yield(it) {
				return
			}
		}
	}
}

// defineLane makes a lane that lives of permits.
func (w *worker) defineLane(ctx context.Context, lane string) {
	limit, name := partsOf(lane)
	o, err := w.jobs.open(ctx, name)
	if err != nil {
		return // ctx has ended: it was open when the item was made
	}
	w.lanes[lane] = true
	c := o.caller.Lane
	c.Maker = permit.New(w.Name(), name, limit)
	if err := w.control.Define(ctx, lane, c); err != nil {
		w.sayf("the limit %s of job %s cannot be worked under: %v", limit, name, err)
		return
	}
	w.link.add(ctx, lane)
	w.sayLimit(limit, o)
}

// openJob is a job as the executor wants it.
func (w *worker) openJob(ctx context.Context, name string) (*executor.Job, error) {
	o, err := w.jobs.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &executor.Job{
		Read: func(ctx context.Context, c job.Chunk) iter.Seq2[prompt, error] { return o.source.Read(ctx, &c) },
		Again: func(ctx context.Context, c job.Chunk) (func(string) bool, error) {
			return w.failedBefore(ctx, c)
		},
		Item:    func(r prompt) *promptfile.Item { return o.maker.Item(r) },
		Call:    o.caller.Call,
		Line:    o.line,
		BadLine: o.maker.BadLine,
	}, nil
}

// line is the line of an item that ended. Its lane is called as in a run of one process.
func (o *opened) line(res *promptfile.Result) (journal.Line, bool) {
	var sums promptfile.Sums
	l, ended := o.maker.Line(res, &sums)
	l.Headrace.Lane = o.own(res.Item.Model)
	return l, ended
}

// holds answers others whether this worker works on something.
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

// drain tells the executor to drain when the worker is told to.
func (w *worker) drain(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.how.Drain:
		w.exec.Drain()
		w.control.Drain()
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

// connectionEvery is how often it is looked whether the connection is a new one: often beside the
// seconds for which others' silence then means nothing.
const connectionEvery = 200 * time.Millisecond

// queue is the bus's, for chunks.
type queue struct{ bus *bus.Bus }

func (q queue) Fetch(ctx context.Context) (executor.Delivery, bool, error) {
	d, came, err := q.bus.Fetch(ctx, bus.Chunks, fetchWait)
	if errors.Is(err, bus.ErrGone) {
		err = errors.Join(err, q.bus.Ensure(ctx))
	}
	return delivery{d}, came, err
}

type delivery struct{ *bus.Delivery }

func (d delivery) Body() []byte { return d.Delivery.Body }

// Working is that of the bus.
func (d delivery) Working(ctx context.Context) error {
	err := d.Delivery.Working(ctx)
	if errors.Is(err, bus.ErrGone) {
		err = errors.Join(executor.ErrForgotten, err)
	}
	return err
}

// Done is that of the bus. Of what it has forgotten nothing can be taken out: if it comes again its part is found.
func (d delivery) Done(ctx context.Context) error {
	err := d.Delivery.Done(ctx)
	if errors.Is(err, bus.ErrGone) {
		err = nil
	}
	return err
}

// workOf is a chunk as the queue names it.
func workOf(c claim.Chunk) bus.Work {
	return bus.Work{Kind: bus.Chunks, Job: c.Job, Name: strconv.Itoa(c.Number) + "." + strconv.Itoa(c.Round)}
}

// chunkOf is workOf undone.
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

// peers are the other workers, by the bus.
type peers struct{ node *Node }

func (p peers) Holds(ctx context.Context, who string, c claim.Chunk) (holds, answered bool, err error) {
	return p.node.bus.Holds(ctx, who, workOf(c))
}

func (p peers) Tell(_ context.Context, who string, c claim.Chunk, name claim.Name) error {
	return p.node.bus.Tell(who, bus.Taken{Work: workOf(c), Turn: name.Turn, By: name.String()})
}

// SayDone tells the foreman. If it is lost, he sees the part when he lists.
func (p peers) SayDone(c job.Chunk, footer []byte) {
	_ = p.node.bus.Say(bus.Done, c.Job, doneWord{Chunk: c.Number, Round: c.Round, Footer: json.RawMessage(footer)})
}

// doneWord says that a chunk's part is there.
type doneWord struct {
	Chunk  int             `json:"n"`
	Round  int             `json:"round,omitempty"`
	Footer json.RawMessage `json:"footer,omitempty"`
}
