package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// departure is the context of a request that goes out by net/http's own transport. It notes
// whether the request left: a request leaves when there is a connection to write it to.
//
// The body cannot note that there. net/http sends headers and body in one packet only if the body
// has one of its own types. A body of our type takes two packets, with twice the system calls.
type departure struct {
	context.Context
	left  atomic.Bool
	trace httptrace.ClientTrace
}

// departureKey finds the departure in a request's context.
type departureKey struct{}

// watched returns a context whose departure hasLeft knows.
func watched(ctx context.Context) context.Context {
	d := &departure{Context: ctx}
	d.trace.WroteHeaders = func() { d.left.Store(true) }
	return httptrace.WithClientTrace(d, &d.trace)
}

// Value returns the departure, and asks the parent for all other keys.
func (d *departure) Value(key any) any {
	if key == (departureKey{}) {
		return d
	}
	return d.Context.Value(key)
}

// upload is the body of a request on its way out by a transport of the user's, which may not tell
// when it writes. The body is first read when there is a connection to write it to.
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
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body = io.NopCloser(bytes.NewReader(body))
}

// loadNoting gives a request a body that notes whether it was read.
func loadNoting(req *http.Request, body []byte) {
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

// hasLeft reports whether any part of a request left. It returns true if nobody notes the request's
// departure.
func hasLeft(req *http.Request) bool {
	if req == nil {
		return true
	}
	if r, is := req.Body.(*reader); is {
		return r.of.left.Load()
	}
	d, is := req.Context().Value(departureKey{}).(*departure)
	return !is || d.left.Load()
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
