package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/headrace/headrace/provider/rawjson"
)

// ErrTooLong says that a line is over the bound.
var ErrTooLong = errors.New("line too long")

const (
	// ReadBuffer is the size of one read: beyond 64 KiB fewer system calls buy nothing measurable.
	ReadBuffer = 64 << 10
	// KeepBuffer bounds the buffer of a long line that is kept for the next one. A single
	// line of 64 MiB must not hold 64 MiB until the end of the run.
	KeepBuffer = 1 << 20
	// margin is extra room for a line of full length: a BOM and CRLF.
	margin = len("\xEF\xBB\xBF\r\n")
)

// ByteOrderMark may stand before the first line.
var ByteOrderMark = []byte("\xEF\xBB\xBF")

// Reader cuts a stream into lines of at most max bytes.
type Reader struct {
	in       *bufio.Reader
	max      int
	long     []byte // a line that did not fit into in's buffer
	line     int    // number of the line read last
	bytesCut int64  // the bytes up to its end
}

// New returns a reader of in, whose lines may have limit bytes, white space around them not
// counted.
func New(in io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, ReadBuffer), max: limit}
}

// After makes the next line the one after line: the input begins there.
func (l *Reader) After(line int) { l.line = line }

// Line returns the number of the line read last, from 1; 0 before the first.
func (l *Reader) Line() int { return l.line }

// Offset returns the number of bytes of the stream that were cut into lines.
func (l *Reader) Offset() int64 { return l.bytesCut }

// Next returns one line without the white space around it, valid until the next call.
// ErrTooLong says that this line was skipped, io.EOF that there is none. Any other error
// says that the stream is broken; the torn line is then not returned.
func (l *Reader) Next() ([]byte, error) {
	text, whole, err := l.Cut()
	if err != nil && !(AtEnd(err) && len(text) > 0) {
		return nil, err
	}
	if l.line == 1 {
		text = bytes.TrimPrefix(text, ByteOrderMark)
	}
	text = rawjson.Trim(text)
	if !whole || len(text) > l.max {
		return nil, ErrTooLong
	}
	return text, nil
}

// AtEnd tells the end of a stream from its failure. A wrapped io.EOF is a failure: with it
// decompressors and network streams say that something is missing.
func AtEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// Cut reads up to and including the next line feed. Most lines lie in the reader's buffer
// and are not copied. Of a line over the bound, only the beginning is kept.
func (l *Reader) Cut() (text []byte, whole bool, err error) {
	text, whole, err = l.cut()
	if err == nil || AtEnd(err) && len(text) > 0 {
		l.line++
	}
	return text, whole, err
}

// cut is Cut without the count of lines. The text lasts until the next call. It lies in the
// reader's buffer, or in long if it did not fit there.
func (l *Reader) cut() (text []byte, whole bool, err error) {
	if cap(l.long) > KeepBuffer {
		l.long = nil
	}
	part, err := l.in.ReadSlice('\n')
	l.bytesCut += int64(len(part))
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, true, err
	}
	l.long, whole = l.long[:0], true
	for {
		// A line over the bound stays over it: the rest is read and dropped.
		if whole = whole && len(l.long) <= l.max+margin; whole {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, whole, err
		}
		part, err = l.in.ReadSlice('\n')
		l.bytesCut += int64(len(part))
	}
}

// clippedBytes is the number of bytes of a file's own text that a complaint repeats: enough to
// find it, too little to flood a terminal.
const clippedBytes = 60

// Clip shortens s for a message, at a whole character.
func Clip(s string) string { return ClipTo(s, clippedBytes) }

// ClipTo shortens s to no more than most bytes, and marks that by an ellipsis.
func ClipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + "…"
}

// Set is a set of line numbers: a bit for each line up to the last one in it.
type Set struct{ bits []uint64 }

// Add adds a line.
func (s *Set) Add(line int) {
	for len(s.bits) <= line/64 {
		s.bits = append(s.bits, 0)
	}
	s.bits[line/64] |= 1 << (line % 64)
}

// Has reports whether a line is in the set.
func (s *Set) Has(line int) bool {
	return line/64 < len(s.bits) && s.bits[line/64]&(1<<(line%64)) != 0
}

// Empty reports whether no line was added.
func (s *Set) Empty() bool { return s.bits == nil }
