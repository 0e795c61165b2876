package gemini_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = provider.Request{
	Endpoint: provider.GenerateContent, Model: "gemini-2.5-flash",
	Body: []byte(` {"contents":[{"role":"user","parts":[{"text":"Say hello."}]}],"model":"as it is"}`),
}

// client is one of this dialect, with a key where AI Studio looks for it.
func client(t *testing.T, cfg wire.Config, key string) *wire.Client {
	t.Helper()
	who, err := auth.NewKey("X-Goog-Api-Key", "", key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dialect, cfg.Auth = gemini.Dialect{}, who
	c, err := wire.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A client of this dialect understands what all answer and keeps every promise.
func TestClient(t *testing.T) {
	providertest.Subject{Dialect: "gemini", Request: hello, Text: true}.Run(t, func(baseURL string) providertest.Doer {
		return client(t, wire.Config{BaseURL: baseURL, Text: true}, providertest.Key)
	})
}

// What is sent, and where, is what Google asks for; the body is the line's, byte for byte.
func TestRequest(t *testing.T) {
	const studio = "https://generativelanguage.googleapis.com/v1beta"
	for _, c := range []struct{ base, model, url, key string }{
		{studio, "gemini-2.5-flash", studio + "/models/gemini-2.5-flash:generateContent", "key-1"},
		{studio, "models/gemini-2.5-flash", studio + "/models/gemini-2.5-flash:generateContent", ""},
		{studio, "a/../b?c", studio + "/models/a%2F..%2Fb%3Fc:generateContent", ""},
		{"http://127.0.0.1:9/x/", "m", "http://127.0.0.1:9/x/models/m:generateContent", ""},
		{"http://127.0.0.1:9", "m", "http://127.0.0.1:9/v1beta/models/m:generateContent", ""},
	} {
		sent := &providertest.Wire{Body: `{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2},"responseId":"PxYi"}`}
		r := hello
		r.Model = c.model
		reply, err := client(t, wire.Config{BaseURL: c.base, Transport: sent, Text: true}, c.key).Do(t.Context(), r)
		if err != nil || reply.Text != "Hi" || !reply.HasText || reply.Dialect != "gemini" || reply.RequestID != "PxYi" {
			t.Errorf("%+v, %v", reply, err)
		}
		got := sent.Last()
		if got.URL != c.url || got.Header.Get("X-Goog-Api-Key") != c.key {
			t.Errorf("%+v, want %+v", got, c)
		}
		if got.Body != string(hello.Body) {
			t.Errorf("sent %q", got.Body)
		}
	}
}

// What names no model, or is not Gemini's, is refused before it is sent.
func TestRefusedBeforeItIsSent(t *testing.T) {
	sent := &providertest.Wire{}
	c := client(t, wire.Config{BaseURL: "https://h.example", Transport: sent}, "")
	for _, r := range []provider.Request{
		{Endpoint: provider.GenerateContent, Body: []byte(`{}`)},
		{Endpoint: provider.GenerateContent, Model: "m"},
		{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)},
		{Endpoint: ":streamGenerateContent", Model: "m", Body: []byte(`{}`)},
	} {
		if _, err := c.Do(t.Context(), r); !errors.Is(err, provider.Invalid) || !strings.HasPrefix(err.Error(), "gemini: ") {
			t.Errorf("%s %s: %v", r.Endpoint, r.Body, err)
		}
	}
	if got := sent.Last(); got.URL != "" {
		t.Errorf("sent %+v", got)
	}
}

// A limit of 0 is no rate that was exceeded, wherever it stands in the prose, and a quota of
// the day is not waited for; a limit that begins with 0 is another one.
func TestQuotasThatEnd(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 0\nPlease retry in 5s."}}`:           provider.QuotaExhausted,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 0, model: x\nPlease retry in 5s."}}`: provider.QuotaExhausted,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"metric: m, limit: 05\nPlease retry in 5s."}}`:          provider.Throttled,
		`{"error":{"code":"quota_exceeded","message":"no more today"}}`:                                                       provider.QuotaExhausted,
	} {
		if _, e := (gemini.Dialect{}).Answer(http.StatusTooManyRequests, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"candidates":[{"content":{"parts":[{"text":"The three rivers are the Danube, the Inn and the Mur."}],"role":"model"},"finishReason":"STOP","index":0,"avgLogprobs":-0.1}],` +
		`"usageMetadata":{"promptTokenCount":61,"candidatesTokenCount":14,"totalTokenCount":75},"modelVersion":"gemini-2.5-flash","responseId":"PxYi"}`)
	h := http.Header{"X-Goog-Request-Id": {"req_1"}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, e := (gemini.Dialect{}).Answer(http.StatusOK, h, body, nil); e != nil {
			b.Fatal(e)
		}
	}
}

// A 403 about a file is the item's failure. Every other 403 refuses the key.
func TestForbidden(t *testing.T) {
	for message, want := range map[string]provider.Kind{
		"You do not have permission to access the File 12wu3v2jrhw6 or it may not exist.":     provider.Invalid,
		"The caller does not have permission":                                                 provider.Unauthorized,
		"Your API key was reported as leaked. Please use another API key.":                    provider.Unauthorized,
		"CachedContent not found (or permission denied)":                                      provider.Unauthorized,
		"You do not have permission to access tuned model tunedModels/a or it may not exist.": provider.Unauthorized,
	} {
		body := `{"error":{"code":403,"message":"` + message + `","status":"PERMISSION_DENIED"}}`
		if _, e := (gemini.Dialect{}).Answer(http.StatusForbidden, nil, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", message, e, want)
		}
	}
}
