package index

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// cut cuts the new segments into chunks, and writes down what their lines owe to those before them.
func (m *merger) cut(workers int) error {
	if m.plan.ChunkLines == 0 {
		m.plan.ChunkLines = m.Record.Cut.ChunkSize(m.new.filled, workers)
	}
	m.firstIDs.trim()
	next, stop := iter.Pull2(m.marks.all())
	defer stop()
	w := &marker{merger: m, next: next}
	if err := w.advance(); err != nil {
		return err
	}
	for i := m.fresh; i < len(m.segments); i++ {
		if err := w.segment(i); err != nil {
			return err
		}
	}
	if w.head.line > 0 {
		return w.stray()
	}
	return nil
}

// stray is a mark of a line that is in no chunk, which there is none of.
func (w *marker) stray() error {
	return fmt.Errorf("line %d is like one before it, and in no chunk", w.head.line)
}

// marker writes marks, chunk by chunk.
type marker struct {
	*merger
	next func() (mark, error, bool)
	head mark // the next mark; its line is 0 when there is none
}

func (w *marker) advance() error {
	m, err, there := w.next()
	if w.head = m; !there {
		w.head = mark{}
	}
	return err
}

// segment cuts a segment.
func (w *marker) segment(i int) error {
	idx, err := LoadIndex(w.ctx, w.Store, w.Record.Job, i)
	if err != nil {
		return err
	}
	spans, err := idx.spans(w.plan.ChunkLines, w.Record.Cut.ChunkBytes)
	if err != nil {
		return err
	}
	seg := &w.plan.Segments[i]
	seg.FirstChunk, seg.Chunks = w.plan.Chunks, len(spans)
	w.plan.Chunks += len(spans)
	out := marksWriter{merger: w.merger, name: fmt.Sprintf("%s.marks-%s", indexName(w.Record.Job, i), w.who)}
	for _, s := range spans {
		c := w.chunkOf(&idx, seg, s)
		if err := w.chunk(&out, &c); err != nil {
			return err
		}
	}
	seg.Marks, err = out.close()
	return err
}

// chunk writes the marks of a chunk, which are the next ones.
func (w *marker) chunk(out *marksWriter, c *job.Chunk) error {
	b := block{last: c.FirstLine - 1}
	if w.head.line > 0 && w.head.line < c.FirstLine {
		return w.stray()
	}
	for w.head.line > 0 && w.head.line < c.FirstLine+c.Lines {
		if m := w.head; m.by > 0 && !m.byBare && !w.firstIDs.knows(m.by) {
			w.head.by = 0 // as a reader of the whole does, which does not remember it either
		}
		by, in := w.named(c, w.head)
		b.add(w.head, by, in, in != c.Input)
		if err := w.advance(); err != nil {
			return err
		}
	}
	return out.add(b.buf)
}

// table says where the marks of the chunks of a segment are.
type table struct {
	Format  int      `json:"format"`
	Objects []string `json:"objects"`
	// Blocks has two uvarints for each chunk: by how many objects its block is behind that of
	// the chunk before, and how many bytes it has. In an object blocks follow one another.
	Blocks []byte `json:"blocks"`
}

// marksWriter writes the blocks of a segment.
type marksWriter struct {
	*merger
	name    string
	table   table
	written int // objects
	buf     []byte
	last    int // the object of the block before
}

// marksAtATime is how long an object of marks becomes, but for one block.
const marksAtATime = 4 << 20

func (w *marksWriter) add(b []byte) error {
	if len(w.buf) > 0 && len(w.buf)+len(b) > cmp.Or(w.marksBytes, marksAtATime) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf = append(w.buf, b...)
	w.table.Blocks = binary.AppendUvarint(w.table.Blocks, uint64(w.written-w.last))
	w.table.Blocks = binary.AppendUvarint(w.table.Blocks, uint64(len(b)))
	w.last = w.written
	return nil
}

func (w *marksWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	name := fmt.Sprintf("%s-%d", w.name, w.written)
	err := store.CreateBytes(w.ctx, w.Store, name, w.buf)
	w.table.Objects = append(w.table.Objects, name)
	w.written++
	w.buf = w.buf[:0]
	return err
}

// close writes the table, and gives its name; there is none where no line has a mark.
func (w *marksWriter) close() (name string, err error) {
	if err := w.flush(); err != nil || w.written == 0 {
		return "", err
	}
	w.table.Format = job.FormatOf(w.Record.Format)
	text, err := json.Marshal(&w.table)
	if err != nil {
		return "", err
	}
	return w.name, store.CreateBytes(w.ctx, w.Store, w.name, text)
}

// places tells of each chunk of a segment which object its marks are in, and where; "" if it has none.
func (t *table) places() (all []job.Chunk, err error) {
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
		c := job.Chunk{MarksOffset: offset, MarksBytes: int64(n[1])}
		switch {
		case n[1] == 0:
			c.MarksOffset = 0
		case object >= len(t.Objects):
			return nil, errors.New("index: a block of marks in an object that is not there")
		default:
			c.Marks = t.Objects[object]
		}
		offset += int64(n[1])
		all = append(all, c)
	}
	return all, nil
}
