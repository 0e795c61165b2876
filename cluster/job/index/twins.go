package index

import (
	"slices"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job/internal/bits"
)

// twins is what is known of the lines that are alike, while they are gone over.
type twins struct {
	numbered bool     // some id is that which a line gets by its number
	bare     bits.Set // the lines that give no id, if numbered
	taken    bits.Set // of these, the ones whose id another line gives above them
	firstIDs least    // the lines of the first ids that are given
	of       group
}

// group is what is known of the traces that are like the one in hand.
type group struct {
	trace
	begun     bool
	owner     int  // the line that has the id; 0 if they are not alike in that
	ownerBare bool // it gives none
	asked     int  // how often the question was asked
	bad       map[uint32]int
}

// maxTexts bounds how many texts of bad lines that are alike otherwise are told apart. Beyond it,
// lines of a text that was not met yet share a key, and nothing else.
const maxTexts = 1 << 16

// nthBad counts bad lines of one text.
func (g *group) nthBad(text uint32) int {
	if g.bad == nil {
		g.bad = map[uint32]int{}
	}
	n, known := g.bad[text]
	if known || len(g.bad) < maxTexts {
		g.bad[text] = n + 1
	}
	return n
}

// see deals with a trace. That of each line comes behind those that are like it and stand above it.
func (m *merger) see(t *placed) error {
	if !m.of.begun || !m.of.same(&t.trace) {
		if err := m.begin(t); err != nil {
			return err
		}
	}
	switch t.kind() {
	case prompts.TraceBad:
		return m.badLine(t)
	case prompts.TraceBare:
		return m.bareLine(t)
	case prompts.TraceNumbered, prompts.TraceNamed:
	}
	return m.givenID(t)
}

// begin meets the first trace of a kind. Its line has the id, unless it is that of a line above it
// which gives none. A line below it that gives none would get an id that is taken.
func (m *merger) begin(t *placed) error {
	m.of = group{trace: t.trace, begun: true, owner: t.at}
	if t.kind() != prompts.TraceNumbered {
		return nil
	}
	n := t.number()
	switch {
	case !m.bare.Has(n):
	case n < t.at:
		m.of.owner, m.of.ownerBare = n, true
	default:
		m.taken.Add(n)
		return m.twice(mark{line: n, taken: true, by: t.at})
	}
	return nil
}

// givenID is a line that gives an id.
func (m *merger) givenID(t *placed) error {
	first := t.at == m.of.owner
	if first {
		m.firstIDs.add(t.at)
	}
	if first && !t.refused() {
		return nil
	}
	nth := m.of.nthBad(t.text())
	if first {
		return m.mark(mark{line: t.at, nth: nth})
	}
	m.spoil(t)
	return m.twice(mark{line: t.at, nth: nth, taken: true, by: m.of.owner, byBare: m.of.ownerBare})
}

// bareLine is a line that gives no id.
func (m *merger) bareLine(t *placed) error {
	nth := m.of.asked
	m.of.asked++
	taken := m.taken.Has(t.at)
	if taken || t.refused() {
		nth = m.of.nthBad(t.text())
	}
	if taken {
		m.spoil(t)
	}
	return m.mark(mark{line: t.at, nth: nth})
}

// badLine is a line that is no request by itself.
func (m *merger) badLine(t *placed) error {
	return m.mark(mark{line: t.at, nth: m.of.nthBad(t.text())})
}

// mark keeps what there is to be known of a line that is new.
func (m *merger) mark(one mark) error {
	if one.line <= m.above || one.nth == 0 && !one.taken {
		return nil
	}
	return m.marks.add(one)
}

// twice is a line whose id another one has. Nothing is called then, or it is skipped. Where nothing
// is called, no line of a plan that is there already is one.
func (m *merger) twice(one mark) error {
	if !m.Record.Reading.SkipBad {
		m.used(one)
		return nil
	}
	return m.mark(one)
}

// spoil counts a line as bad that its segment took for good, or for one that cannot be translated.
func (m *merger) spoil(t *placed) {
	if t.at <= m.above || t.refused() {
		return
	}
	m.new.bad++
	if t.foreign() {
		m.new.foreign--
		delete(m.foreign, t.at)
		return
	}
	m.new.items--
	m.plan.Segments[m.plan.segmentOf(t.at)].Items--
}

// least keeps the prompts.NamedIDs least numbers of many: the lines of the first ids. A reader of
// the whole remembers where these stand, and no others.
type least struct {
	all   []int
	bound int // none that is greater counts; 0: not known yet
}

func (l *least) add(n int) {
	if l.bound > 0 && n > l.bound {
		return
	}
	if l.all = append(l.all, n); len(l.all) == 2*prompts.NamedIDs {
		l.trim()
	}
}

func (l *least) trim() {
	slices.Sort(l.all)
	if len(l.all) >= prompts.NamedIDs {
		l.all = l.all[:prompts.NamedIDs]
		l.bound = l.all[prompts.NamedIDs-1]
	}
}

// knows reports whether n is one of the least.
func (l *least) knows(n int) bool { return l.bound == 0 || n <= l.bound }
