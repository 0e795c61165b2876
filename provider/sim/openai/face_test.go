package openai_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/openai"
	"github.com/headrace/headrace/provider/sim/simtest"
)

const (
	hello = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	chat  = "/v1/chat/completions"
	old   = "/openai/deployments/d/chat/completions?api-version=2024-10-21"
)

func server(cfg sim.Config) *sim.Server { return simtest.New(cfg, openai.Face{}) }

// Azure's two addresses, their key and their version.
func TestAzureAddresses(t *testing.T) {
	s := server(sim.Config{Keys: []string{"k"}, Models: []string{"m", "d"}})
	for _, c := range []struct {
		path, model string
		header      []string
		status      int
	}{
		{"/openai" + chat, "m", []string{"Api-Key", "k"}, 200},
		{"/openai" + chat, "m", []string{"Authorization", "Bearer k"}, 200},
		{old, "d", []string{"Api-Key", "k"}, 200},
		{"/openai/deployments/d/embeddings?api-version=1", "d", []string{"Api-Key", "k"}, 200},
		{"/openai" + chat, "m", nil, 401},
		{"/openai" + chat, "m", []string{"Api-Key", "x"}, 401},
		{old, "m", nil, 401},
		{chat, "m", []string{"Api-Key", "k"}, 401}, // OpenAI itself knows no such header
		{"/openai/deployments/d/chat/completions", "d", []string{"Api-Key", "k"}, 404},
		{"/openai/deployments//chat/completions?api-version=1", "d", []string{"Api-Key", "k"}, 404},
		{"/openai/deployments/other/chat/completions?api-version=1", "d", []string{"Api-Key", "k"}, 404},
		{"/openai/v1/nothing", "m", []string{"Api-Key", "k"}, 404},
	} {
		a := simtest.Ask(t, s, c.path, `{"input":"hello",`+hello[1:], c.header...)
		if a.Status != c.status || c.status == 200 && a.Body.Get("model").Str != c.model {
			t.Errorf("%s %v: %d %s", c.path, c.header, a.Status, a.Body.Raw)
		}
		if azure := strings.HasPrefix(c.path, "/openai/"); azure != (a.Header.Get("Apim-Request-Id") != "") || azure && c.status != 200 && a.Body.Get("error.type").Exists() {
			t.Errorf("%s: %v %s", c.path, a.Header, a.Body.Raw)
		}
	}
	if a := simtest.Ask(t, server(sim.Config{}), "/openai"+chat, hello); a.Status != 401 {
		t.Errorf("no key: %d", a.Status)
	}
}

// Azure's resets are bare seconds, and its waits come in milliseconds too.
func TestAzureLimits(t *testing.T) {
	s := server(sim.Config{RPM: 40, Burst: time.Second, Headers: true, RetryAfter: sim.Always})
	h := simtest.Ask(t, s, "/openai"+chat, hello, "Api-Key", "k").Header
	if h.Get("X-Ratelimit-Reset-Requests") != "2" || h.Get("X-Ratelimit-Remaining-Requests") != "0" {
		t.Error(h)
	}
	a := simtest.Ask(t, s, "/openai"+chat, hello, "Api-Key", "k")
	if a.Status != 429 || a.Header.Get("Retry-After") != "2" || a.Header.Get("Retry-After-Ms") != "2000" ||
		!strings.HasSuffix(a.Body.Get("error.message").Str, "have exceeded the call rate limit of your current pricing tier. Please retry after 2 seconds.") {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body.Raw)
	}
}

