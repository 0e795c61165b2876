//go:build linux || darwin

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// control is headrace ctl, in another process, and what it said.
func control(t *testing.T, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.Command("headrace", append([]string{"ctl"}, args...)...)
	text, _ := cmd.CombinedOutput() // the code says it
	return strings.TrimSpace(string(text)), cmd.ProcessState.ExitCode()
}

// A run is paused, changed, reported and drained while it goes on; each change is an event, in the timeline and in the
// report. It then ends as by Ctrl-C.
func TestControlOfARun(t *testing.T) {
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("XDG_RUNTIME_DIR", folder)
	server, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 100_000), "-o", out, "--base-url", base, "--model", "m", "-c", "4", "--rpm", "6000", "--max-cost", "5", "--price", "1,2")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })

	page := filepath.Join(filepath.Dir(out), "so-far.html")
	for _, c := range []struct{ words, want string }{
		{"pause", "state: running → paused"},
		{"pause", "it is paused already"},
		{"limit tpm=0", "limits: rpm=6000, as before"},
		{"concurrency 4", "concurrency: 4, as before"},
		{"concurrency 16", "concurrency: 4 → 16"},
		{"limit rpm=1200 tpm=1e6", "limits: rpm=6000 → rpm=1200 tpm=1000000"},
		{"max-cost 0.5", "max-cost: $5.00 → $0.50"},
		{"reset", "reset of openai/m: afresh"},
		{"log-level error", "log-level: warn → error"},
		{"report " + page, "report: " + page},
	} {
		if said, code := control(t, append([]string{out}, strings.Fields(c.words)...)...); code != 0 || said != c.want {
			t.Errorf("%s: code %d, %q, want %q", c.words, code, said, c.want)
		}
	}
	calls := func() int64 { time.Sleep(300 * time.Millisecond); return int64(server.Books().Accepted) }
	before, calm := calls(), 0
	for tries := 0; tries < 30 && calm < 3; tries++ { // on a busy machine calls that had left arrive late
		after := calls()
		if calm++; after != before {
			before, calm = after, 0
		}
	}
	if calm < 3 {
		t.Error("a paused run goes on with calls")
	}
	said, _ := control(t, out, "status", "--json")
	var stands struct {
		State   string `json:"state"`
		EndsWhy string `json:"ends_why"`
		Ends    any    `json:"ends"`
		Most    int    `json:"concurrency"`
	}
	if err := json.Unmarshal([]byte(said), &stands); err != nil || stands.State != "paused" || stands.EndsWhy != "paused" || stands.Ends != nil || stands.Most != 16 {
		t.Errorf("%v: %+v of %s", err, stands, said)
	}
	for _, c := range []struct{ words, want string }{
		{"concurrency 17", "want 1 to 16, or start it with a higher -c"},
		{"limit nobody rpm=1", `lane "nobody" is not in use: want openai/m`},
		{"dance", "unknown word"},
	} {
		if said, code := control(t, append([]string{out}, strings.Fields(c.words)...)...); code != exit.Usage || !strings.Contains(said, c.want) {
			t.Errorf("%s: code %d, %q, want %q", c.words, code, said, c.want)
		}
	}
	for _, c := range []struct{ words, want string }{{"resume", "state: paused → running"}, {"drain", "state: running → draining"}} {
		if said, code := control(t, out, c.words); code != 0 || said != c.want {
			t.Errorf("%s: code %d, %q", c.words, code, said)
		}
	}
	changes := 0
	for e, ok := p.next(); ok; e, ok = p.next() {
		if e.Event == "changed" {
			changes++
			if e.From == e.To {
				t.Errorf("an event of a change from %q to the same", e.From)
			}
		}
	}
	_ = p.cmd.Wait() // the code says it
	if code := p.cmd.ProcessState.ExitCode(); code != exit.Interrupted || changes == 0 || !strings.Contains(p.last, "--max-cost 0.5") {
		t.Errorf("exit code %d, %d changes, last line %q", code, changes, p.last)
	}
	for _, file := range []string{page, strings.TrimSuffix(out, ".jsonl") + ".run.jsonl"} {
		if text := must.Get(os.ReadFile(file))(t); !strings.Contains(string(text), "concurrency: 4 → 16, by headrace ctl") {
			t.Errorf("%s says nothing of the changes", file)
		}
	}
	if said, code := control(t, out, "status"); code != exit.Usage || !strings.Contains(said, "no run of yours writes to it now") {
		t.Errorf("after the end: code %d, %q", code, said)
	}
	if left := must.Get(filepath.Glob(filepath.Join(folder, "headrace", "ctl-*")))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A limit and a bound on the cost that a person sets reach the calls: the provider sees the new pace, and the run ends for
