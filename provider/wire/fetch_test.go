package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

const chat = `{"choices":[{"finish_reason":"stop"}]}`

// A body of known length is read to its end, which may come by itself, and one that
// ends before is an error, with what there is.
func TestBodyIsReadToItsEnd(t *testing.T) {
	ended := false
	end := readerFunc(func([]byte) (int, error) { ended = true; return 0, io.EOF })
	body, err := readAll(io.MultiReader(iotest.OneByteReader(strings.NewReader(chat)), end), len(chat))
	if string(body) != chat || err != nil || !ended {
		t.Errorf("%s, %v; the end was seen: %t", body, err, ended)
	}
	body, err = readAll(strings.NewReader(chat), len(chat)+1)
	if string(body) != chat || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s, %v", body, err)
	}
	broken := errors.New("broken")
	if _, err = readAll(io.MultiReader(strings.NewReader(chat), iotest.ErrReader(broken)), len(chat)+1); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An answer that breaks off is no answer, not even where what came is whole JSON.
func TestAnswerCutAfterAValue(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, wire, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(wire, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+chat)
		_ = wire.Flush()
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	c, err := New(local(Config{BaseURL: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	_, err = c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{}`)})
	if !errors.Is(err, provider.TransportFault) {
		t.Errorf("%v", err)
	}
}

// A transport of the user's may unpack an answer and leave its length as it was.
func TestDeclaredLengthIsNotBelieved(t *testing.T) {
	c := must.Get(New(local(Config{Transport: unpacked{}})))(t)
	reply, err := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{}`)})
	if err != nil || string(reply.Body) != chat {
		t.Errorf("%s, %v", reply.Body, err)
	}
}

type unpacked struct{}

func (unpacked) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(chat)), ContentLength: int64(len(chat)) - 9,
	}, nil
}

// doubt makes a call that fails, and says what of it is doubtful.
func doubt(ctx context.Context, t *testing.T, cfg Config) (provider.Doubtful, error) {
	t.Helper()
	c, err := New(local(cfg))
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	ctx, rec := provider.WithRecorder(ctx)
	_, err = c.Do(ctx, chatRequest)
	snapshot := rec.Snapshot()
	return snapshot.Doubtful(err), err
}

// A call whose time is up while it waits for a connection never left. One that waits for its
// answer did, and so did one whose answer breaks off or is too long: these may be billed.
func TestWhatMayBeBilled(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":9,"completion_tokens":4}`
	came := make(chan struct{})
	server := func(answer http.HandlerFunc) Config {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		return Config{BaseURL: s.URL}
	}
	torn := func(status int, text string) Config {
		return server(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
	}
	dials := Config{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		came <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	silent := server(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		<-r.Context().Done()
	})
	long := server(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, chat) })
	long.MaxBody = int64(len(chat)) - 1
	mute, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and no handshake
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	go func() {
		if conn, err := mute.Accept(); err == nil {
			came <- struct{}{}
			<-t.Context().Done()
			_ = conn.Close()
		}
	}()
	proof := server(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		name  string
		cfg   Config
		waits bool // its time is up meanwhile
		kind  provider.Kind
		want  provider.Doubtful
	}{
		{"waits for a connection", dials, true, provider.Timeout, provider.Doubtful{}},
		{"has asked for its proof, and waits for a handshake", Config{BaseURL: "https://" + mute.Addr().String(), Auth: signs{proof.BaseURL}}, true, provider.Timeout, provider.Doubtful{}},
		{"waits for its answer", silent, true, provider.Timeout, provider.Doubtful{Calls: 1}},
		{"breaks off", torn(200, `{"choices":[`), false, provider.TransportFault, provider.Doubtful{Calls: 1}},
		{"breaks off behind its usage", torn(200, `{`+usage+`,"choices":[`), false, provider.TransportFault, provider.Doubtful{Calls: 1, Usage: provider.Usage{InputTokens: 9, OutputTokens: 4}}},
		{"is too long", long, false, provider.Invalid, provider.Doubtful{Calls: 1}},
		{"refuses, and breaks off", torn(500, `{`+usage), false, provider.Server, provider.Doubtful{}},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if c.waits {
			go func() { <-came; cancel(context.DeadlineExceeded) }()
		}
		got, err := doubt(ctx, t, c.cfg)
		cancel(nil)
		if got != c.want || !errors.Is(err, c.kind) {
			t.Errorf("%s: %+v and %v, want %+v and %v", c.name, got, err, c.want, c.kind)
		}
	}
}

