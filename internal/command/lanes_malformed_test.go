package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

// malformed lists files that nobody can mean, with the line of the complaint and its words.
var malformed = []struct {
	file string
	line int
	says string
}{
	{"lanes:\n", 1, "lanes is not a map of names"},
	{"lanes: openai\n", 1, "lanes is not a map of names"},
	{"lanes: [a, b]\n", 1, "lanes is not a map of names"},
	{"lanes:\n  a:\n", 2, "lane a has no words"},
	{"lanes:\n  a: openai\n", 2, "lane a has no words"},
	{"pools:\n  p:\n    spread: [a]\n", 1, "pools are given, and no lanes"},
	{"lanes:\n  a/b: {provider: sim}\n", 2, `"a/b" is not a name of a lane`},
	{"lanes:\n  a: {provider: sim}\n  a: {provider: sim}\n", 3, "not YAML: "},
	{"lanes:\n  a:\n    provider: sim\n    provider: openai\n", 4, "not YAML: "},
	{"lanes:\n  a: {provider: sim\n", 2, "not YAML: "},
	{"lanes:\n  a: {provider: nosuch}\n", 2, `lane a: provider: "nosuch" is not known`},
	{"lanes:\n  a: {providr: sim}\n", 2, `lane a: unknown word "providr": did you mean provider?`},
	{"lanes:\n  a:\n    provider: openai\n    api-key: sk-proj-0123456789abcdefTHEKEY\n", 4, "keys are not allowed in this file"},
	{"lanes:\n  a:\n    provider: openai\n    api-key-env: sk-proj-0123456789abcdefTHEKEY\n", 2, "lane a: api-key-env takes the name of a variable"},
	{"lanes:\n  sk-proj-0123456789abcdefTHEKEY:\n    provider: openai\n", 2, "a name looks like a key"},
	{"lanes:\n  a:\n    provider: openai\n    account: sk-proj-0123456789abcdefTHEKEY\n", 4, "account looks like a key"},
	{"lanes:\n  a:\n    provider: openai\n    headers:\n      Authorization: env:OTHER\n", 5, "Authorization carries the key"},
	{"lanes:\n  a:\n    provider: openai\n    headers:\n      x-gateway-key: sk-proj-0123456789abcdefTHEKEY\n", 5, "seems to have a key in its value"},
	{"lanes:\n  a: {provider: sim, rpm: fast}\n", 2, `rpm: "fast" is not a number`},
	{"lanes:\n  a: {provider: sim, rpm: -5}\n", 2, "lane a: rpm: -5 is not a limit"},
	{"lanes:\n  a: {provider: sim, rpm: [1, 2]}\n", 2, "rpm needs a single value"},
	{"lanes:\n  a: {provider: sim, concurrency: 0}\n", 2, "lane a: concurrency: 0 is too small"},
	{"lanes:\n  a: {provider: sim, insecure: perhaps}\n", 2, `insecure: "perhaps" is not true or false`},
	{"lanes:\n  a: {provider: sim, models: gpt}\n", 2, "models is not a map"},
	{"lanes:\n  a: {provider: sim, models: {gpt: [x]}}\n", 2, "models: not a model and its name here"},
	{"lanes:\n  a: {provider: sim, price: cheap}\n", 2, "lane a: price"},
	{"lanes:\n  a: {provider: sim, price: {output: 5}}\n", 2, "price has no input"},
	{"lanes:\n  a: {provider: sim, quota: a/b}\n", 2, `quota: "a/b" is not a name`},
	{"lanes:\n  a: {provider: sim, quota: b}\n  b: {provider: sim}\n", 2, "quota: b is the name of a lane"},
	{"lanes:\n  a: {provider: sim, quota: q, rpm: 5}\n  b: {provider: sim, quota: q}\n", 3, "quota: q is also that of lane a, whose limits, concurrency, timeout or law differ"},
	{"lanes:\n  a: {provider: sim, weight: 0}\n", 2, `weight: "0" is not a share`},
	{"lanes:\n  a: {provider: sim, weight: 1.5}\n", 2, `weight: "1.5" is not a share`},
	{"lanes:\n  a: {provider: sim, weight: 1000}\n", 2, "it may be a whole number from 1 to 100"},
	{"lanes:\n  a: {provider: sim, quota: q, weight: 2}\n  b: {provider: sim, quota: q}\n", 3, "quota: q is also that of lane a, whose weight differs"},
	{pool("{spread: [a], weight: 3}"), 5, `pool p: unknown word "weight"`},
	{"lanes:\n  a: {provider: sim}\n  b: {provider: openai, api-key-env: none}\n", 1, "some are simulated and some are not"},
	{"lanes:\n  a:\n    provider: sim\n    ramp: {initial: 5}\n", 4, "ramp: it needs"},
	{"lanes:\n  a:\n    provider: sim\n    breaker: {never: 5}\n", 4, `breaker has no setting "never"`},
	{"lanes:\n  a: {provider: sim}\n  b: *a\n", 3, "lane b has no words"},
	{"x: [&x [lol, lol], &y [*x, *x, *x, *x], [*y, *y, *y, *y]]\nlanes:\n  a: {provider: sim}\n", 1, `unknown setting "x"`},
	{"lanes:\n  a: {provider: *bomb}\n", 2, "provider needs a single value"},
	{"rpm: 600\nlanes:\n  a: {provider: sim}\n", 1, "rpm stands outside of the lanes, and describes one"},
	{"lanes:\n  a: {provider: openai, base-url: \"http://example.com/v1\", api-key-env: OTHER}\n", 2, "its key would be sent unencrypted to example.com"},
	{"lanes:\n  a: {provider: openai, base-url: example.com}\n", 2, "lane a: base-url"},
	{pool("{spread: [a], prefer: [b]}"), 5, "pool p has two policies, spread and prefer"},
	{pool("{lines: {model: [m]}}"), 5, "pool p has no policy"},
	{pool("{spread: [a, c]}"), 5, `there is no lane "c"`},
	{pool("{spread: [a, a]}"), 5, "lane a is there twice"},
	{pool("{spread: [a]}\n  q: {spread: [p]}"), 6, `"p" is a pool: a pool has lanes`},
	{pool("{spread: [p]}"), 5, `"p" is a pool`},
	{pool("{spread: {a: b}}"), 5, "spread is not a list of lanes"},
	{pool("{spread: []}"), 5, "spread is not a list of lanes"},
	{pool("{prefer: [[a], [[b]]]}"), 5, "prefer has an entry that is not a lane"},
	{pool("{spread: [a], after: 1m}"), 5, "after needs prefer"},
	{pool("{spread: [a], spill: 10s}"), 5, "spill needs prefer"},
	{pool("{prefer: [a, b], after: soon}"), 5, `after: "soon" is not a wait`},
	{pool("{prefer: [a, b], after: -1m}"), 5, `after: "-1m" is not a wait`},
	{pool("{spread: [a], lines: {endpoint: /v1/nothing}}"), 5, `endpoint: "/v1/nothing" is not known`},
	{pool("{prefer: [a, b], spill: 0s}"), 5, `spill: "0s" is not a wait`},
	{pool("{spread: [a], lines: {color: red}}"), 5, `lines: unknown word "color"`},
	{pool("{spread: [a], sticky: [b]}"), 5, "pool p has two policies, spread and sticky"},
	{pool("{prefer: [a], sticky: [b]}"), 5, "pool p has two policies, prefer and sticky"},
	{pool("{sticky: {by: prefix}}"), 5, "sticky is not a list of lanes"},
	{pool("{sticky: [a, b], by: color}"), 5, `by: "color" is not prefix or metadata.FIELD`},
	{pool("{sticky: [a, b], by: metadata.}"), 5, `by: "metadata." is not prefix or metadata.FIELD`},
	{pool("{spread: [a, b], by: prefix}"), 5, "by needs sticky"},
	{pool("{spread: [a, b], patience: 1s}"), 5, "patience needs sticky"},
	{pool("{sticky: [a, b], patience: 0s}"), 5, `patience: "0s" is not a wait`},
	{pool("{sticky: [a, b], after: 1m}"), 5, "after needs prefer"},
	{pool("{sticky: [a, c]}"), 5, `there is no lane "c"`},
	{"lanes:\n  a: {provider: sim, quota: q}\n  b: {provider: sim, quota: q}\npools:\n  p: {prefer: [a, b]}\n", 5, "are in two tiers"},
	{"lanes:\n  a: {provider: sim, quota: q}\n  b: {provider: sim, quota: q}\npools:\n  p: {spread: [a]}\n", 5, "lane b has the quota q, too, and is not in the pool"},
	{"lanes:\n" + strings.Repeat("  ", 1) + "a: {provider: sim}\n" + manyLanes(300), 1, "301 lanes are too many"},
	{"lanes: " + strings.Repeat("[", 900_000), 1, "has more than 50000 words and marks"},
	{"rpm: 5\nlanes: " + strings.Repeat("[", 20_000), 2, "more than 64 lists or maps are in each other"},
	{"lanes: " + strings.Repeat("- ", 20_000), 1, "more than 64 lists or maps are in each other"},
	{"lanes: " + strings.Repeat("{a: ", 65), 1, "more than 64 lists or maps are in each other"},
	{"lanes: " + strings.Repeat("[", 64), 1, "not YAML"},
	{"rpm: 600\n#" + strings.Repeat("x", 1<<20), 2, "is longer than 1048576 bytes"},
}

