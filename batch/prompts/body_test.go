package prompts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// The native lines of Gemini and of Bedrock become requests, byte for byte. The model is
// that of the line, next to the body, or that of all lines.
func TestNativeFormsBecomeRequests(t *testing.T) {
	const contents = `{ "contents":[{"role":"user","parts":[{"text":"h\u00e9"}]}] , "generationConfig":{"temperature":0.50}}`
	const messages = `{ "messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig": {"maxTokens":5} }`
	for _, tt := range []struct {
		name, line string
		want       Request
	}{
		{
			"a Gemini batch line", `{"key":"a","request": ` + contents + ` ,"metadata":{"u":1}}`,
			Request{ID: "a", HasID: true, Form: FormGeminiBatch, Endpoint: GenerateContent, Model: "m", Body: []byte(contents), Metadata: json.RawMessage(`{"u":1}`)},
		},
		{
			"a Gemini batch line without key", `{"request":` + contents + `}`,
			Request{ID: "line-000001", Form: FormGeminiBatch, Endpoint: GenerateContent, Model: "m", Body: []byte(contents)},
		},
		{
			"a Gemini batch line with our id and a model", `{"custom_id":"a","model":"own","request":` + contents + `}`,
			Request{ID: "a", HasID: true, Form: FormGeminiBatch, Endpoint: GenerateContent, Model: "own", Body: []byte(contents)},
		},
		{
			"a Bedrock batch line", `{"recordId":"r","modelInput":` + messages + `}`,
			Request{ID: "r", HasID: true, Form: FormBedrockBatch, Endpoint: Converse, Model: "m", Body: []byte(messages)},
		},
		{
			"what a model gets beside Converse's fields is its own", `{"modelInput":{"additionalModelRequestFields":{"max_tokens":1},"messages":[]}}`,
			Request{ID: "line-000001", Form: FormBedrockBatch, Endpoint: Converse, Model: "m", Body: []byte(`{"additionalModelRequestFields":{"max_tokens":1},"messages":[]}`)},
		},
		{
			"fields of native lines mean nothing in others", `{"prompt":"q","key":"k","request":1,"recordId":2,"modelInput":3}`,
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"key":"k","request":1,"recordId":2,"modelInput":3}`)},
		},
	} {
		got := one(t, tt.line, Config{DefaultModel: "m", Serves: Operations()})
		got.Key, tt.want.Line = "", 1
		if g, w := describe(got), describe(tt.want); g != w {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, g, w)
		}
	}
}

// What no native line may be is named, a body of InvokeModel among it.
func TestBadNativeLinesAreNamed(t *testing.T) {
	for _, tt := range []struct {
		line, want string
		kind       error
	}{
		{`{"key":"a","request":"x"}`, "request is a string, not an object", ErrShape},
		{`{"key":"a","request":{}}`, "request has no contents", ErrShape},
		{`{"key":"a","request":{"content":{"parts":[]}}}`, "request has no contents", ErrShape},
		{`{"key":"a","request":{"contents":[],"contents":[]}}`, `field "contents" appears twice`, ErrShape},
		{`{"key":"a","request":{"contents":[],"mod\u0065l":"models/x"}}`, `request has "model", but the model belongs in the URL: remove it, and put the model next to request or for all lines`, ErrShape},
		{`{"key":"a","custom_id":"b","request":{"contents":[]}}`, "both custom_id and key", ErrShape},
		{`{"key":true,"request":{"contents":[]}}`, "key is a truth value", ErrShape},
		{`{"key":"","request":{"contents":[]}}`, "key is empty", ErrShape},
		{`{"request":{"contents":[]},"modelInput":{"messages":[]}}`, "both request and modelInput", ErrShape},
		{`{"recordId":"a","modelInput":[]}`, "modelInput is an array, not an object", ErrShape},
		{`{"recordId":"a","modelInput":{"system":[]}}`, "modelInput has no messages", ErrShape},
		{`{"recordId":"a","modelInput":{"messages":[],"modelId":"x"}}`, `modelInput has "modelId", but the model belongs in the URL`, ErrShape},
		{`{"recordId":"a","id":"b","modelInput":{"messages":[]}}`, "both id and recordId", ErrShape},
		{`{"modelInput":{"anthropic_version":"bedrock-2023-05-31","messages":[]}}`, `modelInput has "anthropic_version", so it is a body of InvokeModel: write it as Converse takes it`, ErrUnsupported},
		{`{"modelInput":{"inputText":"x"}}`, `modelInput has "inputText", so it is a body of InvokeModel`, ErrUnsupported},
		{`{"modelInput":{"prompt":"x"}}`, `modelInput has "prompt", so it is a body of InvokeModel`, ErrUnsupported},
		{`{"modelInput":{"messages":[],"max_tokens":5}}`, `modelInput has "max_tokens", so it is a body of InvokeModel`, ErrUnsupported},
		{`{"input":"x","background":true}`, `"background": true`, ErrStream},
	} {
		_, bad := read(t, tt.line, Config{DefaultModel: "m", Serves: Operations()})
		if len(bad) != 1 || !errors.Is(bad[0], tt.kind) || !strings.Contains(bad[0].Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.line, bad, tt.want)
		}
	}
	for _, line := range []string{`{"request":{"contents":[]}}`, `{"modelInput":{"messages":[]}}`} {
		if _, bad := read(t, line, Config{DefaultModel: "m"}); len(bad) != 1 || !errors.Is(bad[0], ErrUnsupported) {
			t.Errorf("%s where it is not served: %v", line, bad)
		}
		if _, bad := read(t, line, Config{Serves: Operations()}); len(bad) != 1 || !errors.Is(bad[0], ErrNoModel) {
			t.Errorf("%s without a model: %v", line, bad)
		}
	}
}

// The model is part of what was asked, though the body does not name it: another model's
// answer does not stand in for it. A model named on the line or for all lines is one.
func TestKeysOfNativeLinesHaveTheModel(t *testing.T) {
	for form, line := range map[Form]string{
		FormGeminiBatch:  `{"key":"a",%s"request":{"contents":[]}}`,
		FormBedrockBatch: `{"recordId":"a",%s"modelInput":{"messages":[]}}`,
	} {
		key := func(field, model string) string {
			return one(t, fmt.Sprintf(line, field), Config{DefaultModel: model, Serves: Operations()}).Key
		}
		same := key("", "one")
		if same == key("", "other") || same != key(`"model":"one",`, "other") {
			t.Errorf("%s: keys do not tell the models", form)
		}
	}
	want := one(t, `{"key":"a","request":{"contents":[]}}`, Config{DefaultModel: "g", Serves: Operations()}).Key
	if got := Key(`"g":generateContent`, []byte(`{"contents":[]}`), "a"); got != want {
		t.Errorf("Key gives %s, the reader %s", got, want)
	}
}

// A moderation is named by its url, by the default, or by a model that is called so.
func TestModerations(t *testing.T) {
	for line, cfg := range map[string]Config{
		`{"body":{"input":"x"},"url":"/v1/moderations"}`: {DefaultModel: "m"},
		`{"model":"omni-Moderation-latest","input":"x"}`: {},
		`{"input":["x"]}`:                {DefaultModel: "m", DefaultEndpoint: Moderations},
		`{"prompt":"x"}`:                 {DefaultModel: "m", DefaultEndpoint: Moderations, System: "unused"},
		`{"input":"x","custom_id":"id"}`: {DefaultModel: "text-moderation-7"},
	} {
		if req := one(t, line, cfg); req.Endpoint != Moderations || !strings.Contains(string(req.Body), `"input":`) {
			t.Errorf("%s: %s %s", line, req.Endpoint, req.Body)
		}
	}
	if req := one(t, `{"model":"omni-moderation-latest","input":"x"}`, Config{DefaultEndpoint: Responses}); req.Endpoint != Responses {
		t.Errorf("the default is not asked first: %s", req.Endpoint)
	}
	_, bad := read(t, `{"prompt":"x","system":"s"}`, Config{DefaultModel: "m", DefaultEndpoint: Moderations})
	if len(bad) != 1 || !errors.Is(bad[0], ErrShape) {
		t.Errorf("a system message: %v", bad)
	}
}

// strict takes what has no seed.
func strict(asked *[]string) func(*Request) error {
	return func(q *Request) error {
		*asked = append(*asked, q.ID)
		switch {
		case strings.Contains(string(q.Body), `"seed"`):
			return fmt.Errorf("wrapped: %w", &provider.Untranslatable{Dialect: "anthropic", Field: "seed", Why: "it has no seed", Lane: "claude"})
		case q.Endpoint != ChatCompletions:
			return fmt.Errorf("anthropic: %s is not served", q.Endpoint)
		}
		return nil
	}
}

// Each request is offered once, when its key and id are known. What cannot be translated is
// named with its field and lane, and has the key by which a provider that takes it finds it.
func TestTakesIsAskedOfEachRequest(t *testing.T) {
	text := strings.Join([]string{
		`{"id":"a","prompt":"x"}`, `{"id":"b","prompt":"x","seed":1,"metadata":{"k":1}}`, `[]`,
		`{"id":"c","input":"x"}`, `{"id":"b","prompt":"again"}`, `{"prompt":"x","seed":1}`, `{"prompt":"x","seed":1}`,
	}, "\n")
	var asked []string
	reqs, bad := read(t, text, Config{DefaultModel: "m", Takes: strict(&asked)})
	if want := []string{"a", "b", "c", "line-000006", "line-000007"}; !slices.Equal(asked, want) || len(reqs) != 1 || len(bad) != 6 {
		t.Fatalf("asked %q, %d requests, complaints %v", asked, len(reqs), bad)
	}
	taken, _ := read(t, text, Config{DefaultModel: "m"})
	no := bad[0]
	const want = "prompts.jsonl:2: seed cannot be translated for lane claude (anthropic): it has no seed: remove it, or choose a provider that takes the line as it is"
	if no.Error() != want || !errors.Is(no, ErrUntranslatable) || no.Field != "seed" || no.Lane != "claude" {
		t.Errorf("%+v", no)
	}
	if q := no.Request; q == nil || q.ID != "b" || q.Body != nil || string(q.Metadata) != `{"k":1}` || no.Key() != taken[1].Key || q.Model != "m" {
		t.Errorf("%+v, key %s, want that of %+v", no.Request, no.Key(), taken[1])
	}
	if other := bad[2]; !errors.Is(other, ErrUnsupported) || other.Request != nil || len(other.Key()) != 32 ||
		!strings.Contains(other.Error(), ":4: anthropic: /v1/responses is not served: choose a provider that has it") {
		t.Errorf("%+v", other)
	}
	if twice := bad[3]; !errors.Is(twice, ErrDuplicateID) || !strings.Contains(twice.Reason, "already used on line 2") {
		t.Errorf("an id that a line has which is not taken: %v", twice)
	}
	if one, other := bad[4].Key(), bad[5].Key(); one == other || one != taken[3].Key || other != taken[4].Key {
		t.Errorf("keys of lines that ask the same: %s, %s", one, other)
	}
}

// A field that is not there is asked for, and a line for an endpoint that the provider does
// not have says for which.
func TestComplaintsLeadOn(t *testing.T) {
	takes := func(*Request) error {
		return &provider.Untranslatable{Dialect: "anthropic", Field: "max_completion_tokens", Why: "is missing, and a bound is demanded"}
	}
	_, bad := read(t, `{"prompt":"x"}`, Config{DefaultModel: "m", Takes: takes})
	const want = "prompts.jsonl:1: max_completion_tokens is missing, and a bound is demanded: the line cannot be translated for anthropic: add it, or choose a provider that takes the line as it is"
	if len(bad) != 1 || bad[0].Error() != want || bad[0].Field != "max_completion_tokens" || bad[0].Endpoint != "" {
		t.Errorf("%v", bad)
	}
	_, bad = read(t, `{"key":"x","request":{"contents":[]}}`, Config{DefaultModel: "m", Serves: []string{ChatCompletions}})
	if len(bad) != 1 || !errors.Is(bad[0], ErrUnsupported) || bad[0].Endpoint != GenerateContent {
		t.Errorf("%v", bad)
	}
}

// Complaints are bounded whatever stands in a file, and a dialect that names no lane and no
// field is enough.
func TestUntranslatableIsBounded(t *testing.T) {
	long := "\n\x00" + strings.Repeat("x", 1<<20)
	takes := func(q *Request) error {
		if q.ID == "a" {
			return &provider.Untranslatable{Dialect: "gemini", Field: long, Why: long}
		}
		if q.ID == "b" {
			return &provider.Untranslatable{Dialect: "gemini", Why: "no"}
		}
		return errors.New(long)
	}
	_, bad := read(t, "{\"id\":\"a\",\"prompt\":\"x\"}\n{\"id\":\"b\",\"prompt\":\"x\"}\n{\"prompt\":\"x\"}", Config{DefaultModel: "m", Takes: takes})
	for _, c := range bad {
		if strings.ContainsAny(c.Error(), "\n\x00") || len(c.Error()) > 600 || len(c.Field) > 100 {
			t.Errorf("%d bytes: %.100s", len(c.Error()), c.Error())
		}
	}
	if len(bad) != 3 || !strings.Contains(bad[1].Error(), ":2: the body cannot be translated for gemini: no: ") || bad[1].Lane != "gemini" {
		t.Errorf("%v", bad)
	}
}

// The one who is asked costs no allocation for each request.
func TestTakesAllocatesNothing(t *testing.T) {
	text := strings.Repeat(`{"prompt":"x"}`+"\n", 1000)
	count := func(takes func(*Request) error) float64 {
		return testing.AllocsPerRun(5, func() {
			_, _, _ = through(NewReader(strings.NewReader(text), Config{DefaultModel: "m", Takes: takes}))
		})
	}
	if with, without := count(func(*Request) error { return nil }), count(nil); with > without+10 {
		t.Errorf("%v allocations for 1000 lines, %v without", with, without)
	}
}

// A rerank is named by its url or the default, or told by a query with documents where
// nothing else is asked.
func TestRerank(t *testing.T) {
	for line, cfg := range map[string]Config{
		`{"url":"/v1/rerank","body":{"query":"q","documents":["a","b"]}}`: {DefaultModel: "m"},
		`{"model":"m","query":"q","documents":["a","b"],"id":"i"}`:        {},
		`{"query":"q","documents":["a","b"],"prompt":null}`:               {DefaultModel: "m", DefaultEndpoint: Embeddings},
		`{"query":"q","documents":["a","b"],"messages":null}`:             {DefaultModel: "m"},
		`{"query":"q","documents":["a","b"],"input":null}`:                {DefaultModel: "m", DefaultEndpoint: Embeddings},
		`{"prompt":"q","documents":["a","b"]}`:                            {DefaultModel: "m", DefaultEndpoint: Rerank, System: "unused"},
	} {
		req := one(t, line, cfg)
		if got := string(req.Body); req.Endpoint != Rerank || req.Model != "m" ||
			!strings.Contains(got, `"query":"q"`) || !strings.Contains(got, `"documents":["a","b"]`) || strings.Contains(got, "prompt") {
			t.Errorf("%s: %s to %s", line, got, req.Endpoint)
		}
	}
}

// Next to a question, query and documents are what they always were: parameters.
func TestQueryAndDocumentsBesideAQuestion(t *testing.T) {
	for line, want := range map[string]string{
		`{"model":"m","messages":[],"query":"q","documents":["a"]}`: ChatCompletions,
		`{"model":"m","input":"x","query":"q","documents":["a"]}`:   Responses,
		`{"model":"m","prompt":"x","query":"q","documents":["a"]}`:  ChatCompletions,
	} {
		if req := one(t, line, Config{}); req.Endpoint != want || !strings.Contains(string(req.Body), `"query":"q","documents":["a"]`) {
			t.Errorf("%s: %s to %s", line, req.Body, req.Endpoint)
		}
	}
}

// Only a rerank is held to one query: other lines may say such a name twice, and are sent as they are.
func TestQueryTwice(t *testing.T) {
	for line, body := range map[string]string{
		`{"model":"m","messages":[],"query":1,"query":2}`:                                  `{"model":"m","messages":[],"query":1,"query":2}`,
		`{"url":"/v1/chat/completions","body":{"model":"m","documents":1,"documents":[]}}`: `{"model":"m","documents":1,"documents":[]}`,
		`{"custom_id":"a","params":{"model":"m","query":1,"query":2}}`:                     `{"model":"m","query":1,"query":2}`,
		`{"model":"m","prompt":"x","query":1,"query":2}`:                                   `{"model":"m","messages":[{"role":"user","content":"x"}],"query":1,"query":2}`,
	} {
		if req := one(t, line, Config{Serves: []string{ChatCompletions, Messages}}); string(req.Body) != body {
			t.Errorf("%s: %s", line, req.Body)
		}
	}
	for _, line := range []string{
		`{"query":"q","documents":["a"],"documents":["b"]}`,
		`{"url":"/v1/rerank","body":{"query":"q","query":"r","documents":["a"]}}`,
		`{"prompt":"q","documents":["a"],"documents":["b"]}`,
	} {
		_, bad := read(t, line, Config{DefaultModel: "m", DefaultEndpoint: Rerank})
		if len(bad) != 1 || !strings.Contains(bad[0].Reason, "appears twice") {
			t.Errorf("%s: %v", line, bad)
		}
	}
}

// A template makes the query; the documents are the line's, or those of all lines.
func TestRerankByTemplate(t *testing.T) {
	tmpl := must.Get(ParseTemplate("Which is about {{.topic}}?"))(t)
	cfg := Config{DefaultModel: "m", DefaultEndpoint: Rerank, Template: tmpl}
	if req := one(t, `{"topic":"rivers","documents":["a",{"text":"b"}],"other":1}`, cfg); string(req.Body) != `{"model":"m","query":"Which is about rivers?","documents":["a",{"text":"b"}]}` {
		t.Errorf("%s", req.Body)
	}
	cfg.Params = []Param{{Name: "documents", Value: []byte(`["c"]`)}}
	if req := one(t, `{"topic":"rivers"}`, cfg); string(req.Body) != `{"model":"m","query":"Which is about rivers?","documents":["c"]}` {
		t.Errorf("%s", req.Body)
	}
	cfg.DefaultEndpoint, cfg.Params = ChatCompletions, nil
	if req := one(t, `{"topic":"rivers","documents":["a"]}`, cfg); strings.Contains(string(req.Body), "documents") {
		t.Errorf("%s", req.Body)
	}
}

// Documents of all lines stand in for none, and must be a list as those of a line must.
func TestDocumentsOfAllLines(t *testing.T) {
	of := func(documents string) Config {
		return Config{DefaultModel: "m", DefaultEndpoint: Rerank, Params: []Param{{Name: "documents", Value: []byte(documents)}}}
	}
	if req := one(t, `{"prompt":"q"}`, of(`["c"]`)); string(req.Body) != `{"model":"m","query":"q","documents":["c"]}` {
		t.Errorf("%s", req.Body)
	}
	for line, cfg := range map[string]Config{
		`{"prompt":"q"}`:                    of(`"c"`),
		`{"prompt":"q","documents":null}`:   of(`["c"]`),
		`{"prompt":"q","documents":"text"}`: of(`["c"]`),
	} {
		if _, bad := read(t, line, cfg); len(bad) != 1 || !strings.Contains(bad[0].Reason, "needs documents") {
			t.Errorf("%s: %v", line, bad)
		}
	}
}

// What cannot be ranked is named.
func TestBadRerank(t *testing.T) {
	cfg := Config{DefaultModel: "m", DefaultEndpoint: Rerank}
	for line, want := range map[string]string{
		`{"prompt":"q"}`:                                 "/v1/rerank needs documents, and there is no list of them",
		`{"prompt":"q","documents":"a"}`:                 "/v1/rerank needs documents, and there is no list of them",
		`{"prompt":["q"],"documents":["a"]}`:             "prompt is an array, not a string",
		`{"prompt":"q","query":"q","documents":["a"]}`:   "both a prompt and a query",
		`{"prompt":"q","system":"s","documents":["a"]}`:  "/v1/rerank takes no system message",
		`{"query":"q"}`:                                  "unknown shape",
		`{"query":["q"],"documents":["a"]}`:              "unknown shape",
		`{"query":"q","documents":{"a":1}}`:              "unknown shape",
		`{"query":"q","query":"r","documents":["a"]}`:    `field "query" appears twice`,
		`{"url":"/v1/reranks","body":{"documents":[1]}}`: `url "/v1/reranks" is not known`,
	} {
		_, bad := read(t, line, cfg)
		if len(bad) != 1 || !strings.Contains(bad[0].Reason, want) || !errors.Is(bad[0], ErrShape) && !errors.Is(bad[0], ErrURL) {
			t.Errorf("%s: %v, want %s", line, bad, want)
		}
	}
}
