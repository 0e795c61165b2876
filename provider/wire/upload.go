package wire

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

// upload is the body of a request on its way out. It is first read when there is a connection
// to write it to.
type upload struct {
	left  atomic.Bool // some of it was read
	first reader
}

// reader reads the body of a request once.
type reader struct {
	bytes.Reader
	of *upload
}

// load gives a request its body. A connection that was closed as it was used needs the body again.
func load(req *http.Request, body []byte) {
	u := new(upload)
	u.first.Reset(body)
	u.first.of = u
	req.Body, req.ContentLength = &u.first, int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) {
		again := &reader{of: u}
		again.Reset(body)
		return again, nil
	}
}

// hasLeft reports whether any of a request's body was read. Of a body that is not ours nothing is
// known, so it has.
func hasLeft(req *http.Request) bool {
	if req == nil {
		return true
	}
	r, ours := req.Body.(*reader)
	return !ours || r.of.left.Load()
}

// Read notes that the body leaves.
func (r *reader) Read(p []byte) (int, error) {
	r.of.left.Store(true)
	return r.Reader.Read(p)
}

// WriteTo notes it too.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	r.of.left.Store(true)
	return r.Reader.WriteTo(w)
}

// Close has nothing to do.
func (r *reader) Close() error { return nil }