// pool returns a file with two lanes and a pool p, on line 5.
func pool(body string) string {
	return "lanes:\n  a: {provider: sim}\n  b: {provider: sim}\npools:\n  p: " + body + "\n"
}

func manyLanes(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "  l%d: {provider: sim}\n", i)
	}
	return text.String()
}

// A file that cannot be meant ends the command with one complaint, which names the line and says
// what to do. Nothing is called, and no key is repeated.
func TestMalformedLanes(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl")
	must.Do(t, os.WriteFile(in, []byte(`{"prompt":"Hi","model":"m"}`+"\n"), 0o600))
	for i, bad := range malformed {
		config := filepath.Join(dir, fmt.Sprintf("f%d.yaml", i))
		must.Do(t, os.WriteFile(config, []byte(bad.file), 0o600))
		code, stdout, stderr := inWorld(t, strings.NewReader(""), map[string]string{"OTHER": "an-other-key-123"}, "run", in, "-o", out, "--config", config)
		lines := strings.Split(strings.TrimRight(stderr, "\n"), "\n")
		want := fmt.Sprintf("headrace: %s:%d: ", config, bad.line)
		if code != 2 || stdout != "" || len(lines) != 1 || !strings.HasPrefix(lines[0], want) || !strings.Contains(lines[0], bad.says) {
			t.Errorf("%.200s\nexit code %d, want %q and %q:\n%s", bad.file, code, want, bad.says, stderr)
		}
		if strings.Contains(stderr, "THEKEY") || strings.Contains(stderr, "an-other-key") {
			t.Errorf("%.200s\na key is shown:\n%s", bad.file, stderr)
		}
		if advice := strings.SplitN(strings.TrimPrefix(lines[0], want), ": ", 2); len(advice) != 2 || advice[1] == "" {
			t.Errorf("%.200s\nno advice:\n%s", bad.file, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%.200s\nit ran", bad.file)
		}
	}
}
