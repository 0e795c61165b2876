package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/simulator"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// lanesFile writes a file of --config, and returns its name.
func lanesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lanes.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// runLanes runs a file over lanes in this process, and fails the test unless it ends with that code.
func runLanes(t *testing.T, want int, env map[string]string, args ...string) (stderr string) {
	t.Helper()
	code, _, stderr := inWorld(t, strings.NewReader(""), env, append([]string{"run"}, args...)...)
	if code != want {
		t.Fatalf("exit code %d, want %d\n%s", code, want, stderr)
	}
	return stderr
}

// somePrompts returns a file of n prompts of a model.
func somePrompts(t *testing.T, n int, model string) string {
	t.Helper()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"prompt":"What is %d times two?","id":"p%d","model":%q}`+"\n", i, i, model)
	}
	return writeLines(t, text.String())
}

// Lanes of three dialects take turns. Each calls by its own word for the model, and the line names
// lane, provider and that word. The same output is continued with other names, in another order
// and with a lane less, and nothing is bought twice.
func TestRunOverLanesOfThreeDialects(t *testing.T) {
	const items = 900
	servers := map[string]*sim.Server{}
	base := map[string]string{}
	for _, dialect := range []string{"openai", "anthropic", "gemini"} {
		server, at, stop := simOf(t, "--dialect", dialect, "--latency", "20ms")
		defer stop()
		servers[dialect], base[dialect] = server, at
	}
	calls := func() (n int) {
		for _, s := range servers {
			n += s.Books().Received
		}
		return n
	}
	lane := func(name, provider, dialect, word string) string {
		return fmt.Sprintf("  %s:\n    provider: %s\n    base-url: %s\n    api-key-env: A_KEY\n    models: {m: %s}\n", name, provider, base[dialect], word)
	}
	first := lanesFile(t, "lanes:\n"+lane("one", "openai", "openai", "gpt-x")+lane("two", "anthropic", "anthropic", "claude-x")+lane("three", "gemini", "gemini", "gemini-x"))
	in, out := somePrompts(t, items, "m"), filepath.Join(t.TempDir(), "out.jsonl")
	env := map[string]string{"A_KEY": "the-key-of-all-lanes-123"}
	runLanes(t, 0, env, in, "-o", out, "--config", first)
	byLane := map[string]int{}
	for _, l := range resultsOf(t, out) {
		h := l.Headrace
		byLane[h.Lane]++
		want := map[string][2]string{"one/gpt-x": {"openai", "gpt-x"}, "two/claude-x": {"anthropic", "claude-x"}, "three/gemini-x": {"gemini", "gemini-x"}}[h.Lane]
		if h.Provider != want[0] || h.Served != want[1] || h.Model != "m" || h.Fallback || !strings.HasPrefix(h.Text, "Simulated answer ") {
			t.Errorf("%+v", h)
		}
	}
	if len(byLane) != 3 || // how they share half a second depends on how busy the machine is
		calls() != items {
		t.Errorf("%v by %d calls", byLane, calls())
	}
	second := lanesFile(t, "lanes:\n"+lane("drei", "gemini", "gemini", "gemini-x")+lane("eins", "openai", "openai", "gpt-y"))
	runLanes(t, 0, env, in, "-o", out, "--config", second)
	if calls() != items {
		t.Errorf("%d calls after the second run, want %d", calls(), items)
	}
}

// simOf serves a simulated provider with those flags of headrace sim.
func simOf(t *testing.T, args ...string) (server *sim.Server, base string, stop func()) {
	t.Helper()
	server, under := newSim(t, args...)
	at, stop := serveSim(server)
	return server, strings.TrimSuffix(at, "/v1") + under, stop
}

// newSim makes a simulated provider with those flags of headrace sim. Clients find it under that
// path.
func newSim(t *testing.T, args ...string) (server *sim.Server, under string) {
	t.Helper()
	var flags simulator.SimFlags
	fs := pflag.NewFlagSet("sim", pflag.ContinueOnError)
	flags.Register(fs)
	must.Do(t, fs.Parse(append([]string{"--profile=fast"}, args...)))
	cfg := must.Get(flags.Config(fs))(t)
	return sim.New(cfg, clockwork.NewRealClock()), simulator.SimBase(cfg)
}

// Pools divide lines by their models. A model of no pool ends the run before any call, with the
// number of its lines.
func TestPoolsByModel(t *testing.T) {
	server, base, stop := simOf(t)
	defer stop()
	config := lanesFile(t, fmt.Sprintf(`lanes:
  a: {provider: openai, base-url: "%s", api-key-env: none}
  b: {provider: openai, base-url: "%[1]s", api-key-env: none}
  spare: {provider: openai, base-url: "%[1]s", api-key-env: none}
