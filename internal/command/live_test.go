package command

import (
	"bufio"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/live"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// shownAt returns the address at which a run says that it is shown.
func shownAt(p *process) string {
	said := p.until(func(e shownEvent) bool { return strings.HasPrefix(e.Message, "the run is shown at ") })
	return strings.TrimPrefix(said.Message, "the run is shown at ")
}

// streamOf opens the stream of a live page.
func streamOf(t *testing.T, url string) *bufio.Scanner {
	t.Helper()
	resp := must.Get(http.DefaultClient.Do(must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, url+"events", nil))(t)))(t)
	t.Cleanup(func() { _ = resp.Body.Close() })
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	return in
}

// The live page moves with the run. At its end viewers get its last state, and the process does not wait for them.
func TestLivePageEndsWithTheRun(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1800, Burst: time.Second, Seed: 1})
	p := start(t, nil, promptsFile(t, 90), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", base, "--model", "m", "--api-key-env", "none", "--metrics-addr", "127.0.0.1:0")
	url := shownAt(p)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	if text := scrape(t, url); !strings.Contains(text, " of 90 items done</h1>") || !strings.Contains(text, "<noscript>") || !strings.Contains(text, "<h3>Items a second") {
		t.Errorf("during the run:\n%s", text)
	}
	if text := scrape(t, url+"report.html"); !strings.Contains(text, "The run goes on") {
		t.Errorf("the report:\n%s", text)
	}
	streams := make([]*bufio.Scanner, live.MaxViewers)
	for k := range streams { // the last ones are never read: they stall
		streams[k] = streamOf(t, url)
	}
	states, last, end := map[string]bool{}, "", false
	for streams[0].Scan() {
		switch line := streams[0].Text(); {
		case strings.HasPrefix(line, "data: <h1>"):
			states[line], last = true, line
		case strings.Contains(line, "this is its last state"):
			last += " last"
		case line == "event: end":
			end = true
		}
	}
	if len(states) < 2 || last != "data: <h1>90 of 90 items done</h1> last" || !end {
		t.Errorf("%d states, the last %q, end %v", len(states), last, end)
	}
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A resumed run shows the runs before it on the same page.
func TestLivePageShowsEarlierRuns(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1800, Burst: time.Second, Seed: 1})
	args := []string{promptsFile(t, 90), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", base, "--model", "m", "--api-key-env", "none"}
	p := start(t, nil, append(args, "--limit", "20")...)
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	must.Do(t, p.cmd.Wait())
	p = start(t, nil, append(args, "--metrics-addr", "127.0.0.1:0")...)
	url := shownAt(p)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 20 })
	if text := scrape(t, url); !strings.Contains(text, "in 2 runs") || !strings.Contains(text, "every item succeeded") || !strings.Contains(text, "goes on") {
		t.Errorf("during the second run:\n%s", text)
	}
}
