package timeline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Reasons why a file is not written to, and stays as it is; errors.Is finds them in the
// errors of Open.
var (
	ErrForeign = errors.New("headrace did not write this timeline, so it stays as it is; move it away, or choose another file with --timeline")
	ErrDamaged = errors.New("it stays as it is; move it away, or choose another file with --timeline")
	ErrInUse   = errors.New("another run writes to it: choose another file with --timeline")
)

// contents describes a file of ours.
type contents struct {
	sound   int64 // bytes of whole lines, up to where the next run continues: without the progress
	starts  int
	samples int
	span    int // seconds of a sample in it
	lines   int
}

// scan reads a file from its beginning to its end. All of it must be ours, except an end
// that a killed process left behind sound.
func scan(file io.Reader) (c contents, err error) {
	c.span = 1
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, whole, err := readLine(in)
		if err != nil {
			return c, err
		}
		var p parsed
		if whole {
			p = parse(line)
		}
		if c.lines == 0 {
			if err := begins(line, whole, p.kind); err != nil {
				return c, err
			}
		}
		if len(line) == 0 && !whole {
			return c, nil
		}
		if p.kind == unknown || p.kind == progress {
			return c, c.ends(line, whole, p.kind, in)
		}
		c.add(&p, len(line)+1)
	}
}

// begins reports whether a file that begins with that line is one of ours. An empty file is.
func begins(line []byte, whole bool, k kind) error {
	switch {
	case len(line) == 0 && !whole, k == start:
		return nil
	case !bytes.HasPrefix(line, []byte(mark)):
		return ErrForeign
	}
	if _, err := parseHead(line); errors.Is(err, errOtherVersion) {
		return fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	return nil // its first line was not written to its end
}

func (c *contents) add(p *parsed, bytes int) {
	c.lines++
	c.sound += int64(bytes)
	switch p.kind {
	case start:
		c.starts++
		c.span = max(c.span, p.head.span)
	case sample:
		c.samples++
	}
}

// ends reports whether the lines from here on may be the end of a file whose process was
// killed. That is a progress, or a line without its end followed by at most a progress, the
// remains of the previous one. A loss of power leaves zeros.
func (c *contents) ends(line []byte, whole bool, k kind, in *bufio.Reader) error {
	damaged := fmt.Errorf("its line %d does not belong in a timeline: %w", c.lines+1, ErrDamaged)
	text := bytes.TrimRight(line, "\x00")
	if k == unknown && !isTorn(text, whole) {
		return damaged
	}
	behind, whole, err := readLine(in)
	if err == nil && k == unknown && whole && parse(behind).kind == progress {
		behind, whole, err = readLine(in)
	}
	for ; err == nil && !whole && len(behind) > 0; behind, whole, err = readLine(in) {
		if len(bytes.Trim(behind, "\x00")) > 0 {
			return damaged
		}
	}
	if err == nil && whole {
		return damaged
	}
	return err
}

// readLine reads a line without its feed; the caller may keep it. At the end of the file it
// returns the rest, which is not whole and may be empty. A line that is longer than any of
// ours comes in pieces that are not whole.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	for len(line) < maxLine {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], true, nil
		case errors.Is(err, io.EOF):
			return line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
	return line, false, nil
}