pools:
  small: {lines: {model: small}, spread: a}
  qwen: {lines: {model: ["qwen*"]}, spread: [b]}
`, base))
	in := writeLines(t, `{"prompt":"1","model":"small"}
{"prompt":"2","model":"qwen/3-32b"}
{"prompt":"3","model":"large"}
{"prompt":"4","model":"large"}
`)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	stderr := runLanes(t, 2, nil, in, "-o", out, "--config", config)
	if !strings.Contains(stderr, `no pool takes model "large" (2 lines); nothing was called`) || server.Books().Received > 0 {
		t.Error(stderr)
	}
	in = writeLines(t, `{"prompt":"1","model":"small"}
{"prompt":"2","model":"qwen/3-32b"}
`)
	stderr = runLanes(t, 0, nil, in, "-o", out, "--config", config)
	if !strings.Contains(stderr, "lane spare is in no pool: it gets no line") {
		t.Error(stderr)
	}
	for _, l := range resultsOf(t, out) {
		want := map[string]string{"small": "a/small", "qwen/3-32b": "b/qwen/3-32b"}[l.Headrace.Model]
		if l.Headrace.Lane != want || l.Headrace.Served != "" || l.Headrace.Provider != "" {
			t.Errorf("%+v, want lane %s", l.Headrace, want)
		}
	}
}

// A chat that a lane cannot take in its dialect fails the run, is skipped, or goes elsewhere.
func TestUntranslatableForSomeLanes(t *testing.T) {
	one, base, stop := simOf(t)
	defer stop()
	two, other, stopOther := simOf(t, "--dialect", "anthropic")
	defer stopOther()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  native: {provider: openai, base-url: %q, api-key-env: none}\n  foreign: {provider: anthropic, base-url: %q, api-key-env: none, max-tokens: 50}\n", base, other))
	in := writeLines(t, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":5}`+"\n"+`{"model":"m","messages":[{"role":"user","content":"Ho"}],"seed":6}`+"\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	stderr := runLanes(t, 2, nil, in, "-o", out, "--config", config)
	if !strings.Contains(stderr, "seed cannot be translated for lane foreign (anthropic)") {
		t.Error(stderr)
	}
	runLanes(t, 0, nil, in, "-o", out, "--config", config, "--on-untranslatable", "elsewhere")
	if a, b := one.Books().Received, two.Books().Received; a != 2 || b != 0 {
		t.Errorf("%d and %d calls", a, b)
	}
	stderr = runLanes(t, 2, map[string]string{"OPENAI_API_KEY": "k"}, in, "-o", out, "--on-untranslatable", "elsewhere")
	if !strings.Contains(stderr, "needs several lanes") {
		t.Error(stderr)
	}
}

// A flag that describes a lane contradicts lanes, wherever it comes from.
func TestFlagsNextToLanes(t *testing.T) {
	config := lanesFile(t, "lanes:\n  a: {provider: sim}\n")
	in, out := somePrompts(t, 1, "m"), filepath.Join(t.TempDir(), "out.jsonl")
	for flag, want := range map[string]string{
		"--rpm=5": "lanes are given, and --rpm describes one", "--provider=sim": "--provider describes one", "--header=X-A=b": "set headers in the lanes",
	} {
		if stderr := runLanes(t, 2, nil, in, "-o", out, "--config", config, flag); !strings.Contains(stderr, want) {
			t.Errorf("%s: %s", flag, stderr)
		}
	}
	if stderr := runLanes(t, 2, map[string]string{"HEADRACE_TPM": "7"}, in, "-o", out, "--config", config); !strings.Contains(stderr, "HEADRACE_TPM describes one") {
		t.Error(stderr)
	}
	runLanes(t, 0, nil, in, "-o", out, "--config", config, "-c", "3")
}

