package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Format is the version of the form of plans and indexes. Format 2 has one marks object for each segment, and one pass
// writes it.
const Format = 2

// Index describes a segment: stretches that follow one another in the job's inputs.
type Index struct {
	Format    int         `json:"format"`
	Segment   int         `json:"n"` // from 0, in the order of the inputs
	Stretches []Stretched `json:"stretches"`
	Marks     string      `json:"marks,omitempty"` // the object with the marks of its lines; "" if no line has one
}

// Stretched describes one stretch: lines of one object that follow one another.
type Stretched struct {
	Input int   `json:"input"`           // of Record.Inputs
	Piece int   `json:"piece,omitempty"` // of Input.Objects
	Begin int64 `json:"begin"`           // where in the object its first line begins
	Lines int   `json:"lines"`
	Steps steps `json:"steps"`
}

// MaxIndex bounds the bytes of an index.
const MaxIndex = 64 << 20

// loadIndex reads the index of a segment.
func (p *Plan) loadIndex(ctx context.Context, s store.Store, segment int) (Index, error) {
	var idx Index
	name := cmp.Or(p.Segments[segment].Index, oldIndex(p.Job, segment))
	err := load(ctx, s, name, MaxIndex, &idx)
	switch {
	case err != nil:
	case idx.Format > Format:
		err = fmt.Errorf("index: read %s: %w", name, job.ErrNewer)
	case idx.Segment != segment:
		err = fmt.Errorf("index: read %s: it is of segment %d", name, idx.Segment)
	}
	return idx, err
}

// load reads an object of JSON.
func load(ctx context.Context, s store.Store, name string, most int64, into any) error {
	text, err := store.ReadAll(ctx, s, name, most)
	if err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(into); err != nil {
		return fmt.Errorf("index: read %s: %w", name, err)
	}
	return nil
}

func save(ctx context.Context, s store.Store, name string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return store.CreateBytes(ctx, s, name, text)
}

// step is a stretch of consecutive lines: chunks begin and end where steps do.
type step struct {
	lines  int
	bytes  int64
	filled int   // lines (rows in a CSV) that are not blank
	marks  int64 // bytes of its marks
	marked bool  // a line has one
}

func (s *step) add(o step) {
	s.lines += o.lines
	s.bytes += o.bytes
	s.filled += o.filled
	s.marks += o.marks
	s.marked = s.marked || o.marked
}

// steps are the steps of a stretch, one behind the other: four uvarints each, some five bytes. The last number is
// twice the bytes of its marks, plus one if a line has a mark.
type steps []byte

func (s *steps) append(one step) {
	marks := uint64(one.marks) << 1
	if one.marked {
		marks |= 1
	}
	for _, n := range []uint64{uint64(one.lines), uint64(one.bytes), uint64(one.filled), marks} {
		*s = binary.AppendUvarint(*s, n)
	}
}

var errSteps = errors.New("its steps cannot be read")

// all yields the steps in order. They end with an error if they differ from what was appended. In an index of
// format 1 a step has three numbers.
func (s steps) all(format int) iter.Seq2[step, error] {
	return func(yield func(step, error) bool) {
		for rest := []byte(s); len(rest) > 0; {
			var n [4]uint64
			for i := range min(2+format, len(n)) {
				size := 0
				if n[i], size = binary.Uvarint(rest); size <= 0 {
					yield(step{}, errSteps)
					return
				}
				rest = rest[size:]
			}
			if !yield(step{int(n[0]), int64(n[1]), int(n[2]), int64(n[3] >> 1), n[3]&1 > 0}, nil) {
				return
			}
		}
	}
}

// span describes a chunk within its segment.
type span struct {
	stretch int
	offset  int64 // in its object
	first   int   // its first line in the segment, from 0
	marksAt int64 // where its marks begin
	step
}

// spans cuts a segment into chunks. Each has at most so many lines that are not blank and so many bytes, or is one
// step. Steps of blank lines that begin a stretch, or do not fit into the chunk before them, are in no chunk.
func (x *Index) spans(lines int, bytes int64) (all []span, err error) {
	first, marksAt := 0, int64(0)
	for i := range x.Stretches {
		s := &x.Stretches[i]
		c := spanning{lines: lines, bytes: bytes, open: span{stretch: i, offset: s.Begin, first: first, marksAt: marksAt}}
		for one, err := range s.Steps.all(x.Format) {
			if err != nil {
				return nil, err
			}
			c.add(one)
		}
		all = append(all, c.end()...)
		first, marksAt = first+s.Lines, c.open.marksAt
	}
	return all, nil
}

// spanning cuts one stretch.
type spanning struct {
	lines int
	bytes int64
	all   []span
	open  span
}

func (c *spanning) add(one step) {
	if c.open.filled > 0 && (c.open.filled+one.filled > c.lines || c.open.bytes+one.bytes > c.bytes) {
		c.close()
	}
	c.open.add(one)
	if c.open.filled == 0 {
		c.open = c.behind()
	}
}

func (c *spanning) close() {
	c.all = append(c.all, c.open)
	c.open = c.behind()
}

// behind returns a chunk that begins behind the one at hand.
func (c *spanning) behind() span {
	next := c.open
	next.offset += c.open.bytes
	next.first += c.open.lines
	next.marksAt += c.open.marks
	next.step = step{}
	return next
}

func (c *spanning) end() []span {
	if c.open.filled > 0 {
		c.close()
	}
	return c.all
}

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

// mark reads one mark, as block.add wrote it. Bytes that are no mark set bad.
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
