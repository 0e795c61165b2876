package prompts

import (
	"errors"
	"strings"
	"testing"
)

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
	tmpl, err := ParseTemplate("Which is about {{.topic}}?")
	if err != nil {
		t.Fatal(err)
	}
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
