package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/provider"
)

// Key is the API key that clients under test are given, so that the suite can
// look for it where it must not be.
const Key = "sk-providertest-9f8e7d6c5b4a39281706f5e4d3c2b1a0"

// Doer is a client under test. If it has a method CloseIdle(), the suite calls it
// when it is done.
type Doer interface {
	Do(ctx context.Context, r provider.Request) (provider.Reply, error)
}

// A Subject describes a client under test: the request to make and what to expect of it.
type Subject struct {
	// Dialect is the one that the client speaks: it gets no recordings in the words of others.
	Dialect string
	// Request is one that the client can make.
	Request provider.Request
	// Text says that the client reads the words of answers.
	Text bool
}

// chat is the subject of every client of OpenAI's dialect.
var chat = Subject{Dialect: "openai", Request: provider.Request{
	Endpoint: provider.Chat, Model: "m",
	Body: []byte(`{"model":"m","messages":[{"role":"user","content":"Say hello."}]}`),
}}

// Run checks a client of OpenAI's dialect against every recording and every promise of
// provider.Request. newClient is given the base URL of a server and makes a
// client that calls it with Key.
func Run(t *testing.T, newClient func(baseURL string) Doer) {
	t.Helper()
	chat.Run(t, newClient)
}

// Run does the same with a client of any dialect.
func (s Subject) Run(t *testing.T, newOne func(baseURL string) Doer) {
	t.Helper()
	newClient := func(baseURL string) Doer { return subject{newOne(baseURL), s.Request} }
	for _, c := range Cases() {
		if c.Dialect == "" || c.Dialect == s.Dialect {
			t.Run(c.Name, func(t *testing.T) { checkAnswer(t, newClient, c, s.Text) })
		}
	}
	for _, p := range []struct {
		name  string
		check func(*testing.T, func(string) Doer)
	}{
		{"a key that the server echoes is in no error", echoedKey},
		{"an echoed key across the bound of an error body is in no error", echoAtBound},
		{"an endless answer is left", endlessBody(http.StatusOK, provider.Invalid)},
		{"an endless error is cut and classified", endlessBody(http.StatusServiceUnavailable, provider.Overloaded)},
		{"a redirect to another host is not followed", otherHostRedirect},
		{"a redirect that drops the body is not followed", droppingRedirect},
		{"a deadline is a timeout", deadline},
		{"a deadline by cause is a timeout", deadlineByCause},
		{"a cancel is a cancel", cancel},
		{"a refused connection is a transport fault", refusedConnection},
		{"a certificate that does not verify is a misconfiguration", badCertificate},
	} {
		t.Run(p.name, func(t *testing.T) { p.check(t, newClient) })
	}
}

// subject is a client that makes its one request, whatever request it is given.
type subject struct {
	Doer
	request provider.Request
}

func (s subject) Do(ctx context.Context, _ provider.Request) (provider.Reply, error) {
	return s.Doer.Do(ctx, s.request)
}

// CloseIdle calls the client's CloseIdle, if it has one.
func (s subject) CloseIdle() {
	if c, ok := s.Doer.(interface{ CloseIdle() }); ok {
		c.CloseIdle()
	}
}

// serve starts a server and a client that calls it. calls counts requests.
func serve(t *testing.T, newClient func(string) Doer, h http.HandlerFunc) (client Doer, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(server.Close)
	return clientFor(t, newClient, server.URL), calls
}

func clientFor(t *testing.T, newClient func(string) Doer, baseURL string) Doer {
	t.Helper()
	client := newClient(baseURL)
	if c, ok := client.(interface{ CloseIdle() }); ok {
		t.Cleanup(c.CloseIdle)
	}
	return client
}

// ask makes one call. It returns the call's error, which it checks for all that every error must
// be, and the Recorder's record.
func ask(parent context.Context, t *testing.T, client Doer) (*provider.Error, provider.Record) {
	t.Helper()
	_, e, record := askOf(parent, t, client)
	return e, record
}

// askOf is ask, and returns a good answer, too.
func askOf(parent context.Context, t *testing.T, client Doer) (provider.Reply, *provider.Error, provider.Record) {
	t.Helper()
	ctx, rec := provider.WithRecorder(parent)
	reply, err := client.Do(ctx, provider.Request{})
	record := rec.Snapshot()
	noKey(t, "the record", record.RequestID, string(record.ErrorBody), record.Finish)
	noKey(t, "the answer", reply.RequestID, string(reply.Body), reply.Finish, reply.Text)
	if err == nil {
		return reply, nil, record
	}
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is a %T, want *provider.Error: %v", err, err)
	}
	if len(e.Body) > provider.MaxErrorBody || len(record.ErrorBody) > provider.MaxErrorBody {
		t.Errorf("%d and %d bytes of the body are kept, want at most %d", len(e.Body), len(record.ErrorBody), provider.MaxErrorBody)
	}
	noKey(t, "the error", err.Error(), fmt.Sprintf("%+v", *e), string(e.Body), string(reply.Body), chain(err))
	return reply, e, record
}

