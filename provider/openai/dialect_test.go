package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/stream"
)

// Calls of tools stay apart and in order, also of servers that give all of them the same index, or
// none. A server may give each part of one call another id: such a part has no name.
func TestStreamedToolCalls(t *testing.T) {
	call := func(id, name, arguments string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, id, name, arguments)
	}
	both := call("a", "f", "{}") + "," + call("b", "g", "[]")
	for name, c := range map[string]struct{ parts, want string }{
		"their own index": {`{"index":0,` + call("a", "f", "{}")[1:] + "\n" + `{"index":1,` + call("b", "g", "[]")[1:], both},
		"no index":        {call("a", "f", "{}") + "\n" + call("b", "g", "[]"), both},
		"one index":       {`{"index":0,` + call("a", "f", "{}")[1:] + "\n" + `{"index":0,` + call("b", "g", "")[1:] + "\n" + `{"index":0,"function":{"arguments":"[]"}}`, both},
		"backwards":       {`{"index":1,` + call("b", "g", "[]")[1:] + "\n" + `{"index":0,` + call("a", "f", "{}")[1:], both},
		"an id each":      {call("x", "f", "") + "\n" + `{"index":0,"id":"a","function":{"arguments":"{}"}}`, call("a", "f", "{}")},
		"an id again":     {call("a", "f", "{") + "\n" + call("a", "f", "}"), call("a", "f", "{}")},
	} {
		_, answer := openai.Dialect{}.Stream(provider.Chat)
		for part := range strings.SplitSeq(c.parts, "\n") {
			add(t, answer, `{"choices":[{"index":0,"delta":{"tool_calls":[`+part+`]}}]}`)
		}
		add(t, answer, `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
		add(t, answer, "[DONE]")
		got, err := answer.Body()
		if want := `"tool_calls":[` + c.want + `]}}]}`; err != nil || !strings.HasSuffix(string(got), want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

func add(t *testing.T, to stream.Assembler, event string) {
	t.Helper()
	must.Get(to.Add(stream.Event{Data: []byte(event)}))(t)
}

// What an answer says in words, in each of the forms that speak this dialect; calls of tools,
// vectors and what is only thought say nothing.
func TestText(t *testing.T) {
	for body, want := range map[string]string{
		` {"choices":[{"message":{"content":"a\nb"}},{"message":{"content":"other"}}]}`:                         "a\nb",
		`{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`:         "ab",
		`{"choices":[{"message":{"content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"a"}]}}]}`: "a",
		`{"choices":[{"message":{"content":null,"refusal":"no"}}]}`:                                             "no",
		`{"choices":[{"message":{"content":"a","refusal":"no"}}]}`:                                              "a",
		`{"choices":[{"text":"a"}]}`: "a",
		`{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"arguments":"{}"}}]}}]}`: "",
		`{"choices":[]}`:                 "",
		`{"data":[{"embedding":[0.5]}]}`: "",
		`{"output":[{"type":"reasoning","content":[{"type":"text","text":"h"}]},{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]},` +
			`{"type":"message","content":[{"type":"output_text","text":"c"}]}]}`: "abc",
		`{"type":"message","content":[{"type":"thinking","thinking":"h"},{"type":"text","text":"a"}]}`: "a",
	} {
		if got, has := (openai.Dialect{}).Text([]byte(body)); got != want || has != (want != "") {
			t.Errorf("%s: %q, %v", body, got, has)
		}
	}
}
