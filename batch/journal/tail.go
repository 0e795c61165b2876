package journal

import (
	"fmt"
	"os"

	"github.com/headrace/headrace/internal/disk"
)

// Tail is the end of a result file, behind which lines may be written: the last whole
// line of an earlier run, or the beginning of a file that is new. It is given to one
// saver, or else closed.
type Tail struct {
	name string
	size int64    // of the whole lines
	file *os.File // nil if it is made with the first line
	open func() (*os.File, error)
}

// Name is the name of the file.
func (t *Tail) Name() string { return t.name }

// Size is how many bytes of whole lines are in the file.
func (t *Tail) Size() int64 { return t.size }

// File is the open file, nil if it is made with the first line.
func (t *Tail) File() *os.File { return t.file }

// Open opens the file, and makes it if it is not there. It is the caller's to close.
func (t *Tail) Open() (*os.File, error) { return t.open() }

// Close closes a file that nobody is going to write to.
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
