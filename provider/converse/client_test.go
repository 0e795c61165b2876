package converse_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = provider.Request{
	Endpoint: provider.Converse, Model: "us.anthropic.claude-haiku-4-5-20251001-v1:0",
	Body: []byte(` {"messages":[{"role":"user","content":[{"text":"Say hello."}]}],"inferenceConfig":{"maxTokens":1e2}}`),
}

// client is one of this dialect, with one of Bedrock's keys.
func client(t *testing.T, cfg wire.Config, key string) *wire.Client {
	t.Helper()
	who, err := auth.Bearer(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dialect, cfg.Auth = converse.Dialect{}, who
	c, err := wire.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A client of this dialect understands what all answer and keeps every promise.
func TestClient(t *testing.T) {
	providertest.Subject{Dialect: "converse", Request: hello, Text: true}.Run(t, func(baseURL string) providertest.Doer {
		return client(t, wire.Config{BaseURL: baseURL, Text: true}, providertest.Key)
	})
}

// What is sent, and where, is what Bedrock asks for; the body is the line's, byte for byte.
func TestRequest(t *testing.T) {
	const frankfurt = "https://bedrock-runtime.eu-central-1.amazonaws.com"
	for _, c := range []struct{ base, model, url, key string }{
		{frankfurt, hello.Model, frankfurt + "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse", "key-1"},
		{
			frankfurt,
			"arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
			frankfurt + "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/converse", "",
		},
		{"http://127.0.0.1:9", "..", "http://127.0.0.1:9/model/%2E%2E/converse", ""},
	} {
		sent := &providertest.Wire{Body: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`}
		r := hello
		r.Model = c.model
		reply, err := client(t, wire.Config{BaseURL: c.base, Transport: sent, Text: true}, c.key).Do(t.Context(), r)
		if err != nil || reply.Text != "Hi" || !reply.HasText || reply.Dialect != "converse" {
			t.Errorf("%+v, %v", reply, err)
		}
		bearer := ""
		if c.key != "" {
			bearer = "Bearer " + c.key
		}
		if got := sent.Last(); got.URL != c.url || got.Header.Get("Authorization") != bearer || got.Body != string(hello.Body) {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
}

// What names no model, or is not Converse's, is refused before it is sent.
func TestRefusedBeforeItIsSent(t *testing.T) {
	sent := &providertest.Wire{}
	c := client(t, wire.Config{BaseURL: "https://h.example", Transport: sent}, "")
	for _, r := range []provider.Request{
		{Endpoint: provider.Converse, Body: []byte(`{}`)},
		{Endpoint: provider.Converse, Model: "m"},
		{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)},
		{Endpoint: "/converse-stream", Model: "m", Body: []byte(`{}`)},
	} {
		if _, err := c.Do(t.Context(), r); !errors.Is(err, provider.Invalid) || !strings.HasPrefix(err.Error(), "converse: ") {
			t.Errorf("%s %s: %v", r.Endpoint, r.Body, err)
		}
	}
	if got := sent.Last(); got.URL != "" {
		t.Errorf("sent %+v", got)
	}
}

// What a model's own error means depends on the status that it gave to Bedrock, and a
// vendor's own words go before all that.
func TestModelError(t *testing.T) {
	h := http.Header{"X-Amzn-Errortype": {"ModelErrorException"}}
	for body, want := range map[string]provider.Kind{
		`{"message":"m"}`:                              provider.Server,
		`{"message":"m","originalStatusCode":503}`:     provider.Server,
		`{"message":"m","originalStatusCode":400}`:     provider.Invalid,
		`{"message":"m","originalStatusCode":408}`:     provider.Timeout,
		`{"message":"m","originalStatusCode":429}`:     provider.Throttled,
		`{"message":"m","originalStatusCode":"400"}`:   provider.Server,
		`{"message":"m","originalStatusCode":400`:      provider.Server,
		`{"message":"m","originalStatusCode":1e999999`: provider.Server,
	} {
		if _, e := (converse.Dialect{}).Answer(http.StatusFailedDependency, h, []byte(body), nil); e == nil || e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
	own := &provider.Wording{Kinds: map[string]provider.Kind{"servicequotaexceededexception": provider.QuotaExhausted}}
	h.Set("X-Amzn-Errortype", "ServiceQuotaExceededException")
	if _, e := (converse.Dialect{}).Answer(http.StatusBadRequest, h, nil, own); e == nil || e.Kind != provider.QuotaExhausted || e.Unclear {
		t.Errorf("%+v", e)
	}
}

// An agreement that is being made takes a quarter of an hour, unless a header says how long;
// a word that is only the beginning of a quota's says nothing of one.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		status     int
		word, wait string
		want       time.Duration
		unclear    bool
	}{
		{http.StatusForbidden, "MPAgreementBeingCreated", "", 15 * time.Minute, false},
		{http.StatusForbidden, "MPAgreementBeingCreated", "20", 20 * time.Second, false},
		{http.StatusBadRequest, "ServiceQuotaExceededException", "", time.Minute, true},
		{http.StatusBadRequest, "ServiceQuotaExceeded", "20", 20 * time.Second, true},
		{http.StatusTooManyRequests, "Service", "", 0, false},
		{http.StatusTooManyRequests, "", "", 0, false},
	} {
		h := http.Header{"X-Amzn-Errortype": {c.word}}
		if c.wait != "" {
			h.Set("Retry-After", c.wait)
		}
		_, e := converse.Dialect{}.Answer(c.status, h, []byte(`{"message":"m"}`), nil)
		if e == nil || e.RetryAfter != c.want || e.HasRetryAfter != (c.want > 0) || e.Unclear != c.unclear {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"metrics":{"latencyMs":1275},"output":{"message":{"content":[{"text":"The three rivers are the Danube, the Inn and the Mur."}],"role":"assistant"}},` +
		`"stopReason":"end_turn","usage":{"inputTokens":61,"outputTokens":14,"serverToolUsage":{},"totalTokens":75}}`)
	h := http.Header{"X-Amzn-Requestid": {"req_1"}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, e := (converse.Dialect{}).Answer(http.StatusOK, h, body, nil); e != nil {
			b.Fatal(e)
		}
	}
}
