package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/rawjson"
)

// failureByPaths is the slow twin of answer.failure: each question a walk of its own
// from the top.
func failureByPaths(body []byte) (string, bool) {
	root := gjson.ParseBytes(body)
	if root.IsArray() {
		root = root.Get("0")
	}
	if !root.IsObject() {
		return root.Raw, true
	}
	first := firstByPath(root, "choices")
	if !first.Exists() || first.Type == gjson.Null {
		first = firstByPath(root, "candidates")
	}
	blamed := first.IsObject() && present(first.Get("error"))
	if blamed && finishByPaths(first) == "error" {
		return first.Raw, true
	}
	failed := present(root.Get("error"))
	if failed && root.Get("status").Str == "failed" {
		return root.Raw, true
	}
	for _, path := range [...]string{"choices", "data", "output", "content", "candidates"} {
		if first := firstByPath(root, path); first.Exists() && first.Type != gjson.Null {
			return "", false
		}
	}
	if blamed || failed || root.Get("type").Str == "error" || root.Get("object").Str == "error" {
		return root.Raw, true
	}
	return root.Raw, !answersByPaths(root) && endByPaths(root, first) == ""
}

func answersByPaths(root gjson.Result) (found bool) {
	others := false // of several of these names, the first
	root.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "results", "embeddings", "embedding", "response", "completion", "text":
			found, others = found || !others && keptByPaths(value), true
		}
		return true
	})
	return found || keptByPaths(root.Get("data")) || keptByPaths(root.Get("output")) || keptByPaths(root.Get("content")) ||
		root.Get("message").IsObject() && present(root.Get("message"))
}

func keptByPaths(v gjson.Result) bool {
	if v.IsArray() {
		return v.Get("0").Exists() && v.Get("0").Type != gjson.Null
	}
	return present(v)
}

// finishByPaths is the first of a choice's two spellings.
func finishByPaths(choice gjson.Result) (word string) {
	seen := false
	if !choice.IsObject() {
		return ""
	}
	choice.ForEach(func(name, value gjson.Result) bool {
		if seen = name.Str == "finish_reason" || name.Str == "finishReason"; seen {
			word = value.Str
		}
		return !seen
	})
	return word
}

func endByPaths(root, choice gjson.Result) string {
	if word := finishByPaths(choice); word != "" {
		return clip(word, maxWord)
	}
	for _, path := range [...]string{"stop_reason", "incomplete_details", "stopReason", "finish_reason", "done_reason"} {
		v := root.Get(path)
		if path == "incomplete_details" {
			if v.IsArray() {
				continue
			}
			v = v.Get("reason")
		}
		if v.Str != "" {
			return clip(v.Str, maxWord)
		}
	}
	return ""
}

func completedByPaths(root gjson.Result) string {
	if root.Get("object").Str != "response" || root.Get("status").Str != "completed" {
		return ""
	}
	var last gjson.Result
	root.Get("output").ForEach(func(_, value gjson.Result) bool {
		last = value
		return true
	})
	if last.IsObject() && last.Get("type").Str == "function_call" {
		return "function_call"
	}
	return "completed"
}

// saysNothingByPaths is the slow twin of isEmptyMessage.
func saysNothingByPaths(choice gjson.Result) bool {
	if !choice.IsObject() || !choice.Get("message").IsObject() {
		return false
	}
	null, other := false, false
	choice.Get("message").ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "role":
		case "content":
			null, other = true, other || value.Type != gjson.Null
		default:
			other = other || present(value)
		}
		return true
	})
	return null && !other
}

// tokensByPaths is the slow twin of answer.tokens, as far as the settling.
func tokensByPaths(body []byte) (Usage, bool) {
	root := gjson.ParseBytes(body)
	var c counts
	countByPaths(&c, root.Get("usage"))
	if !c.known {
		countByPaths(&c, earliestOf(root, "usageMetadata", "meta"))
	}
	if c.total > 0 && c.input+c.output == 0 && onlyReadsByPaths(root) {
		c.input, c.known = c.total, true
	}
	if eval := root.Get("eval_count"); !c.known && eval.Exists() {
		c.input, c.output, c.known = countSlowly(root.Get("prompt_eval_count")), countSlowly(eval), true
	}
	return c.normalized(), c.known
}

