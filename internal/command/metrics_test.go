package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
