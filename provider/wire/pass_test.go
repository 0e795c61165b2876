package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/auth"
)

type passing func(*http.Request) (*http.Response, error)

func (f passing) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func passed(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// The client's body leaves byte for byte, with the headers of the configuration: of the dialect's version
// the client's counts, of all others the configuration's.
func TestPass(t *testing.T) {
	var got *http.Request
	var sent string
	base := passing(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		got, sent = r, string(body)
		return passed(200, `{}`), nil
	})
	key, err := auth.NewKey("X-Api-Key", "", "sk-key-of-the-provider-0123456789")
	if err != nil {
		t.Fatal(err)
	}
	header := anthropic.Dialect{}.Header()
	header.Set("X-Org", "ours")
	c, err := New(Config{Dialect: anthropic.Dialect{}, BaseURL: "http://h", Auth: key, Header: header, Transport: base})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Header{"Anthropic-Version": {"2030-01-01"}, "Anthropic-Beta": {"b"}, "X-Org": {"theirs"}, "X-Api-Key": {"theirs"}}
	resp, err := c.Pass(t.Context(), provider.Request{Endpoint: provider.Messages, Model: "m", Body: []byte(`{ "stream" : true }`)}, false, client, "beta=true")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	h := got.Header
	if sent != `{ "stream" : true }` || got.URL.String() != "http://h/v1/messages?beta=true" || h.Get("Anthropic-Version") != "2030-01-01" ||
		h.Get("Anthropic-Beta") != "b" || h.Get("X-Org") != "ours" || h.Get("X-Api-Key") != "sk-key-of-the-provider-0123456789" {
		t.Errorf("%s %q %v", got.URL, sent, h)
	}
	if client.Get("X-Org") != "theirs" {
		t.Error("the client's headers were changed")
	}
	for name, r := range map[string]provider.Request{"no body": {Endpoint: provider.Messages}, "another operation": {Endpoint: provider.Chat, Body: []byte(`{}`)}} {
		if _, err := c.Pass(t.Context(), r, false, nil, ""); !errors.Is(err, provider.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	resp, err = c.List(t.Context(), nil)
	if err != nil || got.Method != http.MethodGet || got.URL.Path != "/v1/models" {
		t.Fatalf("%v %v", err, got.URL)
	}
	_ = resp.Body.Close()
}

// fresher is a key that is replaced once it was refused.
type fresher struct {
	auth.None
	key string
}

func (f *fresher) Apply(_ context.Context, r *http.Request, _ []byte) error {
	r.Header.Set("X-Api-Key", f.key)
	return nil
}
func (f *fresher) Refused(*http.Request) bool { was := f.key; f.key = "new"; return was == "old" }

// A call whose key has expired is sent once more with the fresh one, and no third time.
func TestPassWithAFresherKey(t *testing.T) {
	for want, accepts := range map[int]string{200: "new", 401: "other"} {
		calls := 0
		base := passing(func(r *http.Request) (*http.Response, error) {
			if calls++; r.Header.Get("X-Api-Key") == accepts {
				return passed(200, `{}`), nil
			}
			return passed(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`), nil
		})
		c, err := New(Config{Dialect: anthropic.Dialect{}, BaseURL: "http://h", Auth: &onlyAsked{fresher{key: "old"}}, Transport: base})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Pass(t.Context(), provider.Request{Endpoint: provider.Messages, Body: []byte(`{}`)}, false, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || calls != 2 {
			t.Errorf("%d after %d calls, want %d", resp.StatusCode, calls, want)
		}
	}
}

// late is a key that its source reads when a call asks for it.
type late struct {
	auth.None
	read []string
}

func (l *late) Apply(_ context.Context, r *http.Request, _ []byte) error {
	l.read = []string{"sk-late-0123456789abcdef"}
	r.Header.Set("X-My-Key", l.read[0])
	return nil
}
func (l *late) Secrets() []string { return l.read }

// A record of a call does not repeat a key that was read for that call.
func TestPassHidesTheKeyOfThisCall(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no key `+r.Header.Get("X-My-Key")+`"}}`)
	}))
	defer s.Close()
	c, err := New(Config{Dialect: anthropic.Dialect{}, BaseURL: s.URL, Auth: &late{}, Transport: &provider.Transport{Base: http.DefaultTransport}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, rec := provider.WithRecorder(t.Context())
	resp, err := c.Pass(ctx, provider.Request{Endpoint: provider.Messages, Body: []byte(`{}`)}, false, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if got := string(rec.Snapshot().ErrorBody); !strings.Contains(got, "no key ") || strings.Contains(got, "sk-late") {
		t.Errorf("the record has %q", got)
	}
}

// onlyAsked hides that None is the same for every request.
type onlyAsked struct{ f fresher }

func (o *onlyAsked) Apply(ctx context.Context, r *http.Request, body []byte) error {
	return o.f.Apply(ctx, r, body)
}
func (o *onlyAsked) Refused(r *http.Request) bool { return o.f.Refused(r) }
func (o *onlyAsked) Secrets() []string            { return nil }

// A body has no secret in it, however it comes in pieces and however it is read; everything else
// stays, also the beginning of a secret at the end.
func TestHiding(t *testing.T) {
	const one, two = "secret-number-one", "secret-other"
	stars := strings.NewReplacer(one, strings.Repeat("*", len(one)), two, strings.Repeat("*", len(two)))
	for _, text := range []string{
		"", "nothing", one, one + two + one, "a" + one[:9] + one + two[:11], "secret-secret-number-onesecret-othersecret-number-o", strings.Repeat("x"+two, 9000),
	} {
		for _, size := range []int{1, 2, 5, 1000, 1 << 20} {
			for _, room := range []int{1, 3, 4096} {
				if size == 1 && room == 1 && len(text) > 1000 {
					continue
				}
				h := &hiding{ReadCloser: io.NopCloser(&inPieces{text, size}), secrets: [][]byte{[]byte(one), []byte(two)}}
				var got strings.Builder
				p := make([]byte, room)
				for {
					n, err := h.Read(p)
					if got.Write(p[:n]); err != nil {
						break
					}
				}
				if got.String() != stars.Replace(text) {
					t.Fatalf("%.60q in pieces of %d, read by %d: %.60q", text, size, room, got.String())
				}
			}
		}
	}
}

type inPieces struct {
	rest string
	size int
}

func (p *inPieces) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// packedAs is an answer that came packed though nobody asked for that.
func packedAs(coding string, status int, body string) *http.Response {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	resp := passed(status, b.String())
	resp.Header.Set("Content-Encoding", coding)
	resp.ContentLength = int64(b.Len())
	return resp
}

// An answer that comes packed, unasked, is unpacked: its client may not know how, and no secret may hide in it. One that is
// packed in another way is an error.
func TestPassUnpacks(t *testing.T) {
	const secret = "sk-key-of-the-provider-0123456789"
	var resp *http.Response
	key, err := auth.NewKey("X-Api-Key", "", secret)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Dialect: anthropic.Dialect{}, BaseURL: "http://h", Auth: key, Transport: passing(func(*http.Request) (*http.Response, error) { return resp, nil })})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(of *http.Response) (*http.Response, error) {
		resp = of
		return c.Pass(t.Context(), provider.Request{Endpoint: provider.Messages, Model: "m", Body: []byte(`{}`)}, false, nil, "")
	}
	for _, status := range []int{200, 429} {
		for _, coding := range []string{"gzip", "GZIP", "x-gzip"} {
			got, err := pass(packedAs(coding, status, `{"echo":"`+secret+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil || !strings.HasPrefix(string(body), `{"echo":"`) || strings.Contains(string(body), secret) || got.Header.Get("Content-Encoding") != "" || status == 200 && got.ContentLength != -1 {
				t.Errorf("%d %s: %s %v %v", status, coding, body, got.Header, err)
			}
			_ = got.Body.Close()
		}
	}
	for name, broken := range map[string]*http.Response{"no gzip": passed(200, "{}"), "cut off": packedAs("gzip", 200, strings.Repeat("0123456789", 99))} {
		broken.Header.Set("Content-Encoding", "gzip")
		if name == "cut off" {
			broken.Body = io.NopCloser(io.LimitReader(broken.Body, 20))
		}
		got, err := pass(broken)
		if err == nil {
			_, err = io.ReadAll(got.Body)
			_ = got.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got, err := pass(packedAs("br", 200, "{}")); err == nil {
		_ = got.Body.Close()
		t.Error("an unknown coding passed")
	}
	if got, err := pass(passed(200, "{}")); err != nil {
		t.Error(err)
	} else {
		_ = got.Body.Close()
	}
}
