package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/headrace/headrace/provider/rawjson"
)

const (
	// readBuffer is the size of one read: beyond 64 KiB fewer system calls buy nothing measurable.
	readBuffer = 64 << 10
	// keepBuffer is how much of a long line's buffer is kept for the next one: a
	// single line of 64 MiB must not hold 64 MiB until the end of the run.
	keepBuffer = 1 << 20
	// margin is what a line of full length may bear beyond it: a BOM and CRLF.
	margin = len("\xEF\xBB\xBF\r\n")
)

var byteOrderMark = []byte("\xEF\xBB\xBF")

// lineReader cuts a stream into lines of at most max bytes.
type lineReader struct {
	in   *bufio.Reader
	max  int
	long []byte // a line that did not fit into in's buffer
	line int    // the number of the line given last
	// extra is how many lines beyond its first the row given last has.
	extra int
}

func newLineReader(in io.Reader, limit int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, readBuffer), max: limit}
}

// next gives one line without the white space around it, valid until the next
// call. ErrTooLong says that this one was skipped; io.EOF that there is none; any
// other error that the stream is broken, and then the torn line is not given.
func (l *lineReader) next() ([]byte, error) {
	l.extra = 0
	text, whole, err := l.cut()
	if err != nil && !(atEnd(err) && len(text) > 0) {
		return nil, err
	}
	l.line++
	if l.line == 1 {
		text = bytes.TrimPrefix(text, byteOrderMark)
	}
	text = rawjson.Trim(text)
	if !whole || len(text) > l.max {
		return nil, ErrTooLong
	}
	return text, nil
}

// atEnd tells the end of a stream from its failure. A wrapped io.EOF is a failure:
// it is how decompressors and network streams say that something is missing.
func atEnd(err error) bool { return err == io.EOF } //nolint:errorlint // see above

// cut reads up to and with the next line feed. Most lines lie in the reader's
// buffer and are not copied; of a line over the bound, only its beginning is kept.
func (l *lineReader) cut() (text []byte, whole bool, err error) {
	if cap(l.long) > keepBuffer {
		l.long = nil
	}
	part, err := l.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, true, err
	}
	l.long, whole = l.long[:0], true
	for {
		// What is over the bound stays so: the rest is read and dropped.
		if whole = whole && len(l.long) <= l.max+margin; whole {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, whole, err
		}
		part, err = l.in.ReadSlice('\n')
	}
}