// money.
func TestControlChangesWhatIsCalled(t *testing.T) {
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("XDG_RUNTIME_DIR", folder)
	server, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 100_000), "-o", out, "--base-url", base, "--model", "m", "-c", "16", "--rpm", "6000", "--max-cost", "5", "--price", "1,2")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	calls := func(in time.Duration) (n int64, took time.Duration) {
		before, began := server.Books().Accepted, time.Now()
		time.Sleep(in)
		return int64(server.Books().Accepted - before), time.Since(began)
	}
	if said, code := control(t, out, "limit", "rpm=60"); code != 0 {
		t.Fatalf("code %d, %q", code, said)
	}
	for range 20 { // those that were in flight arrive, on a busy machine late
		if n, _ := calls(time.Second); n <= 7 { // one may leave, and 5 may have been saved up
			break
		}
	}
	if n, took := calls(2 * time.Second); n > 14+int64(took.Seconds()) { // at 6,000 a minute it would be 200
		t.Errorf("%d calls in %v at 60 a minute", n, took)
	}
	if said, code := control(t, out, "max-cost", "0.000001"); code != 0 {
		t.Fatalf("code %d, %q", code, said)
	}
	for ok := true; ok; {
		_, ok = p.next()
	}
	_ = p.cmd.Wait() // the code says it
	if code := p.cmd.ProcessState.ExitCode(); code != exit.Bound {
		t.Errorf("exit code %d, last line %q", code, p.last)
	}
}

// A run that has spent most of its money says so in a line that its schema takes, as all of its lines.
func TestMostOfTheMoneyIsSpent(t *testing.T) {
	t.Parallel()
	_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 60 * time.Millisecond}}) // the last fifth takes longer than the second between two looks
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 2000), "-o", out, "--base-url", base, "--model", "m", "-c", "1", "--max-cost", "0.004", "--price", "1,2", "--param", "max_tokens=20", "--ctl", "off")
	said := false
	for {
		e, ok := p.next()
		if !ok {
			break
		}
		said = said || e.Code == "budget_80"
	}
	_ = p.cmd.Wait() // the code says it
	if code := p.cmd.ProcessState.ExitCode(); code != exit.Bound || !said {
		t.Errorf("exit code %d, most of the money said %t, last line %q", code, said, p.last)
	}
}

