package cohere_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/cohere"
	"github.com/headrace/headrace/provider/sim/simtest"
)

const (
	rerank = "/v2/rerank"
	embed  = "/v2/embed"
	asked  = `{"model":"m","query":"which river?","documents":["Inn","Enns","Mur"]}`
	texts  = `{"model":"m","texts":["one","two"],"input_type":"search_query","embedding_types":["float"]}`
)

func ask(t *testing.T, s *sim.Server, path, body string, header ...string) simtest.Answer {
	t.Helper()
	return simtest.Ask(t, s, path, body, append([]string{"Authorization", "Bearer k"}, header...)...)
}

func server(cfg sim.Config) *sim.Server { return simtest.New(cfg, cohere.Face{}) }

// Documents come back the best first, and a search is billed; vectors are the texts' own, and
// their tokens are.
func TestAnswers(t *testing.T) {
	s := server(sim.Config{TrackIDs: true})
	ranked := ask(t, s, rerank, asked)
	first, last := ranked.Body.Get("results.0.relevance_score").Num, ranked.Body.Get("results.2.relevance_score").Num
	if ranked.Status != 200 || ranked.Body.Get("results.#").Num != 3 || first <= last || ranked.Body.Get("meta.billed_units.search_units").Num != 1 {
		t.Errorf("%d %s", ranked.Status, ranked.Body.Raw)
	}
	if a := ask(t, s, rerank, asked[:len(asked)-1]+`,"top_n":1}`); a.Body.Get("results.#").Num != 1 || a.Body.Get("results.0").Raw != ranked.Body.Get("results.0").Raw {
		t.Error(a.Body.Raw)
	}
	vectors := ask(t, s, embed, texts)
	if float32(vectors.Body.Get("embeddings.float.1.0").Num) != sim.Embedding("two")[0] || vectors.Body.Get("meta.billed_units.input_tokens").Num != 2 || vectors.Body.Get("texts.1").Str != "two" {
		t.Errorf("%d %s", vectors.Status, vectors.Body.Raw)
	}
	if b := s.Books(); b.Accepted != 3 {
		t.Errorf("%+v", b)
	}
}

// What Cohere would refuse is refused, in a message.
func TestRequestsAreChecked(t *testing.T) {
	s := server(sim.Config{})
	for _, c := range []struct{ path, body, says string }{
		{rerank, `{"model":`, "unable to parse"},
		{rerank, `[]`, "unable to parse"},
		{rerank, `{"query":"q","documents":["a"]}`, "model is required"},
		{rerank, `{"model":"m","documents":["a"]}`, "query must not be empty"},
		{rerank, `{"model":"m","query":"q","documents":[]}`, "list of documents must not be empty"},
		{rerank, `{"model":"m","query":"q","documents":[{"text":"a"}]}`, "should be of type string"},
		{embed, `{"model":"m","texts":["a"]}`, "valid input_type must be provided"},
		{embed, `{"model":"m","texts":["a"],"input_type":"any"}`, "valid input_type must be provided"},
		{embed, `{"model":"m","input_type":"clustering"}`, "at least one of texts"},
		{embed, `{"model":"m","input_type":"clustering","texts":["a"` + strings.Repeat(`,"a"`, 96) + `]}`, "at most 96 - received 97"},
	} {
		if a := ask(t, s, c.path, c.body); a.Status != 400 || !strings.Contains(a.Body.Get("message").Str, c.says) || !a.Body.Get("id").Exists() {
			t.Errorf("%.60s: %d %s", c.body, a.Status, a.Body.Raw)
		}
	}
}

// The faults of a configuration come with Cohere's statuses and words.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		cfg    sim.Config
		status int
		says   string
	}{
		{sim.Config{RPM: 1}, 429, "limited to 1 API calls / minute"},
		{sim.Config{RPM: 1, Terse: true}, 429, "too many requests"},
		{sim.Config{TPM: .5}, 429, "tokens / minute"},
		{sim.Config{QuotaAfter: 1}, 429, "1000 API calls / month"},
		{sim.Config{Keys: []string{"another"}}, 401, "invalid api token"},
		{sim.Config{Models: []string{"another"}}, 404, "model 'm' not found"},
		{sim.Config{Errors: sim.Rates{BadRequest400: 1}}, 400, "invalid request"},
		{sim.Config{Errors: sim.Rates{Overloaded503: 1}}, 503, "unavailable"},
		{sim.Config{Errors: sim.Rates{Server500: 1}}, 500, "internal server error"},
	} {
		s := server(c.cfg)
		a := ask(t, s, rerank, asked)
		if a.Status == 200 { // the limits are met by the second
			a = ask(t, s, rerank, asked)
		}
		if a.Status != c.status || !strings.Contains(a.Body.Get("message").Str, c.says) {
			t.Errorf("%+v: %d %s", c.cfg, a.Status, a.Body.Raw)
		}
	}
	if a := simtest.Ask(t, server(sim.Config{}), embed, texts); a.Status != 401 || a.Body.Get("message").Str != "no api key supplied" {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	s := server(sim.Config{RPM: 1, RetryAfter: sim.Always, RetryAfterMS: true})
	_ = ask(t, s, rerank, asked)
	if a := ask(t, s, rerank, asked); a.Header.Get("Retry-After") == "" || a.Header.Get("Retry-After-Ms") == "" {
		t.Errorf("%d %v", a.Status, a.Header)
	}
}

// What has no address is not found, what has another method is not allowed, and models are listed.
func TestAddresses(t *testing.T) {
	s := server(sim.Config{Models: []string{"a", "b"}, Keys: []string{"k"}})
	for _, path := range []string{"/", "/v2/chat", "/v2/reranks", "/v1/rerank", "/v2/rerank/"} {
		if a := ask(t, s, path, asked); a.Status != 404 || a.Body.Get("message").Str == "" {
			t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
		}
	}
	if a := simtest.Send(t, s, "GET", rerank, "", "Authorization", "Bearer k"); a.Status != 405 || a.Header.Get("Allow") != "POST" {
		t.Errorf("%d %v", a.Status, a.Header)
	}
	if a := simtest.Send(t, s, "GET", "/v1/models", "", "Authorization", "Bearer k"); a.Body.Get("models.1.name").Str != "b" {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	if a := simtest.Send(t, server(sim.Config{}), "GET", "/v1/models", "", "Authorization", "Bearer k"); a.Body.Get("models.0.name").Str != "sim" {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
}

// Whatever comes, it is answered or refused, and nothing panics.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		asked, texts, ``, `{}`, `[]`, `null`, `{"model":1,"query":{},"documents":{"a":1},"top_n":1e300}`, `{"model":"m","query":"q","documents":[null,[],1e999],"top_n":-1}`,
		`{"model":"\ud800","texts":["\ud800` + "\xff" + `"],"input_type":"clustering"}`,
	} {
		f.Add(body)
	}
	limited, free := server(sim.Config{TPM: 100, RetryAfter: sim.Always}), server(sim.Config{})
	f.Fuzz(func(t *testing.T, body string) {
		for _, s := range []*sim.Server{limited, free} {
			for _, path := range []string{rerank, embed} {
				a := ask(t, s, path, body)
				if a.Status/100 != 2 && a.Body.Get("message").Str == "" || !a.Body.IsObject() || !gjson.Valid(a.Body.Raw) {
					t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
				}
			}
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