// A moderation needs no model and has no usage; its scores are the text's own.
func TestModerations(t *testing.T) {
	s := server(sim.Config{})
	a := simtest.Ask(t, s, "/v1/moderations", `{"input":["one","two","one"]}`)
	if a.Status != 200 || a.Body.Get("model").Str != "omni-moderation-latest" || a.Body.Get("results.#").Num != 3 || a.Body.Get("usage").Exists() {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	one, two := a.Body.Get("results.0.category_scores").Raw, a.Body.Get("results.1.category_scores").Raw
	if one == two || one != a.Body.Get("results.2.category_scores").Raw || a.Body.Get("results.0.flagged").Bool() || len(a.Body.Get("results.0.categories").Map()) != 13 {
		t.Error(a.Body.Raw)
	}
	if b := simtest.Ask(t, s, "/v1/moderations", `{"model":"text-moderation-stable","input":"one"}`).Body; b.Get("model").Str != "text-moderation-stable" || b.Get("results.0.category_scores").Raw != one {
		t.Error(b.Raw)
	}
	if a := simtest.Ask(t, s, "/v1/moderations", `{}`); a.Status != 400 {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
}

// Whatever comes to Azure's addresses and to moderations, it is answered or refused.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		hello, `{"stream":true,"max_tokens":9,` + hello[1:], ``, `{}`, `[]`, `null`, `{"input":"one"}`, `{"input":["one",{"type":"text","text":"two"}]}`, `{"input":[[],{},null,1e999]}`, `{"model":"m","query":"q","documents":["a",{"text":"b"},[]],"top_n":-1e9}`,
		`{"model":"\ud800","input":"\ud800` + "\xff" + `"}`, `{"model":1,"messages":[{"role":"user","content":[[]]}],"max_tokens":1e308}`,
	} {
		f.Add(body)
	}
	limited, free := server(sim.Config{TPM: 100, RetryAfter: sim.Always, Headers: true}), server(sim.Config{})
	f.Fuzz(func(t *testing.T, body string) {
		for _, s := range []*sim.Server{limited, free} {
			for _, path := range []string{old, "/openai" + chat, "/v1/moderations", "/v1/messages", "/v1/rerank"} {
				a := simtest.Ask(t, s, path, body, "Api-Key", "k")
				if a.Status/100 != 2 && !a.Body.Get("error.message").Exists() || !a.Body.IsObject() && !a.Body.IsArray() || !gjson.Valid(a.Body.Raw) {
					t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
				}
			}
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Documents are ranked, the best first, by scores of their own and the query's. The charge covers
// all texts read, the query too.
func TestRerank(t *testing.T) {
	s := server(sim.Config{})
	const four = `{"model":"m","query":"which river?","documents":["Inn","Enns",{"text":"Mur"},"Drau"]}`
	a := simtest.Ask(t, s, "/v1/rerank", four)
	last, seen := 2.0, map[float64]string{}
	for _, result := range a.Body.Get("results").Array() {
		if score := result.Get("relevance_score").Num; score > last || score < 0 || score > 1 {
			t.Errorf("%s", a.Body.Raw)
		}
		last = result.Get("relevance_score").Num
		seen[result.Get("index").Num] = result.Get("document.text").Str
	}
	if a.Status != 200 || len(seen) != 4 || seen[2] != "Mur" || a.Body.Get("usage.total_tokens").Num != 7 || a.Body.Get("usage.prompt_tokens").Exists() {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	if b := simtest.Ask(t, s, "/v1/rerank", four[:len(four)-1]+`,"top_n":2}`).Body; b.Get("results.#").Num != 2 || b.Get("results.0").Raw != a.Body.Get("results.0").Raw {
		t.Error(b.Raw)
	}
	other := simtest.Ask(t, s, "/v1/rerank", `{"documents":["Inn","Enns","Mur","Drau"],"model":"m","query":"which one?"}`).Body
	if other.Get("results.0.relevance_score").Num == a.Body.Get("results.0.relevance_score").Num || other.Get("usage.total_tokens").Num != 6 {
		t.Error(other.Raw)
	}
	for _, bad := range []string{`{"model":"m","query":"q"}`, `{"model":"m","documents":["a"]}`, `{"query":"q","documents":["a"]}`} {
		if a := simtest.Ask(t, s, "/v1/rerank", bad); a.Status != 400 {
			t.Errorf("%s: %d %s", bad, a.Status, a.Body.Raw)
		}
	}
}
