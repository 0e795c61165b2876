package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/chat"
	"github.com/headrace/headrace/provider/chat/chattest"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
)

var dialects = []struct {
	name     string
	fromChat chattest.FromChat
}{{"anthropic", anthropic.FromChat}, {"gemini", gemini.FromChat}, {"converse", converse.FromChat}}

const (
	all          = "agc" // the dialects' first letters
	requireEmpty = ""
)

// What each field of OpenAI's chat API comes to in each dialect, alone in a line: the letters
// of those that say it too; the others refuse it by its own name.
var verdicts = []struct{ field, value, taken string }{
	{"model", `"m"`, all},
	{"messages", `[{"role":"user","content":"a"}]`, all},
	{"audio", `{"voice":"alloy","format":"wav"}`, requireEmpty},
	{"frequency_penalty", `0`, all},
	{"frequency_penalty", `-0.0e9`, all},
	{"frequency_penalty", `0.1`, requireEmpty},
	{"frequency_penalty", `1e-999`, requireEmpty},
	{"presence_penalty", `0`, all},
	{"presence_penalty", `-1`, requireEmpty},
	{"presence_penalty", `false`, requireEmpty},
	{"function_call", `"auto"`, requireEmpty},
	{"functions", `[]`, requireEmpty},
	{"logit_bias", `{}`, all},
	{"logit_bias", `{"50256":-100}`, requireEmpty},
	{"logprobs", `false`, all},
	{"logprobs", `true`, requireEmpty},
	{"top_logprobs", `0`, requireEmpty},
	{"top_logprobs", `5`, requireEmpty},
	{"max_completion_tokens", `10`, all},
	{"max_completion_tokens", `0`, requireEmpty},
	{"max_completion_tokens", `1.5`, requireEmpty},
	{"max_completion_tokens", `2147483648`, requireEmpty},
	{"max_tokens", `2147483647`, all},
	{"max_tokens", `"10"`, requireEmpty},
	{"max_tokens", `-1`, requireEmpty},
	{"metadata", `{}`, all},
	{"metadata", `{"a":"b"}`, requireEmpty},
	{"modalities", `[ "text" ]`, all},
	{"modalities", `["text","audio"]`, requireEmpty},
	{"modalities", `[]`, requireEmpty},
	{"moderation", `{}`, requireEmpty},
	{"n", `1`, all},
	{"n", `2`, requireEmpty},
	{"parallel_tool_calls", `true`, all},
	{"parallel_tool_calls", `false`, requireEmpty},
	{"prediction", `{"type":"content","content":"a"}`, requireEmpty},
	{"prompt_cache_key", `"k"`, requireEmpty},
	{"prompt_cache_retention", `"24h"`, requireEmpty},
	{"safety_identifier", `"s"`, requireEmpty},
	{"reasoning_effort", `"low"`, requireEmpty},
	{"reasoning_effort", `"none"`, requireEmpty},
	{"reasoning_effort", `7`, requireEmpty},
	{"reasoning_effort", `""`, requireEmpty},
	{"response_format", `{"type":"text"}`, all},
	{"response_format", `{"type":"json_object"}`, "g"},
	{"response_format", `{"type":"json_object","json_schema":{"name":"n"}}`, requireEmpty},
	{"response_format", `{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object"}}}`, all},
	{"seed", `7`, "g"},
	{"seed", `2147483648`, requireEmpty},
	{"seed", `1.0`, requireEmpty},
	{"service_tier", `"auto"`, all},
	{"service_tier", `"default"`, requireEmpty},
	{"service_tier", `"flex"`, requireEmpty},
	{"stop", `"x"`, all},
	{"stop", `["a","b","c","d","e"]`, all},
	{"stop", `["a","b","c","d","e","f"]`, "ac"},
	{"stop", `"\n "`, "gc"},
	{"stop", `[ ]`, all},
	{"stop", `{}`, requireEmpty},
	{"stop", `""`, requireEmpty},
	{"stop", `["a",null]`, requireEmpty},
	{"store", `false`, all},
	{"store", `true`, requireEmpty},
	{"stream", `false`, all},
	{"stream", `true`, requireEmpty},
	{"stream_options", `{"include_usage":true}`, requireEmpty},
	{"temperature", `0`, all},
	{"temperature", `1`, all},
	{"temperature", `1.01`, "g"},
	{"temperature", `2.1`, requireEmpty},
	{"temperature", `-1`, requireEmpty},
	{"temperature", `"1"`, requireEmpty},
	{"top_p", `1`, all},
	{"top_p", `1.1`, requireEmpty},
	{"tool_choice", `"none"`, all},
	{"tool_choice", `"auto"`, requireEmpty},
	{"tool_choice", `"required"`, requireEmpty},
	{"tools", `[]`, all},
	{"tools", `[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, all},
	{"tools", `[{"type":"function","function":{"name":"f"}}]`, "g"},
	{"tools", `[{"type":"function","function":{"name":"2f","parameters":{"type":"object"}}}]`, "ac"},
	{"tools", `[{"type":"function","function":{"name":"-f","parameters":{"type":"object"}}}]`, "ac"},
	{"tools", `[{"type":"custom","custom":{"name":"f"}}]`, requireEmpty},
	{"user", `"u"`, "a"},
	{"user", `""`, requireEmpty},
	{"user", `7`, requireEmpty},
	{"verbosity", `"medium"`, requireEmpty},
	{"web_search_options", `{}`, requireEmpty},
	{"top_k", `5`, requireEmpty},
	{"extra_body", `{}`, requireEmpty},
	{"Model", `"m"`, requireEmpty},
	{"\\u0000\x7f", `null`, requireEmpty},
	{"", `1`, requireEmpty},
}

func TestEveryFieldOfChat(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range verdicts {
		seen[v.field] = true
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"a"}],"%s":%s}`, v.field, v.value)
		if v.field == "messages" {
			body = fmt.Sprintf(`{"messages":%s}`, v.value)
		}
		for _, d := range dialects {
			sent, err := d.fromChat(provider.Request{Model: "m", Body: []byte(body)}, provider.Defaults{MaxTokens: 7})
			why := new(provider.Untranslatable)
			switch taken := strings.Contains(v.taken, d.name[:1]); {
			case taken && err != nil:
				t.Errorf("%s: %s: %s: %v", d.name, v.field, v.value, err)
			case !taken && err == nil:
				t.Errorf("%s: %s: %s is not refused but sent as %s", d.name, v.field, v.value, sent)
			case !taken && (!errors.As(err, &why) || !errors.Is(err, provider.Invalid) || why.Dialect != d.name || why.Field == "" || known(v.field) && !strings.HasPrefix(why.Field, v.field)):
				t.Errorf("%s: %s: %s: the field is not named by %v", d.name, v.field, v.value, err)
			}
		}
	}
	for _, field := range chat.Fields {
		if !seen[field] {
			t.Errorf("%s has no verdict", field)
		}
	}
}

