package gemini_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/gemini"
	"github.com/headrace/headrace/provider/sim/simtest"
)

const (
	studio = "/v1beta/models/m:generateContent"
	vertex = "/v1/projects/p/locations/l/publishers/google/models/m:generateContent"
	hello  = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
)

func server(cfg sim.Config) *sim.Server { return simtest.New(cfg, gemini.Face{}) }

func with(field string) string { return "{" + field + "," + hello[1:] }

// What Google would refuse is refused, with the field's path and in its words.
func TestRequestsAreChecked(t *testing.T) {
	s := server(sim.Config{})
	for _, c := range []struct{ body, says string }{
		{`{"contents":`, "Invalid JSON payload received."},
		{`[]`, "Invalid value"},
		{`{}`, "contents is not specified"},
		{`{"contents":[]}`, "contents is not specified"},
		{with(`"model":"m"`), `Unknown name "model": Cannot find field.`},
		{with(`"messages":[]`), `Unknown name "messages": Cannot find field.`},
		{with(`"generationConfig":{"max_tokens":1}`), `Unknown name "max_tokens" at 'generation_config': Cannot find field.`},
		{`{"contents":[{"role":"user","parts":[{"text":"a"},{"txt":"b"}]}]}`, `Unknown name "txt" at 'contents[0].parts[1]': Cannot find field.`},
		{with(`"generationConfig":{"maxOutputTokens":"many"}`), `Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), "many"`},
		{with(`"generationConfig":{"temperature":2.5}`), "temperature must be in the range [0, 2]"},
		{with(`"generationConfig":{"stopSequences":["1","2","3","4","5","6"]}`), "must not exceed 5"},
		{with(`"generationConfig":{"candidateCount":2}`), "Multiple candidates"},
		{`{"contents":[{"role":"assistant","parts":[{"text":"a"}]}]}`, "Please use a valid role: user, model."},
		{`{"contents":[{"role":"system","parts":[{"text":"a"}]}]}`, "Please use a valid role: user, model."},
		{`{"contents":[{"role":"user","parts":[]}]}`, "parts must not be empty"},
		{`{"contents":[{"role":"user"}]}`, "parts must not be empty"},
		{`{"contents":[{"role":"user","content":"a"}]}`, `Unknown name "content" at 'contents[0]'`},
	} {
		a := simtest.Ask(t, s, studio, c.body, "X-Goog-Api-Key", "k")
		if a.Status != 400 || a.Body.Get("error.status").Str != "INVALID_ARGUMENT" || a.Body.Get("error.code").Num != 400 || !strings.Contains(a.Body.Get("error.message").Str, c.says) {
			t.Errorf("%s: %d %s, want %s", c.body, a.Status, a.Body.Raw, c.says)
		}
	}
	a := simtest.Ask(t, s, studio, with(`"generationConfig":{"max_tokens":1}`), "X-Goog-Api-Key", "k")
	if v := a.Body.Get("error.details.0.fieldViolations.0"); v.Get("field").Str != "generation_config" || v.Get("description").Str != a.Body.Get("error.message").Str {
		t.Error(a.Body.Raw)
	}
	for _, body := range []string{
		with(`"system_instruction":{"parts":[{"text":"Be brief."}]},"generation_config":{"max_output_tokens":100,"top_p":0.5,"stop_sequences":["x"],"thinking_config":{"thinking_budget":0}}`),
		with(`"systemInstruction":{"parts":[{"text":"Be brief."}]},"generationConfig":{"maxOutputTokens":100,"topK":3,"seed":1,"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}`),
		with(`"safetySettings":[{}],"tools":[{"functionDeclarations":[]}],"toolConfig":{},"cachedContent":null`),
		`{"contents":[{"parts":[{"text":"a"}]}]}`,
	} {
		if a := simtest.Ask(t, s, studio, body, "X-Goog-Api-Key", "k"); a.Status != 200 {
			t.Errorf("%s: %d %s", body, a.Status, a.Body.Raw)
		}
	}
}

