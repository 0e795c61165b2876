//go:build unix

package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// takes are the parts of a result line that differ between two runs of anything.
var takes = regexp.MustCompile(`"(latency_ms|queued_ms|waited_ms|request_id|id|created|sum|run|at|crc)":("[^"]*"|[0-9.]+)`)

// runThrough runs the prompts next to a server, and returns the sorted lines without times.
func runThrough(t *testing.T, folder, in, out string, args ...string) (lines []string, said string) {
	t.Helper()
	cmd := exec.Command("headrace", append([]string{"run", in, "-o", out, "--model", "m", "--progress", "plain"}, args...)...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "XDG_RUNTIME_DIR="+folder)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	lines = strings.Split(strings.TrimSpace(takes.ReplaceAllString(read(t, filepath.Join(folder, out)), `"$1":0`)), "\n")
	slices.Sort(lines)
	return lines, string(text)
}

// The lines of a run through serve are those of a run without it, over an address and over a socket. Serve has
// the provider's key, and the run finds the token by itself.
func TestRunThroughServe(t *testing.T) {
	folder := t.TempDir()
	server, base := serveFor(t, sim.Config{Keys: []string{"sk-of-the-provider"}, Latency: sim.Latency{Median: 5_000_000}})
	in := promptsFile(t, 50)
	must.Do(t, os.WriteFile(filepath.Join(folder, "key"), []byte("sk-of-the-provider\n"), 0o600))
	direct, _ := runThrough(t, folder, in, "direct.jsonl", "--base-url", base, "--api-key-file", "key")
	for i, where := range [][]string{{"--addr", "127.0.0.1:0"}, {"--socket", "hr.sock"}} {
		s := startServing(t, folder, append([]string{"--base-url", base, "--api-key-file", "key", "--state", "s.json", "--log-level", "debug", "--log-file", "log.txt"}, where...)...)
		address := s.base
		if where[0] == "--socket" {
			address = "unix:hr.sock"
		}
		out := fmt.Sprintf("through%d.jsonl", i)
		through, said := runThrough(t, folder, in, out, "--through", address)
		if !slices.Equal(direct, through) {
			t.Errorf("%s:\n%s\nand without serve\n%s", address, through[0], direct[0])
		}
		if _, err := os.Stat(filepath.Join(folder, strings.TrimSuffix(out, ".jsonl")+".state.json")); err == nil {
			t.Error("the run has kept a state")
		}
		if !strings.Contains(said, "calls go through headrace serve at "+address) || strings.Contains(said, "--law none") || strings.Contains(said+read(t, filepath.Join(folder, out)), s.token) {
			t.Error(said)
		}
		if again, _ := runThrough(t, folder, in, out, "--through", address); !slices.Equal(again, through) {
			t.Error("the run was made again")
		}
		if code := s.end(syscall.SIGTERM); code != exit.OK {
			t.Error(code, s.said)
		}
		left := must.Get(filepath.Glob(filepath.Join(folder, "headrace", "token-*")))(t)
		if want := i; len(left) != want { // the socket's address is the same next time, the free port's is not
			t.Errorf("%s leaves %q", address, left)
		}
	}
	if log := read(t, filepath.Join(folder, "log.txt")); strings.Count(log, "client=through0.jsonl class=batch") != 50 || strings.Count(log, "client=through1.jsonl class=batch") != 50 {
		t.Error(log)
	}
	if b := server.Books(); b.Accepted != 150 || b.Refused429 != 0 {
		t.Errorf("%+v", b)
	}
}

// A run whose calls wait in the line of serve says that serve holds it back, not its own concurrency.
func TestRunSaysThatServeHoldsItBack(t *testing.T) {
	folder := t.TempDir()
	_, base := serveFor(t, sim.Config{})
	s := startServing(t, folder, "--base-url", base, "--rpm", "240", "--open")
	_, said := runThrough(t, folder, promptsFile(t, 32), "out.jsonl", "--through", s.base, "-c", "8")
	if !strings.Contains(said, "the line of headrace serve") || strings.Contains(said, "your -c 8: all in flight") {
		t.Error(said)
	}
}

