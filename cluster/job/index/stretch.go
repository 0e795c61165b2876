package index

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/headrace/headrace/cluster/job"
)

// lineReader reads the lines of a stretch out of what follows its first byte.
type lineReader struct {
	in   *bufio.Reader
	left int64 // bytes of the stretch that were not read yet; below 0 the last line is being read
	done bool
}

// readAhead is how much of an object is read at a time.
const readAhead = 256 << 10

// skip leaves out the rest of a line that began before the stretch, and tells its length.
func (l *lineReader) skip() (n int64, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		n += int64(len(part))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			err = nil
		}
		l.left -= n
		l.done = l.left < 0 // its only line feed is behind it: no line begins in it
		return n, err
	}
}

// Read gives what is there up to the end of the line that the stretch ends in.
func (l *lineReader) Read(p []byte) (int, error) {
	if l.done {
		return 0, io.EOF
	}
	n, err := l.in.Read(p)
	if beyond := max(l.left, 0); int64(n) > beyond {
		if feed := bytes.IndexByte(p[beyond:n], '\n'); feed >= 0 {
			n, l.done = int(beyond)+feed+1, true
		}
	}
	l.left -= int64(n)
	return n, err
}

// lines opens a stretch, and tells at which byte of the object its first line begins.
func (s *Source) lines(ctx context.Context, st Stretch) (in *lineReader, begin int64, done func() error, err error) {
	object := &s.Record.Inputs[st.Input].Objects[st.Piece]
	open, err := s.open(ctx, object, st.Offset, object.Bytes-st.Offset)
	if err != nil {
		return nil, 0, nil, err
	}
	in, begin = &lineReader{in: bufio.NewReaderSize(open, readAhead), left: st.Bytes}, st.Offset
	if st.Offset > 0 {
		n, err := in.skip()
		if err != nil {
			return nil, 0, nil, errors.Join(err, open.Close())
		}
		begin += n
	}
	return in, begin, open.Close, nil
}

// inputOf is the file that a stretch is of.
func (s *Source) inputOf(st Stretch) *job.Input { return &s.Record.Inputs[st.Input] }
