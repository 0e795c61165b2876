package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// The file that the page about pools shows can be run as it stands, and the page names each word
// of a lane and of a pool.
func TestPageOfPools(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/pools.md"))(t)
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	file, _, _ := strings.Cut(rest, "```")
	in, out := writeLines(t, `{"prompt":"Hi"}`+"\n"+`{"prompt":"Ho","model":"qwen3"}`+"\n"), filepath.Join(t.TempDir(), "out.jsonl")
	stderr := runLanes(t, 2, nil, in, "-o", out, "--config", lanesFile(t, strings.Replace(file, `, "qwen*"`, "", 1)))
	if !strings.Contains(stderr, `no pool takes model "qwen3" (1 line)`) {
		t.Error(stderr)
	}
	runLanes(t, 0, nil, in, "-o", out, "--config", lanesFile(t, file))
	if n := len(resultsOf(t, out)); n != 2 {
		t.Errorf("%d results", n)
	}
	_, help, _ := inWorld(t, strings.NewReader(""), nil, "help", "config")
	_, words, _ := strings.Cut(help, "Words of a lane:\n")
	words, _, _ = strings.Cut(words, "headrace lanes")
	words = strings.ReplaceAll(words, "Words of a pool:", "")
	for _, word := range strings.FieldsFunc(words, func(c rune) bool { return strings.ContainsRune(" ,.\n", c) }) {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("the page does not have %q", word)
		}
	}
}
