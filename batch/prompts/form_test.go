package prompts

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/internal/lines"
)

func describe(r Request) string {
	return fmt.Sprintf("%d %q %t %v %s %q %s %s", r.Line, r.ID, r.HasID, r.Form, r.Endpoint, r.Model, r.Body, r.Metadata)
}

// Each form becomes the request that its documentation promises, byte for byte.
func TestFormsBecomeRequests(t *testing.T) {
	withModel := Config{DefaultModel: `gpt-4o-"mini"`}
	tests := []struct {
		name, line string
		cfg        Config
		want       Request
	}{
		{
			"an OpenAI batch body goes out as it came",
			`{"custom_id":"a","method":"POST","url":"/v1/embeddings","body": { "model" : "e" ,"input":"\u00e9", "n":1.50} }`, withModel,
			Request{ID: "a", HasID: true, Form: FormOpenAIBatch, Endpoint: Embeddings, Model: "e", Body: []byte(`{ "model" : "e" ,"input":"\u00e9", "n":1.50}`)},
		},
		{
			"an OpenAI batch body without model gets the default in front",
			`{"body":{"messages": [] , "x":1 }}`, withModel,
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: `gpt-4o-"mini"`, Body: []byte(`{"model":"gpt-4o-\"mini\"","messages": [] , "x":1 }`)},
		},
		{
			"an empty body gets nothing but the model",
			`{"body":{ }}`,
			Config{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m"}`)},
		},
		{
			"a model of null is replaced",
			`{"body":{"a":1, "model":null, "b":2}}`,
			Config{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","a":1, "b":2}`)},
		},
		{
			"metadata inside an OpenAI batch body is the provider's, beside it the user's",
			`{"custom_id":"a","body":{"model":"m","metadata":{"p":1}},"metadata":{"u":2}}`, withModel,
			Request{ID: "a", HasID: true, Form: FormOpenAIBatch, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","metadata":{"p":1}}`), Metadata: json.RawMessage(`{"u":2}`)},
		},
		{
			"a bare body loses its metadata and no other byte",
			`{ "model":"m", "metadata" : {"a": [1, 2]} , "messages":[{"role":"user","content":"\"}"}] ,"seed":7 }`, withModel,
			Request{ID: "line-000001", Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m" , "messages":[{"role":"user","content":"\"}"}] ,"seed":7 }`), Metadata: json.RawMessage(`{"a": [1, 2]}`)},
		},
		{
			"a bare body may bear an id, also as a number",
			`{"id":17,"messages":[],"model":"m"}`, withModel,
			Request{ID: "17", HasID: true, Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"messages":[],"model":"m"}`)},
		},
		{
			"the last field is cut off with its comma",
			`{"messages":[],"model":"m","custom_id":"z"}`, withModel,
			Request{ID: "z", HasID: true, Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"messages":[],"model":"m"}`)},
		},
		{
			"input for a model that embeds is an embedding",
			`{"model":"text-embedding-3-small","input":"x"}`,
			Config{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Embeddings, Model: "text-embedding-3-small", Body: []byte(`{"model":"text-embedding-3-small","input":"x"}`)},
		},
		{
			"input with a setting of embeddings is an embedding",
			`{"model":"m","input":"x","dimensions":64}`,
			Config{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Embeddings, Model: "m", Body: []byte(`{"model":"m","input":"x","dimensions":64}`)},
		},
		{
			"other input is a response",
			`{"model":"gpt-4o-mini","input":"x"}`,
			Config{},
			Request{ID: "line-000001", Form: FormBody, Endpoint: Responses, Model: "gpt-4o-mini", Body: []byte(`{"model":"gpt-4o-mini","input":"x"}`)},
		},
		{
			"a prompt becomes a chat, what else it says goes along unchanged",
			`{"id":"p","prompt":"h\u00e9 \"x\"","temperature":0.20,"tools":[ {"a":1} ],"stream":false}`,
			Config{DefaultModel: "m", System: "be\nkind"},
			Request{ID: "p", HasID: true, Form: FormPrompt, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[{"role":"system","content":"be\nkind"},{"role":"user","content":"h\u00e9 \"x\""}],"temperature":0.20,"tools":[ {"a":1} ],"stream":false}`)},
		},
		{
			"a prompt's own system and model win, its metadata comes back",
			`{"prompt":"q","system":"s","model":"own","metadata":{"k":1}}`,
			Config{DefaultModel: "m", System: "other"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: ChatCompletions, Model: "own", Body: []byte(`{"model":"own","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"}]}`), Metadata: json.RawMessage(`{"k":1}`)},
		},
		{
			"columns of a data set that another form has, too, are data and come back",
			`{"prompt":"q","url":"https://a.example/1","body":"text","input":7,"messages":null,"temperature":0}`,
			Config{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[{"role":"user","content":"q"}],"temperature":0}`), Metadata: json.RawMessage(`{"url":"https://a.example/1","body":"text","input":7}`)},
		},
		{
			"what metadata has already stays",
			`{"prompt":"q","url":"https://a.example/1","input":"i","metadata":{ "k":1, "url":2 }}`,
			Config{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[{"role":"user","content":"q"}]}`), Metadata: json.RawMessage(`{ "k":1, "url":2 ,"input":"i"}`)},
		},
		{
			"a field of another form that is null is not there",
			`{"prompt":null,"messages":[],"body":null,"params":null}`,
			Config{DefaultModel: "m"},
			Request{ID: "line-000001", Form: FormBody, Endpoint: ChatCompletions, Model: "m", Body: []byte(`{"model":"m","messages":[]}`)},
		},
		{
			"a prompt is the input of an embedding",
			`{"prompt":"q"}`,
			Config{DefaultModel: "m", DefaultEndpoint: Embeddings, System: "unused"},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Embeddings, Model: "m", Body: []byte(`{"model":"m","input":"q"}`)},
		},
		{
			"a prompt is the input of a response, its system the instructions",
			`{"prompt":"q","system":"s"}`,
			Config{DefaultModel: "m", DefaultEndpoint: Responses},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Responses, Model: "m", Body: []byte(`{"model":"m","instructions":"s","input":"q"}`)},
		},
		{
			"a prompt is the prompt of a completion",
			`{"prompt":["q"],"max_tokens":5}`,
			Config{DefaultModel: "m", DefaultEndpoint: Completions},
			Request{ID: "line-000001", Form: FormPrompt, Endpoint: Completions, Model: "m", Body: []byte(`{"model":"m","prompt":["q"],"max_tokens":5}`)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := one(t, tt.line, tt.cfg)
			if len(got.Key) != 32 {
				t.Errorf("key %q is not 32 digits long", got.Key)
			}
			got.Key, tt.want.Line = "", 1
			if g, w := describe(got), describe(tt.want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}

// What is not a request is named with file, line, reason and remedy, and has a kind.
func TestBadLinesAreNamed(t *testing.T) {
	tests := []struct {
		line string
		kind error
		want string
	}{
		{`{"prompt":`, ErrNotJSON, "not JSON: unexpected end of JSON input"},
		{`{"prompt":"a"} x`, ErrNotJSON, "not JSON: unexpected 'x' at byte 16"},
		{`[1]`, ErrShape, "an array, not an object"},
		{`"x"`, ErrShape, "a string, not an object"},
		{`17`, ErrShape, "a number, not an object"},
		{`null`, ErrShape, "null, not an object"},
		{`true`, ErrShape, "a truth value, not an object"},
		{`{}`, ErrShape, "unknown shape"},
		{`{"question":"x"}`, ErrShape, "unknown shape"},
		{`{"prompt":"a","messages":[]}`, ErrShape, "both a prompt and messages"},
		{`{"prompt":"a","input":[]}`, ErrShape, "both a prompt and input"},
		{`{"messages":[],"input":[]}`, ErrShape, "both messages and input"},
		{`{"prompt":{"id":"pmpt_1"},"input":"a"}`, ErrShape, "both a prompt and input"},
		{`{"custom_id":"a","prompt":"a","body":{"messages":[]}}`, ErrShape, "both a prompt and body"},
		{`{"prompt":"a","url":"/v1/embeddings"}`, ErrShape, "both a prompt and url"},
		{`{"prompt":"a","params":{"temperature":1}}`, ErrShape, "both a prompt and params"},
		{`{"prompt":"a","request":{"contents":[]}}`, ErrShape, "both a prompt and request"},
		{`{"body":{"messages":[]},"params":{"messages":[]}}`, ErrShape, "both body and params"},
		{`{"url":"/v1/responses","messages":[]}`, ErrShape, "both url and messages"},
		{`{"body":{},"input":"a"}`, ErrShape, "both body and input"},
		{`{"params":{},"messages":[]}`, ErrShape, "both params and messages"},
		{`{"request":{},"modelInput":{}}`, ErrShape, "both request and modelInput"},
		{`{"custom_id":"a","url":"/v1/chat/completions","body":{"messages":[]},"model":"x"}`, ErrShape, "model is next to body"},
		{`{"params":{"messages":[]},"model":"x"}`, ErrShape, "model is next to params"},
		{`{"body":{"messages":[]},"system":"s"}`, ErrShape, "system is next to body"},
		{`{"body":{"messages":[]},"max_tokens":5}`, ErrShape, "max_tokens is next to body"},
		{`{"request":{"contents":[]},"model":"m","temperature":0}`, ErrShape, "temperature is next to request"},
		{`{"prompt":7}`, ErrShape, "prompt is a number, not a string"},
		{`{"prompt":"a","prompt":"b"}`, ErrShape, `field "prompt" appears twice`},
		{`{"body":{"model":"a","mod\u0065l":"b"}}`, ErrShape, `field "model" appears twice`},
		{`{"prompt":"a","system":[]}`, ErrShape, "system is an array, not a string"},
		{`{"prompt":"a","metadata":"x"}`, ErrShape, "metadata is a string, not an object"},
		{`{"prompt":"a","id":true}`, ErrShape, "id is a truth value, not a string"},
		{`{"prompt":"a","custom_id":""}`, ErrShape, "custom_id is empty"},
		{`{"prompt":"a","custom_id":"a","id":"b"}`, ErrShape, "both custom_id and id"},
		{`{"prompt":"a","model":7}`, ErrShape, "model is a number, not a string"},
		{`{"prompt":"a","model":""}`, ErrNoModel, "model is empty"},
		{`{"url":"/v1/chat/completions"}`, ErrShape, "no body object"},
		{`{"body":"x"}`, ErrShape, "no body object"},
		{`{"body":{},"method":"GET"}`, ErrShape, `method is "GET", not POST`},
		{`{"body":{},"url":"http://169.254.169.254/v1/chat/completions"}`, ErrURL, "is not known"},
		{`{"body":{},"url":"//evil.example/v1/chat/completions"}`, ErrURL, "is not known"},
		{`{"body":{},"url":"/v1/../admin"}`, ErrURL, `url "/v1/../admin" is not known`},
		{`{"body":{},"url":"/v1/chat/completions/"}`, ErrURL, "is not known"},
		{`{"body":{},"url":["/v1/chat/completions"]}`, ErrURL, "is not known"},
		{`{"prompt":"a","stream":true}`, ErrStream, `"stream": true`},
		{`{"messages":[],"stream":true}`, ErrStream, `"stream": true`},
		{`{"body":{"stream":true}}`, ErrStream, `"stream": true`},
		{`{"custom_id":"a","params":{"model":"c"}}`, ErrUnsupported, "which this provider does not have"},
		{"{\"prompt\":\"a\x00b\"}", ErrText, "NUL byte at byte 13"},
		{"{\"prompt\":\"é\xff\"}", ErrText, "invalid UTF-8 at byte 14"},
		{`{"prompt":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", ErrNotJSON, "not JSON: nested more than 10000 deep at byte 10010"},
	}
	for _, tt := range tests {
		t.Run(lines.Clip(tt.line), func(t *testing.T) {
			text := "{\"prompt\":\"before\"}\n" + tt.line + "\n{\"prompt\":\"after\"}\n"
			reqs, bad := read(t, text, Config{DefaultModel: "m"})
			if len(reqs) != 2 || len(bad) != 1 {
				t.Fatalf("%d requests, complaints %v", len(reqs), bad)
			}
			said := bad[0].Error()
			if !strings.HasPrefix(said, "prompts.jsonl:2: ") || !strings.Contains(said, tt.want) || bad[0].Advice == "" {
				t.Errorf("said %q, want %q", said, tt.want)
			}
			if !errors.Is(bad[0], tt.kind) {
				t.Errorf("kind is %v, want %v", bad[0].Err, tt.kind)
			}
		})
	}
}

// A line without model is refused only where no default stands in for it.
func TestModelIsNeeded(t *testing.T) {
	for _, line := range []string{`{"prompt":"a"}`, `{"messages":[]}`, `{"input":"a"}`, `{"body":{}}`} {
		_, bad := read(t, line, Config{})
		if len(bad) != 1 || !errors.Is(bad[0], ErrNoModel) {
			t.Errorf("%s: %v", line, bad)
		}
		if req := one(t, line, Config{DefaultModel: "m"}); req.Model != "m" {
			t.Errorf("%s: model %q", line, req.Model)
		}
	}
}

// An endpoint that is not known is refused also where the default brings it.
func TestDefaultEndpointIsChecked(t *testing.T) {
	_, bad := read(t, `{"prompt":"a","model":"m"}`, Config{DefaultEndpoint: "/v2/x"})
	if len(bad) != 1 || !errors.Is(bad[0], ErrURL) {
		t.Errorf("complaints %v", bad)
	}
}
