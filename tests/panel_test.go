//go:build unix

package tests

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/mattn/go-runewidth"
)

// size is of a terminal.
type size struct{ width, height int }

func (s size) String() string { return fmt.Sprintf("%dx%d", s.width, s.height) }

// sizes that each state is looked at in.
var sizes = []size{{40, 10}, {80, 24}, {200, 50}}

// states are what can hold a run back: how the provider is made to do it, and what the panel
// must say of it, from so long after the run began on. Each lasts for as long as a busy
// machine may take to look at them all. A limit binds at far fewer calls in flight than any
// other bound: two a second of a twentieth of a second each, of which a busy machine may make
// a second. Where two calls at once are as much as the limit lets through, either may bind.
var states = []struct {
	name  string
	sim   string // flags of headrace sim
	run   string // flags of headrace run
	input string // a shell's line that writes the input; "" is a file of many prompts
	key   string // is typed when the run has gone on for a while
	after time.Duration
	bound string // a pattern
}{
	{name: "requests", sim: "--rpm 600 --burst 1s --headers --latency 300ms", after: 5 * time.Second, bound: `limit on requests|requests limit`},
	{name: "tokens", sim: "--tpm 6000 --burst 5s --headers --latency 50ms", after: 5 * time.Second, bound: `limit on tokens|tokens limit`},
	{name: "cooldown", sim: "--rpm 12 --window 5m --retry-after always --latency 50ms", run: "-c 200", after: 10 * time.Second, bound: `cooldown`},
	{name: "outage", sim: "--outage 3s+20m:reset --latency 100ms", after: 12 * time.Second, bound: `outage`},
	{name: "overload", sim: "--outage 3s+20m:503 --latency 100ms", after: 8 * time.Second, bound: `overload|outage`}, // a 503 may mean either
	{name: "stopped", sim: "--quota-after 3 --latency 60s --sigma 2 --seed 1", run: "--preset generic --timeout 20m", after: 8 * time.Second, bound: `quota|no lane|insufficient`},
	{name: "concurrency", sim: "--latency 300ms", run: "-c 2", after: 5 * time.Second, bound: `-c 2`},
	{name: "input", sim: "--latency 100ms", input: `while sleep 1; do echo '{"prompt":"and now?"}'; done`, after: 5 * time.Second, bound: `your input`},
	{name: "draining", sim: "--latency 20m", run: "-c 6 --timeout 20m", key: "C-c", after: 8 * time.Second, bound: `Ctrl-C`},
}

// capture is one look at a panel.
type capture struct {
	state               string
	size                size
	rows, widest, count int // of the panel; how many panels there are
	bound               string
	right               bool
}

func (c capture) String() string {
	return fmt.Sprintf("%-12s %-7v rows %2d  widest %3d  panels %d  %-5t %s", c.state, c.size, c.rows, c.widest, c.count, c.right, c.bound)
}

func (c capture) fault() string {
	switch {
	case c.count != 1:
		return fmt.Sprintf("%d panels", c.count)
	case c.rows > 10:
		return fmt.Sprintf("%d rows", c.rows)
	case c.widest >= c.size.width:
		return fmt.Sprintf("a row of %d cells", c.widest)
	}
	return ""
}