// A model's name comes out of the path whatever is escaped in it.
func TestModelInThePath(t *testing.T) {
	s := server(sim.Config{Models: []string{"m", "a/b", "a:b"}})
	for path, status := range map[string]int{
		studio: 200, "/v1beta/models/a%2Fb:generateContent": 200, "/v1alpha/models/a%3Ab:generateContent": 200, "/v1beta/models/a:b:generateContent": 200,
		"/v1beta/models/a/b:generateContent": 404, "/v1beta/models/x:generateContent": 404, "/v2/models/m:generateContent": 404, "/v1beta/models/m": 404,
		"/v1beta1/publishers/google/models/m:generateContent": 200, vertex: 200, strings.Replace(vertex, "google", "meta", 1): 404,
		strings.Replace(vertex, ":generateContent", ":embedContent", 1): 400, strings.Replace(vertex, ":generateContent", ":batchEmbedContents", 1): 404, "/v1beta/models/m%zz:generateContent": 0,
	} {
		if status == 0 {
			continue // no client can send it
		}
		if a := simtest.Ask(t, s, path, hello, "Authorization", "Bearer k"); a.Status != status {
			t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
		}
	}
	if a := simtest.Ask(t, s, "/v1beta/models/x:generateContent", hello, "X-Goog-Api-Key", "k"); !strings.HasPrefix(a.Body.Get("error.message").Str, "models/x is not found for API version v1beta, or is not supported for generateContent.") {
		t.Error(a.Body.Raw)
	}
	if a := simtest.Ask(t, s, strings.Replace(vertex, "/m:", "/x:", 1), hello, "Authorization", "Bearer k"); !strings.Contains(a.Body.Get("error.message").Str, "`projects/p/locations/l/publishers/google/models/x`") {
		t.Error(a.Body.Raw)
	}
}

// The detail of a type, in an error's details.
func detail(a simtest.Answer, kind string) gjson.Result {
	return a.Body.Get(`error.details.#(@type=="type.googleapis.com/google.rpc.` + kind + `")`)
}

// AI Studio says which quota was hit and how long to wait; Vertex says neither, and there
// are no headers.
func TestExhausted(t *testing.T) {
	refused := func(cfg sim.Config, path string) simtest.Answer {
		s := server(cfg)
		simtest.Ask(t, s, path, hello, "Authorization", "Bearer k")
		a := simtest.Ask(t, s, path, hello, "Authorization", "Bearer k")
		if a.Status != 429 || a.Body.Get("error.status").Str != "RESOURCE_EXHAUSTED" || a.Body.Get("error.code").Num != 429 || len(a.Header) != 1 {
			t.Errorf("%d %v %s", a.Status, a.Header, a.Body.Raw)
		}
		return a
	}
	cfg := sim.Config{RPM: 100, Burst: time.Second, Headers: true, RetryAfter: sim.Always}
	a := refused(cfg, studio)
	v := detail(a, "QuotaFailure").Get("violations.0")
	if v.Get("quotaId").Str != "GenerateRequestsPerMinutePerProjectPerModel" || v.Get("quotaValue").Str != "100" || v.Get("quotaDimensions.model").Str != "m" {
		t.Error(a.Body.Raw)
	}
	if detail(a, "RetryInfo").Get("retryDelay").Str != "1s" || !strings.HasSuffix(a.Body.Get("error.message").Str, "\nPlease retry in 1s.") {
		t.Error(a.Body.Raw)
	}
	cfg.RetryAfterMS = true
	if a := refused(cfg, studio); detail(a, "RetryInfo").Get("retryDelay").Str != "0.2s" {
		t.Error(a.Body.Raw)
	}
	if a := refused(sim.Config{RPM: 1}, studio); detail(a, "RetryInfo").Exists() || strings.Contains(a.Body.Raw, "retry in") {
		t.Error(a.Body.Raw)
	}
	if a := refused(sim.Config{TPM: 3}, studio); !strings.Contains(detail(a, "QuotaFailure").Raw, "InputTokensPerModelPerMinute") {
		t.Error(a.Body.Raw)
	}
	if a := refused(sim.Config{RPM: 1, Terse: true}, studio); a.Body.Get("error.details").Exists() {
		t.Error(a.Body.Raw)
	}
	if a := refused(cfg, vertex); a.Body.Get("error.details").Exists() || !strings.HasPrefix(a.Body.Get("error.message").Str, "Resource exhausted.") {
		t.Error(a.Body.Raw)
	}
}

