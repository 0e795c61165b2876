package parts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// ErrUnfinished says that not all parts of a job are there yet.
var ErrUnfinished = errors.New("it is not finished: --partial fetches what is there")

// Fetch makes one output of the parts of a job.
type Fetch struct {
	Store  store.Store
	Job    string
	Chunks int // of the job
	// Partial accepts the parts that exist; otherwise missing parts are ErrUnfinished.
	Partial bool
}

// Fetched describes the fetched results.
type Fetched struct {
	Sums
	Chunks int // that have a part
	// First are the lines of the first items that failed, in the order of the input and without
	// the answers: as many as a sentence names.
	First []journal.Line
}

// firstFailures bounds the lines of First.
const firstFailures = 3

// name keeps the line of a failure that is among the first.
func (f *Fetched) name(l *Line) error {
	if !l.Failed || skipped(&l.Entry) || len(f.First) == firstFailures {
		return nil
	}
	var line journal.Line
	if err := json.Unmarshal(l.Text, &line); err != nil {
		return err
	}
	if line.Response != nil {
		line.Response.Body = nil
	}
	f.First = append(f.First, line)
	return nil
}

// To writes all results to one writer and all failures to another, which may be nil, in the order of
// the input: the lines that a run writes. Of a line that several rounds have, the last counts.
// Damage is ErrDamaged, found at the latest when a chunk was written.
func (f *Fetch) To(ctx context.Context, results, failures io.Writer) (Fetched, error) {
	if failures == nil {
		failures = io.Discard
	}
	return f.each(ctx, func(l *Line) error {
		out := results
		if l.Failed {
			out = failures
		}
		_, err := out.Write(l.Text)
		return err
	})
}

// each visits the lines that count.
func (f *Fetch) each(ctx context.Context, visit func(*Line) error) (Fetched, error) {
	var all Fetched
	open := ahead(ctx, atOnce, f.groups(ctx), f.open, func(p *opened) { p.close() })
	for p, err := range open {
		if err == nil {
			all.Chunks++
			err = p.each(func(l *Line) error {
				all.add(&l.Entry)
				if err := all.name(l); err != nil {
					return err
				}
				return visit(l)
			})
			p.close()
		}
		if err != nil {
			return all, fmt.Errorf("parts: fetch %s: %w", f.Job, err)
		}
	}
	if all.Chunks < f.Chunks && !f.Partial {
		return all, fmt.Errorf("parts: fetch %s: %d of %d parts: %w", f.Job, all.Chunks, f.Chunks, ErrUnfinished)
	}
	return all, nil
}

// group holds the parts of one chunk: of round 0, and of the rounds that tried it again.
type group struct {
	chunk  int
	rounds []int
}

// groups yields the existing parts of each chunk, in order. The first chunk without any ends it, unless
// the fetch is partial.
func (f *Fetch) groups(ctx context.Context) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		g := group{chunk: -1}
		next := 0
		give := func() bool {
			if len(g.rounds) == 0 || !f.Partial && g.chunk != next {
				return g.chunk < 0
			}
			next++
			slices.Sort(g.rounds)
			return yield(g, nil)
		}
		for o, err := range f.Store.List(ctx, job.PartsFolder(f.Job), "") {
			if err != nil {
				yield(g, err)
				return
			}
			chunk, round, ok := job.ParsePart(f.Job, o.Name)
			if !ok || chunk >= f.Chunks {
				continue
			}
			if chunk != g.chunk {
				if !give() {
					return
				}
				g = group{chunk: chunk}
			}
			g.rounds = append(g.rounds, round)
		}
		give()
	}
}

// opened is a chunk whose parts are open.
type opened struct {
	parts []io.ReadCloser
	lines []iter.Seq2[Line, error] // of the latest round first
}

func (f *Fetch) open(ctx context.Context, g group) (*opened, error) {
	p := &opened{}
	for _, round := range slices.Backward(g.rounds) {
		in, err := f.Store.Open(ctx, job.PartName(f.Job, g.chunk, round), 0, -1)
		if err != nil {
			p.close()
			return nil, err
		}
		p.parts = append(p.parts, in)
		p.lines = append(p.lines, lines(in, f.Job, g.chunk, round))
	}
	return p, nil
}

func (p *opened) close() {
	for _, in := range p.parts {
		_ = in.Close() // it was only read
	}
}

// each visits the lines of a chunk by line of the input. Of each line it visits the one of the latest round.
func (p *opened) each(visit func(*Line) error) error {
	heads := make([]*head, len(p.lines))
	for i, lines := range p.lines {
		next, stop := iter.Pull2(lines)
		defer stop()
		heads[i] = &head{next: next}
		if err := heads[i].advance(); err != nil {
			return err
		}
	}
	for {
		first := least(heads)
		if first == nil {
			return nil
		}
		line := first.Line
		if err := visit(&line); err != nil {
			return err
		}
		for _, h := range heads {
			if h.there && h.Line.Line == line.Line {
				if err := h.advance(); err != nil {
					return err
				}
			}
		}
	}
}

// head holds the next line of a part.
type head struct {
	Line
	there bool
	next  func() (Line, error, bool)
}

func (h *head) advance() (err error) {
	h.Line, err, h.there = h.next()
	return err
}

// least returns the part whose line comes first, the latest of several; nil if none has a line.
func least(heads []*head) (first *head) {
	for _, h := range heads {
		if h.there && (first == nil || h.Line.Line < first.Line.Line) {
			first = h
		}
	}
	return first
}

// earlier is an existing file of results, during its comparison.
type earlier struct {
	in   *bufio.Reader
	line []byte // the next one; nil at the end
}

// newEarlier reads the results of an earlier fetch.
func newEarlier(in io.Reader) (*earlier, error) {
	e := &earlier{in: bufio.NewReaderSize(in, 64<<10)}
	return e, e.advance()
}

func (e *earlier) advance() error {
	line, err := e.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		line, err = nil, nil // a line without a line feed was torn
	}
	e.line = line
	return err
}

// pass compares a written line with the next one of the file, and moves past it if they are equal.
func (e *earlier) pass(line []byte) error {
	if !bytes.Equal(e.line, line) {
		return nil
	}
	return e.advance()
}
