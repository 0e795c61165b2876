// Package examples tests that each example program runs, and ends with the line
// that it is there to show.
package examples

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// maxLines keeps an example one screen long.
const maxLines = 60

// Every example runs to its end as it stands, with no key and no network, says what
// it is there to say, and fits on a screen.
func TestExamples(t *testing.T) {
	tests := map[string]string{
		"basic":      "60 of 60 answered, after ",
		"stream":     "20000 results, in order: true\noffered 20000 = settled 20000 + released 0: true\n",
		"promptfile": "first run: 2 asked\nsecond run: 0 asked\n",
		"dialects": `anthropic (end_turn): Simulated answer d5818635b2687c0e. The water is quiet.
anthropic was not asked: seed has no counterpart
gemini (STOP): Simulated answer d5818635b2687c0e. The water is quiet.
gemini (STOP): Simulated answer 32fffa13031369c9. Upstream the snow is melting, and the level has begun to rise.
`,
		"pool":         "cheap answered 40, dear 40; 40 are left; $1 of $1 spent; budget met: true\n",
		"paced":        "failed: <nil>; 200 answered, refused on the way: ",
		"server":       "failed: <nil>; 100 calls, none lost: true\n",
		"sharedlimits": "60 and 40 answered on 1 lane, 100 calls on my-key/my-model\n",
		"steering": `simple    calls 1  attempts 1  "the page simple" <nil>
nonsense  calls 1  attempts 1  "" invalid: this can never work
hiccup    calls 2  attempts 2  "the page hiccup" <nil>
busy      calls 2  attempts 1  "the page busy" <nil>
`,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "run", "./"+name).CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: %s\nwant: %s", err, out, want)
			}
			source := must.Get(os.ReadFile(name + "/main.go"))(t)
			if lines := strings.Count(string(source), "\n"); lines > maxLines {
				t.Errorf("it is %d lines long, more than %d", lines, maxLines)
			}
		})
	}
	folders := must.Get(os.ReadDir("."))(t)
	for _, f := range folders {
		// A folder without a program has scripts, manifests or settings, which other tests try.
		if _, err := os.Stat(f.Name() + "/main.go"); err == nil && tests[f.Name()] == "" {
			t.Errorf("%s is not run here", f.Name())
		}
	}
}
