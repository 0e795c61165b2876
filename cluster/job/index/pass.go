package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Plan reads all inputs of a job through, and makes the plan for them, cut for so many workers. The chunks of the
// record's plan stay as they are: Plan cuts only the inputs that were added since. The names of the objects that it
// writes contain who, which is new with each try. The error says why an input cannot be read, such as
// store.ErrChanged.
func (s *Source) Plan(ctx context.Context, workers int, who string) (*Plan, error) {
	p := &pass{files: &files{Source: s, ctx: ctx}, who: who}
	err := p.all(workers)
	if p.close(); err != nil {
		p.remove()
		return nil, fmt.Errorf("index: plan %s: %w", s.Record.Job, err)
	}
	return &p.plan, nil
}

// pass reads the inputs of a job through.
type pass struct {
	*files
	who   string
	plan  Plan
	cut   int // number of inputs that the plan already had
	found promptfile.Refused
	wrote []string // objects

	segment Planned // the one in hand
	idx     Index   // its index
	bytes   int64
	filled  int // lines of all segments (rows in a CSV) that are not blank
	marks   block
	marked  bool // a line has one

	stretch Stretched // the one in hand
	base    int64     // where its object begins in its input
	step    step      // the one in hand
	line    int       // its last line
	offset  int64     // and where that line ends in its input
	before  int       // bytes of marks before it
}

// mostSteps bounds the bytes of a stretch's steps: a million of them, for chunks of one line.
const mostSteps = 4 << 20

// all adds the inputs that the old plan lacks, unless that plan has faults already. It reads all
// inputs, because lines depend on lines before them. If lines keep the job from being called, the
// plan names them, and has only the old segments.
func (p *pass) all(workers int) error {
	old, err := LoadPlan(p.ctx, p.Store, &p.Record)
	if err != nil {
		return err
	}
	if p.cut, err = old.inputs(p.ctx, p.Store); err != nil {
		return err
	}
	p.plan = *old
	p.plan.Format, p.plan.Inputs, p.plan.Segments = Format, len(p.Record.Inputs), slices.Clone(old.Segments)
	if old.AllFaults > 0 || p.cut == p.plan.Inputs {
		return nil
	}
	if err := p.read(); err != nil {
		return err
	}
	p.plan.Lines = p.line
	p.plan.Bad += p.found.Bad.All
	p.plan.Untranslatable += p.found.Untranslatable.All
	if how := &p.Record.Reading; p.fatal() {
		p.plan.Segments = old.Segments
		return p.refuse(p.found.Fatal(how.SkipBad, how.SkipUntranslatable))
	}
	return p.chunks(workers)
}

// read reads all lines.
func (p *pass) read() error {
	p.begun = p.begin
	first, cfg, err := p.config()
	if err != nil {
		return err
	}
	cfg.Note = p.note
	p.reader = prompts.NewReader(first.In, cfg)
	for p.ctx.Err() == nil {
		_, err := p.reader.Next()
		if err == io.EOF { //nolint:errorlint // what Next promises: a wrapped one says that something is missing
			return p.write()
		}
		if err := p.take(err); err != nil {
			return err
		}
	}
	return p.ctx.Err()
}

// begin ends the previous input, with its last blank lines.
func (p *pass) begin() error {
	switch input := p.input(); {
	case input > p.cut:
		if err := p.pass(0); err != nil {
			return err
		}
	case input == p.cut && p.above[input] != p.plan.Lines:
		return fmt.Errorf("the inputs that were cut before have %d lines, and had %d: %w", p.above[input], p.plan.Lines, store.ErrChanged)
	case input == p.cut:
		p.line, p.marks.last, p.segment.First = p.plan.Lines, p.plan.Lines, p.plan.Lines
	}
	p.endStretch()
	p.offset, p.base = 0, 0
	p.stretch = Stretched{Input: p.input()}
	return nil
}

// input returns the number of the input at hand.
func (p *pass) input() int { return len(p.above) - 1 }

// take counts a line that is not blank: a request, or a defect.
func (p *pass) take(err error) error {
	if err != nil && lineError(err) == nil {
		return err
	}
	if p.input() < p.cut {
		return nil
	}
	switch p.filled++; {
	case err == nil:
		p.plan.Items++
	case errors.Is(err, prompts.ErrUntranslatable):
		_ = p.found.Untranslatable.Note(err) // it is about a line
		p.segment.Refused = true
	default:
		_ = p.found.Bad.Note(err)
		p.segment.Refused = true
	}
	return p.pass(1)
}

