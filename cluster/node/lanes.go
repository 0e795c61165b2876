package node

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim/executor"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// stream calls all items of this worker, until the worker drains or ctx ends. It hands each result to the executor.
func (w *worker) stream(ctx context.Context) error {
	opts := append(w.how.Options[:len(w.how.Options):len(w.how.Options)],
		batch.WithConcurrency(w.how.Concurrency), batch.WithControl(w.control), batch.WithClock(w.clock), batch.WithSeed(w.cfg.Seed),
		batch.WithPool(neverUsed, neverUsed), batch.WithReadAhead(streamTimes*w.ahead()))
	var ended error
	for res, err := range batch.Stream(ctx, w.items(ctx), w.exec.Call, opts...) {
		if err != nil {
			ended = err
			break
		}
		w.refusals.refuseUnserved(res.Item.Pool(), res.Err)
		w.lanes.leave(res.Item.Pool(), w.clock.Now())
		w.exec.Took(&res)
	}
	if errors.Is(ended, batch.ErrDrained) || errors.Is(ended, batch.ErrStopped) {
		return nil // the jobs' records say why a limit has stopped
	}
	return ended
}

const (
	// aheadMost bounds the items in a worker's stream that wait for their first call. aheadTimes is the bound for each
	// call that may be in flight: as many as two asks for permits cover. Items of a chunk that is given up stay there.
	// Each takes a permit to learn of its end, at the cost of others meanwhile.
	aheadMost  = batch.DefaultReadAhead
	aheadTimes = 2
	// streamTimes is the room of the stream in multiples of ahead. Jobs may come one after the other while nothing
	// leaves. Then the first has all of ahead, the next a half of it, then a third, down to a 64th.
	streamTimes = 5
)

// ahead returns the number of items that wait in the stream, of all jobs.
func (w *worker) ahead() int { return min(aheadMost, aheadTimes*w.how.Concurrency) }

// neverUsed names a pool and a lane that no item has. A stream goes on while one of its lanes may yet flow. So a
// worker whose limits have all stopped is there for the jobs that come next.
const neverUsed = laneSeparator + "never used"

// items yields the items of all chunks, each after its pool is there.
func (w *worker) items(ctx context.Context) iter.Seq[*executor.Item] {
	return func(yield func(*executor.Item) bool) {
		for it := range w.exec.Items() {
			if !w.lanes.enter(it.Pool()) {
				w.definePool(ctx, it.Pool())
			}
			if !yield(it) {
				return
			}
		}
	}
}

// defineLane makes a lane that needs permits, if it is not there. The keeper hears what is known of its limit.
func (w *worker) defineLane(ctx context.Context, lane string, c, known machine.LaneConfig) {
	if !w.lanes.add(lane) {
		return
	}
	limit, name := splitLane(lane)
	c.Maker = permit.New(w.Name(), name, limit)
	err := w.control.Define(ctx, lane, c)
	if err == nil { // a lane that was forgotten may have stopped, and its law does not know that
		err = w.control.ResetLane(ctx, lane)
	}
	if err != nil {
		w.sayf("limit %s of job %s cannot be used: %v", limit, name, err)
		return
	}
	w.link.known.add(lane)
	w.sayLimit(limit, known)
}

// forgetAfter is the time after which a worker forgets the lanes of a job that has ended. By then the keeper has heard of
// each call's end, and has forgotten the lanes: one of the same name may begin anew.
const forgetAfter = 10 * time.Second

// jobLanes holds the lanes and pools that a worker's stream has met, by their jobs. Any goroutine may call its methods.
type jobLanes struct {
	mu    sync.Mutex
	byJob map[string]*lanesOfJob
}

type lanesOfJob struct {
	pools, lanes map[string]bool
	items        int       // in the stream: they wait, or are called
	ended        bool      // the job has
	idle         time.Time // when the latest item left the stream, or the job ended
}

// job returns the entry of the job to which a lane or a pool belongs, and makes it if there is none.
func (j *jobLanes) job(lane string) *lanesOfJob {
	_, name := splitLane(lane)
	if j.byJob == nil {
		j.byJob = map[string]*lanesOfJob{}
	}
	entry := j.byJob[name]
	if entry == nil {
		entry = &lanesOfJob{pools: map[string]bool{}, lanes: map[string]bool{}}
		j.byJob[name] = entry
	}
	return entry
}

// enter counts an item that enters the stream, and reports whether its pool is there.
func (j *jobLanes) enter(pool string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := j.job(pool)
	entry.items++
	return entry.pools[pool]
}

