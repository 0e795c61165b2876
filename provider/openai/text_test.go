package openai_test

import (
	"testing"

	"github.com/headrace/headrace/provider/openai"
)

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