func known(field string) bool { return field != "" && field[0] != '\\' }

// Every known field says nothing when it is null, but for those without which there is no
// request; and each is refused when it stands twice, once with escapes in its name.
func TestNullAndTwice(t *testing.T) {
	for _, field := range chat.Fields {
		body := fmt.Sprintf(`{"%s":null,"messages":[{"role":"user","content":"a"}]}`, field)
		if _, err := chat.Read("d", []byte(body)); err != nil && field != "messages" {
			t.Errorf("%s: null: %v", field, err)
		}
		escaped := fmt.Sprintf(`\u%04x%s`, field[0], field[1:])
		_, err := chat.Read("d", fmt.Appendf(nil, `{"%s":null,"%s":null}`, field, escaped))
		if why := new(provider.Untranslatable); !errors.As(err, &why) || why.Field != field || why.Why != "stands twice" {
			t.Errorf("%s twice: %v", field, err)
		}
	}
}

// What a body for embeddings says is carried over as it stands, whatever its order, and what says
// nothing is left out.
func TestReadEmbeddings(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"a\u00e9"}`:                                              `["a\u00e9"] 0 ""`,
		` {"input":["a","b"],"dimensions":256,"encoding_format":"float","user":null} `: `["a" "b"] 256 ""`,
		`{"input_type":"search_query","input":["a"],"dimensions":null}`:                `["a"] 0 "\"search_query\""`,
	} {
		e, err := chat.ReadEmbeddings("test", []byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := fmt.Sprintf("%s %d %q", e.Inputs, e.Dimensions, e.InputType); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// What has no exact counterpart is refused by its path.
func TestReadEmbeddingsRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`:                               "input: is missing",
		`{"input":null}`:                              "input: is missing",
		`{"input":[]}`:                                "input: is empty",
		`{"input":""}`:                                "input: is empty",
		`{"input":["a",""]}`:                          "input[1]: is empty",
		`{"input":[1,2]}`:                             "input[0]: is not a string",
		`{"input":["a",[1,2]]}`:                       "input[1]: is not a string",
		`{"input":{"text":"a"}}`:                      "input: is not a string",
		`{"input":"a","encoding_format":"base64"}`:    `encoding_format: is not "float"`,
		`{"input":"a","dimensions":0}`:                "dimensions: is not a whole number from 1 to 2147483647",
		`{"input":"a","dimensions":2.5}`:              "dimensions: is not a whole number from 1 to 2147483647",
		`{"input":"a","user":"u"}`:                    "user: has no counterpart",
		`{"input":"a","input":"b"}`:                   "input: stands twice",
		`{"input":"a","truncate":"END"}`:              "truncate: is not known",
		`{"input":"a","model":7}`:                     "model: is not a string",
		`{"input":"a","input_type":["search_query"]}`: "input_type: is not a string",
		`["a"]`: "body: is not an object",
		`{`:     "body: is not JSON: unexpected end of JSON input at byte 1",
	} {
		_, err := chat.ReadEmbeddings("test", []byte(body))
		var why *provider.Untranslatable
		if !errors.As(err, &why) || why.Dialect != "test" || why.Field+": "+why.Why != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// A bound on the number of texts is met or refused.
func TestEmbeddingsAtMost(t *testing.T) {
	e, err := chat.ReadEmbeddings("test", []byte(`{"input":["a","b"]}`))
	if err != nil || e.AtMost(2) != nil {
		t.Fatal(err, e.AtMost(2))
	}
	if err := e.AtMost(1); err == nil || err.Error() != "provider: translate to test: input: has more than 1 text" {
		t.Error(err)
	}
}
