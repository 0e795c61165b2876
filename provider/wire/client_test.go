package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// echo answers with what it was sent: the URL, the header that proves who calls, the body.
type echo struct {
	status int
	calls  int
}

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	e.calls++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := `{"choices":[{"finish_reason":"stop","message":{"content":"hi"}}],"url":"` + r.URL.String() +
		`","who":"` + r.Header.Get("X-Who") + `","body":` + string(body) + `}`
	if e.status != http.StatusOK {
		answer = `{"error":{"message":"no ` + r.Header.Get("X-Who") + `"}}`
	}
	return &http.Response{
		StatusCode: e.status, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}

func do(t *testing.T, cfg Config, r provider.Request) (string, error) {
	t.Helper()
	c, err := New(local(cfg))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Do(t.Context(), r)
	return string(reply.Body), err
}

var chatRequest = provider.Request{Endpoint: provider.Chat, Model: "a/b", Body: []byte(`{"q":1}`)}

// A model stands where the dialect or the vendor wants it, and a base URL without a path gets
// the dialect's.
func TestURLs(t *testing.T) {
	for want, cfg := range map[string]Config{
		"http://h/v1/chat/completions":                       {BaseURL: "http://h"},
		"http://h/own/chat/completions":                      {BaseURL: "http://h/own/"},
		"http://h/v1/d/a%2Fb/chat/completions?api-version=1": {BaseURL: "http://h", Path: "/d/{model}{path}?api-version=1"},
		"http://h/v1/a/b/ask":                                {BaseURL: "http://h", Dialect: plain{inPath: true}},
	} {
		cfg.Transport = &echo{status: http.StatusOK}
		if body, err := do(t, cfg, chatRequest); err != nil || !strings.Contains(body, `"url":"`+want+`"`) {
			t.Errorf("want %s: %s, %v", want, body, err)
		}
	}
}

// polyglot is plain for its own operation, and takes chats.
type polyglot struct{ plain }

func (polyglot) Path(operation, _ string) (string, bool) {
	return "/own", operation == provider.Messages
}

func (polyglot) FromChat(r provider.Request, d provider.Defaults) ([]byte, error) {
	if d.MaxTokens == 0 {
		return nil, &provider.Untranslatable{Dialect: "plain", Field: "max_tokens", Why: "is needed"}
	}
	return append([]byte(`{"put":`), append(r.Body, '}')...), nil
}

// What is not the dialect's is translated, or refused before anything is sent.
func TestTranslated(t *testing.T) {
	wire := &echo{status: http.StatusOK}
	cfg := Config{Dialect: polyglot{}, Transport: wire, Text: true}
	r := chatRequest
	var field *provider.Untranslatable
	if _, err := do(t, cfg, r); !errors.Is(err, provider.Invalid) || !errors.As(err, &field) {
		t.Errorf("%v", err)
	}
	r.Endpoint = provider.Embeddings
	if _, err := do(t, cfg, r); !errors.Is(err, provider.Invalid) || wire.calls != 0 {
		t.Errorf("%v, %d calls", err, wire.calls)
	}
	c, err := New(local(cfg))
	if err != nil {
		t.Fatal(err)
	}
	r.Endpoint, r.MaxTokens = provider.Chat, 7
	reply, err := c.Do(t.Context(), r)
	if err != nil || !strings.Contains(string(reply.Body), `"url":"http://127.0.0.1:1/v1/own"`) ||
		!strings.Contains(string(reply.Body), `"body":{"put":{"q":1}}`) || !reply.Translated || !reply.HasText || reply.Dialect != "plain" {
		t.Errorf("%+v, %v", reply, err)
	}
	r.Endpoint = provider.Messages
	if reply, err = c.Do(t.Context(), r); err != nil || reply.Translated || !strings.Contains(string(reply.Body), `"body":{"q":1}`) {
		t.Errorf("%+v, %v", reply, err)
	}
}

// passes is a Source that gives out one pass after another.
type passes struct {
	given, refused int
	fault          error
}

func (p *passes) pass() string { return "pass-" + strings.Repeat("z", 12+p.given) }

func (p *passes) Apply(_ context.Context, r *http.Request, body []byte) error {
	if string(body) != `{"q":1}` {
		return errors.New("another body")
	}
	p.given++
	r.Header.Set("X-Who", p.pass())
	return p.fault
}

func (p *passes) Refused(r *http.Request) bool {
	p.refused++
	return r.Header.Get("X-Who") == p.pass() && p.refused == 1
}

func (p *passes) Secrets() []string { return []string{p.pass()} }

// What proves who calls is asked for each request and changes none but its own; a pass that
// was refused is worth another try if there is a fresher one; and it is in no answer.
func TestAuthOfEachRequest(t *testing.T) {
	wire, who := &echo{status: http.StatusOK}, &passes{}
	c, err := New(local(Config{Transport: wire, Auth: who}))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Do(t.Context(), chatRequest)
	if err != nil || who.given != 1 || strings.Contains(string(reply.Body), "zzz") || len(c.header["X-Who"]) > 0 {
		t.Errorf("%s, %v, %d given", reply.Body, err, who.given)
	}
	wire.status = http.StatusUnauthorized
	for _, want := range []provider.Kind{provider.Server, provider.Unauthorized} {
		if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, want) || strings.Contains(err.Error(), "zzz") {
			t.Errorf("%v, want %v", err, want)
		}
	}
	calls := wire.calls
	who.fault = &provider.Error{Kind: provider.Unauthorized, Message: "no more " + who.pass() + "z"}
	if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, provider.Unauthorized) || strings.Contains(err.Error(), "zzz") || wire.calls != calls {
		t.Errorf("%v, %d calls", err, wire.calls-calls)
	}
}
