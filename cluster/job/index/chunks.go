package index

import (
	"context"
	"fmt"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Chunks finds the chunks of a job without holding them. It finds the n-th by its segment, and keeps
// one segment at a time. It belongs to one goroutine.
type Chunks struct {
	store store.Store
	job   string
	form  int // of the job's record
	plan  *Plan

	segment int // the kept segment; -1 for none
	idx     Index
	spans   []span
	marks   []job.Chunk // in format 1, the places of the chunks' marks; nil if none has any
	cut     job.Cut
}

// NewChunks returns the chunks of a job by its plan.
func NewChunks(s store.Store, r *job.Record, p *Plan) *Chunks {
	return &Chunks{store: s, job: r.Job, form: job.FormatOf(r.Format), plan: p, segment: -1, cut: r.Cut}
}

// Len returns the number of chunks.
func (c *Chunks) Len() int { return c.plan.Chunks }

// At returns the n-th chunk, from 0, in round 0.
func (c *Chunks) At(ctx context.Context, n int) (job.Chunk, error) {
	if n < 0 || n >= c.plan.Chunks {
		return job.Chunk{}, fmt.Errorf("index: chunk %d of %s: it has %d", n, c.job, c.plan.Chunks)
	}
	number := c.plan.segmentOfChunk(n)
	if err := c.keep(ctx, number); err != nil {
		return job.Chunk{}, fmt.Errorf("index: chunk %d of %s: %w", n, c.job, err)
	}
	seg := &c.plan.Segments[number]
	in := n - seg.FirstChunk
	chunk := chunkOf(&c.idx, seg, c.spans[in])
	chunk.Job, chunk.Number, chunk.Format = c.job, n, c.form
	switch s := &c.spans[in]; {
	case c.marks != nil:
		m := &c.marks[in]
		chunk.Marks, chunk.MarksOffset, chunk.MarksBytes = m.Marks, m.MarksOffset, m.MarksBytes
	case s.marked:
		chunk.Marks, chunk.MarksOffset, chunk.MarksBytes = c.idx.Marks, s.marksAt, s.marks
	}
	return chunk, nil
}

// keep loads a segment and keeps it.
func (c *Chunks) keep(ctx context.Context, number int) (err error) {
	if c.segment == number {
		return nil
	}
	c.segment, c.marks = -1, nil
	if c.idx, err = c.plan.loadIndex(ctx, c.store, number); err != nil {
		return err
	}
	if c.spans, err = c.idx.spans(c.plan.ChunkLines, c.cut.ChunkBytes); err != nil {
		return err
	}
	if name := c.plan.Segments[number].Marks; name != "" {
		if c.marks, err = c.oldMarks(ctx, name); err != nil {
			return err
		}
	}
	if seg := &c.plan.Segments[number]; len(c.spans) != seg.Chunks {
		return fmt.Errorf("segment %d has %d chunks, its plan says %d", number, len(c.spans), seg.Chunks)
	}
	c.segment = number
	return nil
}

// chunkOf makes a chunk from the entries of its segment.
func chunkOf(idx *Index, seg *Planned, s span) job.Chunk {
	st := &idx.Stretches[s.stretch]
	c := job.Chunk{
		Input: st.Input, Piece: st.Piece, Offset: s.offset, Bytes: s.bytes,
		FirstLine: seg.First + s.first + 1, Lines: s.lines, Above: seg.Above, Refused: seg.Refused,
	}
	first := seg.First
	for i := range s.stretch + 1 {
		if before := idx.Stretches[max(i-1, 0)]; before.Input != idx.Stretches[i].Input {
			c.Above = first
		}
		first += idx.Stretches[i].Lines
	}
	return c
}