// A run whose serve ends says that, and not only that the provider is down.
func TestRunNamesAServeThatHasEnded(t *testing.T) {
	_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}})
	s := startServing(t, t.TempDir(), "--base-url", base, "--open")
	p := start(t, nil, promptsFile(t, 100_000), "-o", filepath.Join(t.TempDir(), "out.jsonl"), "--model", "m", "--through", s.base, "-c", "2")
	p.until(func(e shownEvent) bool { return e.Event == "progress" && e.Done > 0 })
	must.Do(t, s.cmd.Process.Kill())
	p.until(func(shownEvent) bool { return strings.Contains(p.last, "headrace serve at "+s.base+" has ended") })
}

// With --share a run goes through the serve that has its key, whatever limits it was given for itself, and its lines are those of a
// run without it. A serve that does not know the run's token, or has another key, is passed by, and so is one that has ended.
func TestRunSharesTheLineOfItsKey(t *testing.T) {
	folder := t.TempDir()
	server, base := serveFor(t, sim.Config{Keys: []string{"sk-of-the-provider"}})
	in := promptsFile(t, 20)
	must.Do(t, os.WriteFile(filepath.Join(folder, "key"), []byte("sk-of-the-provider\n"), 0o600))
	own := []string{"--base-url", base, "--api-key-file", "key"}
	share := append(slices.Clone(own), "--share", "--rpm", "60000")
	direct, said := runThrough(t, folder, in, "direct.jsonl", share...)
	if !strings.Contains(said, "--share: no headrace serve on this machine has this key; calls go to the provider") {
		t.Error(said)
	}
	for i, where := range [][]string{{"--addr", "127.0.0.1:0"}, {"--socket", "hr.sock"}, {"--open"}} {
		s := startServing(t, folder, append(slices.Clone(own), where...)...)
		out := fmt.Sprintf("share%d.jsonl", i)
		through, said := runThrough(t, folder, in, out, share...)
		if !slices.Equal(direct, through) || !strings.Contains(said, "calls go through headrace serve at ") || strings.Contains(said, "--law none") {
			t.Errorf("%s\n%s\nand without serve\n%s", said, through[0], direct[0])
		}
		if _, err := os.Stat(filepath.Join(folder, strings.TrimSuffix(out, ".jsonl")+".state.json")); err == nil {
			t.Error("the run has kept a state")
		}
		if status, text := s.get("/metrics", s.token); !strings.Contains(text, `client="`+out+`",lane="openai/m",result="answered"} 20`) && where[0] != "--open" {
			t.Errorf("%d %s", status, text)
		}
		if code := s.end(syscall.SIGTERM); code != exit.OK {
			t.Error(code)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(folder, "clients.yaml"), []byte("clients:\n  alice:\n    token-sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"), 0o600))
	startServing(t, folder, append(slices.Clone(own), "--clients", "clients.yaml")...)
	before := server.Books().Accepted
	if _, said := runThrough(t, folder, in, "passed.jsonl", share...); !strings.Contains(said, "does not let this run in; calls go to the provider") || server.Books().Accepted != before+20 {
		t.Error(said)
	}
}

// A run with the key of a serve on this machine names the flag by which one line paces both.
func TestRunFindsAServeOfItsKey(t *testing.T) {
	folder := t.TempDir()
	_, base := serveFor(t, sim.Config{})
	must.Do(t, os.WriteFile(filepath.Join(folder, "key"), []byte("sk-of-the-provider\n"), 0o600))
	s := startServing(t, folder, "--base-url", base, "--api-key-file", "key")
	_, said := runThrough(t, folder, promptsFile(t, 2), "out.jsonl", "--base-url", base, "--api-key-file", "key")
	if want := fmt.Sprintf("headrace serve of process %d has the same key: add --through %s, or --share, and one line paces both", s.cmd.Process.Pid, s.base); !strings.Contains(said, want) {
		t.Error(said)
	}
}
