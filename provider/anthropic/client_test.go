package anthropic_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = provider.Request{
	Endpoint: provider.Messages, Model: "claude-haiku-4-5",
	Body: []byte(` {"model":"claude-haiku-4-5","max_tokens":1e2,"messages":[{"role":"user","content":"Say hello."}],"stream":false}`),
}

// client is one of this dialect, with a key where Anthropic looks for it.
func client(t *testing.T, cfg wire.Config, key string) *wire.Client {
	t.Helper()
	who, err := auth.NewKey("X-Api-Key", "", key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dialect, cfg.Auth = anthropic.Dialect{}, who
	c, err := wire.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A client of this dialect understands what all answer and keeps every promise.
func TestClient(t *testing.T) {
	providertest.Subject{Dialect: "anthropic", Request: hello, Text: true}.Run(t, func(baseURL string) providertest.Doer {
		return client(t, wire.Config{BaseURL: baseURL, Text: true}, providertest.Key)
	})
}

// What is sent, and where, is what Anthropic asks for; the body is the line's, byte for byte.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		base, url, key, version string
		header                  http.Header
	}{
		{"https://api.anthropic.com", "https://api.anthropic.com/v1/messages", "key-1", "2023-06-01", nil},
		{"https://h.example/anthropic/", "https://h.example/anthropic/v1/messages", "", "2026-10-21", http.Header{anthropic.VersionHeader: {"2026-10-21"}}},
		{"https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages", "", "2023-06-01", nil},
	} {
		sent := &providertest.Wire{Body: `{"id":"msg_1","type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}`}
		reply, err := client(t, wire.Config{BaseURL: c.base, Header: c.header, Transport: sent, Text: true}, c.key).Do(t.Context(), hello)
		if err != nil || reply.Text != "Hi" || !reply.HasText || reply.Dialect != "anthropic" || reply.Translated {
			t.Errorf("%+v, %v", reply, err)
		}
		got := sent.Last()
		if got.URL != c.url || got.Header.Get("X-Api-Key") != c.key || got.Header.Get("Anthropic-Version") != c.version || got.Header.Get("Authorization") != "" {
			t.Errorf("%+v, want %+v", got, c)
		}
		if got.Body != string(hello.Body) {
			t.Errorf("sent %q", got.Body)
		}
	}
}

// A dialect without a client sends the same version: a lane makes its client of the dialect alone.
func TestHeader(t *testing.T) {
	if got := (anthropic.Dialect{}).Header().Get("Anthropic-Version"); got != "2023-06-01" {
		t.Errorf("got %q", got)
	}
}

// What cannot be one whole answer, or is not Anthropic's, is refused before it is sent.
func TestRefusedBeforeItIsSent(t *testing.T) {
	sent := &providertest.Wire{}
	c := client(t, wire.Config{BaseURL: "https://h.example", Transport: sent}, "")
	for _, r := range []provider.Request{
		{Endpoint: provider.Messages, Body: []byte(`{"stream":true}`)},
		{Endpoint: provider.Messages, Body: []byte(` {"stream":false,"str\u0065am":true}`)},
		{Endpoint: provider.Messages},
		{Endpoint: provider.Embeddings, Body: []byte(`{}`)},
		{Endpoint: "/v1/messages/batches", Body: []byte(`{}`)},
	} {
		if _, err := c.Do(t.Context(), r); !errors.Is(err, provider.Invalid) || !strings.HasPrefix(err.Error(), "anthropic: ") {
			t.Errorf("%s %s: %v", r.Endpoint, r.Body, err)
		}
	}
	if got := sent.Last(); got.URL != "" {
		t.Errorf("sent %+v", got)
	}
}

// What is not quite a message is read with care.
func TestAnswerIsAMessage(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"type":"message","content":[],"stop_reason":null}`:                     provider.EmptyAnswer,
		`{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}`:  provider.Overloaded,
		`{"type":"message","content":[{"type":"text","text":"a"}]`:               provider.TransportFault,
		`{"type":"completion","completion":"","stop_reason":"","content":[]}`:    provider.EmptyAnswer,
		`{"error":{"code":"insufficient_quota","message":"of a gateway's own"}}`: provider.QuotaExhausted,
	} {
		if _, e := (anthropic.Dialect{}).Answer(http.StatusOK, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"model":"claude-haiku-4-5-20251001","id":"msg_01XF","type":"message","role":"assistant","content":[{"type":"text","text":"The three rivers are the Danube, the Inn and the Mur."}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":61,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":14,"service_tier":"standard"}}`)
	h := http.Header{"Request-Id": {"req_1"}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, e := (anthropic.Dialect{}).Answer(http.StatusOK, h, body, nil); e != nil {
			b.Fatal(e)
		}
	}
}

// Only blocks of text are what a message says, and escapes in them are undone.
func TestText(t *testing.T) {
	for body, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"fallback","text":"not this"},{"text":"nor this"},{"type":"text","text":"\u00e9\ud83d"}]}`: "aé\uFFFD",
		`{"content":[{"type":"text","text":7}]}`: "", `{"content":"x"}`: "", `[]`: "", `{"content":{"type":"text","text":"x"}}`: "", "": "",
	} {
		if text, has := (anthropic.Dialect{}).Text([]byte(body)); text != want || has != (want != "") {
			t.Errorf("%s: %q, %v, want %q", body, text, has, want)
		}
	}
}
