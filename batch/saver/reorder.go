package saver

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// DefaultReorderBytes is how much of what waits for its turn a Reorder keeps in
// memory: thousands of usual lines. More goes to a file.
const DefaultReorderBytes = 64 << 20

// Reorder gives lines on in the order of their index, whatever the order in which
// they come. What waits for an earlier one lies in memory, up to a bound, and beyond
// it in a file that ends with the Reorder; of each, 8 bytes stay in memory. It
// belongs to one goroutine.
//
//	       next              last that came
//	         ▼                     ▼
//	─given──┤ ∅ │ m │ s │ ∅ │ s │ m │     m in memory, s spilled, ∅ not there yet
//
// What waits is not saved: a process that is killed has to ask for it again. What Close
// gives on stands before the ones that never came: journal.Arrange puts it right when they
// have.
type Reorder struct {
	folder string
	limit  int
	emit   func(line []byte) error

	next   int            // the index that is given next
	ring   []int64        // where index next+i is: absent, inMemory, or its offset in the file
	memory map[int][]byte // by index
	held   int            // bytes in memory
	spill  *os.File       // nil before the first line that needs it
	named  bool           // spill has its name still
	end    int64          // of what was spilled
	away   int            // lines in the file
	size   [4]byte        // room for a length
}

const (
	absent   = -1
	inMemory = -2
)

// NewReorder gives lines to emit, first that of index 0. Up to limit bytes wait in
// memory (0 means DefaultReorderBytes), the others in a file in folder, which no one
// else can read and which is removed at the end.
func NewReorder(folder string, limit int, emit func(line []byte) error) *Reorder {
	if limit == 0 {
		limit = DefaultReorderBytes
	}
	return &Reorder{folder: folder, limit: limit, emit: emit, memory: make(map[int][]byte)}
}

// Waiting is how many lines wait for an earlier one.
func (r *Reorder) Waiting() int { return len(r.memory) + r.away }

// Put takes the line of an index, and gives on whatever has its turn now. An empty
// line takes its index's turn and gives nothing. Each index comes once. The line is
// the caller's again when Put returns.
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

// take gets the line of index next back.
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
		// Without a name it goes when the process does, however that ends. Where an
		// open file cannot lose its name, Close removes it.
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
		r.end = 0 // nothing is in use: the room is used again
	}
	return line, nil
}

// Close gives on what waits still, in order, though earlier ones never came, and
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
