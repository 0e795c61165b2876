package providertest

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Wire is a transport that leads nowhere: it answers every request with Body and keeps
// the requests. It may be used by many goroutines at once.
type Wire struct {
	// Status is 200 if it is 0.
	Status int
	Header http.Header
	Body   string

	mu   sync.Mutex
	last Sent
}

// Sent is a request as it would have gone out.
type Sent struct {
	URL    string
	Header http.Header
	Body   string
}

// Last returns the latest request; the zero value if there was none.
func (w *Wire) Last() Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// RoundTrip answers.
func (w *Wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.last = Sent{URL: r.URL.String(), Header: r.Header.Clone(), Body: string(body)}
	w.mu.Unlock()
	status := w.Status
	if status == 0 {
		status = http.StatusOK
	}
	header := w.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: r,
		Body: io.NopCloser(strings.NewReader(w.Body)), ContentLength: int64(len(w.Body)),
	}, nil
}
