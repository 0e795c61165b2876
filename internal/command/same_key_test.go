//go:build unix

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
)

func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	all := must.Get(os.ReadDir(folder))(t)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// Two runs with one key on one machine both say so once, each with the pid and the output of the other; one with
// another key says nothing. A run that was killed is nobody's neighbour, and a folder that cannot be made breaks none.
func TestRunsWithOneKeySaySo(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close) // after the processes
	folder := t.TempDir()
	begin := func(key, runtime, out string) *process {
		t.Setenv("A_KEY", key)
		t.Setenv("XDG_RUNTIME_DIR", runtime)
		return start(t, nil, promptsFile(t, 1), "-o", out, "--base-url", server.URL+"/v1", "--model", "m", "--api-key-env", "A_KEY")
	}
	out := func() string { return filepath.Join(t.TempDir(), "out.jsonl") }
	started := func(e shownEvent) bool { return e.Event == "start" }
	same := func(e shownEvent) bool { return strings.Contains(e.Message, "calls with the same key") }
	killed := begin("sk-one-key-of-some-length", folder, out())
	killed.until(started)
	must.Do(t, killed.cmd.Process.Kill())
	_ = killed.cmd.Wait()
	outs := []string{out(), out()}
	first := begin("sk-one-key-of-some-length", folder, outs[0])
	first.until(started)
	second := begin("sk-one-key-of-some-length", folder, outs[1])
	for i, p := range []*process{second, first} {
		other := []*process{first, second}[i]
		e := p.until(same)
		want := "process " + pidOf(other.cmd) + " calls with the same key, for " + outs[i]
		if !strings.HasPrefix(e.Message, want+": they draw on the same limits") {
			t.Errorf("said %q, want %q", e.Message, want)
		}
	}
	others := []*process{begin("sk-two-key-of-some-length", folder, out()), begin("sk-one-key-of-some-length", "/no/such/folder", out())}
	for _, p := range others {
		p.until(func(e shownEvent) bool { return e.Event == "progress" })
	}
	close(release)
	for _, p := range append(others, first, second) {
		said := false
		for {
			e, more := p.next()
			if !more {
				break
			}
			said = said || same(e)
		}
		if _ = p.cmd.Wait(); said || p.cmd.ProcessState.ExitCode() != exit.OK {
			t.Errorf("exit code %d; said once more: %t", p.cmd.ProcessState.ExitCode(), said)
		}
	}
	if left := entries(t, filepath.Join(folder, "headrace")); len(left) != 0 {
		t.Errorf("files are left: %q", left)
	}
}

func pidOf(cmd *exec.Cmd) string { return strconv.Itoa(cmd.Process.Pid) }
