package parts

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// ErrIncomplete says that not every item of a chunk has ended.
var ErrIncomplete = errors.New("not each of its items has ended")

// Write creates the part of a chunk. The part must have the given number of lines: items, and lines that
// are skipped. The error is store.ErrExists if another worker was first, whose part then counts, and
// ErrIncomplete if there are fewer lines, or more.
func Write(ctx context.Context, s store.Store, c *job.Chunk, lines int, j *Joined) (Sums, error) {
	if j.Lines != lines {
		return j.Sums, fmt.Errorf("parts: write %s: %d lines of %d: %w", c, j.Lines, lines, ErrIncomplete)
	}
	f := footer{Format: job.FormatOf(c.Format), Job: c.Job, Chunk: c.Number, Round: c.Round, Bytes: j.bytes, Sums: j.Sums}
	b := &body{lines: j.All(), footer: f.open()}
	defer b.rewind()
	size := j.bytes + int64(len(b.footer)+sumLength)
	if err := s.Create(ctx, job.PartName(c.Job, c.Number, c.Round), b, size); err != nil {
		return j.Sums, fmt.Errorf("parts: write %s: %w", c, err)
	}
	return j.Sums, nil
}

// body is a part during its writing. It can be read again from its beginning.
type body struct {
	lines  iter.Seq2[[]byte, error]
	footer []byte // up to its sum

	next func() ([]byte, error, bool) // nil at the beginning
	stop func()
	rest []byte
	sum  uint32
	at   int64
	done bool // the footer was given
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		if b.done {
			return 0, io.EOF
		}
		if err := b.line(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	b.at += int64(n)
	return n, nil
}

// line takes the next line, or the footer behind the last line.
func (b *body) line() error {
	if b.next == nil {
		b.next, b.stop = iter.Pull2(b.lines)
	}
	text, err, there := b.next()
	if err != nil {
		return err
	}
	if there {
		b.sum = crc32.Update(b.sum, castagnoli, text)
		b.rest = text
		return nil
	}
	b.sum = crc32.Update(b.sum, castagnoli, b.footer)
	b.rest, b.done = closeFooter(b.footer, b.sum), true
	return nil
}

// rewind goes back to the beginning.
func (b *body) rewind() {
	if b.stop != nil {
		b.stop()
	}
	*b = body{lines: b.lines, footer: b.footer}
}

// Seek returns the position, or goes back to the beginning: a store needs no more to send the part again.
func (b *body) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence == io.SeekCurrent && offset == 0:
	case whence == io.SeekStart && offset == 0:
		b.rewind()
	default:
		return b.at, errors.ErrUnsupported
	}
	return b.at, nil
}
