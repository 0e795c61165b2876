package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/live"
	"github.com/headrace/headrace/internal/command/report"
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
	if text := scrape(t, url+"timeline.jsonl"); !strings.HasPrefix(text, `{"event":"start","headrace_timeline":1,`) || !strings.Contains(text, `{"event":"progress",`) {
		t.Errorf("the timeline:\n%s", text)
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

// A run without a file has a timeline at its address, too.
func TestTimelineWithoutAFile(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1200, Burst: time.Second, Seed: 1})
	p := start(t, nil, promptsFile(t, 60), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", base, "--model", "m", "--api-key-env", "none",
		"--timeline", "none", "--metrics-addr", "127.0.0.1:0", "--linger", "10m")
	url := shownAt(p)
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	text, answered := scrape(t, url+"timeline.jsonl"), 0
	for k, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var e struct {
			Event    string
			Answered int
		}
		if must.Do(t, json.Unmarshal([]byte(line), &e)); (k == 0) != (e.Event == "start") || k > 0 && e.Event != "sample" {
			t.Errorf("line %d: %s", k, line)
		}
		answered += e.Answered
	}
	if answered != 60 {
		t.Errorf("%d answers in\n%s", answered, text)
	}
	p.signal(os.Interrupt)
	must.Do(t, p.cmd.Wait())
}

// At an address that others reach, only a program on this machine reads what the provider has said: while a call is still
// in flight on a lane that has stopped, and after the end.
func TestFarReadersGetNoWordsOfTheProvider(t *testing.T) {
	var calls atomic.Int64
	goOn := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			<-goOn
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"a-secret used up your plan","type":"insufficient_quota","code":"insufficient_quota"}}`)
	}))
	defer provider.Close()
	p := start(t, nil, promptsFile(t, 5), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--base-url", provider.URL, "--model", "m", "--api-key-env", "none", "-c", "2",
		"--metrics-addr", "0.0.0.0:0", "--linger", "10m")
	at, _, _ := strings.Cut(strings.TrimPrefix(shownAt(p), "http://"), "/")
	_, port, err := net.SplitHostPort(at)
	must.Do(t, err)
	get := func(path, host string) string {
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+path, nil))(t)
		req.Host, req.Close = host, true
		resp := must.Get(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s of %s: %s", path, host, resp.Status)
		}
		return string(must.Get(io.ReadAll(resp.Body))(t))
	}
	check := func(paths ...string) {
		for _, path := range paths {
			if text := get(path, "evil.example"); strings.Contains(text, "a-secret") {
				t.Errorf("%s: %s", path, text)
			}
		}
		if text := get("/status", "localhost"); !strings.Contains(text, "a-secret") {
			t.Errorf("this machine: %s", text)
		}
	}
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.State == "stopped" })
	check("/", "/status", "/timeline.jsonl", "/metrics")
	if text := get("/status", "evil.example"); !strings.Contains(text, `"held_by":"the quota is used up"`) || !strings.Contains(text, `"cause":"the quota is used up"`) {
		t.Errorf("it does not say why: %s", text)
	}
	close(goOn)
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	check("/", "/events", "/status", "/timeline.jsonl", "/metrics")
	if text := get("/timeline.jsonl", "localhost"); !strings.Contains(text, "a-secret") {
		t.Errorf("this machine: %s", text)
	}
	p.signal(os.Interrupt)
	_ = p.cmd.Wait() // its code is that of a provider that stopped it
}

// The report of a run that was killed and gone on with has both, the time between them, and the sums of status; without
// the timeline it still comes.
func TestReportOfAKilledRun(t *testing.T) {
	_, base := serveFor(t, sim.Config{RPM: 1800, Burst: time.Second, Seed: 1})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{promptsFile(t, 90), "-o", out, "--base-url", base, "--model", "m", "--api-key-env", "none", "--order", "completion"}
	p := start(t, nil, args...)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 40 })
	must.Do(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait() // it was killed
	p = start(t, nil, args...)
	p.until(func(e shownEvent) bool { return e.Event == "summary" })
	must.Do(t, p.cmd.Wait())
	report := func() (r report.Report) {
		code, text, said := inWorld(t, nil, nil, "report", out, "--json")
		if err := json.Unmarshal([]byte(text), &r); code != 0 || err != nil {
			t.Fatalf("code %d, %v: %s", code, err, said)
		}
		return r
	}
	_, said, _ := inWorld(t, nil, nil, "status", out)
	r := report()
	if r.Done != 90 || !strings.Contains(said, "done       90") || len(r.Runs) != 2 || !strings.HasPrefix(r.Runs[0].How, "was killed") || r.Runs[1].How != "every item succeeded" {
		t.Fatalf("%+v, and status says %s", r, said)
	}
	if first, second := r.Runs[0], r.Runs[1]; first.Answered == 0 || first.Answered+second.Answered > 90 || first.Ended >= second.Began {
		t.Errorf("%+v, %+v", first, second)
	}
	must.Do(t, os.Remove(strings.TrimSuffix(out, ".jsonl")+".run.jsonl"))
	if r := report(); r.Done != 90 || r.Timeline || len(r.Runs) != 0 {
		t.Errorf("without a timeline: %+v", r)
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
