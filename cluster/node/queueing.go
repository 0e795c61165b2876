package node

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
)

// QueuedAhead is how many chunks of a job are in the queue at most: a job that is canceled leaves no
// more, and a queue that is lost is soon made again. It is a thousand workers' for minutes.
const QueuedAhead = 10_000

// fill keeps the queue filled with what has no part, and finds out that nothing is missing.
func (f *foreman) fill(ctx context.Context, o *overseen) error {
	if err := f.count(ctx, o); err != nil {
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
	return f.queue(ctx, o)
}

// queue puts the first chunks that have no part into the queue. One that is there is refused by it.
func (f *foreman) queue(ctx context.Context, o *overseen) error {
	var some []job.Chunk
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
		if some = append(some, c); len(some) == bus.QueuedAtOnce {
			if err := f.queueChunks(ctx, some); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return f.queueChunks(ctx, some)
}

func (f *foreman) queueChunks(ctx context.Context, chunks []job.Chunk) error {
	works, bodies := make([]bus.Work, len(chunks)), make([][]byte, len(chunks))
	for i := range chunks {
		body, err := json.Marshal(&chunks[i])
		if err != nil {
			return err
		}
		works[i], bodies[i] = workOf(claimOf(&chunks[i])), body
	}
	return f.unqueued(ctx, f.bus.QueueAll(ctx, works, bodies))
}

// unqueued makes the queue again if it is gone.
func (f *foreman) unqueued(ctx context.Context, err error) error {
	if errors.Is(err, bus.ErrGone) {
		return f.bus.Ensure(ctx)
	}
	return err
}

// purge takes what a job that has ended has in the queue out of it, once, and offers it no longer: whoever begins to work
// later does not know that it has ended. The keeper before may have died before he did.
func (f *foreman) purge(ctx context.Context, o *overseen) error {
	if o.purged {
		return nil
	}
	err := errors.Join(f.bus.Purge(ctx, bus.Chunks, o.record.Job), f.bus.Purge(ctx, bus.Tasks, o.record.Job))
	o.purged = err == nil
	return f.unqueued(ctx, err)
}
