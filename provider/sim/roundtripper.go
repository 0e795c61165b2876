package sim

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
)

// Transport is an http.RoundTripper that asks a Server in the caller's own
// goroutine: no socket, no other goroutine, no connection to close. It ignores the
// host of a request's URL.
type Transport struct {
	server *Server
}

// NewTransport returns a transport over a server: &http.Client{Transport: sim.NewTransport(server)}
// is a client of the server, in any SDK that takes one.
func NewTransport(server *Server) *Transport {
	return &Transport{server: server}
}

// RoundTrip returns when the answer is due or the request's context ends, with
// the context's cause. A reset is an error for which errors.Is(err,
// syscall.ECONNRESET). The request's body is read before the latency begins. A stream
// is returned when its first piece is due, and its body waits for the others.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	a, err := t.server.respond(r)
	if err != nil {
		return nil, err
	}
	return response(a, r), nil
}

func response(a answer, r *http.Request) *http.Response {
	body, length := io.NopCloser(bytes.NewReader(a.Body)), int64(len(a.Body))
	switch {
	case a.flow != nil:
		body, length = a.flow, -1
	case a.Cut:
		body = io.NopCloser(io.MultiReader(bytes.NewReader(a.Body[:len(a.Body)/2]), broken{}))
	}
	return &http.Response{
		Status:        strconv.Itoa(a.Status) + " " + http.StatusText(a.Status),
		StatusCode:    a.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        a.Header,
		Body:          body,
		ContentLength: length,
		Request:       r,
	}
}

// broken ends a body in the way of a connection that closes too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
