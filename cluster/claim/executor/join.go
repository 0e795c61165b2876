package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/store"
)

// joining is what a part is made of.
type joining struct {
	store    store.Store
	chunk    job.Chunk
	job      *Job
	plan     plan
	journals []claim.Name // the one that counts most first
}

// join makes the part of a chunk of its journals. Few are made at once, as each has up to parts.Held
// bytes in memory.
func (x *Executor) join(d *desk, names []claim.Name) {
	j := joining{store: x.cfg.Store, chunk: d.chunk, job: d.job, plan: d.plan, journals: names}
	x.beside(func() func() {
		select {
		case x.joins <- struct{}{}:
			defer func() { <-x.joins }()
		case <-d.ctx.Done():
			return func() {}
		}
		sums, outcome, err := j.make(d.ctx)
		return func() {
			if outcome == claim.Made {
				d.footer, _ = json.Marshal(sums) // of numbers that are some
			}
			x.step(claim.Joined{ID: d.id, Outcome: outcome, Err: err})
		}
	})
}

// make writes the part, if nothing of it is missing. If something is, whoever has made it may have
// deleted the journals meanwhile.
func (j *joining) make(ctx context.Context) (sums parts.Sums, outcome claim.Outcome, err error) {
	sums, err = j.write(ctx)
	switch {
	case err == nil:
		return sums, claim.Made, nil
	case errors.Is(err, store.ErrExists):
		return sums, claim.Taken, nil
	case errors.Is(err, parts.ErrIncomplete):
		there, err := isThere(ctx, j.store, partName(&j.chunk))
		if there {
			return sums, claim.Taken, nil
		}
		return sums, claim.Incomplete, err
	}
	return sums, claim.Incomplete, fmt.Errorf("executor: part of %v: %w", &j.chunk, err)
}

func (j *joining) write(ctx context.Context) (parts.Sums, error) {
	sources := make([]iter.Seq2[[]byte, error], 0, len(j.journals)+1)
	for _, n := range j.journals {
		sources = append(sources, whatIsThere(store.ReadJournal(ctx, j.store, journalName(&j.chunk, n))))
	}
	joined, err := parts.Join(0, append(sources, j.badLines)...)
	if err != nil {
		return parts.Sums{}, err
	}
	return parts.Write(ctx, j.store, &j.chunk, j.plan.items, joined)
}

// whatIsThere takes a journal that is gone for one that ends: what is missing then is for the count to show.
func whatIsThere(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if errors.Is(err, store.ErrMissing) || !yield(line, err) {
				return
			}
		}
	}
}

// badLines are the lines of what is not asked. No journal has them, as each who reads the chunk finds them.
func (j *joining) badLines(yield func([]byte, error) bool) {
	for _, bad := range j.plan.bad {
		l := j.job.BadLine(bad)
		if !yield(text(&l), nil) {
			return
		}
	}
}

// text is a line without its line feed.
func text(l *journal.Line) []byte {
	line := journal.AppendLine(nil, l)
	return line[:len(line)-1]
}

// plan is what a part is to have.
type plan struct {
	items int // lines in all
	bad   []*prompts.LineError
}
