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

// chunkReading holds the inputs for reading a chunk.
type chunkReading struct {
	job     *Job
	inRound func(key string) bool // whether an item is one of the chunk's round
	done    map[string]bool       // the keys of items that have ended
}

// startReading finds out which items of a chunk are left to do, and begins to read them.
func (x *Executor) startReading(d *claimState, names []claim.Name) {
	x.inBackground(func() func() {
		r, err := x.prepare(d, names)
		gone := errors.Is(err, store.ErrMissing)
		if gone {
			err = nil
		}
		return func() {
			if d.job = r.job; x.states[d.id] != d {
				d.closeJob() // nothing needs the claim any more, so nobody else closes it
			}
			x.step(claim.JournalsRead{ID: d.id, Gone: gone, Err: err})
			if err == nil && !gone && !d.over {
				x.read(d, r)
			}
		}
	})
}

// prepare opens a claim's job, and finds the items of its round that have no line in these
// journals. The error is [store.ErrMissing] only if a journal is gone: see hideKind. Once the job is
// open the result has it even with an error, so that the claim closes it.
func (x *Executor) prepare(d *claimState, names []claim.Name) (r chunkReading, err error) {
	if r.job, err = x.cfg.Open(d.ctx, d.chunk.Job); err != nil {
		return r, fmt.Errorf("executor: job %s: %w", d.chunk.Job, hideKind(err))
	}
	r.inRound = func(string) bool { return true }
	if d.chunk.Round > 0 {
		if r.inRound, err = r.job.Again(d.ctx, d.chunk); err != nil {
			return r, fmt.Errorf("executor: what of %v is tried again: %w", &d.chunk, hideKind(err))
		}
	}
	r.done = make(map[string]bool)
	for _, n := range names {
		if err := x.noteEnded(d.ctx, journalName(&d.chunk, n), r.done); err != nil {
			return r, err
		}
	}
	return r, nil
}

// hideKind returns an error of the same text and of no kind, so that something missing elsewhere does not look like a
// journal that is gone.
func hideKind(err error) error { return errors.New(err.Error()) }

// noteEnded records the keys of items that have a line in a journal. A torn line, as after a loss of power, does not count.
func (x *Executor) noteEnded(ctx context.Context, name string, done map[string]bool) error {
	var (
		parser journal.Parser
		whole  []byte
	)
	for text, err := range store.ReadJournal(ctx, x.cfg.Store, name) {
		if err != nil {
			return err
		}
		whole = append(append(whole[:0], text...), '\n')
		if e, err := parser.Parse(whole); err == nil {
			done[e.Key] = true
		}
	}
	return nil
}

// read reads the items of a chunk that have not ended, as they are wanted.
func (x *Executor) read(d *claimState, r chunkReading) {
	x.inBackground(func() func() {
		plan, err := x.readAll(d, r)
		return func() {
			if d.plan, d.read = plan, true; err != nil {
				x.step(claim.ReadOut{ID: d.id, Err: err})
				d.ready, d.read = nil, false
			}
			x.readOut(d)
		}
	})
}

// readOut tells the machine once all items of a chunk have been read and given to the stream.
func (x *Executor) readOut(d *claimState) {
	if d.read && len(d.ready) == 0 {
		x.step(claim.ReadOut{ID: d.id})
	}
}

// readAll reads a chunk, and brings each item that has not ended to the owner. It waits while
// readAhead items are ready. The plan that it returns counts the items that had ended before, too.
func (x *Executor) readAll(d *claimState, r chunkReading) (p plan, err error) {
	for req, err := range r.job.Read(d.ctx, d.chunk) {
		var bad *prompts.LineError
		switch {
		case errors.As(err, &bad):
			p.note(bad, r.inRound)
			continue
		case err != nil:
			return p, err
		case !r.inRound(req.Key):
			continue
		}
		p.items++
		if r.done[req.Key] {
			continue
		}
		select {
		case d.places <- struct{}{}:
			x.tell(func() { d.ready = append(d.ready, req) })
		case <-d.ctx.Done():
			return p, context.Cause(d.ctx)
		}
	}
	return p, nil
}

// note adds a bad line of the chunk's round to the plan: it gets a line in the part, and no call.
func (p *plan) note(bad *prompts.LineError, ours func(string) bool) {
	if ours(bad.Key()) {
		p.items++
		p.bad = append(p.bad, bad)
	}
}

// partJoin holds the inputs of a part.
type partJoin struct {
	store    store.Store
	chunk    job.Chunk
	job      *Job
	plan     plan
	journals []claim.Name // in order of precedence, the first counts most
}

// join makes the part of a chunk from its journals. Few are made at once, because each takes up to parts.JoinBytes
// bytes of memory.
func (x *Executor) join(d *claimState, names []claim.Name) {
	j := partJoin{store: x.cfg.Store, chunk: d.chunk, job: d.job, plan: d.plan, journals: names}
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
func (j *partJoin) make(ctx context.Context) (sums parts.Sums, outcome claim.Outcome, err error) {
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

// write joins the lines of all journals, and those of bad lines, into the part.
func (j *partJoin) write(ctx context.Context) (parts.Sums, error) {
	sources := make([]iter.Seq2[[]byte, error], 0, len(j.journals)+1)
	for _, n := range j.journals {
		sources = append(sources, ignoreMissing(store.ReadJournal(ctx, j.store, journalName(&j.chunk, n))))
	}
	joined, err := parts.Join(0, append(sources, j.badLines)...)
	if err != nil {
		return parts.Sums{}, err
	}
	return parts.Write(ctx, j.store, &j.chunk, j.plan.items, joined)
}

// ignoreMissing yields lines, and takes a journal that is gone for one that ends. The count then shows the missing lines.
func ignoreMissing(lines iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for line, err := range lines {
			if errors.Is(err, store.ErrMissing) || !yield(line, err) {
				return
			}
		}
	}
}

// badLines yields the lines of items that are not asked. No journal has them, because each reader of the chunk finds them.
func (j *partJoin) badLines(yield func([]byte, error) bool) {
	for _, bad := range j.plan.bad {
		l := j.job.BadLine(bad)
		if !yield(lineText(&l), nil) {
			return
		}
	}
}

// lineText returns a line without its line feed.
func lineText(l *journal.Line) []byte {
	line := journal.AppendLine(nil, l)
	return line[:len(line)-1]
}

// plan holds the expected contents of a part.
type plan struct {
	items int // lines in all
	bad   []*prompts.LineError
}
