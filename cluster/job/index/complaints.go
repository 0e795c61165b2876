package index

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
)

// complaints are about the first lines for which nothing may be called, by their numbers in the
// whole input, from 1.
type complaints struct {
	bad     map[int]Fault // that are no requests by themselves
	foreign map[int]Fault // that cannot be translated
	reused  []mark        // whose ids other lines have, prompts.MaxComplaints of them, by line
}

// enter takes over what the index of a segment complains of that begins behind so many lines. The
// lines of a fault are the whole input's until it is told.
func (c *complaints) enter(idx *Index, lines int) {
	if c.bad == nil {
		c.bad, c.foreign = map[int]Fault{}, map[int]Fault{}
	}
	first := []int{lines + 1}
	for _, s := range idx.Stretches {
		first = append(first, first[len(first)-1]+s.Lines)
	}
	for _, one := range slices.Concat(idx.Complaints, idx.Foreign) {
		line := first[one.Stretch] + one.Line
		list := c.bad
		if one.Foreign {
			list = c.foreign
		}
		list[line] = Fault{Line: line, Reason: one.Reason, Advice: one.Advice, Foreign: one.Foreign}
	}
}

// used notes a line whose id another one has.
func (c *complaints) used(m mark) {
	at, _ := slices.BinarySearchFunc(c.reused, m, func(a, b mark) int { return cmp.Compare(a.line, b.line) })
	c.reused = slices.Insert(c.reused, at, m)
	c.reused = c.reused[:min(len(c.reused), prompts.MaxComplaints)]
}

// judge completes the counts, and refuses what is not to be called.
func (m *merger) judge() error {
	m.plan.Items += m.new.items
	m.plan.Bad += m.new.bad
	m.plan.Untranslatable += m.new.foreign
	how := &m.Record.Reading
	if !how.SkipBad {
		m.plan.AllFaults += m.new.bad
	}
	if !how.SkipUntranslatable {
		m.plan.AllFaults += m.new.foreign
	}
	if m.plan.AllFaults == 0 {
		return nil
	}
	lines, err := m.faults()
	if err != nil {
		return err
	}
	for _, line := range slices.Sorted(maps.Keys(lines))[:min(len(lines), prompts.MaxComplaints)] {
		f := lines[line]
		input, above := m.files.place(line)
		f.File, f.Line = m.Record.Inputs[input].Name, line-above
		m.plan.Faults = append(m.plan.Faults, f)
	}
	return nil
}

// faults are the first ones of each kind that is fatal.
func (m *merger) faults() (map[int]Fault, error) {
	all := map[int]Fault{}
	if how := &m.Record.Reading; !how.SkipUntranslatable {
		maps.Copy(all, m.foreign)
	}
	if m.Record.Reading.SkipBad {
		return all, nil
	}
	maps.Copy(all, m.bad)
	for _, twin := range m.reused {
		f, err := m.twinFault(twin)
		if err != nil {
			return nil, err
		}
		all[twin.line] = f
	}
	return all, nil
}

// twinFault reads a line once more whose id another one has, as the merge knows no ids.
func (m *merger) twinFault(twin mark) (Fault, error) {
	seg := m.plan.segmentOf(twin.line)
	idx, err := LoadIndex(m.ctx, m.Store, m.Record.Job, seg)
	if err != nil {
		return Fault{}, err
	}
	spans, err := idx.spans(1, 1) // a step each
	if err != nil {
		return Fault{}, err
	}
	local := twin.line - m.plan.Segments[seg].First - 1
	at := slices.IndexFunc(spans, func(s span) bool { return s.first <= local && local < s.first+s.lines })
	if at < 0 {
		return Fault{}, fmt.Errorf("line %d is in no step of segment %d", twin.line, seg)
	}
	c := m.chunkOf(&idx, &m.plan.Segments[seg], spans[at])
	return m.faultIn(&c, twin)
}

func (m *merger) faultIn(c *job.Chunk, twin mark) (f Fault, err error) {
	by, in := m.named(c, twin)
	known := prompts.Mark{Taken: true, By: by}
	if in != c.Input {
		known.In = m.Record.Inputs[in].Name
	}
	marks := func(line int) (mark prompts.Mark) {
		if line == twin.line {
			mark = known
		}
		return mark
	}
	for _, err := range m.read(m.ctx, c, marks) {
		bad := lineError(err)
		if bad == nil && err != nil {
			return f, err
		}
		if bad != nil && bad.Line == twin.line {
			f = Fault{Line: twin.line, Reason: bad.Reason, Advice: bad.Advice}
		}
	}
	return f, nil
}

// named is the line that has a line's id, as a line of its file, and that file.
func (m *merger) named(c *job.Chunk, twin mark) (by, input int) {
	if twin.by == 0 {
		return 0, c.Input
	}
	input, above := m.files.place(twin.by)
	return twin.by - above, input
}