// earliestOf is the value of the first of some names that stands in an object.
func earliestOf(root gjson.Result, names ...string) (value gjson.Result) {
	root.ForEach(func(name, v gjson.Result) bool {
		if slices.Contains(names, name.Str) {
			value = v
			return false
		}
		return true
	})
	return value
}

func onlyReadsByPaths(root gjson.Result) bool {
	for _, list := range []gjson.Result{root.Get("data"), earliestOf(root, "results", "embeddings", "embedding", "response", "completion", "text")} {
		if first := list.Get("0"); list.IsArray() && first.IsObject() && (first.Get("embedding").Exists() || first.Get("relevance_score").Exists()) {
			return true
		}
	}
	return false
}

func countByPaths(c *counts, v gjson.Result) {
	if !v.IsObject() {
		return
	}
	inside := func(v gjson.Result, name string) gjson.Result {
		if v.IsObject() {
			return v.Get(name)
		}
		return gjson.Result{}
	}
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens":
			c.input, c.known = countSlowly(value), true
		case "completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens":
			c.output, c.known = countSlowly(value), true
		case "total_tokens", "totalTokenCount", "totalTokens":
			c.total = countSlowly(value)
		case "prompt_tokens_details", "input_tokens_details":
			c.cached = max(c.cached, countSlowly(inside(value, "cached_tokens")))
			c.writtenIn = countSlowly(inside(value, "cache_write_tokens"))
		case "completion_tokens_details", "output_tokens_details":
			c.reasoning = max(c.reasoning, countSlowly(thoughtByPaths(value)))
		case "prompt_cache_hit_tokens", "cachedContentTokenCount":
			c.cached = max(c.cached, countSlowly(value))
		case "cache_read_input_tokens", "cacheReadInputTokens":
			c.read = countSlowly(value)
		case "cache_creation_input_tokens", "cacheWriteInputTokens":
			c.written = countSlowly(value)
		case "thoughtsTokenCount":
			c.reasoning, c.thoughts = countSlowly(value), true
		case "toolUsePromptTokenCount":
			c.toolUse = countSlowly(value)
		case "tokens":
			countByPaths(c, value)
		case "billed_units":
			if !c.known {
				countByPaths(c, value)
			}
		}
		return true
	})
}

// thoughtByPaths is the first of the two names for what a model thought.
func thoughtByPaths(details gjson.Result) (count gjson.Result) {
	if details.IsObject() {
		details.ForEach(func(key, value gjson.Result) bool {
			if key.Str == "reasoning_tokens" || key.Str == "thinking_tokens" {
				count = value
			}
			return !count.Exists()
		})
	}
	return count
}

func countSlowly(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	return int64(min(max(v.Num, 0), maxTokenCount))
}

// firstByPath is the first element of the array of that name.
func firstByPath(root gjson.Result, name string) gjson.Result {
	if list := root.Get(name); list.IsArray() {
		return list.Get("0")
	}
	return gjson.Result{}
}

func present(v gjson.Result) bool {
	return v.Exists() && v.Type != gjson.Null && v.Type != gjson.False && v.Raw != `""` && v.Raw != "{}" && v.Raw != "[]"
}

