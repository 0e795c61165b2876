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
)

// Runs with one key find each other by pid and output, those with another do not; one that leaves is gone, and so is
// one whose process died, with its file. Nothing in the folder has the key, and nobody else can read it.
func TestNeighboursFindEachOther(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "headrace")
	const key = "sk-some-long-key"
	a := joinNeighbours(folder, key, neighbour{1, 11, "/a"}, 1)
	if a == nil || len(a.others()) != 0 {
		t.Fatalf("alone: %v", a)
	}
	b := joinNeighbours(folder, key, neighbour{1, 12, "/b"}, 1)
	c := joinNeighbours(folder, "another key", neighbour{1, 13, "/c"}, 1)
	defer c.leave()
	if got := a.others(); len(got) != 1 || got[0].PID != 12 || got[0].Output != "/b" {
		t.Errorf("the first finds %v", got)
	}
	if got := b.others(); len(got) != 1 || got[0].PID != 11 || len(c.others()) != 0 {
		t.Errorf("the second finds %v, the one with another key %v", got, c.others())
	}
	for _, e := range entries(t, folder) {
		info, err := os.Stat(filepath.Join(folder, e))
		if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(e+read(t, filepath.Join(folder, e)), key) {
			t.Errorf("%s: %v, %v", e, info, err)
		}
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	_ = b.held.Close() // as when its process is killed
	if err := os.WriteFile(filepath.Join(folder, b.prefix+"notes"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := a.others(); len(got) != 0 {
		t.Errorf("a run that died is found: %v", got)
	}
	if got := entries(t, folder); len(got) != 3 || read(t, filepath.Join(folder, b.prefix+"notes")) != "mine" {
		t.Errorf("in the folder are %q", got)
	}
	if a.leave(); len(entries(t, folder)) != 2 {
		t.Errorf("after it has left: %q", entries(t, folder))
	}
}

func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// Where there is no folder to meet in, a run has no neighbours and goes on: none can be made, it is a file, or a link.
func TestNoFolderForNeighbours(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"no/such", "file", "link", "file/in"} {
		if n := joinNeighbours(filepath.Join(dir, folder), "k", neighbour{1, 1, "/o"}, 1); n != nil {
			t.Errorf("%s: %+v", folder, n)
		}
	}
	none := func(string) (string, bool) { return "", false }
	xdg := func(string) (string, bool) { return "/run/user/7", true }
	relative := func(string) (string, bool) { return "run", true }
	if got := runtimeFolder(xdg); got != "/run/user/7/headrace" {
		t.Error(got)
	}
	for _, env := range []func(string) (string, bool){none, relative} {
		if got := runtimeFolder(env); filepath.Dir(got) != filepath.Clean(os.TempDir()) || !strings.HasPrefix(filepath.Base(got), "headrace-") {
			t.Error(got)
		}
	}
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
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
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
		if _ = p.cmd.Wait(); said || p.cmd.ProcessState.ExitCode() != ExitOK {
			t.Errorf("exit code %d; said once more: %t", p.cmd.ProcessState.ExitCode(), said)
		}
	}
	if left := entries(t, filepath.Join(folder, "headrace")); len(left) != 0 {
		t.Errorf("files are left: %q", left)
	}
}

func pidOf(cmd *exec.Cmd) string { return strconv.Itoa(cmd.Process.Pid) }
