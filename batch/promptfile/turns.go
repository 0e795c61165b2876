package promptfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/headrace/headrace/batch/journal"
)

// bytesOfTurns bounds the lines that wait for their turn in memory: thousands of usual
// lines. The others go to a file.
const bytesOfTurns = 64 << 20

// turns passes lines on in the order of their index, whatever the order in which they come.
// Lines that wait for an earlier one lie in memory, up to a bound. Further lines lie in a
// file that ends with the turns. From index next to the last that came, each index takes 8
// bytes of memory. Turns belong to the goroutine that takes the results.
//
//	       next              last that came
//	         ▼                     ▼
//	─given──┤ ∅ │ m │ s │ ∅ │ s │ m │     m in memory, s spilled, ∅ not there yet
//
// Waiting lines are not saved: after a kill, a run must ask for them again. Closing passes
// on the lines that still wait, ahead of earlier ones that never came. Once those have come,
// journal.Arrange corrects the order. Turns are no second way to do that: Arrange needs a
// file, which standard output is not, and room for all of it.
type turns struct {
	folder string
	limit  int
	emit   func(line []byte) error
	fault  func(error)
	buf    []byte
	lost   int   // results that could not be kept while they waited
	err    error // the first fault

	next     int            // the next index to be passed on
	ring     []int64        // the place of index next+i: absent, inMemory, or its offset in the file
	memory   map[int][]byte // by index
	buffered int            // bytes in memory
	spill    *os.File       // nil before the first line that needs it
	named    bool           // spill still has its name
	end      int64          // of the spilled lines
	spilled  int            // lines in the file, not read back yet
	size     [4]byte        // where the length of a line is put for writing, or read to
}

const (
	absent   = -1
	inMemory = -2
)

// newTurns passes lines to save, starting with index 0. Lines beyond the bound wait in a file
// in folder. Nobody else can read that file, and it is removed at the end.
func newTurns(folder string, save func(journal.Line), fault func(error)) *turns {
	saveText := func(text []byte) error {
		var l journal.Line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("a result that waited for its turn: %w", err)
		}
		save(l)
		return nil
	}
	return &turns{folder: folder, limit: bytesOfTurns, emit: saveText, fault: fault, memory: make(map[int][]byte)}
}

// accept takes the line of an index, and passes on all lines whose turn has come. A nil line means an item without
// a result.
func (t *turns) accept(index int, l *journal.Line) {
	t.buf = t.buf[:0]
	if l != nil {
		t.buf = journal.AppendLine(t.buf, l)
	}
	if err := t.put(index, t.buf); err != nil {
		t.reportFirst(err)
		if l != nil {
			t.lost++
		}
	}
	t.emitReady()
}

// reportFirst reports the first fault, and ignores later ones.
func (t *turns) reportFirst(err error) {
	if t.err == nil {
		t.err = err
		t.fault(err)
	}
}

// put passes on the line of an index if its turn has come, and else keeps it. An empty line
// takes its index's turn and passes on nothing. Each index comes once. The caller may reuse
// line when put returns.
func (t *turns) put(index int, line []byte) error {
	ringIndex := index - t.next // the place in the ring
	if ringIndex < 0 || ringIndex < len(t.ring) && t.ring[ringIndex] != absent {
		return fmt.Errorf("promptfile: reorder: index %d came twice", index)
	}
	if ringIndex == 0 {
		return t.emitNext(line)
	}
	for len(t.ring) <= ringIndex {
		t.ring = append(t.ring, absent)
	}
	return t.keepWaiting(ringIndex, line)
}

// emitNext emits the line of index next, unless it is empty.
func (t *turns) emitNext(line []byte) error {
	t.next++
	if len(t.ring) > 0 {
		t.ring = t.ring[1:]
	}
	if len(line) == 0 {
		return nil
	}
	return t.emit(line)
}

// emitReady passes on the lines whose turn has come, up to the first index that is absent. A line that cannot be
// fetched is lost, and holds up none of those behind it.
func (t *turns) emitReady() {
	for len(t.ring) > 0 && t.ring[0] != absent {
		line, err := t.fetch(t.ring[0])
		if err = errors.Join(err, t.emitNext(line)); err != nil {
			t.reportFirst(err)
			t.lost++
		}
	}
}

// keepWaiting keeps a line until its turn: in memory while the bound allows it, else in the file. The ring notes
// the place. The caller may reuse line.
func (t *turns) keepWaiting(at int, line []byte) error {
	if t.buffered+len(line) <= t.limit {
		t.memory[t.next+at] = append([]byte(nil), line...)
		t.buffered += len(line)
		t.ring[at] = inMemory
		return nil
	}
	offset, err := t.store(line)
	if err != nil {
		return fmt.Errorf("promptfile: reorder: %w", err)
	}
	t.ring[at] = offset
	return nil
}

// fetch returns the line of index next, and releases its room.
func (t *turns) fetch(where int64) ([]byte, error) {
	if where == inMemory {
		line := t.memory[t.next]
		delete(t.memory, t.next)
		t.buffered -= len(line)
		return line, nil
	}
	line, err := t.load(where)
	if err != nil {
		return nil, fmt.Errorf("promptfile: reorder: %w", err)
	}
	return line, nil
}

// store appends a line and its length to the file.
func (t *turns) store(line []byte) (offset int64, err error) {
	if t.spill == nil {
		if t.spill, err = os.CreateTemp(t.folder, ".headrace-order-*.tmp"); err != nil {
			return 0, err
		}
		// A file without a name goes when the process ends, however that ends. If an open
		// file cannot lose its name, close removes it.
		t.named = os.Remove(t.spill.Name()) != nil
	}
	binary.LittleEndian.PutUint32(t.size[:], uint32(len(line)))
	for _, part := range [][]byte{t.size[:], line} {
		if _, err := t.spill.WriteAt(part, t.end+offset); err != nil {
			return 0, err
		}
		offset += int64(len(part))
	}
	offset, t.end = t.end, t.end+offset
	t.spilled++
	return offset, nil
}

// load reads a line back that store has put at offset. When all lines are read back, the file
// fills from its beginning again.
func (t *turns) load(offset int64) ([]byte, error) {
	if _, err := t.spill.ReadAt(t.size[:], offset); err != nil {
		return nil, err
	}
	line := make([]byte, binary.LittleEndian.Uint32(t.size[:]))
	if _, err := t.spill.ReadAt(line, offset+int64(len(t.size))); err != nil {
		return nil, err
	}
	if t.spilled--; t.spilled == 0 {
		t.end = 0 // nothing is in use: reuse the room
	}
	return line, nil
}

// close passes on the lines that still wait, in order, even if earlier ones never came. It
// removes the file. The error is the first fault.
func (t *turns) close() error {
	for t.emitReady(); len(t.ring) > 0; t.emitReady() {
		t.next++
		t.ring = t.ring[1:]
	}
	if t.spill != nil {
		_ = t.spill.Close()
		if t.named {
			_ = os.Remove(t.spill.Name())
		}
		t.spill = nil
	}
	return t.err
}
