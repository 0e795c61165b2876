package parts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Line is one line of a part: a result or a failure.
type Line struct {
	journal.Entry
	Text []byte // as it was written, line feed included; valid until the next
}

// Read yields the lines of a part in the order of the input. Text that has changed since its writing is
// ErrDamaged. The first error ends the lines. Only the end shows that nothing is missing.
func Read(ctx context.Context, s store.Store, name string, chunk, round int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in, err := s.Open(ctx, job.PartName(name, chunk, round), 0, -1)
		if err != nil {
			yield(Line{}, err)
			return
		}
		defer func() { _ = in.Close() }() // it was only read
		lines(in, name, chunk, round)(yield)
	}
}

// lines yields the lines of an open part.
func lines(in io.Reader, name string, chunk, round int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		r := partReader{in: bufio.NewReaderSize(in, 64<<10)}
		for {
			l, there, err := r.next()
			if err == nil && !there {
				err = r.check(name, chunk, round)
				if err == nil {
					return
				}
			}
			if err != nil {
				yield(Line{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err))
				return
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}

// partReader reads a part line by line.
type partReader struct {
	in     *bufio.Reader
	long   []byte
	parse  journal.Parser
	sum    uint32
	last   int // the line of the input read last
	footer []byte
}

// next returns a line; there is false where the footer begins.
func (r *partReader) next() (l Line, there bool, err error) {
	text, err := r.line()
	if err != nil {
		return l, false, err
	}
	if bytes.HasPrefix(text, []byte(footerBegins)) {
		r.footer = text
		return l, false, nil
	}
	e, err := r.parse.Parse(text)
	if err != nil || e.Line <= r.last {
		return l, false, ErrDamaged
	}
	r.last = e.Line
	r.sum = crc32.Update(r.sum, castagnoli, text)
	return Line{e, text}, true, nil
}

// line reads up to and including a line feed.
func (r *partReader) line() ([]byte, error) {
	part, err := r.in.ReadSlice('\n')
	if err == nil {
		return part, nil
	}
	r.long = r.long[:0]
	for ; errors.Is(err, bufio.ErrBufferFull) && len(r.long) <= journal.MaxJournalLine; part, err = r.in.ReadSlice('\n') {
		r.long = append(r.long, part...)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, bufio.ErrBufferFull) {
		return nil, ErrDamaged
	}
	r.long = append(r.long, part...)
	return r.long, err
}

// check compares the footer with what was read.
func (r *partReader) check(name string, chunk, round int) error {
	f, sum, err := parseFooter(r.footer)
	if err != nil {
		return err
	}
	if read := crc32.Update(r.sum, castagnoli, r.footer[:len(r.footer)-sumLength]); read != sum || !f.is(name, chunk, round) {
		return ErrDamaged
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(ErrDamaged, err)
	}
	return nil
}

// sumsOf reads the sums of a part of so many bytes from its footer, without the lines.
func sumsOf(ctx context.Context, s store.Store, name string, chunk, round int, size int64) (Sums, error) {
	from := max(0, size-footerRoom)
	in, err := s.Open(ctx, job.PartName(name, chunk, round), from, size-from)
	if err != nil {
		return Sums{}, err
	}
	defer func() { _ = in.Close() }() // it was only read
	text, err := io.ReadAll(in)
	if err != nil {
		return Sums{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err)
	}
	line := text[bytes.LastIndexByte(text[:max(len(text)-1, 0)], '\n')+1:]
	f, _, err := parseFooter(line)
	if err == nil && !f.is(name, chunk, round) {
		err = ErrDamaged
	}
	if err != nil {
		return Sums{}, fmt.Errorf("parts: read %s: %w", job.PartName(name, chunk, round), err)
	}
	return f.Sums, nil
}

// Again returns the items of a chunk that a round tries again: the keys of those that failed in the
// latest part before it. Lines that were skipped do not count.
func Again(ctx context.Context, s store.Store, c *job.Chunk) (map[string]bool, error) {
	for round := c.Round - 1; round >= 0; round-- {
		failed, err := failedIn(ctx, s, c, round)
		if !errors.Is(err, store.ErrMissing) {
			return failed, err
		}
	}
	return nil, fmt.Errorf("parts: %s: there is no part before it: %w", c, store.ErrMissing)
}

func failedIn(ctx context.Context, s store.Store, c *job.Chunk, round int) (map[string]bool, error) {
	failed := map[string]bool{}
	for l, err := range Read(ctx, s, c.Job, c.Number, round) {
		if err != nil {
			return nil, err
		}
		if l.Failed && !skipped(&l.Entry) {
			failed[l.Key] = true
		}
	}
	return failed, nil
}
