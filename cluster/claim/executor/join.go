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

// joining holds the inputs of a part.
type joining struct {
	store    store.Store
	chunk    job.Chunk
	job      *Job
	plan     plan
	journals []claim.Name // in order of precedence, the first counts most
}

// join makes the part of a chunk from its journals. Few are made at once, because each takes up to parts.Held
// bytes of memory.
func (x *Executor) join(d *desk, names []claim.Name) {
	j := joining{store: x.cfg.Store, chunk: d.chunk, job: d.job, plan: d.plan, journals: names}
	x.inBackground(func() func() {
		select {
		case x.joins <- struct{}{}:
			defer func() { <-x.joins }()
		case <-d.ctx.Done():
			return func() {}
		}
		sums, outcome, err := j.make(d.ctx)
		return func() {
			if outcome == claim.Made {
				d.footer, _ = json.Marshal(sums) // it only fails on a NaN or an infinity, and sums have neither
			}
			x.step(claim.Joined{ID: d.id, Outcome: outcome, Err: err})
		}
	})
}

// make writes the part, if nothing of it is missing. If something is, another worker may have made the part and
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

// whatIsThere treats a journal that is gone as one that ends. The count then shows the missing lines.
func whatIsThere(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if errors.Is(err, store.ErrMissing) || !yield(line, err) {
				return
			}
		}
	}
}

// badLines yields the lines of items that are not asked. No journal has them, because each reader of the chunk finds them.
func (j *joining) badLines(yield func([]byte, error) bool) {
	for _, bad := range j.plan.bad {
		l := j.job.BadLine(bad)
		if !yield(text(&l), nil) {
			return
		}
	}
}

// text returns a line without its line feed.
func text(l *journal.Line) []byte {
	line := journal.AppendLine(nil, l)
	return line[:len(line)-1]
}

// plan holds the expected contents of a part.
type plan struct {
	items int // lines in all
	bad   []*prompts.LineError
}