// leave counts an item that has left the stream.
func (j *jobLanes) leave(pool string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := j.job(pool)
	entry.items--
	entry.idle = now
}

// addPool notes that a pool is there.
func (j *jobLanes) addPool(pool string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.job(pool).pools[pool] = true
}

// add notes that a lane is there. It returns false if it was there before.
func (j *jobLanes) add(lane string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	entry := j.job(lane)
	if entry.lanes[lane] {
		return false
	}
	entry.lanes[lane] = true
	return true
}

// end notes that a job has ended, or that it goes on.
func (j *jobLanes) end(name string, ended bool, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if entry := j.byJob[name]; entry != nil {
		entry.ended, entry.idle = ended, now
	}
}

// takeIdle takes out the jobs that have ended, with nothing in the stream for [forgetAfter], and returns their lanes and
// pools.
func (j *jobLanes) takeIdle(now time.Time) (lanes, pools []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, entry := range j.byJob {
		if !entry.ended || entry.items > 0 || now.Sub(entry.idle) < forgetAfter {
			continue
		}
		delete(j.byJob, name)
		lanes, pools = slices.AppendSeq(lanes, maps.Keys(entry.lanes)), slices.AppendSeq(pools, maps.Keys(entry.pools))
	}
	return lanes, pools
}

// forgetEnded forgets the lanes of jobs that have ended, and returns the limits under which nothing is left.
func (w *worker) forgetEnded() (limits []string) {
	lanes, pools := w.lanes.takeIdle(w.clock.Now())
	for _, lane := range lanes {
		if w.link.known.remove(lane) {
			limit, _ := splitLane(lane)
			limits = append(limits, limit)
		}
	}
	w.refusals.forgetPools(pools)
	return limits
}

// openJob opens a job, and returns it in the form that the executor needs.
func (w *worker) openJob(ctx context.Context, name string) (*executor.Job, error) {
	o, err := w.jobs.open(ctx, name)
	if err != nil {
		return nil, err
	}
	x := &executor.Job{
		Read: func(ctx context.Context, c job.Chunk) iter.Seq2[prompt, error] { return w.read(ctx, &c) },
		Again: func(ctx context.Context, c job.Chunk) (func(string) bool, error) {
			return w.failedBefore(ctx, c)
		},
		Item:    func(r prompt) *promptfile.Item { return o.maker.Item(r) },
		Call:    o.call,
		Line:    o.line,
		BadLine: o.maker.BadLine,
	}
	if o.payer != nil {
		x.Reserve = o.reserve
	}
	return x, nil
}

// read reads a chunk. A changed input stops its job: else workers would read it in vain for ever.
func (w *worker) read(ctx context.Context, c *job.Chunk) iter.Seq2[prompt, error] {
	return func(yield func(prompt, error) bool) {
		o, err := w.jobs.openWith(ctx, c.Job, c.Input)
		if err != nil {
			yield(prompt{}, err)
			return
		}
		for r, err := range o.source.Read(ctx, c) {
			if errors.Is(err, store.ErrChanged) {
				w.stopJob(ctx, c.Job, err.Error(), false)
			}
			w.refusals.noteRead(ctx, c.Job, err)
			if !yield(r, err) {
				return
			}
		}
	}
}

// call makes one call of an item. A filtered answer is a failure if the job wants that, and so is one that does not fit.
func (o *openedJob) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	reply, err := o.send(ctx, it)
	switch {
	case err != nil:
		return reply, err
	case o.caller.Lines.FilteredFails && provider.IsFiltered(reply.Finish):
		return reply, provider.Filtered(reply.Finish, reply.Status, reply.RequestID)
	case o.answers == nil:
		return reply, nil
	}
	if fault := o.caller.Lines.Misfit(it, &reply); fault != nil {
		return reply, o.answers.DoesNotFit(ctx, it, reply.Finish, fault)
	}
	o.answers.Fits(ctx)
	return reply, nil
}

// send makes the call, on the lane that the stream has chosen.
func (o *openedJob) send(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	if o.routes == nil {
		return o.caller.Call(ctx, it)
	}
	return o.caller.CallOn(ctx, it, o.routes.resultLane(batch.LaneFrom(ctx)))
}

// line returns the result line of an item that ended. Its lane has the same name as in a run of one process.
func (o *openedJob) line(res *promptfile.Result) (journal.Line, bool) {
	var sums promptfile.Sums
	l, ended := o.maker.Line(res, &sums)
	if o.routes != nil {
		l.Headrace.Lane = o.routes.resultLane(res.Lane)
	} else {
		l.Headrace.Lane = o.ownLane(res.Item.Model)
	}
	return l, ended
}

