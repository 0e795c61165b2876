package saver

import (
	"fmt"
	"io"
	"os"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/disk"
)

// writer writes whole lines behind a tail, or to a writer that is not a file of ours.
type writer struct {
	name string
	tail *journal.Tail // nil if out is not ours to open, sync and close
	out  io.Writer     // nil until the first line of a file that is made lazily
	file *os.File      // nil if out is not ours, or not there yet
	size int64         // bytes of whole lines in the file
	torn bool          // the last write ended within a line, and cannot be cut off
	err  error         // why no line may follow
}

func newWriter(tail *journal.Tail) *writer {
	w := &writer{name: tail.Name(), tail: tail, size: tail.Size()}
	if file := tail.File(); file != nil {
		w.file, w.out = file, file
	}
	return w
}

// create makes the file of a lazy writer.
func (w *writer) create() bool {
	file, err := w.tail.Open()
	if err != nil {
		w.err = err
		return false
	}
	w.file, w.out = file, file
	return true
}

// writeLines writes a bundle and returns how many of its lines are whole in the file. It
// cuts off the part of a line that a failed write has left; if even that fails, no line may
// follow. It cuts nothing off a foreign writer: a line feed ends the torn piece before the
// next line, so that the piece spoils only itself.
func (w *writer) writeLines(b *bundle) (n int, err error) {
	if w.out == nil && !w.create() {
		return 0, w.err
	}
	if w.torn {
		if _, err := w.out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
		w.torn = false
	}
	written, err := w.out.Write(b.buf)
	if err == nil && written < len(b.buf) {
		err = io.ErrShortWrite
	}
	for n < len(b.items) && b.items[n].end <= written {
		n++
	}
	w.size += int64(b.start(n))
	if w.torn = err != nil && written > b.start(n); w.torn && w.file != nil {
		w.torn, w.err = false, w.file.Truncate(w.size)
	}
	return n, err
}

// stillThere compares the written file with the one that has its name now.
func (w *writer) stillThere(ours os.FileInfo) error {
	named, err := os.Stat(w.name)
	if err != nil || !os.SameFile(named, ours) || named.Size() != w.size {
		return ErrReplaced
	}
	return nil
}

// leave closes the file without waiting for the disk.
func (w *writer) leave() (err error) {
	if w.file != nil {
		if err = w.file.Close(); err != nil {
			err = fmt.Errorf("saver: close %s: %w", w.name, disk.Bare(err))
		}
	}
	w.file, w.out = nil, nil
	return err
}
