package journal

import (
	"fmt"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// Tail is the end of a result file, behind which lines may be written. It lies after the
// last whole line of an earlier run, or at the beginning of a new file. Its owner gives
// it to one saver or closes it.
type Tail struct {
	name string
	size int64    // of the whole lines
	file *os.File // nil if the first line makes it
	open func() (*os.File, error)
}

// Name returns the name of the file.
func (t *Tail) Name() string { return t.name }

// Size returns the number of bytes in the file's whole lines.
func (t *Tail) Size() int64 { return t.size }

// File returns the open file, nil if the first line makes it.
func (t *Tail) File() *os.File { return t.file }

// Open opens the file, and makes it if it is missing. The caller closes it.
func (t *Tail) Open() (*os.File, error) { return t.open() }

// Close closes a file to which nobody is going to write.
func (t *Tail) Close() error {
	if t.file == nil {
		return nil
	}
	file := t.file
	t.file = nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", t.name, disk.Bare(err))
	}
	return nil
}

// now opens the file before its first line.
func (t *Tail) now() (_ *Tail, err error) {
	if t.file, err = t.open(); err != nil {
		return nil, err
	}
	return t, nil
}
