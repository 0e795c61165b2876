package route

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
)

// A line's key is the beginning of its prompt, in each dialect, or a field of its metadata.
func TestHomeKeys(t *testing.T) {
	long := strings.Repeat("s", 2000)
	for _, c := range []struct{ by, body, metadata, want string }{
		{"prefix", `{"model":"m","messages":[{"role":"user","content":"Hi"}]}`, "", `[{"role":"user","content":"Hi"}]`},
		{"prefix", `{"messages":[1],"max_tokens":5,"system":"You"}`, "", `"You"[1]`},
		{"prefix", `{"instructions":"You","input":"Hi"}`, "", `"You""Hi"`},
		{"prefix", `{"contents":[2],"systemInstruction":{"parts":[]}}`, "", `{"parts":[]}[2]`},
		{"prefix", `{"input":"` + long + `"}`, "", `"` + long[:1023]},
		{"prefix", `{"system":"` + long + `","messages":[1]}`, "", `"` + long[:1023]},
		{"prefix", `{"query":"Hi"}`, "", ""},
		{"metadata.user", `{"messages":[1]}`, `{"user":"u1"}`, `"u1"`},
		{"metadata.user", `{"messages":[1]}`, `{"user":null}`, ""},
		{"metadata.user", `{"messages":[1]}`, "", ""},
	} {
		if got := lineKey(c.by, &prompts.Request{Body: []byte(c.body), Metadata: []byte(c.metadata)}); got != c.want {
			t.Errorf("by %s of %.60s: %.60q, want %.60q", c.by, c.body, got, c.want)
		}
	}
}