// A pause, a concurrency and limits that a person sets while a pilot runs hold for the rest after it.
func TestControlOfAPilotHoldsForTheRest(t *testing.T) {
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("XDG_RUNTIME_DIR", folder)
	server, answers := sim.New(sim.Config{}, clockwork.NewRealClock()), make(chan struct{})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answers: // the pilot lasts until all commands are given, however slow the machine is
			server.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(front.Close)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 8), "-o", out, "--base-url", front.URL+"/v1", "--model", "m", "-c", "4", "--rpm", "6000", "--pilot", "4", "--yes")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.InFlight == 4 })
	for _, words := range []string{"pause", "concurrency 2", "limit rpm=5000", "limit openai/m rpm=4000"} {
		if said, code := control(t, append([]string{out}, strings.Fields(words)...)...); code != 0 {
			t.Fatalf("%s: code %d, %q", words, code, said)
		}
	}
	close(answers)
	p.until(func(e shownEvent) bool { return e.Event == "start" })
	p.until(func(e shownEvent) bool { return e.Event == "progress" })
	time.Sleep(300 * time.Millisecond) // calls that should not leave would have left
	if calls := server.Books().Accepted; calls != 4 {
		t.Errorf("the rest of a paused run made %d calls", calls-4)
	}
	for _, c := range []struct{ words, want string }{
		{"limit rpm=5000", "limits: rpm=5000, but for 1 of the lanes → rpm=5000"},
		{"limit rpm=9000", "limits: rpm=5000 → rpm=9000"},
		{"concurrency 3", "concurrency: 2 → 3"},
		{"resume", "state: paused → running"},
	} {
		if said, code := control(t, append([]string{out}, strings.Fields(c.words)...)...); code != 0 || said != c.want {
			t.Errorf("%s: code %d, %q, want %q", c.words, code, said, c.want)
		}
	}
	if code, _ := p.end(); code != 0 || server.Books().Accepted != 8 {
		t.Errorf("exit code %d, last line %q", code, p.last)
	}
	text := string(must.Get(os.ReadFile(strings.TrimSuffix(out, ".jsonl") + ".run.jsonl"))(t))
	for _, change := range []string{"state: running → paused", "concurrency: 4 → 2", "limits of openai/m: rpm=5000 → rpm=4000"} {
		if strings.Count(text, change) < 2 {
			t.Errorf("the timeline does not name %q for both runs:\n%s", change, text)
		}
	}
}

// The run of an output whose last run was killed is found, and one with --ctl off is not.
func TestControlAfterKill(t *testing.T) {
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("XDG_RUNTIME_DIR", folder)
	_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	input := promptsFile(t, 100_000)
	for _, last := range []string{"on", "on", "off"} {
		p := start(t, nil, input, "-o", out, "--base-url", base, "--model", "m", "-c", "4", "--ctl", last)
		p.until(func(e shownEvent) bool { return e.Event == "progress" && e.InFlight > 0 })
		said, code := control(t, out)
		if found := code == 0 && strings.Contains(said, "running"); found != (last == "on") {
			t.Errorf("--ctl %s: code %d, %q", last, code, said)
		}
		must.Do(t, p.cmd.Process.Kill())
		_, _ = p.end()
	}
}

// headrace serve is found by its address and by the file of its --state, takes the words that have a meaning for it, and
// refuses the others.
func TestControlOfAServe(t *testing.T) {
	folder := must.Get(os.MkdirTemp("", "ctl"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	t.Setenv("XDG_RUNTIME_DIR", folder)
	_, base := serveFor(t, sim.Config{})
	s := startServing(t, folder, "--base-url", base, "--api-key-env", "none", "--state", "s.json")
	if status, text, _ := s.chat(hello); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	at, state := strings.Replace(s.base, "127.0.0.1", "localhost", 1), filepath.Join(folder, "s.json")
	for _, c := range []struct{ target, words, want string }{
		{at, "status", "1 ended"},
		{state, "concurrency 9", "concurrency: 64 → 9"},
		{at, "limit rpm=0", "limits: none, as before"},
		{at, "limit rpm=90", "limits: none → rpm=90"},
		{at, "limit openai/m rpm=70", "limits of openai/m: rpm=90 → rpm=70"},
		{at, "limit rpm=90", "limits: rpm=90, but for 1 of the lanes → rpm=90"},
		{at, "reset", "reset of openai/m: afresh"},
		{at, "log-level debug", "log-level: warn → debug"},
		{at, "pause", "headrace serve cannot"},
		{at, "max-cost 5", "at its start only"},
		{at, "report x.html", "headrace report s.json makes the report"},
		{"127.0.0.1:1", "status", "no headrace serve of yours is there"},
		{at, "drain", "state: running → draining"},
	} {
		if said, _ := control(t, append([]string{c.target}, strings.Fields(c.words)...)...); !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", c.words, said, c.want)
		}
	}
	_ = s.cmd.Wait() // the code says it
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.said)
	}
}