// Two keys of one organisation draw on one limit. The first answers show it; a quota that joins
// the lanes makes the notice needless. headrace lanes --try says the same.
func TestLanesOfOneOrganisation(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Openai-Organization", "acme-research")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	defer server.Close()
	file := func(more string) string {
		return lanesFile(t, fmt.Sprintf("lanes:\n  a: {provider: openai, base-url: \"%s/v1\", api-key-env: KEY_A%s}\n  b: {provider: openai, base-url: \"%[1]s/v1\", api-key-env: KEY_B%[2]s}\n", server.URL, more))
	}
	env := map[string]string{"KEY_A": "the-key-of-lane-a-123", "KEY_B": "the-key-of-lane-b-123"}
	in := somePrompts(t, 20, "m")
	const says = "draw on acme-research: their limits are one"
	if stderr := runLanes(t, 0, env, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", file("")); strings.Count(stderr, says) != 1 {
		t.Error(stderr)
	}
	if stderr := runLanes(t, 0, env, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", file(", quota: acme")); strings.Contains(stderr, "limits are one") {
		t.Error(stderr)
	}
	env["KEY_B"] = env["KEY_A"]
	if stderr := runLanes(t, 0, env, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", file("")); strings.Count(stderr, "lanes a and b draw on one key: their limits are one") != 1 {
		t.Error(stderr)
	}
	env["KEY_B"] = "the-key-of-lane-b-123"
	before := calls.Load()
	code, stdout, stderr := inWorld(t, strings.NewReader(""), env, "lanes", "--config", file(""))
	if code != 0 || calls.Load() != before || strings.Count(stdout, "\n") != 3 || !strings.Contains(stdout, "KEY_A (set)") || !strings.Contains(stdout, "  "+server.URL+"  ") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = inWorld(t, strings.NewReader(""), env, "lanes", "--config", file(""), "--try", "--model", "m")
	if code != 0 || calls.Load() != before+2 || !strings.Contains(stdout, "acme-research") || !strings.Contains(stdout, says) || strings.Contains(stdout+stderr, "the-key-of") {
		t.Errorf("%d, %d calls\n%s%s", code, calls.Load()-before, stdout, stderr)
	}
}

// Two keys of one organisation are not refused once a quota joins their lanes: their calls take turns
// within one limit.
func TestQuotaOfTwoKeysIsNeverRefused(t *testing.T) {
	server, base, stop := simOf(t, "--rpm", "600", "--burst", "2s", "--headers")
	defer stop()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  a: {provider: openai, base-url: %q, api-key-env: KEY_A, quota: acme}\n  b: {provider: openai, base-url: %[1]q, api-key-env: KEY_B, quota: acme}\n", base))
	env := map[string]string{"KEY_A": "the-key-of-lane-a-123", "KEY_B": "the-key-of-lane-b-123"}
	runLanes(t, 0, env, somePrompts(t, 60, "m"), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config)
	if b := server.Books(); b.Refused429 != 0 || b.Accepted != 60 {
		t.Errorf("%+v", b)
	}
}

// The keys of all lanes are nowhere, even if each server repeats its own in what it says.
func TestKeysOfLanesAreNowhere(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Openai-Organization", key)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"wrong: %s","code":"%[1]s"}}`, key)
	}))
	defer server.Close()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  a: {provider: openai, base-url: \"%s/v1\", api-key-env: KEY_A}\n  b: {provider: openai, base-url: \"%[1]s/v1\", api-key-env: KEY_B}\n", server.URL))
	env := map[string]string{"KEY_A": "q7Zk-the-secret-of-lane-a-9Xw", "KEY_B": "v3Lp-the-secret-of-lane-b-2Rt"}
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	code, stdout, stderr := inWorld(t, strings.NewReader(""), env, "run", somePrompts(t, 4, "m"), "-o", out, "--config", config, "--log-level", "debug")
	_, tried, _ := inWorld(t, strings.NewReader(""), env, "lanes", "--config", config, "--try", "--model", "m")
	if strings.Count(stderr, "msg=lane lane=") != 2 || !strings.Contains(stderr, `msg=lane lane=a provider=openai dialect=openai host=http://127.0.0.1`) || !strings.Contains(stderr, `key="KEY_A (set)" limits="learned, 64 in flight" price=`) {
		t.Errorf("the log has no row for each lane: %s", stderr)
	}
	all := stdout + stderr + tried
	entries, err := os.ReadDir(dir)
	if err != nil || code == 0 {
		t.Fatal(err, code)
	}
	for _, e := range entries {
		text := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		all += string(text)
	}
	for _, key := range env {
		for i := 0; i+8 <= len(key); i++ {
			if at := strings.Index(all, key[i:i+8]); at >= 0 && !strings.Contains("-the-secret-of-lane-", key[i:i+8]) {
				t.Fatalf("%q is shown: %.200s", key[i:i+8], all[max(0, at-100):])
			}
		}
	}
}

