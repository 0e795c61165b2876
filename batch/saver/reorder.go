package saver

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// DefaultReorderBytes bounds the lines that a Reorder keeps in memory until their turn:
// thousands of usual lines. The others go to a file.
const DefaultReorderBytes = 64 << 20

// Reorder passes lines on in the order of their index, whatever the order in which they
// come. Lines that wait for an earlier one lie in memory, up to a bound. Further lines
// lie in a file that ends with the Reorder. From index next to the last that came, each
// index takes 8 bytes of memory. A Reorder belongs to one goroutine.
//
//	       next              last that came
//	         ▼                     ▼
//	─given──┤ ∅ │ m │ s │ ∅ │ s │ m │     m in memory, s spilled, ∅ not there yet
//
// Waiting lines are not saved: after a kill, a run must ask for them again. Close passes on
// the lines that still wait, ahead of earlier ones that never came. Once those have come,
// journal.Arrange corrects the order.
type Reorder struct {
	folder string
	limit  int
	emit   func(line []byte) error

	next   int            // the next index to be passed on
	ring   []int64        // the place of index next+i: absent, inMemory, or its offset in the file
	memory map[int][]byte // by index
	held   int            // bytes in memory
	spill  *os.File       // nil before the first line that needs it
	named  bool           // spill still has its name
	end    int64          // of the spilled lines
	away   int            // lines in the file
	size   [4]byte        // room for a length
}

const (
	absent   = -1
	inMemory = -2
)

// NewReorder passes lines to emit, starting with index 0. Up to limit bytes wait in memory
// (0 means DefaultReorderBytes), the others in a file in folder. Nobody else can read that
// file, and it is removed at the end.
func NewReorder(folder string, limit int, emit func(line []byte) error) *Reorder {
	if limit == 0 {
		limit = DefaultReorderBytes
	}
	return &Reorder{folder: folder, limit: limit, emit: emit, memory: make(map[int][]byte)}
}

// Waiting returns the number of lines that wait for an earlier one.
func (r *Reorder) Waiting() int { return len(r.memory) + r.away }

// Put takes the line of an index, and passes on every line whose turn has come. An empty
// line takes its index's turn and passes on nothing. Each index comes once. The caller may
// reuse line when Put returns.
func (r *Reorder) Put(index int, line []byte) error {
	at := index - r.next
	if at < 0 || at < len(r.ring) && r.ring[at] != absent {
		return fmt.Errorf("saver: reorder: index %d came twice", index)
	}
	if at == 0 {
		if err := r.give(line); err != nil {
			return err
		}
		return r.drain()
	}
	for len(r.ring) <= at {
		r.ring = append(r.ring, absent)
	}
	return r.wait(at, line)
}

// give emits the line of index next.
func (r *Reorder) give(line []byte) error {
	r.next++
	if len(r.ring) > 0 {
		r.ring = r.ring[1:]
	}
	if len(line) == 0 {
		return nil
	}
	return r.emit(line)
}

func (r *Reorder) drain() error {
	for len(r.ring) > 0 && r.ring[0] != absent {
		line, err := r.take(r.ring[0])
		if err != nil {
			return err
		}
		if err := r.give(line); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reorder) wait(at int, line []byte) error {
	if r.held+len(line) <= r.limit {
		r.memory[r.next+at] = append([]byte(nil), line...)
		r.held += len(line)
		r.ring[at] = inMemory
		return nil
	}
	offset, err := r.store(line)
	if err != nil {
		return fmt.Errorf("saver: reorder: %w", err)
	}
	r.ring[at] = offset
	return nil
}

// take returns the line of index next, and releases its room.
func (r *Reorder) take(where int64) ([]byte, error) {
	if where == inMemory {
		line := r.memory[r.next]
		delete(r.memory, r.next)
		r.held -= len(line)
		return line, nil
	}
	line, err := r.load(where)
	if err != nil {
		return nil, fmt.Errorf("saver: reorder: %w", err)
	}
	return line, nil
}

// store appends a line and its length to the file.
func (r *Reorder) store(line []byte) (offset int64, err error) {
	if r.spill == nil {
		if r.spill, err = os.CreateTemp(r.folder, ".headrace-order-*.tmp"); err != nil {
			return 0, err
		}
		// A file without a name goes when the process ends, however that ends. If an open
		// file cannot lose its name, Close removes it.
		r.named = os.Remove(r.spill.Name()) != nil
	}
	binary.LittleEndian.PutUint32(r.size[:], uint32(len(line)))
	for _, part := range [][]byte{r.size[:], line} {
		if _, err := r.spill.WriteAt(part, r.end+offset); err != nil {
			return 0, err
		}
		offset += int64(len(part))
	}
	offset, r.end = r.end, r.end+offset
	r.away++
	return offset, nil
}

func (r *Reorder) load(offset int64) ([]byte, error) {
	if _, err := r.spill.ReadAt(r.size[:], offset); err != nil {
		return nil, err
	}
	line := make([]byte, binary.LittleEndian.Uint32(r.size[:]))
	if _, err := r.spill.ReadAt(line, offset+int64(len(r.size))); err != nil && err != io.EOF {
		return nil, err
	}
	if r.away--; r.away == 0 {
		r.end = 0 // nothing is in use: reuse the room
	}
	return line, nil
}

// Close passes on the lines that still wait, in order, even if earlier ones never came. It
// removes the file. Afterwards the Reorder is empty.
func (r *Reorder) Close() error {
	err := r.drain()
	for err == nil && len(r.ring) > 0 {
		r.next++
		r.ring = r.ring[1:]
		err = r.drain()
	}
	if r.spill != nil {
		_ = r.spill.Close()
		if r.named {
			_ = os.Remove(r.spill.Name())
		}
		r.spill = nil
	}
	return err
}
