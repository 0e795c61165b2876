package journal

import (
	"encoding/json"
	"strings"
	"testing"
)

// nested is a JSON value that nests so deep.
func nested(open, inner, closing string, deep int) string {
	return strings.Repeat(open, deep-1) + inner + strings.Repeat(closing, deep-1)
}

// A line can be read back however deep what is put into it nests. What stands in a line at
// all stays JSON up to the last level that a reader takes, and is a text beyond.
func TestNestingCountsTheLineAround(t *testing.T) {
	const key = "00112233445566778899aabbccddeeff"
	for _, checked := range []bool{true, false} {
		for text, isJSON := range map[string]bool{
			nested("[", "[]", "]", 9998): true, nested("[", "[]", "]", 9999): false, nested("[", "[]", "]", 10_000): false,
			nested(`{"a":`, "{}", "}", 9998): true, nested(`{"a":`, "{}", "}", 9999): false,
			nested("\n[", "[]", "]", 9999): false, nested("\n[", "[]", "]", 9998): true,
			`["` + strings.Repeat("[", 30_000) + `"]`: true, "[" + strings.Repeat("[],", 20_000) + "[]]": true,
		} {
			l := LineOf("a", Headrace{Line: 1, Key: key, Metadata: json.RawMessage(text)})
			l.Response = &Response{StatusCode: 200, Body: json.RawMessage(text), Checked: checked}
			line := AppendLine(nil, &l)
			var p Parser
			if sum, err := p.key(line, false); err != nil || sum.String() != key {
				t.Errorf("checked %t, %.20q of %d bytes: %v", checked, text, len(text), err)
			}
			var back Line
			if err := json.Unmarshal(line, &back); err != nil {
				t.Fatalf("checked %t, %.20q of %d bytes: %v", checked, text, len(text), err)
			}
			for _, got := range []json.RawMessage{back.Response.Body, back.Headrace.Metadata} {
				var whole string
				said := json.Unmarshal(got, &whole) == nil && whole == strings.TrimSpace(text)
				if want := strings.ReplaceAll(text, "\n", ""); isJSON && string(got) != want || !isJSON && !said {
					t.Errorf("checked %t, %.20q of %d bytes became %.20q of %d", checked, text, len(text), got, len(got))
				}
			}
		}
	}
}