// fatal reports whether no call will be made.
func (p *pass) fatal() bool {
	how := &p.Record.Reading
	return p.found.Bad.All > 0 && !how.SkipBad || p.found.Untranslatable.All > 0 && !how.SkipUntranslatable
}

// note keeps the mark of a line, which depends on lines before it.
func (p *pass) note(line int, m prompts.Mark) {
	in := p.input()
	if in < p.cut || p.fatal() {
		return
	}
	if m.By > 0 {
		var above int
		in, above = p.place(m.By)
		m.By -= above
	}
	p.marks.add(line, m, in, in != p.input())
	p.step.marked, p.marked = true, true
}

// pass records how far the reader is. A step ends when it is long enough, or when its object ends.
func (p *pass) pass(filled int) error {
	line, at := p.reader.Line(), p.reader.Offset()
	if at == p.offset {
		return nil // an input that has no line more
	}
	p.step.add(step{lines: line - p.line, bytes: at - p.offset, filled: filled})
	p.line, p.offset = line, at
	in := &p.Record.Inputs[p.stretch.Input]
	end := p.base + in.Objects[p.stretch.Piece].Bytes
	switch last := p.stretch.Piece == len(in.Objects)-1; {
	case at > end:
		return fmt.Errorf("%s: object %d does not end with a line: %w", in.Name, p.stretch.Piece, store.ErrChanged)
	case at == end && !last:
		p.endStretch()
		p.base = end
		p.stretch = Stretched{Input: p.stretch.Input, Piece: p.stretch.Piece + 1}
	case p.step.lines >= p.Record.Cut.StepLines || p.step.bytes >= p.Record.Cut.StepBytes:
		p.endStep()
	}
	if p.step.bytes == 0 && (p.bytes >= p.Record.Cut.SegmentBytes || len(p.stretch.Steps) >= mostSteps) {
		return p.write()
	}
	return nil
}

func (p *pass) endStep() {
	if p.step.bytes > 0 {
		p.marks.end(p.line)
		p.step.marks = int64(len(p.marks.buf) - p.before)
		p.before = len(p.marks.buf)
		p.stretch.Steps.append(p.step)
		p.stretch.Lines += p.step.lines
		p.bytes += p.step.bytes
	}
	p.step = step{}
}

// endStretch ends the stretch at hand, and begins one behind it.
func (p *pass) endStretch() {
	if p.endStep(); p.stretch.Lines > 0 {
		p.idx.Stretches = append(p.idx.Stretches, p.stretch)
	}
	p.stretch = Stretched{Input: p.stretch.Input, Piece: p.stretch.Piece, Begin: p.offset - p.base}
}

// write writes the index of the segment at hand, and begins one behind it.
func (p *pass) write() error {
	p.endStretch()
	var err error
	if len(p.idx.Stretches) > 0 && !p.fatal() {
		err = p.writeIndex()
	}
	p.segment, p.idx, p.bytes = Planned{First: p.line}, Index{}, 0
	p.marks, p.marked, p.before = block{buf: p.marks.buf[:0], last: p.line}, false, 0
	return err
}

// writeIndex writes the segment at hand: first its marks, and then the index that names them. It
// notes each name before it writes: after an error the object may be there all the same.
func (p *pass) writeIndex() error {
	number := len(p.plan.Segments)
	name := fmt.Sprintf("%s-%s", oldIndex(p.Record.Job, number), p.who)
	p.idx.Format, p.idx.Segment = Format, number
	if p.marked {
		p.idx.Marks = name + ".marks"
		p.wrote = append(p.wrote, p.idx.Marks)
		if err := store.CreateBytes(p.ctx, p.Store, p.idx.Marks, p.marks.buf); err != nil {
			return err
		}
	}
	p.segment.Index, p.segment.Above = name, p.above[p.idx.Stretches[0].Input]
	p.plan.Segments = append(p.plan.Segments, p.segment)
	p.wrote = append(p.wrote, name)
	return save(p.ctx, p.Store, name, &p.idx)
}

