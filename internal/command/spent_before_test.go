package command

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// A sum that failed tries have cost stays spent when they are tried again: over three runs under one
// cap the provider never bills more than the cap.
func TestRetriesKeepWhatTheyCost(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":10,"completion_tokens":1000}}`) // refused, and billed
	}))
	defer server.Close()
	var lines strings.Builder
	for i := range 10 {
		fmt.Fprintf(&lines, `{"id":"i%d","prompt":"%d","max_tokens":1100}`+"\n", i, i)
	}
	in := writeLines(t, lines.String())
	out := filepath.Join(t.TempDir(), "out.jsonl")
	run := func() (int, string) {
		code, _, said := inWorld(t, nil, nil, "run", in, "-o", out, "--base-url", server.URL, "--model", "m", "-c", "2",
			"--max-attempts", "1", "--keep-going", "--filtered", "fail", "--price", "0,10", "--retry-failed", "--max-cost", "0.255")
		return code, said
	}
	for n, want := range []struct {
		code  int
		calls int64
	}{{exit.ItemsFailed, 10}, {exit.ItemsFailed, 20}, {exit.Bound, 25}, {exit.Bound, 25}} {
		if code, said := run(); code != want.code || calls.Load() != want.calls {
			t.Fatalf("run %d: exit code %d after %d calls, want %d after %d: %s", n, code, calls.Load(), want.code, want.calls, said)
		}
	}
	if text := read(t, filepath.Join(filepath.Dir(out), "out.errors.jsonl")); strings.Count(text, "\n") != 10 || strings.Count(text, `"earlier":{"cost_usd":0.02}`) != 5 {
		t.Error(text)
	}
	if _, said, _ := inWorld(t, nil, nil, "status", out); !strings.Contains(said, "; $0.25, of it $0.10 for items that failed, $0.15 for earlier tries\n") {
		t.Error(said)
	}
}

// Calls that are in flight when a run is killed may be billed, and leave no line: the next run under
// a cap says so, counts what was reserved for them, and writes it down for the runs after it.
func TestCallsInFlightAtAKillCount(t *testing.T) {
	var hangs atomic.Bool
	hangs.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if hangs.Load() {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1000}}`)
	}))
	defer server.Close()
	in := writeLines(t, strings.Repeat(`{"prompt":"p","max_tokens":1000}`+"\n", 4))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{in, "-o", out, "--base-url", server.URL, "--model", "m", "-c", "2", "--price", "0,10", "--max-cost", "1"}
	p := start(t, nil, args...)
	p.until(func(e shownEvent) bool { return e.InFlight == 2 })
	for within := time.Now().Add(10 * time.Second); !strings.Contains(read(t, strings.Replace(out, ".jsonl", ".run.jsonl", 1)), `"reserved_usd":0.02,`); {
		if time.Now().After(within) {
			t.Fatal("the timeline does not say what is reserved")
		}
	}
	must.Do(t, p.cmd.Process.Kill())
	p.end()
	hangs.Store(false)
	code, _, said := inWorld(t, nil, nil, append([]string{"run"}, args...)...)
	if want := "an earlier run was cut off: calls then in flight may have been billed, at most $0.02, which counts against --max-cost"; code != exit.OK || !strings.Contains(said, want) {
		t.Fatalf("exit code %d, no %q in %s", code, want, said)
	}
	if !strings.Contains(said, "$0.04 of $1.00 spent (--max-cost), up to $0.02 more") {
		t.Error(said)
	}
	var first journal.Line
	must.Do(t, json.Unmarshal([]byte(strings.SplitAfter(read(t, out), "\n")[0]), &first))
	if e := first.Headrace.Earlier; e == nil || e.Doubtful.Calls != 2 || e.Doubtful.USD != 0.02 || strings.Count(read(t, out), "earlier") != 1 {
		t.Errorf("%+v", first.Headrace)
	}
	if err := os.Remove(strings.Replace(out, ".jsonl", ".run.jsonl", 1)); err != nil { // the output alone knows it now
		t.Fatal(err)
	}
	args[0], args[len(args)-1] = writeLines(t, strings.Repeat(`{"prompt":"p","max_tokens":1000}`+"\n", 5)), "0.065"
	if code, _, said = inWorld(t, nil, nil, append([]string{"run"}, args...)...); code != exit.Bound || strings.Contains(said, "cut off: calls") {
		t.Errorf("a cap that the lost calls have used up: exit code %d: %s", code, said)
	}
}

// A run that ends in peace leaves nothing reserved: not in its metrics, nor in its last event. The next run
// under a cap has nothing to count that no line is about.
func TestNothingIsReservedAfterTheEnd(t *testing.T) {
	_, base := serveFor(t, sim.Config{Seed: 1})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	metrics := filepath.Join(filepath.Dir(out), "run.prom")
	for n := range 3 {
		in := writeLines(t, strings.Repeat(`{"prompt":"p","max_tokens":1000}`+"\n", 40*(n+1)))
		code, _, said := inWorld(t, nil, nil, "run", in, "-o", out, "--base-url", base, "--model", "m", "--price", "1,1", "--max-cost", "50", "--metrics-file", metrics)
		if code != exit.OK || strings.Contains(said, "cut off") {
			t.Errorf("run %d: exit code %d: %s", n, code, said)
		}
		if text := read(t, metrics); !strings.Contains(text, "\nheadrace_cost_usd_reserved 0\n") {
			t.Errorf("run %d: the metrics say that something is reserved", n)
		}
		if _, text, _ := inWorld(t, nil, nil, "status", out, "--json"); !strings.Contains(text, `"reserved_usd":0,`) {
			t.Errorf("run %d: %s", n, text)
		}
	}
}