const (
	// givesKept bounds the gives that wait for their lanes: a second of forty lanes.
	givesKept = 1024
	// coolsKept bounds the cools that wait, likewise: a limit cools a few times a minute.
	coolsKept = 256
)

// A link passes messages between the lanes of this worker and the keeper. It sends a lane's messages to the bus, and a
// keeper's message to the lane that it is for. The sender repeats a message that is lost on the way.
type link struct {
	bus *bus.Bus
	// believes reports whether there is a keeper of an epoch. Messages of others go to no lane.
	believes func(ctx context.Context, epoch uint64) bool
	lanes    laneMessenger
	refusals *refusals
	gives    *bus.Feed[permit.Give]
	cools    *bus.Feed[permit.Cool]
	known    laneNames
}

// A laneMessenger carries messages between the lanes of a process and a keeper. A *batch.Control is one.
type laneMessenger interface {
	Tell(ctx context.Context, lane string, word any) error
	Words(ctx context.Context) (<-chan []batch.Word, error)
}

// newLink begins to hear the keeper's messages to the worker.
func newLink(n *Node, lanes laneMessenger, r *refusals) (*link, error) {
	b := n.bus
	gives, err := b.Gives(b.Name(), givesKept)
	if err != nil {
		return nil, err
	}
	cools, err := b.Cools(coolsKept)
	if err != nil {
		gives.Close()
		return nil, err
	}
	return &link{bus: b, believes: n.epochs.Believes, lanes: lanes, refusals: r, gives: gives, cools: cools}, nil
}

func (l *link) close() {
	l.gives.Close()
	l.cools.Close()
}

// laneNames holds the lanes by their limits. Any goroutine may call its methods; the zero value is empty.
type laneNames struct {
	mu      sync.Mutex
	byLimit map[string][]string
}

// add notes a lane. From then on it gets all cools of its limit.
func (n *laneNames) add(lane string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byLimit == nil {
		n.byLimit = map[string][]string{}
	}
	if limit, _ := splitLane(lane); !slices.Contains(n.byLimit[limit], lane) {
		n.byLimit[limit] = append(n.byLimit[limit], lane)
	}
}

// remove forgets a lane, and reports whether its limit has no other.
func (n *laneNames) remove(lane string) (last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	limit, _ := splitLane(lane)
	n.byLimit[limit] = slices.DeleteFunc(n.byLimit[limit], func(o string) bool { return o == lane })
	if last = len(n.byLimit[limit]) == 0; last {
		delete(n.byLimit, limit)
	}
	return last
}

// under returns the lanes of a limit.
func (n *laneNames) under(limit string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.byLimit[limit])
}

// run passes messages on until ctx ends. A message that cannot be sent is no fault: the bus is away, and the lane
// repeats all of it.
func (l *link) run(ctx context.Context) {
	words, err := l.lanes.Words(ctx)
	if err != nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case said, open := <-words:
			if !open {
				words = nil
			}
			l.send(said)
		case g, open := <-l.gives.C:
			if !open {
				return
			}
			if !l.believes(ctx, g.Epoch) {
				continue
			}
			if len(g.Permits) > 0 {
				l.refusals.lift(g.Job, g.Limit)
			}
			_ = l.lanes.Tell(ctx, laneName(g.Limit, g.Job), &g) // it fails only when ctx ends
		case c, open := <-l.cools.C:
			if !open {
				return
			}
			if l.believes(ctx, c.Epoch) {
				l.cool(ctx, &c)
			}
		}
	}
}

// send sends the lanes' requests for permits to the keeper.
func (l *link) send(said []batch.Word) {
	for _, w := range said {
		if ask, is := w.Said.(*permit.Ask); is {
			_ = l.bus.SendAsk(*ask)
		}
	}
}

// cool passes a cool to all lanes of its limit.
func (l *link) cool(ctx context.Context, c *permit.Cool) {
	for _, lane := range l.known.under(c.Limit) {
		_ = l.lanes.Tell(ctx, lane, c)
	}
}

// A worker's lane is one job under one limit, so that the keeper can share a limit among jobs
// and the core need not know of them.

// laneSeparator stands between the two names. No job's name has it, and no model's name has such a character.
const laneSeparator = "\x1f"

// laneName names the lane of a job under a limit.
func laneName(limit, job string) string { return limit + laneSeparator + job }

// splitLane reverses laneName.
func splitLane(lane string) (limit, job string) {
	limit, job, _ = strings.Cut(lane, laneSeparator)
	return limit, job
}
