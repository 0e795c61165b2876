package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	// flushBytes is the size at which a Writer writes by itself.
	flushBytes = 64 << 10
	// flushLines is how many lines may wait at most: what a reader of the file, or
	// one who pulls the plug, is behind.
	flushLines = 64
)

// Writer writes result lines, whole ones only: each write to the file below
// begins and ends with a line. It belongs to one goroutine, which calls Flush
// whenever it has nothing else to do. The first error stays: nothing is
// written after it, and every call repeats it.
type Writer struct {
	name  string
	out   io.Writer // nil until the first line of a file that is made lazily
	file  *os.File  // nil if out is not ours to sync and close
	open  func() (*os.File, error)
	buf   []byte
	lines int   // lines in buf
	total int   // lines given to Write
	size  int64 // bytes of whole lines in the file
	err   error
}

// NewWriter writes to w, which is the caller's to close; name is for errors.
func NewWriter(w io.Writer, name string) *Writer { return &Writer{name: name, out: w} }

// Name is the name of the file.
func (w *Writer) Name() string { return w.name }

// Lines is how many lines were given to Write, on disk or not.
func (w *Writer) Lines() int { return w.total }

// Write adds one line. It is in the file after the next Flush at the latest, and
// flushed without being asked once 64 lines or 64 KiB wait.
func (w *Writer) Write(l *Line) error {
	if w.err != nil {
		return w.err
	}
	if w.out == nil && !w.create() {
		return w.err
	}
	w.buf = AppendLine(w.buf, l)
	w.total++
	if w.lines++; w.lines >= flushLines || len(w.buf) >= flushBytes {
		return w.Flush()
	}
	return nil
}

// create makes the file of a lazy writer.
func (w *Writer) create() bool {
	if w.open == nil {
		return w.fail(fmt.Errorf("jsonl: write %s: %w", w.name, os.ErrClosed))
	}
	file, err := w.open()
	if err != nil {
		return w.fail(err)
	}
	w.file, w.out = file, file
	return true
}

func (w *Writer) fail(err error) bool {
	w.err = err
	return false
}

// Flush hands all lines to the operating system, in one write.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.buf) == 0 {
		return w.err
	}
	n, err := w.out.Write(w.buf)
	if err == nil && n < len(w.buf) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.untear(n)
		w.fail(fmt.Errorf("jsonl: write %s: the last %d lines are not saved: %w", w.name, w.lines, err))
		return w.err
	}
	w.size += int64(len(w.buf))
	w.buf, w.lines = w.buf[:0], 0
	return nil
}

// untear cuts off what a failed write has left of a line, so that the file ends
// whole. It is a kindness: where it fails too, the error that is told is the write's.
func (w *Writer) untear(written int) {
	if w.file != nil && written > 0 {
		_ = w.file.Truncate(w.size)
	}
}

// Close flushes, waits until a regular file is on disk, and closes it. A writer
// that was closed refuses further lines; a second Close repeats the first's answer.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.file != nil {
		if failed := w.settle(); err == nil && failed != nil {
			err = fmt.Errorf("jsonl: close %s: %w", w.name, failed)
			w.err = err
		}
	}
	w.file, w.out, w.open = nil, nil, nil
	return err
}

// settle syncs and closes. What is no regular file (a pipe, /dev/null) has no
// disk to wait for.
func (w *Writer) settle() error {
	var synced error
	if info, err := w.file.Stat(); err == nil && info.Mode().IsRegular() {
		synced = w.file.Sync()
	}
	return errors.Join(synced, w.file.Close())
}
