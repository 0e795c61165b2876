package node

import (
	"context"
	"encoding/json"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
)

// bounded stops a job that has reached a bound of its user's, and reports whether it has.
func (f *foreman) bounded(ctx context.Context, o *overseen) bool {
	var all parts.Sums
	for _, sums := range o.counted {
		all = all.Plus(sums)
	}
	reached := func(r *job.Record) string { return r.Bounds.Reached(f.clock.Now(), all.Done+all.Failed, all.Failed) }
	if reached(&o.record) == "" {
		return false
	}
	_, err := job.Change(ctx, f.home, o.record.Job, func(r *job.Record) error {
		why := reached(r)
		if r.State != job.Running && r.State != job.Indexing || r.Round != o.record.Round || why == "" {
			return errChanged
		}
		r.State, r.Why, r.Bound = job.Stopped, why, true
		return nil
	})
	if o.stale = true; err == nil {
		f.tellChanged(o.record.Job)
	}
	return true
}

// tally counts what has failed in a job that has a bound on it: in parts that were not heard of.
func (o *overseen) tally(ctx context.Context) error {
	if !o.record.Bounds.Counts() {
		return nil
	}
	if o.counted == nil {
		o.counted = map[int]parts.Sums{}
	}
	return o.ledger.Tally(ctx, o.counted)
}

// hearSums counts a part that was heard of.
func (o *overseen) hearSums(d *doneWord) {
	var sums parts.Sums
	if o.counted != nil && json.Unmarshal(d.Footer, &sums) == nil {
		o.counted[d.Chunk] = sums
	}
}
