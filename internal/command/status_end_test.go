//go:build unix

package command

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// status ends as the run did, in all its forms: well, with items that failed, stopped by the provider, at a bound of
// the user's. Without a timeline its files say whether items failed.
func TestStatusEndsAsTheRunDid(t *testing.T) {
	_, base := serveFor(t, sim.Config{})
	_, poor := serveFor(t, sim.Config{QuotaAfter: 1})
	const good, bad = `{"prompt":"p","id":"a"}` + "\n", `{"prompt":"p","id":"b","max_tokens":-1}` + "\n"
	for _, c := range []struct {
		name, lines, base string
		more              []string
		code, filesOnly   int
	}{
		{"well", good, base, nil, exit.OK, exit.OK},
		{"failed", good + bad, base, nil, exit.ItemsFailed, exit.ItemsFailed},
		{"stopped", strings.Repeat(`{"prompt":"p"}`+"\n", 9), poor, nil, exit.Stopped, exit.OK},
		{"bound", good + bad + strings.ReplaceAll(good, "a", "c"), base, []string{"--max-failures", "1", "-c", "1"}, exit.Bound, exit.ItemsFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := writeLines(t, c.lines)
			out := filepath.Join(t.TempDir(), "out.jsonl")
			args := append([]string{"run", in, "-o", out, "--base-url", c.base, "--model", "m"}, c.more...)
			if code, _, stderr := inWorld(t, nil, nil, args...); code != c.code {
				t.Fatalf("the run: exit code %d: %s", code, stderr)
			}
			for _, form := range [][]string{nil, {"--json"}, {"--watch"}, {"--input", in}} {
				code, stdout, stderr := inWorld(t, nil, nil, append([]string{"status", out}, form...)...)
				if code != c.code || strings.Contains(stdout, "killed") || stderr != "" {
					t.Errorf("status %s: exit code %d, want %d: %s%s", form, code, c.code, stdout, stderr)
				}
			}
			if code, stdout, _ := inWorld(t, nil, nil, "status", out, "--timeline", "none"); code != c.filesOnly {
				t.Errorf("status by the files: exit code %d: %s", code, stdout)
			}
		})
	}
}

// A run that goes on has no end: status says who makes it, and exits with 0 though items have failed. Once it is
// killed status says so at once and exits with 130, with and without its timeline; the next run ends that.
func TestStatusOfARunThatIsKilled(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), "wait"):
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case strings.Contains(string(body), "bad"):
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	in := writeLines(t, `{"prompt":"good"}`+"\n"+`{"prompt":"bad"}`+"\n"+`{"prompt":"wait"}`+"\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{in, "-o", out, "--base-url", server.URL + "/v1", "--model", "m", "-c", "1"} // in turn: a good item proves that an item is bad
	p := start(t, nil, args...)
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done == 2 })
	status := func(form ...string) (int, string) {
		t.Helper()
		code, stdout, stderr := inWorld(t, nil, nil, append([]string{"status", out}, form...)...)
		return code, stdout + stderr
	}
	for _, form := range []string{"--timeline=its", "--timeline=none", "--json"} {
		form = strings.TrimPrefix(form, "--timeline=its")
		code, said := status(strings.Fields(form)...)
		if code != exit.OK || strings.Contains(said, "killed") || form != "--json" && !strings.Contains(said, "run        goes on (process ") {
			t.Errorf("status %s of a run that goes on: exit code %d: %s", form, code, said)
		}
	}
	must.Do(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	for form, want := range map[string]string{
		"": "run        was killed, or its machine went down: the same command resumes it", "--timeline=none": "was killed",
		"--json": `"state":"killed"`, "--json ": "the run has stopped: it was killed",
	} {
		if code, said := status(strings.Fields(form)...); code != exit.Interrupted || !strings.Contains(said, want) {
			t.Errorf("status %s of a run that was killed: exit code %d: %s", form, code, said)
		}
	}
	close(release)
	if code, _, stderr := inWorld(t, nil, nil, append([]string{"run"}, args...)...); code != exit.ItemsFailed {
		t.Fatalf("the next run: exit code %d: %s", code, stderr)
	}
	if code, said := status(); code != exit.ItemsFailed || strings.Contains(said, "killed") {
		t.Errorf("status after the next run: exit code %d: %s", code, said)
	}
}

// A run that was interrupted is one that ended with 130.
func TestStatusOfARunThatIsInterrupted(t *testing.T) {
	_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 50 * time.Millisecond}})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	p := start(t, nil, promptsFile(t, 2000), "-o", out, "--base-url", base, "--model", "m", "-c", "2")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	p.signal(os.Interrupt)
	if code, _ := p.end(); code != exit.Interrupted {
		t.Fatalf("exit code %d", code)
	}
	if code, stdout, _ := inWorld(t, nil, nil, "status", out); code != exit.Interrupted || strings.Contains(stdout, "killed") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if journal.LockLeft(out) {
		t.Error("a run that ended by itself has left its lock")
	}
	if _, err := os.Stat(out + journal.LockSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// status counts the rows of a table whose columns only a template knows.
func TestStatusCountsATableForATemplate(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.csv")
	must.Do(t, os.WriteFile(in, []byte("text,lang\na,de\nb,fr\n\"c\nd\",it\n"), 0o600))
	_, base := serveFor(t, sim.Config{})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	if code, _, stderr := inWorld(t, nil, nil, "run", in, "-o", out, "--base-url", base, "--model", "m", "--template", "{{.text}} in {{.lang}}", "--limit", "1"); code != exit.OK {
		t.Fatal(stderr)
	}
	if code, stdout, stderr := inWorld(t, nil, nil, "status", out, "--input", in); code != exit.OK || !strings.Contains(stdout, "remaining  2 of 3 in ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
