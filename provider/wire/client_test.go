package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// echo answers with what it was sent: the URL, the header that proves who calls, the body.
type echo struct {
	status  int
	calls   int
	refuses int // calls that are answered by 401 first
}

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	e.calls++
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := `{"choices":[{"finish_reason":"stop","message":{"content":"hi"}}],"url":"` + r.URL.String() +
		`","who":"` + r.Header.Get("X-Who") + `","body":` + string(body) + `}`
	status := e.status
	if e.refuses > 0 {
		e.refuses, status = e.refuses-1, http.StatusUnauthorized
	}
	if status != http.StatusOK {
		answer = `{"error":{"message":"no ` + r.Header.Get("X-Who") + `"}}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}

func do(t *testing.T, cfg Config, r provider.Request) (string, error) {
	t.Helper()
	c := must.Get(New(local(cfg)))(t)
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
	r.Endpoint, r.MaxTokens = provider.Embeddings, 7
	if _, err := do(t, cfg, r); !errors.Is(err, provider.Invalid) || wire.calls != 0 {
		t.Errorf("%v, %d calls", err, wire.calls)
	}
	c := must.Get(New(local(cfg)))(t)
	r.Endpoint = provider.Chat
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

// mute is a dialect without any operation that is known.
type mute struct{ plain }

func (mute) Path(string, string) (string, bool) { return "", false }

// What cannot be called is said when the client is made.
func TestNewNeedsADialect(t *testing.T) {
	for _, d := range []provider.Dialect{nil, mute{}} {
		if c, err := New(Config{Dialect: d, BaseURL: "http://h"}); c != nil || !errors.Is(err, provider.Misconfigured) {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// passes is a Source that gives out one pass after another.
type passes struct {
	given, refused int
	always         bool // there is a fresher one, always
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
	return p.always || r.Header.Get("X-Who") == p.pass() && p.refused == 1
}

func (p *passes) Secrets() []string { return []string{p.pass()} }

// What proves who calls is asked for each request and changes none but its own; a request
// whose pass was refused is sent once more if there is a fresher one; and it is in no answer.
func TestAuthOfEachRequest(t *testing.T) {
	wire, who := &echo{status: http.StatusOK}, &passes{}
	c := must.Get(New(local(Config{Transport: wire, Auth: who})))(t)
	reply, err := c.Do(t.Context(), chatRequest)
	if err != nil || who.given != 1 || strings.Contains(string(reply.Body), "zzz") || len(c.header["X-Who"]) > 0 {
		t.Errorf("%s, %v, %d given", reply.Body, err, who.given)
	}
	calls := wire.calls
	wire.refuses = 1
	if _, err = c.Do(t.Context(), chatRequest); err != nil || wire.calls != calls+2 || who.given != 3 || who.refused != 1 {
		t.Errorf("%v, %d calls, %d given, %d refused", err, wire.calls-calls, who.given, who.refused)
	}
	wire.status, who.refused = http.StatusUnauthorized, 0
	calls = wire.calls
	for sent := range 2 {
		if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, provider.Unauthorized) || strings.Contains(err.Error(), "zzz") || wire.calls != calls+2+sent {
			t.Errorf("%v, %d calls", err, wire.calls-calls)
		}
	}
	who.always, calls = true, wire.calls
	if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, provider.Server) || wire.calls != calls+2 {
		t.Errorf("what is fresh was refused, too, and there is something fresher again: %v, %d calls", err, wire.calls-calls)
	}
	calls = wire.calls
	who.fault = &provider.Error{Kind: provider.Unauthorized, Message: "no more " + who.pass() + "z"}
	if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, provider.Unauthorized) || strings.Contains(err.Error(), "zzz") || wire.calls != calls {
		t.Errorf("%v, %d calls", err, wire.calls-calls)
	}
	who.fault = errors.New("another kind of error, with " + who.pass() + "z")
	if _, err = c.Do(t.Context(), chatRequest); !errors.Is(err, provider.Invalid) || strings.Contains(err.Error(), "zzz") {
		t.Errorf("%v", err)
	}
}

// What a vendor means by its words is asked of every answer.
func TestWordingOfTheVendor(t *testing.T) {
	own := &provider.Wording{Statuses: map[int]provider.Kind{http.StatusPreconditionFailed: provider.QuotaExhausted}}
	for want, w := range map[provider.Kind]*provider.Wording{provider.QuotaExhausted: own, provider.Invalid: nil} {
		if _, err := do(t, Config{Transport: &echo{status: http.StatusPreconditionFailed}, Wording: w}, chatRequest); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// marks is a Source that marks each request with a header of its own.
type marks struct{ given int }

func (m *marks) Apply(_ context.Context, r *http.Request, _ []byte) error {
	m.given++
	r.Header.Set(fmt.Sprint("X-Mark-", m.given), "1")
	return nil
}

func (*marks) Refused(*http.Request) bool { return false }
func (*marks) Secrets() []string          { return nil }

// A request bears nothing of what proved who sent another: neither through the parts that
// are made once for all, nor through the user's own transport.
func TestRequestsShareNoHeader(t *testing.T) {
	for _, dialect := range []plain{{}, {inPath: true}} {
		for _, custom := range []bool{false, true} {
			sent := &keeper{}
			c := must.Get(New(Config{Dialect: dialect, BaseURL: "http://h", Transport: sent, Auth: &marks{}}))(t)
			c.custom = custom
			for range 2 {
				must.Get(c.Do(t.Context(), chatRequest))(t)
			}
			if h := sent.header; h.Get("X-Mark-1") != "" || h.Get("X-Mark-2") != "1" || len(c.header) != 2 {
				t.Errorf("%+v, foreign %v: %v of %v", dialect, custom, h, c.header)
			}
		}
	}
}

// keeper keeps the headers of the latest request.
type keeper struct {
	echo
	header http.Header
}

func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	k.header, k.status = r.Header.Clone(), http.StatusOK
	return k.echo.RoundTrip(r)
}

// Of a base URL only a version is left out of what the dialect's path begins with.
func TestBaseEndsAsThePathBegins(t *testing.T) {
	for base, want := range map[string]string{
		"http://h/v1":   "http://h/v1/messages",
		"http://h/x/v1": "http://h/x/v1/messages",
		"http://h/v2":   "http://h/v2/v1/messages",
		"http://h/chat": "http://h/chat/chat/completions",
	} {
		c := must.Get(New(Config{Dialect: versioned{}, BaseURL: base}))(t)
		operation := provider.Messages
		if base == "http://h/chat" {
			operation = provider.Chat
		}
		if r, err := c.newTemplate(t.Context(), operation, "m"); err != nil || r.URL.String() != want {
			t.Errorf("%s: %v, %v", base, r, err)
		}
	}
}

// versioned has the version in its path, as Anthropic does.
type versioned struct{ plain }

func (versioned) Path(operation, _ string) (string, bool) {
	switch operation {
	case provider.Messages:
		return "/v1/messages", true
	case provider.Chat:
		return "/chat/completions", true
	}
	return "", false
}

// twofold is plain with a second operation.
type twofold struct{ plain }

func (twofold) Path(operation, _ string) (string, bool) {
	return operation, operation == provider.Chat || operation == provider.Embeddings
}

// Whom is called may have some of the dialect's operations only: a request for another is
// refused, and nothing is sent.
func TestServesSomeOperations(t *testing.T) {
	sent := &echo{status: http.StatusOK}
	cfg := Config{Dialect: twofold{}, BaseURL: "http://h", Transport: sent, Serves: []string{provider.Embeddings}}
	_, err := do(t, cfg, chatRequest)
	if !errors.Is(err, provider.Invalid) || sent.calls != 0 || !strings.Contains(fmt.Sprint(err), `"/v1/chat/completions" is not one of /v1/embeddings`) {
		t.Errorf("%d calls: %v", sent.calls, err)
	}
	if _, err := do(t, cfg, provider.Request{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)}); sent.calls != 1 {
		t.Errorf("%d calls: %v", sent.calls, err)
	}
}

// Where the address names the model, a body may bear something else in its place: what was asked
// stays as it was, and a member of that name that the body has already is kept.
func TestBodiesWithoutModel(t *testing.T) {
	const version = `"anthropic_version":"v1"`
	for _, c := range []struct{ member, body, want string }{
		{version, `{"model":"m", "max_tokens" : 9}`, `{"anthropic_version":"v1","max_tokens" : 9}`},
		{version, ` {"a":1,"model":"m","b":"\u00fc"} `, `{"anthropic_version":"v1","a":1,"b":"\u00fc"}`},
		{version, `{"anthropic_version":"v2","model":"m"}`, `{"anthropic_version":"v2"}`},
		{version, `{}`, `{"anthropic_version":"v1"}`},
		{version, `[{"model":"m"},2]`, `[{"model":"m"},2]`}, // it is no object: the server says so
		{`"model":""`, `{"a":{"model":"n"},"model":"m"}`, `{"model":"","a":{"model":"n"}}`},
		{"", `{"model":"m"}`, `{"model":"m"}`},
	} {
		asked := []byte(c.body)
		got, err := do(t, Config{BaseURL: "http://h", InBody: c.member, Transport: &echo{status: http.StatusOK}}, provider.Request{Endpoint: provider.Chat, Model: "m", Body: asked})
		if err != nil || !strings.HasSuffix(got, `"body":`+c.want+`}`) || string(asked) != c.body {
			t.Errorf("%s in %s: %s, want %s: %v", c.member, c.body, got, c.want, err)
		}
	}
	for _, member := range []string{"v1", `"a"`, `"a":`, `"a":1,"b":2`, `"a":1}`, "{}"} {
		_, err := New(Config{Dialect: plain{}, BaseURL: "http://h", InBody: member})
		if !errors.Is(err, provider.Misconfigured) || !strings.Contains(err.Error(), "is not one member of an object") {
			t.Errorf("%s in bodies: %v", member, err)
		}
	}
}

// manifold is plain with every operation.
type manifold struct{ plain }

func (manifold) Path(operation, _ string) (string, bool) { return operation, true }

// A body that asks for words names the tier of service that the client is for, unless it names one
// itself, in whichever spelling. What was asked stays as it was.
func TestBodiesNameTheirTier(t *testing.T) {
	const flex = `"service_tier":"flex"`
	for _, c := range []struct{ endpoint, tier, body, want string }{
		{provider.Chat, flex, `{"model":"m", "n" : 1}`, `{"service_tier":"flex","model":"m", "n" : 1}`},
		{provider.Responses, flex, ` {} `, `{"service_tier":"flex"}`},
		{provider.Chat, flex, `{"model":"m","service_tier":"default"}`, `{"model":"m","service_tier":"default"}`},
		{provider.Chat, flex, `{"serviceTier":null}`, `{"serviceTier":null}`},
		{provider.Chat, flex, `{"a":{"service_tier":"x"}}`, `{"service_tier":"flex","a":{"service_tier":"x"}}`},
		{provider.Embeddings, flex, `{"model":"m"}`, `{"model":"m"}`}, // OpenAI refuses it there
		{provider.Completions, flex, `{"model":"m"}`, `{"model":"m"}`},
		{provider.Chat, flex, `[1]`, `[1]`}, // it is no object: the server says so
		{provider.Chat, "", `{"model":"m"}`, `{"model":"m"}`},
	} {
		asked := []byte(c.body)
		got, err := do(t, Config{Dialect: manifold{}, BaseURL: "http://h", Tier: c.tier, Transport: &echo{status: http.StatusOK}}, provider.Request{Endpoint: c.endpoint, Model: "m", Body: asked})
		if err != nil || !strings.HasSuffix(got, `"body":`+c.want+`}`) || string(asked) != c.body {
			t.Errorf("%s with %s in %s: %s, want %s: %v", c.endpoint, c.tier, c.body, got, c.want, err)
		}
	}
	_, err := New(Config{Dialect: plain{}, BaseURL: "http://h", Tier: "flex"})
	if !errors.Is(err, provider.Misconfigured) || !strings.Contains(err.Error(), "is not one member of an object") {
		t.Errorf("a tier that is no member: %v", err)
	}
}

// A key of a gateway next to the provider's is in no answer, no error and no record of a call,
// wherever the server repeats it.
func TestSecretsOfOtherHeaders(t *testing.T) {
	const own, gateways = "sk-0123456789abcdef-own", "pk-0123456789abcdef-gateway"
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came := r.Header.Get("X-Portkey-Api-Key")
		if came != gateways || r.Header.Get("Authorization") != "Bearer "+own {
			t.Errorf("%v", r.Header)
		}
		w.Header().Set("X-Request-Id", came)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"},"finish_reason":"%s"}],"error":%s}`, came, came,
			map[int]string{200: "null", 400: `{"message":"` + came + `","code":"` + came + `"}`}[status])
	}))
	defer server.Close()
	first := must.Get(auth.Bearer(own))(t)
	second := must.Get(auth.NewKey("x-portkey-api-key", "", gateways))(t)
	c := must.Get(New(local(Config{BaseURL: server.URL, Auth: auth.Join(first, second)})))(t)
	defer c.CloseIdle()
	if c.appliesAuth {
		t.Error("two keys are asked for each request")
	}
	for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
		ctx, rec := provider.WithRecorder(t.Context())
		reply, err := c.Do(ctx, chatRequest)
		record := rec.Snapshot()
		if text := fmt.Sprintf("%s %q %v %q %q %s", reply.Body, reply.RequestID, err, record.RequestID, record.Finish, record.ErrorBody); strings.Contains(text, gateways[:12]) || strings.Contains(fmt.Sprintf("%v %#v", c, c), "0123456789") {
			t.Errorf("%d: there is the key: %s", status, text)
		}
		if record.RequestID != "[redacted]" || (err == nil) != (status == http.StatusOK) {
			t.Errorf("%d: %+v, %v", status, record, err)
		}
	}
}

