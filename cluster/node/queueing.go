package node

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim/executor"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
)

// QueuedAhead bounds the chunks of a job in the queue. A canceled job leaves no more there, and a lost queue is soon
// made again. It keeps a thousand workers busy for minutes.
const QueuedAhead = 10_000

// fill keeps the queue filled with chunks that have no part, and finishes the job when no part is missing.
func (f *scheduler) fill(ctx context.Context, o *overseen) error {
	if err := f.countParts(ctx, o); err != nil {
		return err
	}
	if o.ledger.Whole() {
		return f.finish(ctx, o)
	}
	missing := o.ledger.Len() - o.ledger.Done()
	queued, err := f.bus.Queued(ctx, bus.Chunks, o.record.Job)
	if errors.Is(err, bus.ErrGone) {
		queued, err = 0, f.bus.Offer(ctx, o.record.Job)
	}
	if err != nil {
		return err
	}
	if queued >= min(missing, QueuedAhead/2) {
		return nil
	}
	return f.queueMissing(ctx, o)
}

// pauseJob keeps the chunks of a paused job from workers: its calls in flight end, and no other leaves. A job of which nothing
// else was left is done.
func (f *scheduler) pauseJob(ctx context.Context, o *overseen) error {
	if err := f.countParts(ctx, o); err != nil {
		return err
	}
	if o.ledger.Whole() {
		return f.finish(ctx, o)
	}
	f.tellWeight(ctx, o, 0)
	return f.purge(ctx, o)
}

// queueMissing puts the first chunks without parts into the queue, which refuses those that it already has.
func (f *scheduler) queueMissing(ctx context.Context, o *overseen) error {
	var chunks []job.Chunk
	put := 0
	for n := range o.ledger.Missing(0) {
		if put++; put > QueuedAhead {
			break
		}
		c, err := o.chunks.At(ctx, n)
		if err != nil {
			return err
		}
		c.Round = o.record.Round
		if chunks = append(chunks, c); len(chunks) == bus.QueuedAtOnce {
			if err := f.queueChunks(ctx, chunks); err != nil {
				return err
			}
			chunks = chunks[:0]
		}
	}
	return f.queueChunks(ctx, chunks)
}

// queueChunks puts chunks into the queue, and makes the queue again if it is gone.
func (f *scheduler) queueChunks(ctx context.Context, chunks []job.Chunk) error {
	works, bodies := make([]bus.Work, len(chunks)), make([][]byte, len(chunks))
	for i := range chunks {
		body, err := json.Marshal(&chunks[i])
		if err != nil {
			return err
		}
		works[i], bodies[i] = workOf(executor.NameOf(&chunks[i])), body
	}
	return f.remakeQueue(ctx, f.bus.QueueAll(ctx, works, bodies))
}

// remakeQueue makes the queue again if err says that it is gone. It returns any other err as it is.
func (f *scheduler) remakeQueue(ctx context.Context, err error) error {
	if errors.Is(err, bus.ErrGone) {
		return f.bus.Ensure(ctx)
	}
	return err
}

// purge removes the chunks and tasks of an ended job from the queue, once, and ends its offer. A worker that begins
// later does not know that the job has ended. The previous scheduler may have died before it did this.
func (f *scheduler) purge(ctx context.Context, o *overseen) error {
	if o.purged {
		return nil
	}
	err := errors.Join(f.bus.Purge(ctx, bus.Chunks, o.record.Job), f.bus.Purge(ctx, bus.Tasks, o.record.Job))
	o.purged = err == nil
	return f.remakeQueue(ctx, err)
}

// queueTask has a worker read the inputs of a job through; that worker then starts the job, or refuses it.
func (f *scheduler) queueTask(ctx context.Context, o *overseen) error {
	queued, err := f.bus.Queued(ctx, bus.Tasks, o.record.Job)
	if err == nil && queued == 0 {
		var body []byte
		if body, err = json.Marshal(bus.Task{Job: o.record.Job, Workers: f.countWorkers()}); err == nil {
			_, err = f.bus.Queue(ctx, bus.Work{Kind: bus.Tasks, Job: o.record.Job, Name: strconv.Itoa(o.record.Version)}, body)
		}
	}
	return f.remakeQueue(ctx, err)
}

// countParts finds which parts are there. It reads the store at first and every minute; in between it relies on the
// workers' messages.
func (f *scheduler) countParts(ctx context.Context, o *overseen) error {
	if o.plan == nil {
		plan, err := index.LoadPlan(ctx, f.home, &o.record)
		if err != nil {
			return err
		}
		chunks := index.NewChunks(f.home, &o.record, plan)
		ledger, err := f.ledger(ctx, &o.record, o.record.Round, chunks.Len())
		if err != nil {
			return err
		}
		o.plan, o.chunks, o.ledger = plan, chunks, ledger
	}
	now := f.clock.Now()
	if !o.listed.IsZero() && now.Sub(o.listed) < listEvery {
		return nil
	}
	o.listed = now
	if err := o.ledger.Refresh(ctx); err != nil {
		return err
	}
	return o.tally(ctx)
}

// ledger returns the ledger of a round. The ledger of a later round covers the chunks that had failures in the round
// before, so it sums up all earlier rounds first.
func (n *Node) ledger(ctx context.Context, r *job.Record, round, chunks int) (*parts.Ledger, error) {
	if round == 0 {
		return n.newLedger(r, 0, chunks, nil), nil
	}
	before, err := n.ledger(ctx, r, round-1, chunks)
	if err != nil {
		return nil, err
	}
	if err := before.Refresh(ctx); err != nil {
		return nil, err
	}
	want := []int{} // nil would mean all chunks
	for folder := range (chunks + parts.PerFolder - 1) / parts.PerFolder {
		sums, err := before.Settle(ctx, folder)
		if err != nil {
			return nil, err
		}
		want = append(want, sums.Failing...)
	}
	return n.newLedger(r, round, chunks, want), nil
}

// newLedger returns an empty ledger with the format of the job's record. want are the chunks of the round; nil: all.
func (n *Node) newLedger(r *job.Record, round, chunks int, want []int) *parts.Ledger {
	l := parts.NewLedger(n.home, r.Job, round, chunks, want)
	l.Format = r.Format
	return l
}

// finish ends a round: all parts are there. An open job waits for more.
func (f *scheduler) finish(ctx context.Context, o *overseen) error {
	if o.record.Open {
		return nil
	}
	if _, err := o.ledger.Finish(ctx, o.plan.Items+o.plan.Bad+o.plan.Untranslatable); err != nil {
		return err
	}
	version := o.record.Version
	_, err := job.Change(ctx, f.home, o.record.Job, func(r *job.Record) error {
		if r.Version != version {
			return errChanged
		}
		r.State, r.Paused = job.Done, false
		return nil
	})
	o.stale = true
	if err != nil && !errors.Is(err, errChanged) {
		return err
	}
	f.announceChange(o.record.Job)
	return nil
}