// Keys may come in three ways at AI Studio. The error tells a missing key from a wrong one.
func TestKeys(t *testing.T) {
	s, free := server(sim.Config{Keys: []string{"k"}}), server(sim.Config{})
	for _, c := range []struct {
		server *sim.Server
		path   string
		header []string
		status int
	}{
		{s, studio, []string{"X-Goog-Api-Key", "k"}, 200},
		{s, studio + "?key=k", nil, 200},
		{s, studio, []string{"Authorization", "Bearer k"}, 200},
		{s, studio, []string{"X-Goog-Api-Key", "x"}, 400},
		{s, studio, nil, 403},
		{free, studio, nil, 403},
		{free, studio, []string{"X-Goog-Api-Key", "x"}, 200},
		{s, vertex, []string{"Authorization", "Bearer k"}, 200},
		{s, vertex, []string{"X-Goog-Api-Key", "x"}, 401},
		{free, vertex, nil, 401},
	} {
		if a := simtest.Ask(t, c.server, c.path, hello, c.header...); a.Status != c.status {
			t.Errorf("%s %v: %d %s", c.path, c.header, a.Status, a.Body.Raw)
		}
	}
	if a := simtest.Ask(t, s, studio, hello, "X-Goog-Api-Key", "x"); detail(a, "ErrorInfo").Get("reason").Str != "API_KEY_INVALID" {
		t.Error(a.Body.Raw)
	}
}

// Thoughts stand before the text, marked, and are counted separately from it.
func TestThoughts(t *testing.T) {
	a := simtest.Ask(t, server(sim.Config{}), studio, with(`"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`), "X-Goog-Api-Key", "k")
	u := a.Body.Get("usageMetadata")
	if !a.Body.Get("candidates.0.content.parts.0.thought").Bool() || a.Body.Get("candidates.0.content.parts.1.text").Str != sim.Answer("hello") || u.Get("thoughtsTokenCount").Num == 0 {
		t.Error(a.Body.Raw)
	}
	if u.Get("totalTokenCount").Num != u.Get("promptTokenCount").Num+u.Get("candidatesTokenCount").Num+u.Get("thoughtsTokenCount").Num {
		t.Error(u.Raw)
	}
	if a.Body.Get("modelVersion").Str != "m" || a.Body.Get("responseId").Str == "" || a.Body.Get("candidates.0.content.role").Str != "model" {
		t.Error(a.Body.Raw)
	}
}