// In a real terminal there is one panel, whose rows fit, and which says what holds the run
// back: in each state, at each size, in 95 of 100 looks.
func TestPanelInTmux(t *testing.T) {
	m := newTmux(t)
	for _, s := range states {
		m.run(s.name, sizes[0], s.sim, s.run, s.input)
	}
	for _, s := range states {
		if m.shows(s.name, sizes[0]); s.key != "" {
			m.do("send-keys", "-t", s.name, s.key)
		}
	}
	m.until("stopped", "Stopped") // by chance, but that of a seed
	began := time.Now()
	m.wait(began.Add(8 * time.Second))
	looks, wrong := map[string]int{}, map[string]int{}
	for _, size := range sizes {
		for _, s := range states {
			m.do("resize-window", "-t", s.name, "-x", fmt.Sprint(size.width), "-y", fmt.Sprint(size.height))
		}
		for _, s := range states { // on a machine that is busy a frame takes its time
			m.shows(s.name, size)
		}
		for range 4 {
			for _, s := range states {
				if time.Since(began) < s.after {
					continue
				}
				c := m.inspect(s.name, size, regexp.MustCompile(s.bound))
				t.Log(c)
				if fault := c.fault(); fault != "" {
					t.Errorf("%v: %s:\n%s", c, fault, m.screen(s.name))
				}
				if looks[s.name]++; !c.right {
					wrong[s.name]++
				}
			}
			m.pause(time.Second)
		}
	}
	all, allWrong := 0, 0
	for name, n := range looks {
		all, allWrong = all+n, allWrong+wrong[name]
		if wrong[name] > 1+n/20 {
			t.Errorf("%s: Held by was wrong in %d of %d looks", name, wrong[name], n)
		}
	}
	t.Logf("Held by was right in %d of %d looks", all-allWrong, all)
	if allWrong*20 > all {
		t.Errorf("Held by was wrong in %d of %d looks", allWrong, all)
	}
}

// A terminal that becomes narrower shows one panel, and nothing of an old one but what it has
// moved to its history itself; nothing piles up.
func TestPanelResizedInTmux(t *testing.T) {
	m := newTmux(t)
	m.run("resized", size{80, 24}, "--rpm 600 --headers --latency 300ms", "", "")
	m.until("resized", "Held by")
	for _, width := range []int{50, 200, 40} {
		m.do("resize-window", "-t", "resized", "-x", fmt.Sprint(width), "-y", "24")
		m.pause(3 * time.Second)
	}
	before := m.history("resized")
	m.pause(10 * time.Second)
	after := m.history("resized")
	if screen := m.screen("resized"); !strings.HasPrefix(screen, "▕") || strings.Count(screen, "Held by") != 1 {
		t.Errorf("after two narrowings:\n%s", screen)
	}
	if a, b := strings.Count(before, "\n"), strings.Count(after, "\n"); a != b {
		t.Errorf("%d rows became %d:\n%s", a, b, after)
	}
}

// A run whose pane is closed drains, with exit code 130; under nohup it goes on to its end.
func TestPaneClosedInTmux(t *testing.T) {
	m := newTmux(t)
	base := m.serve("--latency 300ms")
	m.session("drains", size{80, 24}, `trap 'kill -HUP $p' HUP; `+m.command(base, "-c 4 -o drains.jsonl", "")+` & p=$!; wait $p; wait $p; echo $? >drains.code`)
	m.session("goes-on", size{80, 24}, "nohup "+m.command(base, "--limit 80 -c 4 -o goes-on.jsonl", "")+" >goes-on.txt 2>&1")
	m.until("drains", "Held by")
	m.do("kill-session", "-t", "drains")
	m.do("kill-session", "-t", "goes-on")
	m.eventually(func() bool { return m.file("drains.code") == "130\n" })
	m.eventually(func() bool { return strings.Count(m.file("goes-on.jsonl"), "\n") == 80 })
	if text := m.file("drains.jsonl"); !strings.HasSuffix(text, "}\n") {
		t.Errorf("%q", text)
	}
}

// tmux is a server of terminals of the test's own.
type tmux struct {
	t           *testing.T
	bin, socket string
	dir         string
}

func newTmux(t *testing.T) *tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here, and the panel is looked at in it")
	}
	if testing.Short() {
		t.Skip("it takes half a minute of real time")
	}
	dir := must.Get(os.MkdirTemp("", "panel"))(t)
	m := &tmux{t: t, bin: buildCommand(t), dir: dir}
	t.Cleanup(func() { m.eventually(func() bool { return os.RemoveAll(dir) == nil }) }) // the runs are still ending
	m.socket = filepath.Join(m.dir, "tmux")
	prompts := strings.Repeat(`{"prompt":"Name three rivers in Austria.","max_tokens":50}`+"\n", 20_000)
	must.Do(t, os.WriteFile(filepath.Join(m.dir, "p.jsonl"), []byte(prompts), 0o600))
	t.Cleanup(func() { _ = m.tmux("kill-server").Run() }) // there may be none any more
	return m
}

