package index

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
)

// Merge makes one of the indexes of all segments: the plan for a job's first inputs, cut for so
// many workers, or, if there is a plan already, one that also has the inputs that were added. What
// it makes has who's name in it. Where lines are refused, see Plan.Refused, there are no chunks
// of what is new.
//
// It holds what stands in mergeRoom and marksAtOnce, a few numbers for each segment, and, where
// ids look like those that lines get by their number, two bits for each line.
func (s *Source) Merge(ctx context.Context, old *Plan, workers int, who string) (*Plan, error) {
	m := newMerger(ctx, s, old, who)
	defer m.marks.remove()
	err := m.survey()
	if err == nil {
		err = m.group()
	}
	if err == nil {
		err = m.judge()
	}
	if err == nil && m.plan.AllFaults == 0 {
		err = m.cut(workers)
	}
	if err != nil {
		return nil, fmt.Errorf("index: merge %s: %w", s.Record.Job, err)
	}
	return &m.plan, nil
}

// merger makes a plan.
type merger struct {
	*Source
	ctx      context.Context
	who      string
	plan     Plan
	segments []Segment
	fresh    int // the segments from this one on are new
	above    int // lines of the segments that are not: those are as they were

	runs  []placedRun
	files files
	new   struct{ items, bad, foreign, filled int }
	marks sorter
	twins
	complaints
}

// placedRun is a run of traces, and how many lines are before its segment.
type placedRun struct {
	Run
	first int
}

func newMerger(ctx context.Context, s *Source, old *Plan, who string) *merger {
	m := &merger{Source: s, ctx: ctx, who: who, plan: *old, segments: Segments(&s.Record)}
	m.plan.Segments = append([]Planned(nil), old.Segments...)
	m.fresh, m.above = len(old.Segments), old.Lines
	m.marks = sorter{ctx: ctx, store: s.Store, name: fmt.Sprintf("%ssort-%06d-%s", job.IndexFolder(s.Record.Job), m.fresh, who), most: cmp.Or(s.marksHeld, marksAtOnce)}
	return m
}

// survey reads what all segments say of themselves.
func (m *merger) survey() error {
	lines := 0
	for i, seg := range m.segments {
		idx, err := LoadIndex(m.ctx, m.Store, seg.Job, seg.Number)
		if err != nil {
			return err
		}
		m.place(&idx, lines)
		if i >= m.fresh {
			m.enter(&idx, lines)
		}
		lines += idx.Lines
	}
	m.plan.Lines = lines
	return nil
}

// place notes where a segment's files and traces stand.
func (m *merger) place(idx *Index, lines int) {
	for _, run := range idx.Traces {
		m.runs = append(m.runs, placedRun{run, lines})
		m.numbered = m.numbered || run.Kinds[prompts.TraceNumbered] > 0
	}
	for _, s := range idx.Stretches {
		m.files.begin(s.Input, lines)
		lines += s.Lines
	}
}

// enter makes a segment part of the plan.
func (m *merger) enter(idx *Index, lines int) {
	above := lines
	if len(idx.Stretches) > 0 && idx.Lines > 0 {
		_, above = m.files.place(lines + 1)
	}
	m.plan.Segments = append(m.plan.Segments, Planned{
		First: lines, Above: above, Lines: idx.Lines, Items: idx.Items, Refused: idx.Bad+idx.Untranslatable > 0,
	})
	m.new.items += idx.Items
	m.new.bad += idx.Bad
	m.new.foreign += idx.Untranslatable
	m.new.filled += idx.Filled
	m.complaints.enter(idx, lines)
}

// placed is a trace of a line of the whole input, from 1.
type placed struct {
	trace
	at int
}

// tracesOf reads the traces of a run of kinds from one on.
func (m *merger) tracesOf(run placedRun, from prompts.TraceKind, pieces int) *traceRun {
	skipped := 0
	for _, n := range run.Kinds[:from] {
		skipped += n
	}
	return &traceRun{
		first: run.first,
		window: window{
			ctx: m.ctx, store: m.Store, name: run.Name, size: pieceFor(pieces),
			at: int64(skipped) * traceSize, end: int64(run.len()) * traceSize,
		},
	}
}

type traceRun struct {
	window
	first int
}

func (r *traceRun) next() (p placed, there bool, err error) {
	b, err := r.window.next(traceSize)
	if b == nil || err != nil {
		return p, false, err
	}
	copy(p.trace[:], b)
	p.at = r.first + p.trace.line() + 1
	return p, true, nil
}

// group goes over all traces, those that are alike one after the other, in the order of their lines.
func (m *merger) group() error {
	if err := m.bareLines(); err != nil {
		return err
	}
	var all []sorted[placed]
	for _, run := range m.runs {
		all = append(all, m.tracesOf(run, 0, len(m.runs)))
	}
	for t, err := range merge(all, earlier) {
		if err == nil {
			err = m.see(&t)
		}
		if err != nil {
			return err
		}
	}
	return m.ctx.Err()
}

func earlier(a, b *placed) bool {
	return cmp.Or(bytes.Compare(a.trace[:traceLine], b.trace[:traceLine]), cmp.Compare(a.at, b.at)) < 0
}

// bareLines finds the lines that give no id, if other lines' ids may be theirs.
func (m *merger) bareLines() error {
	if !m.numbered {
		return nil
	}
	for _, run := range m.runs {
		for r := m.tracesOf(run, prompts.TraceBare, 1); ; {
			t, there, err := r.next()
			if err != nil {
				return err
			}
			if !there {
				break
			}
			m.bare.Add(t.at)
		}
	}
	return nil
}