// Vectors, one at a time and many.
func TestEmbeddings(t *testing.T) {
	s := server(sim.Config{})
	one := simtest.Ask(t, s, "/v1beta/models/m:embedContent", `{"content":{"parts":[{"text":"a"}]},"taskType":"RETRIEVAL_QUERY"}`, "X-Goog-Api-Key", "k")
	many := simtest.Ask(t, s, "/v1beta/models/m:batchEmbedContents", `{"requests":[{"model":"models/m","content":{"parts":[{"text":"b"}]}},{"model":"models/m","content":{"parts":[{"text":"a"}]}}]}`, "X-Goog-Api-Key", "k")
	if one.Status != 200 || float32(one.Body.Get("embedding.values.0").Num) != sim.Embedding("a")[0] || many.Body.Get("embeddings.1.values").Raw != one.Body.Get("embedding.values").Raw {
		t.Errorf("%s %s", one.Body.Raw, many.Body.Raw)
	}
	if one.Body.Get("usageMetadata.promptTokenCount").Num != 1 || many.Body.Get("usageMetadata.promptTokenCount").Num != 1 {
		t.Errorf("%s %s", one.Body.Raw, many.Body.Raw)
	}
	if a := simtest.Ask(t, s, strings.Replace(vertex, ":generateContent", ":embedContent", 1), `{"content":{"parts":[{"text":"a"}]},"embedContentConfig":{"outputDimensionality":8}}`, "Authorization", "Bearer k"); a.Body.Get("embedding").Raw != one.Body.Get("embedding").Raw {
		t.Errorf("%d %s", a.Status, a.Body.Raw)
	}
	for path, body := range map[string]string{":embedContent": `{}`, ":batchEmbedContents": `{"requests":[]}`} {
		if a := simtest.Ask(t, s, "/v1beta/models/m"+path, body, "X-Goog-Api-Key", "k"); a.Status != 400 {
			t.Errorf("%s: %d %s", path, a.Status, a.Body.Raw)
		}
	}
	long := `{"requests":[{"content":{"parts":[{"text":"b"}]}}` + strings.Repeat(`,{"content":{"parts":[{"text":"b"}]}}`, 100) + `]}`
	if a := simtest.Ask(t, s, "/v1beta/models/m:batchEmbedContents", long, "X-Goog-Api-Key", "k"); a.Status != 400 {
		t.Errorf("101 at once: %d", a.Status)
	}
}

// Whatever comes, it is answered or refused in Google's form, and nothing panics.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		hello, ``, `{}`, `[]`, `null`, `"`, with(`"generationConfig":{"maxOutputTokens":1e300}`), with(`"generation__config":1,"_":2`), `{"contents":{"a":1}}`,
		`{"contents":[[],null,{"parts":{"text":"a"}},{"role":7,"parts":[[],null,{"text":{}}]}]}`, `{"contents":[{"parts":[{"text":"\ud800` + "\xff" + `"}]}]}`,
		`{"requests":[{"content":{"parts":[{"text":"a"}]}},null,[]]}`, `{"content":{"parts":[{"inlineData":{}}]}}`, `{"İ_ı":1}`, strings.Repeat(`{"contents":[`, 2000),
	} {
		f.Add(body)
	}
	limited, free := server(sim.Config{TPM: 100, RetryAfter: sim.Always, RetryAfterMS: true}), server(sim.Config{})
	f.Fuzz(func(t *testing.T, body string) {
		for _, s := range []*sim.Server{limited, free} {
			for _, path := range []string{studio, vertex, "/v1beta/models/m:streamGenerateContent", "/v1beta/models/m:streamGenerateContent?alt=sse", "/v1beta/models/m:embedContent", "/v1beta/models/m:batchEmbedContents"} {
				a := simtest.Ask(t, s, path, body, "Authorization", "Bearer k")
				fine := a.Status == 200 && (a.Body.Get("#.candidates.0.finishReason|#").Num == 1 || a.Body.Get("candidates.#").Num == 1 || a.Body.Get("embedding.values").IsArray() || a.Body.Get("embeddings").IsArray())
				if !fine && !a.Body.Get("error.status").Exists() || !gjson.Valid(a.Body.Raw) {
					t.Errorf("%d %s", a.Status, a.Body.Raw)
				}
			}
		}
	})
}

// Whatever the path, it is read or not found.
func FuzzPath(f *testing.F) {
	for _, path := range []string{studio, vertex, "/v1beta/models", "/", "//", "/v1/:", "/v1/models/:generateContent", "/v1beta/models/a%2Fb%3A:generateContent"} {
		f.Add(path)
	}
	s := server(sim.Config{})
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#% ") || strings.ContainsFunc(path, func(c rune) bool { return c < ' ' || c > '~' }) {
			return
		}
		if a := simtest.Ask(t, s, path, hello, "Authorization", "Bearer k"); a.Status == 200 && !strings.Contains(path, "/models/") && path != "/healthz" {
			t.Errorf("%s: %s", path, a.Body.Raw)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
