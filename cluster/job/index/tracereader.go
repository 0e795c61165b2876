package index

import (
	"errors"
	"io"
)

// traceReader gives traces as bytes, as often as it is asked to.
type traceReader struct {
	all []trace
	at  int64
}

func (r *traceReader) size() int64 { return int64(len(r.all)) * traceSize }

// Read implements io.Reader.
func (r *traceReader) Read(p []byte) (n int, err error) {
	for n < len(p) && r.at < r.size() {
		copied := copy(p[n:], r.all[r.at/traceSize][r.at%traceSize:])
		n += copied
		r.at += int64(copied)
	}
	if n == 0 && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Seek implements io.Seeker, so that a store can send them again.
func (r *traceReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size()
	}
	if offset < 0 {
		return r.at, errors.New("index: before the first trace")
	}
	r.at = offset
	return r.at, nil
}