func (m *tmux) tmux(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-f", os.DevNull, "-S", m.socket}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TMUX") }), "LC_ALL=C.UTF-8", "SHELL=/bin/sh")
	cmd.Dir = m.dir
	return cmd
}

func (m *tmux) do(args ...string) string {
	m.t.Helper()
	out, err := m.tmux(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// session runs a line of the shell in a terminal of that size, which stays when it has ended,
// by Ctrl-C too.
func (m *tmux) session(name string, s size, line string) {
	m.do("new-session", "-d", "-s", name, "-x", fmt.Sprint(s.width), "-y", fmt.Sprint(s.height), "trap : INT; "+line+"; sleep 1000")
}

// run runs the command there, against a provider of its own.
func (m *tmux) run(name string, s size, simFlags, runFlags, input string) {
	m.session(name, s, m.command(m.serve(simFlags), runFlags+" -o "+name+".jsonl", input))
}

func (m *tmux) command(base, flags, input string) string {
	file, feed := "p.jsonl", ""
	if input != "" {
		file, feed = "-", "("+input+") | "
	}
	return fmt.Sprintf("%s%s run %s --model m --base-url %s %s", feed, m.bin, file, base, flags)
}

// serve serves a simulated provider for the test's time, and gives its address.
func (m *tmux) serve(flags string) string {
	m.t.Helper()
	cmd := exec.Command(m.bin, append([]string{"sim", "--addr", "127.0.0.1:0", "--profile", "fast"}, strings.Fields(flags)...)...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, base, ok := strings.Cut(lines.Text(), "listening on "); ok {
			return base
		}
	}
	m.t.Fatalf("the provider of %q does not say where it listens", flags)
	return ""
}

// screen returns what a terminal shows, without the empty end.
func (m *tmux) screen(name string) string {
	return strings.TrimRight(m.do("capture-pane", "-p", "-t", name), "\n ")
}

// history is that, and what has left it at the top.
func (m *tmux) history(name string) string {
	return strings.TrimRight(m.do("capture-pane", "-p", "-S", "-", "-t", name), "\n ")
}

// inspect looks at a panel: from its first row, above that of what holds the run back, to the end.
func (m *tmux) inspect(name string, s size, want *regexp.Regexp) capture {
	c := capture{state: name, size: s}
	lines := strings.Split(m.screen(name), "\n")
	first := len(lines)
	for i, line := range lines {
		if strings.HasPrefix(line, "Held by") || strings.HasPrefix(line, "Stopped") {
			c.count++
			c.bound = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "Held by"), "Stopped"))
			first = max(0, i-1)
			if s.width >= 60 {
				first = max(0, i-2)
			}
		}
	}
	c.rows = len(lines) - first
	for _, row := range lines[first:] { // above them are lines, which may be long
		c.widest = max(c.widest, runewidth.StringWidth(row))
	}
	c.right = want != nil && want.MatchString(c.bound)
	return c
}

// shows waits until a terminal shows one panel that fits.
func (m *tmux) shows(name string, s size) {
	m.t.Helper()
	m.eventually(func() bool { return m.inspect(name, s, nil).fault() == "" })
}

// until waits until a terminal shows that.
func (m *tmux) until(name, text string) {
	m.t.Helper()
	m.eventually(func() bool { return strings.Contains(m.screen(name), text) })
}

// eventually waits for something of another process.
func (m *tmux) eventually(is func() bool) {
	m.t.Helper()
	for range 600 {
		if is() {
			return
		}
		m.pause(100 * time.Millisecond)
	}
	m.t.Fatal("it did not happen within a minute")
}

func (m *tmux) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(m.dir, name)) // it may not be there yet
	return string(text)
}

// pause lets the processes go on: a terminal that is looked at has no other clock.
func (m *tmux) pause(d time.Duration) { time.Sleep(d) }
func (m *tmux) wait(until time.Time)  { m.pause(time.Until(until)) }