// A pool that prefers a lane uses the next once that one has stopped, and marks those lines.
func TestFallbackIsMarked(t *testing.T) {
	const items = 40
	first, base, stop := simOf(t, "--quota-after", "10")
	defer stop()
	second, other, stopOther := simOf(t)
	defer stopOther()
	config := lanesFile(t, fmt.Sprintf("lanes:\n  dear: {provider: openai, base-url: %q, api-key-env: none}\n  good: {provider: openai, base-url: %q, api-key-env: none}\npools:\n  p: {prefer: [good, dear]}\n", other, base))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	runLanes(t, 0, nil, somePrompts(t, items, "m"), "-o", out, "--config", config)
	fallbacks := 0
	for _, l := range resultsOf(t, out) {
		if l.Headrace.Fallback != (l.Headrace.Lane == "dear/m") {
			t.Errorf("%+v", l.Headrace)
		}
		if l.Headrace.Fallback {
			fallbacks++
		}
	}
	if fallbacks != items-10 || first.Books().Accepted != 10 || second.Books().Accepted != items-10 {
		t.Errorf("%d fallbacks, %+v, %+v", fallbacks, first.Books(), second.Books())
	}
}

// Lanes of one account stop with it; the other account goes on. A budget is kept with the price of
// the dearest lane, and each line has the price of its own.
func TestAccountsAndPricesOfLanes(t *testing.T) {
	const items, quota = 100, 40                                              // a connection that comes late leaves its lane some
	first, base, stop := simOf(t, "--quota-after", "40", "--latency", "50ms") // so that both of its lanes have calls
	defer stop()
	second, other, stopOther := simOf(t)
	defer stopOther()
	lane := func(name, at, more string) string {
		return fmt.Sprintf("  %s: {provider: openai, base-url: %q, api-key-env: none%s}\n", name, at, more)
	}
	config := lanesFile(t, "lanes:\n"+lane("a1", base, ", account: spent, price: {input: 1, output: 1}")+lane("a2", base, ", account: spent, price: {input: 1, output: 1}")+
		lane("b", other, ", price: {input: 3, output: 3}")+"pools:\n  p: {prefer: [[a1, a2], b]}\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	stderr := runLanes(t, 0, nil, somePrompts(t, items, "m"), "-o", out, "--config", config, "--max-cost", "1000")
	if sum := regexp.MustCompile(`\n  account spent \$\S+ 40 answers, [\d,]+ tokens in, \d+ out  \(2 lanes\)\n`); !sum.MatchString(stderr) {
		t.Error(stderr)
	}
	if a, b := first.Books().Accepted, second.Books().Accepted; a != quota || b != items-quota {
		t.Errorf("%d and %d answers", a, b)
	}
	_, said, _ := inWorld(t, nil, nil, "status", out)
	if !regexp.MustCompile(`\n +\$\S+ on b/m, 60 items\n`).MatchString(said) || !regexp.MustCompile(`\n +\$\S+ by account spent \(2 lanes\), 40 items\n`).MatchString(said) {
		t.Error(said)
	}
	_, said, _ = inWorld(t, nil, nil, "status", "--json", out)
	if !regexp.MustCompile(`"accounts":\[\{"account":"spent","lanes":2,"answered":40,"usd":0\.0\d+,"unpriced":0,"input_tokens":\d+,"output_tokens":\d+\}\]`).MatchString(said) ||
		!regexp.MustCompile(`"items_per_second":[^,]+,"usd":0\.`).MatchString(said) {
		t.Error(said)
	}
	again := filepath.Join(t.TempDir(), "json.jsonl")
	said = runLanes(t, 0, nil, somePrompts(t, 40, "m"), "-o", again, "--config", lanesFile(t, "lanes:\n"+
		lane("b1", other, ", account: ours, price: {input: 3, output: 3}")+lane("b2", other, ", account: ours, price: {input: 3, output: 3}")), "--progress", "json")
	if keeps(t, said); !regexp.MustCompile(`"event":"summary".*"accounts":\[\{"account":"ours","lanes":2,"answered":40,`).MatchString(said) {
		t.Error(said)
	}
	for _, l := range resultsOf(t, out) {
		h := l.Headrace
		want := float64(h.Usage.Input+h.Usage.Output) / 1e6
		if h.Fallback {
			want *= 3
		}
		if h.CostUSD < 0.99*want || h.CostUSD > 1.01*want || h.CostUSD == 0 {
			t.Errorf("%+v, want %v", h, want)
		}
	}
}

// A pool that spills uses the next tier while the better one is merely busy; without spill it waits.
func TestPoolSpills(t *testing.T) {
	slow, base, stop := simOf(t, "--latency", "100ms")
	defer stop()
	second, other, stopOther := simOf(t)
	defer stopOther()
	file := func(more string) string {
		return lanesFile(t, fmt.Sprintf("lanes:\n  good: {provider: openai, base-url: %q, api-key-env: none, rpm: 600, burst: 100ms}\n  dear: {provider: openai, base-url: %q, api-key-env: none}\npools:\n  p: {prefer: [good, dear]%s}\n", base, other, more))
	}
	runLanes(t, 0, nil, somePrompts(t, 20, "m"), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", file(""))
	if n := second.Books().Accepted; n != 0 {
		t.Errorf("%d answers of the later tier", n)
	}
	runLanes(t, 0, nil, somePrompts(t, 20, "m"), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", file(", spill: 50ms"))
	if n := second.Books().Accepted; n == 0 || slow.Books().Accepted <= 20 {
		t.Errorf("%d answers of the later tier, %d of the better one", n, slow.Books().Accepted)
	}
}

// A lane whose limits allow more calls than its window holds is named once, with the number that
// would do. One that is wide enough is not.
func TestNarrowLaneIsNamed(t *testing.T) {
	_, base, stop := simOf(t, "--latency", "100ms")
	defer stop()
	config := func(window int) string {
		return lanesFile(t, fmt.Sprintf("lanes:\n  slow: {provider: openai, base-url: %q, api-key-env: none, rpm: 6000, concurrency: %d}\n", base, window))
	}
	in := somePrompts(t, 60, "m")
	stderr := runLanes(t, 0, nil, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config(3))
	if named := regexp.MustCompile(`lane slow/m could use about (\d\d) calls at once: concurrency: (\d\d) in .* \(now 3\)`).FindAllStringSubmatch(stderr, -1); len(named) != 1 || named[0][1] != named[0][2] {
		t.Error(stderr)
	}
	if stderr := runLanes(t, 0, nil, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config(64)); strings.Contains(stderr, "at once") {
		t.Error(stderr)
	}
}

// Lanes with weights take turns by them while both have room, within a tier as well. Over a network
// one of them has none at some moments; the tests of package machine know the exact shares.
func TestWeightsOfLanes(t *testing.T) {
	const items = 400
	heavy, base, stop := simOf(t)
	defer stop()
	light, other, stopOther := simOf(t)
	defer stopOther()
	for _, policy := range []string{"spread: [heavy, light]", "prefer: [[heavy, light], last]"} {
		config := lanesFile(t, fmt.Sprintf("lanes:\n  heavy: {provider: openai, base-url: %q, api-key-env: none, weight: 3}\n  light: {provider: openai, base-url: %q, api-key-env: none}\n"+
			"  last: {provider: openai, base-url: %[1]q, api-key-env: none}\npools:\n  p: {%[3]s}\n", base, other, policy))
		before, beforeOther := heavy.Books().Accepted, light.Books().Accepted
		runLanes(t, 0, nil, somePrompts(t, items, "m"), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config, "-c", "1")
		if a, b := heavy.Books().Accepted-before, light.Books().Accepted-beforeOther; a != items*3/4 || b != items/4 {
			t.Errorf("%s: %d and %d answers", policy, a, b)
		}
	}
}

// A lane shows the price that the file gives it, also where it is simulated: its calls are booked at
// that price.
func TestLanesShowTheirOwnPrice(t *testing.T) {
	config := filepath.Join(t.TempDir(), "lanes.yaml")
	text := "lanes:\n  a: {provider: sim, price: {input: 1, output: 5}}\n  b: {provider: sim}\n"
	must.Do(t, os.WriteFile(config, []byte(text), 0o600))
	code, stdout, stderr := inWorld(t, strings.NewReader(""), nil, "lanes", "--config", config)
	for lane, want := range map[string]string{"a": "$1 in, $5 out", "b": "  none           all"} {
		row := regexp.MustCompile(`(?m)^` + lane + ` .*$`).FindString(stdout)
		if code != 0 || !strings.Contains(row, want) {
			t.Errorf("exit %d, %s\nof %s: %q, want %q", code, stderr, lane, row, want)
		}
	}
}

// Lines of a sticky pool with the same beginning go to one lane, or those with the same field of
// their metadata. A lane that has stopped leaves its lines to the others.
func TestStickyPool(t *testing.T) {
	_, base, stop := simOf(t)
	defer stop()
	_, broke, stopBroke := simOf(t, "--quota-after", "1")
	defer stopBroke()
	file := func(dead, by string) string {
		text := "lanes:\n"
		for _, name := range []string{"a", "b", "c", "d"} {
			at := base
			if name == dead {
				at = broke
			}
			text += fmt.Sprintf("  %s: {provider: openai, base-url: %q, api-key-env: none, account: %s}\n", name, at, name)
		}
		return lanesFile(t, text+"pools:\n  p: {sticky: [a, b, c, d], by: "+by+", patience: 20s}\n")
	}
	var lines strings.Builder
	system := strings.Repeat("You are a careful reader of reports. ", 40)
	for i := range 200 {
		fmt.Fprintf(&lines, `{"messages":[{"role":"system","content":"%d %s"},{"role":"user","content":"%d"}],"model":"m","metadata":{"book":"b%d"}}`+"\n", i%20, system, i, i%10)
	}
	in := writeLines(t, lines.String())
	for _, c := range []struct {
		dead, by string
		part     int // lines with the same home have the same number, modulo this
	}{{"", "prefix", 20}, {"", "metadata.book", 10}, {"b", "prefix", 20}} {
		out := filepath.Join(t.TempDir(), "out.jsonl")
		runLanes(t, 0, nil, in, "-o", out, "--config", file(c.dead, c.by))
		homes, used := map[int]map[string]bool{}, map[string]int{}
		for _, l := range resultsOf(t, out) {
			k := (l.Headrace.Line - 1) % c.part
			if homes[k] == nil {
				homes[k] = map[string]bool{}
			}
			homes[k][l.Headrace.Lane] = true
			used[l.Headrace.Lane]++
			if l.Headrace.Fallback {
				t.Errorf("line %d is marked as a fallback", l.Headrace.Line)
			}
		}
		moved := 0
		for _, lanes := range homes {
			if len(lanes) > 1 {
				moved++
			}
		}
		if len(used) < 3 || (moved > 0) != (c.dead != "") || c.dead != "" && used[c.dead+"/m"] > 1 {
			t.Errorf("by %s, %q dead: %v, %d groups on several lanes", c.by, c.dead, used, moved)
		}
	}
}

// What a run says of lanes names the file, and a way out that lanes have.
func TestLanesNameTheirFile(t *testing.T) {
	_, base := serveFor(t, sim.Config{Seed: 1})
	config := lanesFile(t, "lanes:\n  a:\n    base-url: "+base+"\n    api-key-env: KEY_A\n")
	in, out, env := somePrompts(t, 2, "m"), filepath.Join(t.TempDir(), "out.jsonl"), map[string]string{"KEY_A": "key-of-a"}
	if said, want := runLanes(t, 0, env, in, "-o", out, "--config", config), "is sent to "+base+", the base-url in "+config+"\n"; !strings.Contains(said, want) {
		t.Errorf("no %q in %s", want, said)
	}
	said := runLanes(t, 2, env, in, "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--config", config, "--max-cost", "1")
	if want := `the price of "m" is not known, and nothing was called: set price in the lanes, or prices in a file with --prices, then run:`; !strings.Contains(said, want) {
		t.Errorf("no %q in %s", want, said)
	}
}
