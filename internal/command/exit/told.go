package exit

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Told is standard output, and keeps the first error of a write to it. So a command that prints
// tables and texts need not look.
type Told struct {
	Out io.Writer
	err error
}

// Write implements [io.Writer].
func (t *Told) Write(p []byte) (int, error) {
	n, err := t.Out.Write(p)
	if err != nil && t.err == nil {
		t.err = err
	}
	return n, err
}

// Broken reports whether a write has failed.
func (t *Told) Broken() bool { return t.err != nil }

// End returns the error with which the command ends. A failed write replaces any error but an [Ending].
func (t *Told) End(err error) error {
	switch {
	case t.err == nil, IsEnd(err):
		return err
	case IsClosedPipe(t.err):
		return &Ending{Code: Pipe}
	}
	return &Ending{Code: Output, Text: fmt.Sprintf("standard output could not be written: %s", PlainText(t.err))}
}

// IsClosedPipe reports whether a write failed because its reader has gone, as with | head.
func IsClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
