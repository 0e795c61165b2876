package converse_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var hello = provider.Request{
	Endpoint: provider.Converse, Model: "us.anthropic.claude-haiku-4-5-20251001-v1:0",
	Body: []byte(` {"messages":[{"role":"user","content":[{"text":"Say hello."}]}],"inferenceConfig":{"maxTokens":1e2}}`),
}

// A client of this dialect understands what all answer and keeps every promise.
func TestClient(t *testing.T) {
	providertest.Subject{Dialect: "converse", Request: hello, Text: true}.Run(t, func(baseURL string) providertest.Doer {
		client, err := converse.New(converse.Config{APIKey: providertest.Key, BaseURL: baseURL, Text: true})
		if err != nil {
			t.Fatal(err)
		}
		return client
	})
}

// What is sent, and where, is what Bedrock asks for; the body is the line's, byte for byte.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		cfg                converse.Config
		model, url, bearer string
	}{
		{
			converse.Config{APIKey: " key-1\n", Region: "eu-central-1"},
			hello.Model,
			"https://bedrock-runtime.eu-central-1.amazonaws.com/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse", "Bearer key-1",
		},
		{
			converse.Config{Region: "cn-north-1"},
			"arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
			"https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/converse", "",
		},
		{converse.Config{BaseURL: "http://127.0.0.1:9"}, "..", "http://127.0.0.1:9/model/%2E%2E/converse", ""},
	} {
		wire := &providertest.Wire{Body: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}`}
		c.cfg.Transport, c.cfg.Text = wire, true
		client, err := converse.New(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := hello
		r.Model = c.model
		reply, err := client.Do(t.Context(), r)
		if err != nil || reply.Text != "Hi" || !reply.HasText || reply.Dialect != "converse" {
			t.Errorf("%+v, %v", reply, err)
		}
		if got := wire.Last(); got.URL != c.url || got.Header.Get("Authorization") != c.bearer || got.Body != string(hello.Body) {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
}

// What names no model, or is not Converse's, is refused before it is sent.
func TestRefusedBeforeItIsSent(t *testing.T) {
	wire := &providertest.Wire{}
	client, err := converse.New(converse.Config{Region: "us-east-1", Transport: wire})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []provider.Request{
		{Endpoint: provider.Converse, Body: []byte(`{}`)},
		{Endpoint: provider.Converse, Model: "m"},
		{Endpoint: provider.Embeddings, Model: "m", Body: []byte(`{}`)},
		{Endpoint: "/converse-stream", Model: "m", Body: []byte(`{}`)},
	} {
		if _, err := client.Do(t.Context(), r); !errors.Is(err, provider.Invalid) || !strings.HasPrefix(err.Error(), "converse: ") {
			t.Errorf("%s %s: %v", r.Endpoint, r.Body, err)
		}
	}
	if got := wire.Last(); got.URL != "" {
		t.Errorf("sent %+v", got)
	}
}

// A configuration that no call could be made with, or one that would go elsewhere, is
// refused without its key.
func TestMisconfigured(t *testing.T) {
	for _, cfg := range []converse.Config{
		{},
		{Region: "us-east-1", APIKey: "sk-1\x00secret"},
		{BaseURL: "https://user:secret@h"},
		{Region: "secret.example/"},
		{Region: "us-east-1@secret"},
	} {
		if _, err := converse.New(cfg); !errors.Is(err, provider.Misconfigured) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", cfg, err)
		}
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