// oddAnswers are those in which the fast way could see something else than the slow.
var oddAnswers = []string{
	`{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}`,
	`{"choices":[{"finish_reason":"error","error":{"code":429}}],"error":null}`,
	`{"choices":{"0":{"finish_reason":"length"}}}`, `{"choices":["x"]}`, `{"choices":[]}`, `{"choices":[null]}`,
	`{"error":"","choices":[1]}`, `{"error":{},"type":"error"}`, `{"error":{"code":"x"},"status":"failed","output":[1]}`,
	`{"error":false,"error":{"code":"second"}}`, `{"error":{"code":"first"},"error":null}`,
	`{"\u0065rror":{"code":"escaped"}}`, `{"object":"error","message":"m"}`, `{"data":[]}`, `{"data":[0]}`,
	`{"stop_reason":"end_turn","content":[{}]}`, `{"incomplete_details":{"reason":"max_output_tokens"},"output":[{}]}`,
	`[{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}]`, `[]`, `[[1]]`, `{}`, `null`, `"x"`, `7`, ` {"data":[1]} `,
	`{"candidates":[{"finishReason":"SAFETY","finish_reason":"x"}],"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":12}}`,
	`{"output":{"message":{}},"stopReason":"end_turn","usage":{"inputTokens":5,"cacheReadInputTokens":1e1,"tokens":{"input_tokens":4},"billed_units":{"input_tokens":2}}}`,
	`{"results":[{"index":1,"relevance_score":1}],"usage":{"total_tokens":5}}`, `{"data":[{"embedding":[1]}],"usage":{"total_tokens":5,"prompt_tokens":0}}`,
	`{"embeddings":{"float":[[1]]},"meta":{"billed_units":{"input_tokens":2}}}`, `{"results":[[1]],"usage":{"total_tokens":5},"usageMetadata":{},"meta":{"tokens":{"input_tokens":3}}}`,
	`{"promptFeedback":{"blockReason":"SAFETY"}}`, `{"message":{"content":"x"},"done_reason":"stop","eval_count":3,"prompt_eval_count":2}`,
	`{"message":"gone"}`, `{"text":[],"results":[1]}`, `{"content":[],"stop_reason":"end_turn"}`, `{"choices":[{}],"candidates":[1]}`,
	`{"object":"response","status":"completed","output":[{"type":"reasoning"},{"type":"function_call"}]}`,
	`{"object":"response","status":"completed","output":[{"type":"message"}]}`, `{"object":"response","status":"completed","output":"x"}`,
	`{"choices":[{"finish_reason":"a  reason\nof its own"}]}`, `{"choices":[["finish_reason"]]}`,
	`{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"stop"}]}`, `{"choices":[{"message":{"content":null,"content":"x"}}]}`,
	`{"choices":[{"message":{"\u0063ontent":null,"refusal":"no"}}]}`, `{"choices":[{"message":[null],"message":{"content":null}}]}`,
	`{"choices":[{"message":{"role":"assistant","content":"x","content":null}}]}`, `{"candidates":[{"message":{"content":null},"finishReason":"STOP"}]}`,
}

// One look at an answer sees what a walk for each question sees.
func FuzzAnswer(f *testing.F) {
	for _, body := range oddAnswers {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var l answer
		_, fault := l.check(body)
		if (fault == "") != json.Valid(body) {
			t.Fatalf("%q: %q, and valid is %v", body, fault, json.Valid(body))
		}
		if fault != "" {
			return
		}
		part, failed := l.errorPart()
		if want, also := failureByPaths(bytes.Trim(body, " \t\r\n")); string(part) != want || failed != also {
			t.Errorf("%q: failure %q, %v, want %q, %v", body, part, failed, want, also)
		}
		reply, e := ReplyOf(http.StatusOK, nil, body)
		if want := Classify(http.StatusOK, nil, body); !reflect.DeepEqual(e, want) {
			t.Errorf("%q: %+v, want %+v", body, e, want)
		}
		if e != nil {
			return
		}
		if l.isArray {
			return
		}
		if usage, ok := tokensByPaths(body); usage != reply.Usage || ok != reply.HasUsage {
			t.Errorf("%q: usage %+v, %v, want %+v, %v", body, reply.Usage, reply.HasUsage, usage, ok)
		}
		if u := reply.Usage; u.CachedTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens {
			t.Errorf("%q: a part is more than the whole: %+v", body, u)
		}
		root := gjson.ParseBytes(body)
		first := firstByPath(root, "choices")
		if !first.Exists() || first.Type == gjson.Null {
			first = firstByPath(root, "candidates")
		}
		// How many replacement characters stand for bytes that are not UTF-8 is nobody's law.
		finish := cmp.Or(endByPaths(root, first), completedByPaths(root))
		if saysNothingByPaths(first) && (finish == "" || EndOf(finish) == EndStop) {
			finish = noContent
		}
		if finish != reply.Finish && utf8.Valid(body) {
			t.Errorf("%q: finish %q, want %q", body, reply.Finish, finish)
		}
	})
}