// The client's own transport trusts an authority that the configuration names, and speaks HTTP/2
// with it as with others.
func TestTLSOfTheConfiguration(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}`, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for trusted, cfg := range map[bool]*tls.Config{true: {RootCAs: pool, MinVersion: tls.VersionTLS12}, false: nil} {
		c := must.Get(New(local(Config{BaseURL: server.URL, TLS: cfg})))(t)
		reply, err := c.Do(t.Context(), chatRequest)
		c.CloseIdle()
		if trusted && (err != nil || !strings.Contains(string(reply.Body), "HTTP/2.0")) || !trusted && !errors.Is(err, provider.Misconfigured) {
			t.Errorf("%v: %s, %v", trusted, reply.Body, err)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is a dialect of one operation, whose answers are read as OpenAI's.
type plain struct{ inPath bool } // the model stands in the path

func (plain) Name() string { return "plain" }
func (plain) Root() string { return "/v1" }

func (p plain) Path(operation, model string) (string, bool) {
	if p.inPath {
		return "/" + model + "/ask", operation == provider.Chat
	}
	return "/chat/completions", operation == provider.Chat
}

func (plain) Body(r provider.Request) ([]byte, error) { return r.Body, nil }

func (plain) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}

func (plain) Text(body []byte) (string, bool) { return string(body), true }

// local is a configuration for a server of one's own, where it says nothing else.
func local(cfg Config) Config {
	if cfg.Dialect == nil {
		cfg.Dialect = plain{}
	}
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "http://127.0.0.1:1")
	return cfg
}
