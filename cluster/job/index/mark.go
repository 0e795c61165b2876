package index

import (
	"encoding/binary"
	"errors"
	"sort"

	"github.com/headrace/headrace/batch/prompts"
)

// mark is what is known of a line that is not the first of its kind.
type mark struct {
	line   int // in the whole input, from 1
	nth    int
	taken  bool
	by     int  // the line that has its id, in the whole input
	byBare bool // that line gives none, and has it by its number
}

// join adds what another mark says of the same line.
func (m *mark) join(o mark) {
	m.nth = max(m.nth, o.nth)
	if o.taken {
		m.taken, m.by, m.byBare = true, o.by, o.byBare
	}
}

// What stands in a block of marks behind the distance to the line before.
const (
	markTaken = 1 << iota
	markNth   // a number follows
	markBy    // a line of a file follows
	markIn    // and before it the number of that file, which is another
)

// block is the marks of a chunk as they stand in an object: a few bytes each.
type block struct {
	buf  []byte
	last int // the line before
}

// add appends a mark of a line of the input that begins behind above lines. by is the line that it
// names, 0 for none, of the input in.
func (b *block) add(m mark, by, in int, other bool) {
	b.buf = binary.AppendUvarint(b.buf, uint64(m.line-b.last))
	b.last = m.line
	at := len(b.buf)
	b.buf = append(b.buf, 0)
	if m.taken {
		b.buf[at] |= markTaken
	}
	if m.nth > 0 {
		b.buf[at] |= markNth
		b.buf = binary.AppendUvarint(b.buf, uint64(m.nth))
	}
	if by == 0 {
		return
	}
	b.buf[at] |= markBy
	if other {
		b.buf[at] |= markIn
		b.buf = binary.AppendUvarint(b.buf, uint64(in))
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(by))
}

var errMarks = errors.New("its marks cannot be read")

// marks are those of a chunk, for its reader.
type marks struct {
	lines []int
	marks []prompts.Mark
}

// parseMarks reads a block of a chunk whose first line is first. name tells what a file is called.
func parseMarks(block []byte, first int, name func(input int) (string, error)) (*marks, error) {
	p := markParser{rest: block, name: name}
	all := &marks{}
	for line := first - 1; len(p.rest) > 0 && !p.bad; {
		line += p.number()
		all.lines = append(all.lines, line)
		all.marks = append(all.marks, p.mark())
	}
	if p.bad {
		return nil, errMarks
	}
	return all, nil
}

type markParser struct {
	rest []byte
	name func(int) (string, error)
	bad  bool
}

func (p *markParser) number() int {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 {
		p.bad, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[size:]
	return int(n)
}

func (p *markParser) mark() (m prompts.Mark) {
	flags := p.number() // it is below 128, and so one byte
	m.Taken = flags&markTaken != 0
	if flags&markNth != 0 {
		m.Nth = p.number()
	}
	if flags&markIn != 0 {
		var err error
		m.In, err = p.name(p.number())
		p.bad = p.bad || err != nil
	}
	if flags&markBy != 0 {
		m.By = p.number()
	}
	return m
}

// of is what is known of a line.
func (m *marks) of(line int) prompts.Mark {
	if i := sort.SearchInts(m.lines, line); i < len(m.lines) && m.lines[i] == line {
		return m.marks[i]
	}
	return prompts.Mark{}
}
