package node

import (
	"context"
	"errors"

	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
)

// count finds out which parts are there: at first and every minute by the store, in between by what
// workers say.
func (f *foreman) count(ctx context.Context, o *overseen) error {
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
	if err := o.ledger.Look(ctx); err != nil {
		return err
	}
	return o.tally(ctx)
}

// ledger is that of a round: of a later one, of the chunks in which something had failed in the round before.
func (n *Node) ledger(ctx context.Context, r *job.Record, round, chunks int) (*parts.Ledger, error) {
	if round == 0 {
		return n.newLedger(r, 0, chunks, nil), nil
	}
	before, err := n.ledger(ctx, r, round-1, chunks)
	if err != nil {
		return nil, err
	}
	if err := before.Look(ctx); err != nil {
		return nil, err
	}
	want := []int{} // nil would be all
	for folder := range (chunks + parts.PerFolder - 1) / parts.PerFolder {
		sums, err := before.Settle(ctx, folder)
		if err != nil {
			return nil, err
		}
		want = append(want, sums.Failing...)
	}
	return n.newLedger(r, round, chunks, want), nil
}

func (n *Node) newLedger(r *job.Record, round, chunks int, want []int) *parts.Ledger {
	l := parts.NewLedger(n.home, r.Job, round, chunks, want)
	l.Format = r.Format
	return l
}

// finish says that a round is over: all parts are there. A job that is open waits for more.
func (f *foreman) finish(ctx context.Context, o *overseen) error {
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
		r.State = job.Done
		return nil
	})
	o.stale = true
	if err != nil && !errors.Is(err, errChanged) {
		return err
	}
	f.tellChanged(o.record.Job)
	return nil
}

func claimOf(c *job.Chunk) claim.Chunk {
	return claim.Chunk{Job: c.Job, Number: c.Number, Round: c.Round}
}