// signs asks the server at that address for what proves who calls, as a user's own source may.
type signs struct{ at string }

func (signs) Refused(*http.Request) bool { return false }
func (signs) Secrets() []string          { return nil }

func (s signs) Apply(ctx context.Context, r *http.Request, _ []byte) error {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at, http.NoBody)
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer signed")
	return got.Body.Close()
}

// An answer may begin well and turn into a refusal, as a stream's may: it is not cut off.
func TestRefusalWithinAnAnswer(t *testing.T) {
	c := must.Get(New(local(Config{})))(t)
	for kind, cut := range map[provider.Kind]bool{provider.Overloaded: false, provider.Throttled: false, provider.Server: true, provider.TransportFault: true} {
		ctx, rec := provider.WithRecorder(t.Context())
		rec.Response(http.StatusOK, http.Header{})
		_, e := c.Read(ctx, &Exchange{Status: http.StatusOK, Err: &provider.Error{Kind: kind}})
		if snapshot := rec.Snapshot(); snapshot.Cut != cut || (snapshot.Doubtful(e).Calls == 1) != cut {
			t.Errorf("%v: cut off: %t, %+v", kind, snapshot.Cut, snapshot.Doubtful(e))
		}
	}
}

// A body is had again, whole, for a connection that was closed; by whatever way it is read, it is
// known that it left.
func TestUpload(t *testing.T) {
	for name, read := range map[string]func(io.Reader) (string, error){
		"read": func(r io.Reader) (string, error) { text, err := io.ReadAll(r); return string(text), err },
		"copied": func(r io.Reader) (string, error) {
			var b bytes.Buffer
			_, err := io.Copy(&b, r)
			return b.String(), err
		},
	} {
		req := new(http.Request)
		if loadTracked(req, []byte("body")); hasLeft(req) || req.ContentLength != 4 {
			t.Errorf("%s: it has left before; %d bytes", name, req.ContentLength)
		}
		again, err := req.GetBody()
		if err != nil || hasLeft(req) {
			t.Errorf("%s: it has left when it was asked for: %v", name, err)
		}
		for _, body := range []io.Reader{again, req.Body} {
			if text, err := read(body); text != "body" || err != nil || !hasLeft(req) {
				t.Errorf("%s: %q, %v, left: %t", name, text, err, hasLeft(req))
			}
		}
	}
	if !hasLeft(nil) || !hasLeft(&http.Request{Body: http.NoBody}) {
		t.Error("a body that is not ours has not left")
	}
}

// writes counts how often a connection is written to.
type writes struct {
	net.Conn
	n *atomic.Int64
}

func (w writes) Write(p []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(p)
}

// Headers and body of a request leave by one write: a second one would be a packet more, and a
// system call.
func TestRequestIsOneWrite(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, chat)
	}))
	defer server.Close()
	c := must.Get(New(local(Config{BaseURL: server.URL})))(t)
	defer c.CloseIdle()
	var n atomic.Int64
	c.http.Transport.(*provider.Transport).Base.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return writes{conn, &n}, err
	}
	const calls = 3
	for range calls {
		must.Get(c.Do(t.Context(), chatRequest))(t)
	}
	if n.Load() != calls {
		t.Errorf("%d writes for %d requests", n.Load(), calls)
	}
}

// A request that waits for a connection of net/http's own transport has not left, and its time
// being up changes nothing of that.
func TestWaitingRequestHasNotLeft(t *testing.T) {
	c, err := New(local(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	c.http.Transport.(*provider.Transport).Base.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
		cancel(context.DeadlineExceeded)
		return nil, context.Canceled
	}
	ctx, rec := provider.WithRecorder(ctx)
	_, err = c.Do(ctx, chatRequest)
	snapshot := rec.Snapshot()
	if got := snapshot.Doubtful(err); got != (provider.Doubtful{}) || snapshot.Sent || !errors.Is(err, provider.Timeout) {
		t.Errorf("%+v, sent %t: %v", got, snapshot.Sent, err)
	}
}
