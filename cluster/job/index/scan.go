package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/headrace/headrace/batch/prompts"
)

// scan reads a segment through.
type scan struct {
	*Source
	ctx    context.Context
	idx    Index
	traces runs
}

// anyLine is the number that the first line of a stretch bears while nobody knows which it has:
// none that stands at the beginning of a file. No CSV is cut there, whose complaints name lines.
const anyLine = 2

// stretch adds one stretch to what is known.
func (w *scan) stretch(st Stretch) error {
	in, begin, done, err := w.lines(w.ctx, st)
	if err != nil {
		return err
	}
	first := anyLine
	if st.Offset == 0 {
		first = max(w.inputOf(st).Objects[st.Piece].FirstLine, 1)
	}
	p := &pass{scan: w, first: first, of: Stretched{Stretch: st, Begin: begin}}
	return errors.Join(p.read(in, begin), done())
}

// pass is a stretch while it is read.
type pass struct {
	*scan
	first  int // the number that its first line bears
	of     Stretched
	reader *prompts.Reader
	open   step // the one in hand
	before int64
}

func (p *pass) read(in io.Reader, begin int64) error {
	input := p.inputOf(p.of.Stretch)
	cfg, err := p.config(input)
	if err != nil {
		return err
	}
	cfg.Section = section(input, p.of.Piece, begin, p.first, 0)
	cfg.Passing, cfg.NoKeys, cfg.Trace = true, true, p.trace
	p.reader = prompts.NewReader(in, cfg)
	for p.ctx.Err() == nil {
		_, err := p.reader.Next()
		if err == io.EOF { //nolint:errorlint // what Next promises: a wrapped one says that something is missing
			return p.end()
		}
		if err := p.take(err); err != nil {
			return err
		}
		p.steps(1)
	}
	return p.ctx.Err()
}

// take counts a line that is not blank: a request, or what is wrong with it.
func (p *pass) take(err error) error {
	var bad *prompts.LineError
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if p.idx.Filled++; err == nil {
		p.idx.Items++
		return nil
	}
	c := complaintOf(bad, len(p.idx.Stretches), bad.Line-p.first)
	count, list := &p.idx.Bad, &p.idx.Complaints
	if c.Foreign {
		count, list = &p.idx.Untranslatable, &p.idx.Foreign
	}
	if *count++; len(*list) < prompts.MaxComplaints {
		*list = append(*list, c)
	}
	return nil
}

// steps notes how far the reader is, and ends a step that is long enough.
func (p *pass) steps(filled int) {
	line, at := p.reader.Line()-p.first+1, p.reader.Offset()
	p.open.add(step{line - p.of.Lines, at - p.before, filled})
	p.of.Lines, p.before = line, at
	if cut := &p.Record.Cut; p.open.lines >= cut.StepLines || p.open.bytes >= cut.StepBytes {
		p.close()
	}
}

func (p *pass) close() {
	if p.open.bytes > 0 {
		p.of.Steps.append(p.open)
	}
	p.open = step{}
}

// end adds the blank lines behind the last other one.
func (p *pass) end() error {
	p.steps(0)
	p.close()
	p.idx.Lines += p.of.Lines
	p.idx.Stretches = append(p.idx.Stretches, p.of)
	if p.idx.Lines > math.MaxUint32 {
		return fmt.Errorf("%d lines in one segment, %d are the most", p.idx.Lines, uint32(math.MaxUint32))
	}
	return p.traces.err
}

// trace keeps what a line may have in common with others.
func (p *pass) trace(t prompts.Trace) {
	p.traces.add(t, p.idx.Lines+t.Line-p.first)
}
