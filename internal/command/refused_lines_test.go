package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/internal/command/exit"
)

// refusedFields are fields of a chat without an exact counterpart in any other dialect, each
// alone in a body that could be said otherwise, by the path that a complaint has.
var refusedFields = map[string]string{
	"audio":                                `{"voice":"alloy","format":"mp3"}`,
	"frequency_penalty":                    `0.5`,
	"function_call":                        `"auto"`,
	"functions":                            `[{"name":"f"}]`,
	"logit_bias":                           `{"50256":-100}`,
	"logprobs":                             `true`,
	"metadata":                             `{"a":"b"}`,
	"modalities[1]":                        `["text","audio"]`,
	"n":                                    `2`,
	"prediction":                           `{"type":"content","content":"a"}`,
	"presence_penalty":                     `-0.5`,
	"prompt_cache_key":                     `"k"`,
	"prompt_cache_retention":               `"24h"`,
	"reasoning_effort":                     `"low"`,
	"response_format.type":                 `{"type":"grammar"}`,
	"safety_identifier":                    `"s"`,
	"service_tier":                         `"flex"`,
	"store":                                `true`,
	"stream_options":                       `{"include_usage":true}`,
	"top_logprobs":                         `3`,
	"verbosity":                            `"low"`,
	"web_search_options":                   `{}`,
	"a_field_of_tomorrow":                  `1`,
	"max_completion_tokens":                `0`,
	"temperature":                          `2.5`,
	"top_p":                                `1.5`,
	"tools[0].custom":                      `[{"type":"custom","custom":{"name":"f"}}]`,
	"tool_choice":                          `"required"`,
	"messages[0].role":                     `[{"role":"assistant","content":"a"},{"role":"user","content":"b"}]`,
	"messages[1].role":                     `[{"role":"user","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`,
	"messages[2].role":                     `[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]`,
	"messages[0].content":                  `[{"role":"user","content":""}]`,
	"messages[0].name":                     `[{"role":"user","content":"a","name":"n"}]`,
	"messages[1].tool_call_id":             `[{"role":"user","content":"a"},{"role":"tool","content":"a","tool_call_id":"t"}]`,
	"messages[0].content[0].image_url.url": `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://example.com/a.png"}}]}]`,
	"messages[0].content[0].image_url.detail": `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"high"}}]}]`,
	"messages[0].content[0].input_audio":      `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]`,
	"messages[0].content[0].file.file_id":     `[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]`,
}

// refusedByOne are those that one dialect has no counterpart for, and the others may.
var refusedByOne = map[string]map[string]string{
	"anthropic": {"seed": `7`, "temperature": `1.5`, "response_format.type": `{"type":"json_object"}`},
	"bedrock":   {"seed": `7`, "temperature": `1.5`, "user": `"u"`, "response_format.type": `{"type":"json_object"}`},
	"gemini":    {"user": `"u"`, "stop": `["a","b","c","d","e","f"]`},
}

// chatWith is a line with a chat that has the field of a path.
func chatWith(path, value string) string {
	name, _, _ := strings.Cut(path, ".")
	name, _, _ = strings.Cut(name, "[")
	rest := `"messages":[{"role":"user","content":"a"}],`
	if name == "messages" {
		rest = ""
	}
	return fmt.Sprintf(`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","max_tokens":9,%s%q:%s}}`, rest, name, value)
}

// A chat with a field that cannot be said in the provider's dialect is refused before any
// call, with the file, the line, the field and the lane. With --on-untranslatable skip it is
// in the errors file, and what can be said is asked.
func TestEachFieldThatCannotBeSaid(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	for _, provider := range []string{"anthropic", "gemini", "bedrock"} {
		fields := map[string]string{}
		for _, from := range []map[string]string{refusedFields, refusedByOne[provider]} {
			for path, value := range from {
				fields[path] = value
			}
		}
		for path, value := range fields {
			in := writeLines(t, chatWith(path, value)+"\n")
			args := []string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--provider", provider, "--base-url", server.URL, "--api-key-env", "K", "--progress", "none"}
			env := map[string]string{"K": "k"}
			code, _, said := inWorld(t, nil, env, args...)
			want := fmt.Sprintf("%s:1: %s cannot be translated for lane %s/m (", in, path, provider)
			if code != exit.Usage || !strings.Contains(said, want) {
				t.Errorf("%s: %s: exit code %d, and not %q: %s", provider, chatWith(path, value), code, want, said)
			}
			if _, err := os.Stat(args[3]); err == nil {
				t.Errorf("%s: there is an output", path)
			}
			code, _, said = inWorld(t, nil, env, append(args, "--on-untranslatable", "skip")...)
			failed := read(t, filepath.Join(filepath.Dir(in), "out.errors.jsonl"))
			if code != exit.ItemsFailed || strings.Count(failed, "\n") != 1 || gjson.Get(failed, "error.code").Str != "untranslatable" || !strings.Contains(gjson.Get(failed, "error.message").Str, want) {
				t.Errorf("%s: %s: skipped: exit code %d: %s%s", provider, path, code, said, failed)
			}
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
}