// An answer that is nested a million deep is refused, not followed down until the
// stack ends.
func TestDeepAnswerIsRefused(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		e := ClassifyOK([]byte(strings.Repeat(open, 1_000_000)))
		if e == nil || e.Kind != TransportFault {
			t.Errorf("%s…: %v", open, e)
		}
		deep := strings.Repeat("[", rawjson.MaxNesting+1) + strings.Repeat("]", rawjson.MaxNesting+1)
		if e := ClassifyOK([]byte(deep)); e == nil || e.Kind != TransportFault {
			t.Errorf("one level too deep: %v", e)
		}
	}
}

// ReplyOf has what the headers and the body say, and for a refusal no usage; what came
// in good order and is no answer was paid for.
func TestReplyOf(t *testing.T) {
	h := http.Header{"X-Request-Id": {"req_1"}}
	body := []byte(`{"choices":[{"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`)
	got, e := ReplyOf(http.StatusOK, h, body)
	want := Reply{Status: 200, RequestID: "req_1", Body: body, Usage: Usage{InputTokens: 9, OutputTokens: 3}, HasUsage: true, Finish: "length"}
	if e != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, e, want)
	}
	if got, e := ReplyOf(http.StatusTooManyRequests, h, body); e == nil || e.Kind != Throttled || got.HasUsage {
		t.Errorf("%+v, %v", got, e)
	}
	for body, used := range map[string]bool{
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`:                           true,
		`{"error":{"code":"server_error"},"usage":{"prompt_tokens":9,"completion_tokens":3}}`:        true,
		`{"error":{"code":"rate_limit_exceeded"},"usage":{"prompt_tokens":9,"completion_tokens":3}}`: false,
		`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`:                           false,
		`{"choices":[]}`: false,
		`{"choices":`:    false,
		``:               false,
	} {
		got, e := ReplyOf(http.StatusOK, h, []byte(body))
		if e == nil || got.HasUsage != used || used && got.Usage != want.Usage || got.Finish != "" {
			t.Errorf("%s: %+v, %v", body, got, e)
		}
	}
}

// An answer that stopped with null for its content was filtered, unless it says something in
// another way or names another reason for its end.
func TestNoContent(t *testing.T) {
	for choice, want := range map[string]string{
		`{"message":{"role":"assistant","content":null},"finish_reason":"stop"}`:                                         noContent,
		`{"message":{"role":"assistant","content":null},"finish_reason":null}`:                                           noContent,
		`{"message":{"content" : null}}`:                                                                                 noContent,
		`{"message":{"content":null},"finish_reason":"eos"}`:                                                             noContent,
		`{"message":{"content":null,"tool_calls":[],"refusal":null,"audio":null,"reasoning":""},"finish_reason":"stop"}`: noContent,

		`{"message":{"content":null},"finish_reason":"length"}`:                                                 "length",
		`{"message":{"content":null},"finish_reason":"tool_calls"}`:                                             "tool_calls",
		`{"message":{"content":null},"finish_reason":"content_filter"}`:                                         "content_filter",
		`{"message":{"content":null},"finish_reason":"insufficient_system_resource"}`:                           "insufficient_system_resource",
		`{"message":{"role":"assistant","content":""},"finish_reason":"stop"}`:                                  "stop",
		`{"message":{"role":"assistant"},"finish_reason":"stop"}`:                                               "stop",
		`{"message":{"content":[]},"finish_reason":"stop"}`:                                                     "stop",
		`{"message":{"content":null,"tool_calls":[{"id":"1"}]},"finish_reason":"stop"}`:                         "stop",
		`{"message":{"content":null,"function_call":{"name":"f"}},"finish_reason":"stop"}`:                      "stop",
		`{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}`:                                   "stop",
		`{"message":{"content":null,"audio":{"id":"a"}},"finish_reason":"stop"}`:                                "stop",
		`{"message":{"content":null,"images":[{"type":"image_url"}]},"finish_reason":"stop"}`:                   "stop",
		`{"message":{"reasoning_content":"Hm.","content":null},"finish_reason":"stop"}`:                         "stop",
		`{"message":{"content":null,"annotations":[{"type":"url_citation"}]},"finish_reason":"stop"}`:           "stop",
		`{"message":null,"finish_reason":"stop"}`:                                                               "stop",
		`{"text":null,"finish_reason":"stop"}`:                                                                  "stop",
		`{"message":{"content":"x"},"finish_reason":"stop"},{"message":{"content":null}}`:                       "stop",
		`{"message":{"content":"x","context":{"content":null}},"finish_reason":"stop"}`:                         "stop",
		`{"message":{"role":"assistant","content":"{\"role\":\"x\",\"content\":null}"},"finish_reason":"stop"}`: "stop",
	} {
		reply, e := ReplyOf(http.StatusOK, nil, []byte(`{"choices":[`+choice+`]}`))
		if e != nil || reply.Finish != want {
			t.Errorf("%s: %q, %v, want %q", choice, reply.Finish, e, want)
		}
	}
	if kind, _ := FinishKind(noContent); kind != Refused {
		t.Errorf("it is %v", kind)
	}
}

// A word that is kept does not keep the whole answer alive.
func TestFinishIsAWordOfItsOwn(t *testing.T) {
	body := []byte(`{"choices":[{"finish_reason":"unheard of"}]}`)
	reply, _ := ReplyOf(http.StatusOK, nil, body)
	allocs := testing.AllocsPerRun(10, func() { _ = cloneWord([]byte("stop")) })
	if reply.Finish != "unheard of" || allocs != 0 {
		t.Errorf("%q, %v allocations for a usual word", reply.Finish, allocs)
	}
}

func BenchmarkReplyOf(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"m",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"The three rivers are the Danube, the Inn and the Mur.","refusal":null},` +
		`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":61,"completion_tokens":14,"total_tokens":75}}`)
	h := http.Header{"X-Request-Id": {"req_1"}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, e := ReplyOf(http.StatusOK, h, body); e != nil {
			b.Fatal(e)
		}
	}
}

