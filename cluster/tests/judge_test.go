package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/provider/sim"
)

// A judge is the simulated provider, and books of each call: who made it and what became of
// it. Its time starts with the first call, so that what is to happen later does not depend on
// how long the processes take to come up.
type judge struct {
	config sim.Config
	url    string
	// refuses answers a call as the account of its caller would, and is not in the books; nil: none does.
	refuses func(w http.ResponseWriter, who string) bool

	mu     sync.Mutex // the calls come at once
	model  *sim.Server
	began  time.Time
	calls  []*call
	open   map[*call]bool
	waits  []waiting
	server *httptest.Server
}

// A call is one request as the provider saw it.
type call struct {
	who    string // whose: the name in the path
	prompt string
	at     time.Time // when it had arrived, whole
	ended  time.Time // zero: it is in the provider's hands
	status int       // of the answer; 0 if the caller left before it
}

// refused says that the provider's limit turned it away.
func (c *call) refused() bool { return c.status == http.StatusTooManyRequests }

// bought says that the provider worked on it, whether or not the caller was there to hear.
func (c *call) bought() bool { return c.status == http.StatusOK || c.status == 0 }

// waiting is somebody who waits for so many calls to have come.
type waiting struct {
	calls int
	ring  chan struct{}
}

func newJudge(t *testing.T, config sim.Config) *judge {
	t.Helper()
	config.TrackIDs = true
	j := &judge{config: config, open: map[*call]bool{}}
	j.server = httptest.NewServer(j)
	j.url = j.server.URL
	t.Cleanup(j.server.Close)
	return j
}

// base returns the base URL for a caller of that name.
func (j *judge) base(who string) string { return j.url + "/by/" + who + "/v1" }

// ServeHTTP writes a call down and hands it on.
func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who, path, ok := caller(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // its caller was killed while it sent: it has asked nothing
		return
	}
	if j.refuses != nil && j.refuses(w, who) {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.URL.Path = path
	c := j.enter(who, promptOf(body))
	out := &statusOf{ResponseWriter: w}
	defer func() { j.leave(r.Context(), c, out.status) }()
	j.model.ServeHTTP(out, r)
}

// caller takes the name off a path.
func caller(path string) (who, rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, "/by/")
	if !ok {
		return "", "", false
	}
	who, rest, ok = strings.Cut(rest, "/")
	return who, "/" + rest, ok
}

func (j *judge) enter(who, prompt string) *call {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.model == nil {
		j.model, j.began = sim.New(j.config, clockwork.NewRealClock()), time.Now()
	}
	c := &call{who: who, prompt: prompt, at: time.Now()}
	j.calls = append(j.calls, c)
	j.open[c] = true
	j.waits = rung(j.waits, len(j.calls))
	return c
}

// rung wakes those who have waited for so many calls.
func rung(waits []waiting, calls int) (left []waiting) {
	for _, w := range waits {
		if calls >= w.calls {
			close(w.ring)
		} else {
			left = append(left, w)
		}
	}
	return left
}

// leave ends a call. A caller that is gone has not heard the answer, whatever was written.
func (j *judge) leave(caller context.Context, c *call, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.ended = time.Now()
	if caller.Err() == nil {
		c.status = status
	}
	delete(j.open, c)
}

// handsOf counts the calls of somebody that the provider is working on.
func (j *judge) handsOf(who string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for c := range j.open {
		if c.who == who {
			n++
		}
	}
	return n
}

// after is closed when so many calls have come, since the beginning.
func (j *judge) after(calls int) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	ring := make(chan struct{})
	j.waits = rung(append(j.waits, waiting{calls: calls, ring: ring}), len(j.calls))
	return ring
}

// asked returns the number of calls that have come.
func (j *judge) asked() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls)
}

// book is a copy of all calls, in the order in which they came.
func (j *judge) book() []call {
	j.mu.Lock()
	defer j.mu.Unlock()
	calls := make([]call, len(j.calls))
	for i, c := range j.calls {
		calls[i] = *c
	}
	return calls
}

// promptOf is the text that an answer is to.
func promptOf(body []byte) string {
	var asked struct {
		Messages []struct{ Content string }
	}
	if json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 {
		return ""
	}
	return asked.Messages[len(asked.Messages)-1].Content
}

// statusOf remembers the status that was written.
type statusOf struct {
	http.ResponseWriter
	status int
}

func (s *statusOf) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the simulated provider break a connection off.
func (s *statusOf) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// freePort is one on which nobody listens. It lies below those that the system gives to
// clients' own ends, or a client might have it before the process that is to listen on it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		at := net.JoinHostPort("127.0.0.1", ports.next())
		if l, err := net.Listen("tcp", at); err == nil {
			_ = l.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}