// chain returns the text of every error that err wraps.
func chain(err error) string {
	var texts []string
	for ; err != nil; err = errors.Unwrap(err) {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "\n")
}

// noKey looks for the key, and for so much of it that the rest can be guessed.
func noKey(t *testing.T, where string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, spelled := range spellings(Key) {
			if strings.Contains(text, spelled[:len(spelled)/2]) {
				t.Errorf("the key is in %s: %.300s", where, text)
			}
		}
	}
}

// checkAnswer proves that a recorded answer is understood, and not asked for twice.
func checkAnswer(t *testing.T, newClient func(string) Doer, c Case, text bool) {
	client, calls := serve(t, newClient, func(w http.ResponseWriter, _ *http.Request) { c.replay(w) })
	reply, e, record := askOf(context.Background(), t, client)
	if n := calls.Load(); n != 1 {
		t.Errorf("the server was called %d times, want once", n)
	}
	if !record.Sent || record.Status != c.Status {
		t.Errorf("recorded: sent %v, status %d, want true, %d", record.Sent, record.Status, c.Status)
	}
	c.checkRecord(t, record)
	if c.Fine {
		if e != nil {
			t.Errorf("a good answer gave an error: %v", e)
		}
		if text {
			c.CheckText(t, reply.Text, reply.HasText)
		}
		return
	}
	if e == nil {
		t.Fatalf("no error, want one of kind %v", c.Kind)
	}
	c.Check(t, e)
}

// replay writes the recording on the connection and ends it.
func (c Case) replay(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err) // the suite's own server always can
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write(c.raw)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // a plain Close may reset the connection and lose what was written
	}
}

// Check compares an error with the recording's expectations.
func (c Case) Check(t *testing.T, e *provider.Error) {
	t.Helper()
	if e.Kind != c.Kind {
		t.Errorf("kind %v, want %v: %v", e.Kind, c.Kind, e)
	}
	if e.Status != c.Status {
		t.Errorf("status %d, want %d", e.Status, c.Status)
	}
	if e.RetryAfter != c.RetryAfter || e.HasRetryAfter != c.HasRetryAfter {
		t.Errorf("retry after %v, %v, want %v, %v", e.RetryAfter, e.HasRetryAfter, c.RetryAfter, c.HasRetryAfter)
	}
	if e.Slow != c.Slow || e.Unclear != c.Unclear {
		t.Errorf("slow %v, unclear %v, want %v, %v", e.Slow, e.Unclear, c.Slow, c.Unclear)
	}
	if c.Code != "" && e.Code != c.Code {
		t.Errorf("code %q, want %q", e.Code, c.Code)
	}
	if c.RequestID != "" && e.RequestID != c.RequestID {
		t.Errorf("request id %q, want %q", e.RequestID, c.RequestID)
	}
	if !strings.Contains(e.Error(), c.Says) {
		t.Errorf("%v: says nothing of %q", e, c.Says)
	}
	if c.Note != nil && e.Quota != *c.Note {
		t.Errorf("note %+v, want %+v", e.Quota, *c.Note)
	}
}

// CheckReply compares a good answer with the recording's expectations.
func (c Case) CheckReply(t *testing.T, r provider.Reply) {
	t.Helper()
	if c.Usage != nil && (!r.HasUsage || r.Usage != *c.Usage) {
		t.Errorf("usage %+v, %v, want %+v", r.Usage, r.HasUsage, *c.Usage)
	}
	if c.Finish != "" && r.Finish != c.Finish {
		t.Errorf("finish %q, want %q", r.Finish, c.Finish)
	}
	if mark, _ := provider.FinishKind(r.Finish); mark != c.Mark {
		t.Errorf("%q marks the answer as %v, want %v", r.Finish, mark, c.Mark)
	}
	if end := provider.EndOf(r.Finish); c.End != "" && end != c.End {
		t.Errorf("%q means %q, want %q", r.Finish, end, c.End)
	}
}

// CheckText compares the words of a good answer with the recording's expectations.
func (c Case) CheckText(t *testing.T, text string, has bool) {
	t.Helper()
	if c.Text != nil && (text != *c.Text || has != (*c.Text != "")) {
		t.Errorf("text %q, %v, want %q", text, has, *c.Text)
	}
}

// checkRecord compares the record of a call with the recording's expectations.
func (c Case) checkRecord(t *testing.T, r provider.Record) {
	t.Helper()
	if c.Fine {
		c.CheckReply(t, provider.Reply{Usage: r.Usage, HasUsage: r.HasUsage, Finish: r.Finish})
	}
	// The record of a refusal has limits of 0 as well, which mean something to a lane alone.
	limits := slices.DeleteFunc(slices.Clone(r.Limits), func(l provider.RateLimit) bool { return l.Limit == 0 })
	if c.Limits >= 0 && len(limits) != c.Limits {
		t.Errorf("recorded %d limits, want %d: %+v", len(limits), c.Limits, r.Limits)
	}
	if c.RequestID != "" && r.RequestID != c.RequestID {
		t.Errorf("recorded request id %q, want %q", r.RequestID, c.RequestID)
	}
}

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
