package provider

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// MaxHeard bounds, in bytes, the part of a good answer that Transport keeps to read its usage
// once the answer has come whole. Chats are a hundredth of that. Of a longer answer the usage
// is not known: only embeddings of some two hundred texts are that long.
const MaxHeard = 8 << 20

// hear lets the Recorder see an answer's body as its owner reads it. Nothing is read
// ahead, so the owner's timing and errors are its own.
func (t *Transport) hear(resp *http.Response, rec *Recorder) {
	switch resp.Body.(type) {
	case nil, *overheard, *heard: // a Transport below this one listens already
		return
	}
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		resp.Body = &overheard{ReadCloser: resp.Body, rec: rec}
	case resp.StatusCode/100 == 2 && !t.HeadersOnly && maybeJSON(resp.Header):
		resp.Body = &heard{ReadCloser: resp.Body, rec: rec, status: resp.StatusCode}
	}
}

// maybeJSON reports whether a body may be JSON as it comes: some servers name no type, or
// a text's. A body that its reader must unpack is not.
func maybeJSON(h http.Header) bool {
	kind := first(h, "Content-Type")
	return first(h, "Content-Encoding") == "" &&
		(kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/plain"))
}

// overheard is a failed answer's body that the Recorder sees.
type overheard struct {
	io.ReadCloser
	rec *Recorder
}

func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if n > 0 {
		o.rec.errorBody(p[:n])
	}
	return n, err
}

// heard is a good answer's body. It passes the answer to the Recorder once it has come whole.
type heard struct {
	io.ReadCloser
	rec    *Recorder
	status int

	mu   sync.Mutex // a body may be closed while it is read
	kept []byte
	long bool // it is too long to be kept
}

func (b *heard) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.keep(p[:n], err == io.EOF)
	return n, err
}

// Close passes on what was kept: a decoder stops after the value, and never sees the end.
func (b *heard) Close() error {
	b.keep(nil, true)
	return b.ReadCloser.Close()
}

func (b *heard) keep(p []byte, last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.long = b.long || len(b.kept)+len(p) > MaxHeard; b.long {
		b.kept = nil
		return
	}
	if b.kept = append(b.kept, p...); !last {
		return
	}
	if reply, e := ReplyOf(b.status, nil, b.kept); e == nil || reply.HasUsage {
		b.rec.hears(&reply)
	}
	b.kept = nil // so that nothing is passed on a second time
}
