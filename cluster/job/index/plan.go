package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sort"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Plan says how a job's inputs are cut into chunks, or why nothing of the job may be called.
type Plan struct {
	Format   int       `json:"format"`
	Job      string    `json:"job"`
	Segments []Planned `json:"segments"`
	// Inputs is the number of its inputs; 0 in format 1, where the last segment shows it.
	Inputs int `json:"inputs,omitempty"`
	// ChunkLines is the number of lines of a full chunk, without blank ones.
	ChunkLines int `json:"chunk_lines"`

	Lines          int `json:"lines"`
	Items          int `json:"items"`
	Bad            int `json:"bad"` // lines that are no request; they are skipped if the plan is not refused
	Untranslatable int `json:"untranslatable"`
	Chunks         int `json:"chunks"`

	// Faults are the first lines that keep the job from being called: prompts.MaxComplaints of AllFaults.
	Faults    []Fault `json:"faults,omitempty"`
	AllFaults int     `json:"all_faults,omitempty"`
}

// Planned describes one segment as part of the whole.
type Planned struct {
	First int `json:"first"` // number of the job's lines before it
	// Above is the number of lines in the files before the file of its first stretch.
	Above      int    `json:"above"`
	FirstChunk int    `json:"first_chunk"`
	Chunks     int    `json:"chunks"`
	Index      string `json:"index,omitempty"` // the object with its index; "" in format 1, see oldIndex
	Marks      string `json:"marks,omitempty"` // in format 1 the object with the places of its chunks' marks
	Refused    bool   `json:"refused,omitempty"`
}

// Fault describes a defect of one line.
type Fault struct {
	File           string `json:"file"`
	Line           int    `json:"line"` // of the file, from 1
	Reason         string `json:"reason"`
	Advice         string `json:"advice"`
	Untranslatable bool   `json:"foreign,omitempty"` // the line is good, but cannot be translated
}

// Refused returns the lines that keep the job from being called; nil if there are none.
func (p *Plan) Refused() *promptfile.BadLines {
	if p.AllFaults == 0 {
		return nil
	}
	bad := &promptfile.BadLines{All: p.AllFaults}
	for _, f := range p.Faults {
		e := &prompts.LineError{File: f.File, Line: f.Line, Reason: f.Reason, Advice: f.Advice}
		if f.Untranslatable {
			e.Err = prompts.ErrUntranslatable
		}
		bad.First = append(bad.First, e)
	}
	return bad
}

// refuse records the lines that keep the job from being called.
func (p *Plan) refuse(bad *promptfile.BadLines) {
	p.AllFaults = bad.All
	for _, e := range bad.First {
		p.Faults = append(p.Faults, Fault{
			File: e.File, Line: e.FileLine(), Reason: e.Reason, Advice: e.Advice, Untranslatable: errors.Is(e, prompts.ErrUntranslatable),
		})
	}
}

// segmentOfChunk returns the number of a chunk's segment.
func (p *Plan) segmentOfChunk(n int) int {
	return sort.Search(len(p.Segments), func(i int) bool { return p.Segments[i].FirstChunk > n }) - 1
}

// maxPlan bounds the bytes of a plan: 200 for each of some thousand segments, and the faults.
const maxPlan = 16 << 20

// Save writes a plan, and returns the name for Record.Plan.
func (p *Plan) Save(ctx context.Context, s store.Store, who string) (name string, err error) {
	text, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("index: save the plan of %s: %w", p.Job, err)
	}
	name = fmt.Sprintf("%splan-%06d-%s", job.IndexFolder(p.Job), len(p.Segments), who)
	return name, store.CreateBytes(ctx, s, name, text)
}

// LoadPlan reads the plan that a record names; it is empty if it names none.
func LoadPlan(ctx context.Context, s store.Store, r *job.Record) (*Plan, error) {
	p := &Plan{Format: Format, Job: r.Job}
	if r.Plan == "" {
		return p, nil
	}
	if err := load(ctx, s, r.Plan, maxPlan, p); err != nil {
		return nil, err
	}
	if p.Format > Format {
		return nil, fmt.Errorf("index: read %s: %w", r.Plan, job.ErrNewer)
	}
	return p, nil
}

// Whole reports whether a job has a plan that has all of its inputs.
func Whole(ctx context.Context, s store.Store, r *job.Record) (bool, error) {
	p, err := LoadPlan(ctx, s, r)
	if err != nil {
		return false, err
	}
	n, err := p.inputs(ctx, s)
	return r.Plan != "" && n == len(r.Inputs), err
}

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

// This file reads plans and indexes of format 1, so that a job which an older program has cut goes on.

// oldIndex returns the name of a segment's index.
func oldIndex(name string, segment int) string {
	return fmt.Sprintf("%s%06d", job.IndexFolder(name), segment)
}

// inputs returns the number of a plan's inputs. A plan of format 1 does not hold it: its last line that is not blank shows it.
func (p *Plan) inputs(ctx context.Context, s store.Store) (int, error) {
	if p.Inputs > 0 || len(p.Segments) == 0 {
		return p.Inputs, nil
	}
	idx, err := p.loadIndex(ctx, s, len(p.Segments)-1)
	if err != nil || len(idx.Stretches) == 0 {
		return 0, err
	}
	return idx.Stretches[len(idx.Stretches)-1].Input + 1, nil
}

// table holds the places of the marks of a segment's chunks.
type table struct {
	Format  int      `json:"format"`
	Objects []string `json:"objects"`
	// Blocks has two uvarints for each chunk: the number of objects from the block of the chunk before to
	// its own, and the size of its block in bytes. In an object blocks follow one another.
	Blocks []byte `json:"blocks"`
}

// oldMarks returns, for each chunk at hand, the object of its marks and their place in it; "" if it has none.
func (c *Chunks) oldMarks(ctx context.Context, name string) (all []job.Chunk, err error) {
	var t table
	if err := load(ctx, c.store, name, MaxIndex, &t); err != nil {
		return nil, err
	}
	object, offset := 0, int64(0)
	for rest := t.Blocks; len(rest) > 0; {
		var n [2]int
		for i := range n {
			v, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, errMarks
			}
			n[i], rest = int(v), rest[size:]
		}
		if object += n[0]; n[0] > 0 {
			offset = 0
		}
		m := job.Chunk{MarksBytes: int64(n[1])}
		switch {
		case n[1] == 0:
		case object >= len(t.Objects):
			return nil, errors.New("a block of marks is in an object that is not there")
		default:
			m.Marks, m.MarksOffset = t.Objects[object], offset
		}
		offset += int64(n[1])
		all = append(all, m)
	}
	if len(all) != len(c.spans) {
		err = fmt.Errorf("%s is of %d chunks, there are %d", name, len(all), len(c.spans))
	}
	return all, err
}