// chunks cuts the new segments.
func (p *pass) chunks(workers int) error {
	if p.plan.ChunkLines == 0 {
		p.plan.ChunkLines = p.Record.Cut.ChunkSize(p.filled, workers)
	}
	for i := range p.plan.Segments {
		seg := &p.plan.Segments[i]
		if seg.First < p.above[p.cut] {
			continue
		}
		idx, err := p.plan.loadIndex(p.ctx, p.Store, i)
		if err != nil {
			return err
		}
		spans, err := idx.spans(p.plan.ChunkLines, p.Record.Cut.ChunkBytes)
		if err != nil {
			return err
		}
		seg.FirstChunk, seg.Chunks = p.plan.Chunks, len(spans)
		p.plan.Chunks += len(spans)
	}
	return nil
}

// refuse records the lines that keep the job from being called. For an id used twice, the reader
// knows the earlier line only of the first ids. For the others that it names, refuse reads the inputs once more.
func (p *pass) refuse(bad *promptfile.BadLines) error {
	p.remove()
	again := &files{Source: p.Source, ctx: p.ctx}
	defer again.close()
	first, cfg, err := again.config()
	if err != nil {
		return err
	}
	if err := prompts.FirstLines(first.In, cfg, bad.First); err != nil {
		return err
	}
	p.plan.refuse(bad)
	return nil
}

// remove deletes objects that nobody will read. An object that cannot be deleted does no harm.
func (p *pass) remove() {
	for _, name := range p.wrote {
		_ = p.Store.Delete(context.WithoutCancel(p.ctx), name)
	}
}

// files opens the inputs of a job one after the other, for one reader of all of them.
type files struct {
	*Source
	ctx    context.Context
	above  []int // for each begun input, the number of lines before it
	reader *prompts.Reader
	begun  func() error // called when an input begins, once the lines before it are read
	in     *pieces
}

// config returns the settings of a reader of all inputs, and the file that it begins with.
func (f *files) config() (prompts.File, prompts.Config, error) {
	cfg, err := f.Record.Reading.Config()
	if err != nil {
		return prompts.File{}, cfg, err
	}
	cfg.Serves, cfg.Takes, cfg.More = f.Serves, f.Takes, f.more
	cfg.Plain, cfg.Passing, cfg.NoKeys = true, true, true
	first, err := f.more()
	if errors.Is(err, io.EOF) {
		first, err = prompts.File{In: strings.NewReader("")}, nil
	}
	cfg.Name, cfg.Format = first.Name, first.Format
	return first, cfg, err
}

// more opens the next input.
func (f *files) more() (file prompts.File, err error) {
	next, lines := len(f.above), 0
	if f.reader != nil {
		lines = f.reader.Line()
	}
	if f.above = append(f.above, lines); f.begun != nil {
		if err := f.begun(); err != nil {
			return file, err
		}
	}
	if next >= len(f.Record.Inputs) {
		return file, io.EOF
	}
	in := &f.Record.Inputs[next]
	cfg, err := in.ReaderOf(prompts.Config{})
	f.in = &pieces{files: f, of: in}
	return prompts.File{Name: cfg.Name, Format: cfg.Format, In: f.in}, err
}

// place returns the input that holds a line, from 1, and the number of lines before that input.
func (f *files) place(line int) (input, above int) {
	i := sort.SearchInts(f.above, line) - 1
	return i, f.above[i]
}

func (f *files) close() {
	if f.in != nil && f.in.open != nil {
		_ = f.in.open.Close() // it was only read
	}
}

// pieces reads the objects of an input, one after the other.
type pieces struct {
	*files
	of   *job.Input
	next int
	open io.ReadCloser
}

// Read reads the objects of the input, one after the other, as one stream. An object's end is no end
// of the stream, unless closing it fails.
func (p *pieces) Read(b []byte) (n int, err error) {
	for n == 0 && err == nil {
		if p.open == nil {
			if p.next == len(p.of.Objects) {
				return 0, io.EOF
			}
			o := &p.of.Objects[p.next]
			if p.open, err = p.Source.open(p.ctx, o, 0, o.Bytes); err != nil {
				return 0, err
			}
			p.next++
		}
		if n, err = p.open.Read(b); err == io.EOF { //nolint:errorlint // a wrapped one says that something is missing
			err = p.open.Close()
			p.open = nil
		}
	}
	return n, err
}
