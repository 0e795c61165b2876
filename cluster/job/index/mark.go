package index

import (
	"encoding/binary"
	"errors"
	"sort"

	"github.com/headrace/headrace/batch/prompts"
)

// Flags of a mark in a block. They follow the distance to the line before.
const (
	markTaken = 1 << iota
	markNth   // a number follows
	markBy    // a line of a file follows
	markIn    // and before it the number of that file, if it is another one
)

// block holds the marks of some lines as stored in an object: a few bytes each.
type block struct {
	buf  []byte
	last int // the line before
}

// add appends the mark of a line. Its By is a line of the input in; other says that in is not the line's own input.
func (b *block) add(line int, m prompts.Mark, in int, other bool) {
	b.buf = binary.AppendUvarint(b.buf, uint64(line-b.last))
	b.last = line
	at := len(b.buf)
	b.buf = append(b.buf, 0)
	if m.Taken {
		b.buf[at] |= markTaken
	}
	if m.Nth > 0 {
		b.buf[at] |= markNth
		b.buf = binary.AppendUvarint(b.buf, uint64(m.Nth))
	}
	if m.By == 0 {
		return
	}
	b.buf[at] |= markBy
	if other {
		b.buf[at] |= markIn
		b.buf = binary.AppendUvarint(b.buf, uint64(in))
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(m.By))
}

// end makes the next mark count its distance from a line, so that a chunk may begin behind that line.
func (b *block) end(line int) {
	if b.last != line {
		b.add(line, prompts.Mark{}, 0, false)
	}
}

var errMarks = errors.New("its marks cannot be read")

// marks holds the marks of a chunk, for its reader.
type marks struct {
	lines []int
	marks []prompts.Mark
}

// parseMarks reads a block of a chunk whose first line is first. name returns the name of a file.
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

// of returns the mark of a line.
func (m *marks) of(line int) prompts.Mark {
	if i := sort.SearchInts(m.lines, line); i < len(m.lines) && m.lines[i] == line {
		return m.marks[i]
	}
	return prompts.Mark{}
}