// Only JSON's own white space may stand around an answer: with any other it is not
// JSON, and would spoil the file that it is saved to.
func TestOtherWhiteSpaceIsNotJSON(t *testing.T) {
	for _, space := range []string{"\f", "\v", "\u0085", "\u00a0", "\ufeff", "\x00"} {
		for _, body := range []string{space + `{"choices":[{}]}`, `{"choices":[{}]}` + space, "{\"choices\":[{}\n]}" + space} {
			if _, e := ReplyOf(http.StatusOK, nil, []byte(body)); e == nil || e.Kind != TransportFault {
				t.Errorf("%q: %v", body, e)
			}
		}
	}
}

// An error that is longer than any provider's is judged by its status alone.
func TestLongErrorsAreNotRead(t *testing.T) {
	for _, c := range []struct {
		padding int
		want    Kind
	}{{100, QuotaExhausted}, {1 << 21, Throttled}} {
		body := `{"error":{"code":"insufficient_quota"},"x":"` + strings.Repeat("y", c.padding) + `"}`
		if e := Classify(http.StatusTooManyRequests, nil, []byte(body)); e.Kind != c.want {
			t.Errorf("with %d bytes more: %v, want %v", c.padding, e.Kind, c.want)
		}
	}
}

// An answer is read however many members stand at its top: those beyond the first are not noted as
// it is checked.
func TestAnswerWithManyMembers(t *testing.T) {
	for n := range 3 * wide {
		body := "{" + strings.Repeat(`"other":[{"usage":1}],`, n) +
			`"choices" : [ {"finish_reason":"stop","message":{"role":"assistant","content":"a"}} , {"finish_reason":"length"} ],` +
			`"usage":{"prompt_tokens":3,"completion_tokens":2},"usage":{"prompt_tokens":9}}`
		reply, e := ReplyOf(200, http.Header{}, []byte(body))
		if e != nil || reply.Finish != "stop" || reply.Usage.InputTokens != 3 || reply.Usage.OutputTokens != 2 {
			t.Fatalf("%d members before: %+v, %v", n, reply, e)
		}
	}
}

// Of several headers with an id the most telling one counts, and an empty one does not.
func TestRequestIDIsTheMostTelling(t *testing.T) {
	h := http.Header{"Cf-Ray": {"ray"}, "X-Goog-Request-Id": {"goog"}, "Request-Id": {"own"}, "X-Request-Id": {""}, "X-Id": {"no"}}
	for range 20 { // a map's order is another each time
		if id := RequestID(h); id != "own" {
			t.Fatalf("%q", id)
		}
	}
	h.Set("X-Request-Id", "best")
	if id := RequestID(h); id != "best" {
		t.Fatalf("%q", id)
	}
}
