package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// scrape returns what an address shows.
func scrape(t *testing.T, url string) string {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil))(t)
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(t)
	return string(body)
}

// The address shows a run while it goes on. With --linger it shows its final figures after
// the end, until the user does not want to wait any longer.
func TestAddressShowsTheRun(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1200, Burst: time.Second, Seed: 1})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 60), "-o", out, "--base-url", base, "--model", "m", "--api-key-env", "none",
		"--metrics-addr", "127.0.0.1:0", "--linger", "10m")
	said := p.until(func(e shownEvent) bool { return strings.HasPrefix(e.Message, "metrics are at ") })
	url := strings.TrimPrefix(said.Message, "metrics are at ")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	if text := scrape(t, url); !strings.Contains(text, "\nheadrace_run_items 60\n") || strings.Contains(text, `result="succeeded"} 60`) {
		t.Errorf("during the run:\n%s", text)
	}
	sum := p.until(func(e shownEvent) bool { return e.Event == "summary" })
	text := scrape(t, url)
	for _, line := range []string{
		`headrace_items_total{lane="openai/m",result="succeeded"} 60`, `headrace_items_total{lane="openai/m",result="failed"} 0`,
		fmt.Sprintf(`headrace_items_total{lane="openai/m",result="not_run"} %d`, sum.NotRun), `headrace_calls_in_flight{lane="openai/m"} 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("after the end there is no line %q in\n%s", line, text)
		}
	}
	p.signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
}

// Calls over lanes are counted by the model that each was called for, in its lane's own word.
func TestCallsCountForTheModelThatWasCalled(t *testing.T) {
	_, base := serveFor(t, sim.Config{Seed: 1})
	config := lanesFile(t, strings.ReplaceAll(`lanes:
  one: {provider: openai, base-url: BASE, api-key-env: none, models: {m: word-one}}
  two: {provider: openai, base-url: BASE, api-key-env: none, models: {m: word-two}}
  three: {provider: openai, base-url: BASE, api-key-env: none, models: {other: word-three}, quota: ours}
  four: {provider: openai, base-url: BASE, api-key-env: none, models: {more: word-four}, quota: ours}
pools:
  all: {spread: [one, two], lines: {model: [m]}}
  shared: {spread: [three, four], lines: {model: [more, other]}}
`, "BASE", base))
	dir := t.TempDir()
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, "{\"prompt\":\"p%d\",\"model\":%q}\n", i, []string{"m", "other", "more"}[i%3])
	}
	runLanes(t, 0, nil, writeLines(t, lines.String()), "-o", filepath.Join(dir, "out.jsonl"), "--config", config, "--metrics-file", filepath.Join(dir, "run.prom"))
	page := string(must.Get(os.ReadFile(filepath.Join(dir, "run.prom")))(t))
	called := map[string]bool{}
	for _, found := range regexp.MustCompile(`gen_ai_request_model="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		called[found[1]] = true
	}
	if want := (map[string]bool{"word-one": true, "word-two": true, "word-three": true, "word-four": true}); !maps.Equal(called, want) {
		t.Errorf("models: %v, want %v", called, want)
	}
}

// After a pilot the run shows itself at the same address, which is said once. Until it begins the pilot's figures
// stand there.
func TestAPilotLeavesItsAddress(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1200, Burst: time.Second, Seed: 1})
	p := start(t, nil, promptsFile(t, 60), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", base, "--model", "m", "--api-key-env", "none",
		"--pilot", "10", "--yes", "--metrics-addr", "127.0.0.1:0", "--linger", "10m")
	said := p.until(func(e shownEvent) bool { return strings.HasPrefix(e.Message, "metrics are at ") })
	url := strings.TrimPrefix(said.Message, "metrics are at ")
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	if text := scrape(t, url); !strings.Contains(text, "\nheadrace_run_start_timestamp_seconds ") {
		t.Errorf("after the pilot:\n%s", text)
	}
	p.until(func(e shownEvent) bool {
		if strings.HasPrefix(e.Message, "metrics are at ") {
			t.Errorf("said twice: %s", e.Message)
		}
		return e.Event == "summary"
	})
	if text := scrape(t, url); !strings.Contains(text, "\nheadrace_run_items_before 10\n") ||
		!strings.Contains(text, `{lane="openai/m",result="succeeded"} 50`) || !strings.Contains(text, `gen_ai_client_operation_duration_seconds_count{error_type="",`) || !strings.Contains(text, `server_address="127.0.0.1"`) {
		t.Errorf("after the end:\n%s", text)
	}
	p.signal(os.Interrupt)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
}
