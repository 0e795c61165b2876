//go:build unix

package command

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// onTerminal is the command on a terminal of its own, of which it is the session's leader.
type onTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	shown  strings.Builder
}

// startOnTerminal runs a shell's line there.
func startOnTerminal(t *testing.T, line string, size pty.Winsize, env ...string) *onTerminal {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(append(os.Environ(), "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR="), env...)
	cmd.Dir = t.TempDir()
	master := must.Get(pty.StartWithSize(cmd, &size))(t)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = master.Close() })
	return &onTerminal{t: t, cmd: cmd, master: master}
}

// until reads on until the terminal was sent that.
func (o *onTerminal) until(text string) {
	o.t.Helper()
	chunk := make([]byte, 4096)
	for !strings.Contains(o.shown.String(), text) {
		n, err := o.master.Read(chunk)
		o.shown.Write(chunk[:n])
		if err != nil {
			o.t.Fatalf("%v, and no %q in %q", err, text, o.shown.String())
		}
	}
}

// end reads the rest, and gives the exit code.
func (o *onTerminal) end() int {
	rest, _ := io.ReadAll(o.master) // a terminal whose last process has ended fails
	o.shown.Write(rest)
	_ = o.cmd.Wait() // the code says it
	return o.cmd.ProcessState.ExitCode()
}

var usual = pty.Winsize{Cols: 80, Rows: 24}

// On a terminal a run is shown in the panel, which is gone at the end; the summary stays.
func TestPanelOnATerminal(t *testing.T) {
	_, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 300 * time.Millisecond}})
	line := "exec headrace run " + promptsFile(t, 100) + " -o out.jsonl --model m -c 8 --base-url " + base
	for name, c := range map[string]struct {
		size      pty.Winsize
		flags     string
		env       string
		has, none []string
	}{
		"usual":           {usual, "", "", []string{"Held by  ", "→ out.jsonl", "▕", "\x1b[1m"}, nil},
		"small":           {pty.Winsize{Cols: 40, Rows: 10}, "", "", []string{"▕", "/100"}, []string{"Held by  ", "→"}},
		"tiny":            {pty.Winsize{Cols: 20, Rows: 3}, "", "", []string{" % "}, []string{"▕"}},
		"NO_COLOR":        {usual, "", "NO_COLOR=1", []string{"Held by  "}, []string{"m\x1b", "\x1b[1m", "\x1b[0m"}},
		"--color never":   {usual, " --color never", "", []string{"Held by  "}, []string{"\x1b[1m"}},
		"--color always":  {usual, " --color always", "NO_COLOR=1", []string{"\x1b[1m"}, nil},
		"LANG=C":          {usual, "", "LC_ALL=C", []string{"Held by  ", "> out.jsonl", "[#"}, []string{"▕", "→", "·"}},
		"TERM=linux":      {usual, "", "TERM=linux", []string{"[#"}, []string{"▕"}},
		"TERM=dumb":       {usual, "", "TERM=dumb", nil, []string{"\x1b"}},
		"--progress bar":  {usual, " --progress bar", "", []string{"\x1b[K", "/100  "}, []string{"Held by"}},
		"no terminal":     {usual, " 2>err.txt; cat err.txt", "", nil, []string{"\x1b", "Held by"}},
		"panel to a pipe": {usual, " --progress panel 2>&1 | cat", "", nil, []string{"\x1b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := line + c.flags
			if strings.ContainsAny(c.flags, ";|") {
				script = strings.TrimPrefix(script, "exec ")
			}
			o := startOnTerminal(t, script, c.size, append([]string{"LC_ALL=C.UTF-8"}, c.env)...)
			if code := o.end(); code != exit.OK {
				t.Errorf("exit code %d", code)
			}
			running, summary, _ := strings.Cut(strings.ReplaceAll(o.shown.String(), "\r", ""), "\nitems ")
			for _, text := range c.has {
				if !strings.Contains(running, text) {
					t.Errorf("no %q in %q", text, running)
				}
			}
			for _, text := range c.none {
				if strings.Contains(running, text) {
					t.Errorf("%q in %q", text, running)
				}
			}
			if strings.Contains(summary, "\x1b") || !strings.Contains(summary, "100 answered") {
				t.Errorf("the summary is %q", summary)
			}
		})
	}
}

// A run whose terminal goes away drains, as at SIGTERM, and nothing is lost; that shells and
// kernels say so more than once changes nothing. Under nohup it goes on.
func TestTerminalGoesAway(t *testing.T) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // so that none of the children inherits that it is ignored, where the tests run under nohup
	defer signal.Stop(heard)
	for name, c := range map[string]struct {
		before      string
		items, code int
	}{
		"usual": {"exec ", 2000, exit.Interrupted},
		"nohup": {"trap '' HUP; exec ", 100, exit.OK},
	} {
		t.Run(name, func(t *testing.T) {
			server, base := serveFor(t, sim.Config{Latency: sim.Latency{Median: 300 * time.Millisecond}})
			out := filepath.Join(t.TempDir(), "out.jsonl")
			o := startOnTerminal(t, c.before+"headrace run "+promptsFile(t, c.items)+" -o "+out+" --model m -c 8 --base-url "+base, usual)
			o.until("Held by")
			_ = o.master.Close()
			_ = o.cmd.Process.Signal(syscall.SIGHUP) // once more
			_ = o.cmd.Wait()                         // the code says it
			if code := o.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d", code)
			}
			if n, b := wholeLines(t, out), server.Books(); n != b.Accepted || b.Abandoned != 0 || n == 0 || c.code == exit.OK && n != c.items {
				t.Errorf("%d lines, and the provider answered %d and was left waiting by %d", n, b.Accepted, b.Abandoned)
			}
		})
	}
}

// After a pilot a run asks whether to go on, and buys nothing twice.
func TestAskedAfterAPilot(t *testing.T) {
	for name, c := range map[string]struct {
		typed       string
		code, calls int
		says        string
	}{
		"yes":    {"yes\n", exit.OK, 100, "90 answered"},
		"no":     {"n\n", exit.Bound, 10, "stopped after the pilot, as you said. Continue with:"},
		"Ctrl-C": {"\x03", exit.Interrupted, 10, "interrupted before the first call. Start again with:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, base := serveFor(t, sim.Config{})
			out := filepath.Join(t.TempDir(), "out.jsonl")
			o := startOnTerminal(t, "exec headrace run "+promptsFile(t, 100)+" -o "+out+" --model m --pilot 10 --base-url "+base, usual)
			o.until("Continue? [y/N] ")
			if n := server.Books().Accepted; n != 10 {
				t.Errorf("%d calls before the answer", n)
			}
			must.Get(io.WriteString(o.master, c.typed))(t)
			code, shown, b := o.end(), o.shown.String(), server.Books()
			if code != c.code || b.Accepted != c.calls || !strings.Contains(shown, c.says) || wholeLines(t, out) != c.calls || strings.Contains(shown, "in flight finish") {
				t.Errorf("exit code %d, %d calls: %s", code, b.Accepted, shown)
			}
		})
	}
}

// Before its first call a run asks a person whether it may cost much. It asks nobody who cannot
// answer, and nobody whose flags have answered.
func TestAskedWhatItMayCost(t *testing.T) {
	const dear, question = " --price 10000,10000", "100 items to do for about $306.86"
	for name, c := range map[string]struct {
		flags, typed string // "": there is no question
		code, calls  int
		says         string
	}{
		"yes":                {dear, "y\n", exit.OK, 100, "100 answered"},
		"no":                 {dear, "\n", exit.Interrupted, 0, "nothing was called, as you said. Start again with:"},
		"Ctrl-C":             {dear, "\x03", exit.Interrupted, 0, "interrupted before the first call. Start again with:"},
		"Ctrl-D":             {dear, "\x04", exit.Interrupted, 0, "[y/N] \r\nheadrace: nothing was called"},
		"--yes":              {dear + " --yes", "", exit.OK, 100, ""},
		"--max-cost":         {dear + " --max-cost 5000", "", exit.OK, 100, ""},
		"a higher threshold": {dear + " --confirm-above 600", "", exit.OK, 100, ""},
		"cheap":              {" --price 3000,3000", "", exit.OK, 100, ""},
		"unknown price":      {"", "", exit.OK, 100, ""},
		"nobody types":       {dear + " </dev/null", "", exit.OK, 100, ""},
		"nobody reads":       {dear + " 2>err.txt", "", exit.OK, 100, ""},
		"a program reads":    {dear + " --progress json", "", exit.OK, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, base := serveFor(t, sim.Config{})
			dir := t.TempDir()
			o := startOnTerminal(t, "exec headrace run "+promptsFile(t, 100)+" -o "+dir+"/out.jsonl --model m --base-url "+base+c.flags, usual)
			if c.typed != "" {
				o.until("Continue? [y/N] ")
				if _, err := os.Stat(dir + "/out.jsonl"); server.Books().Received != 0 || err == nil {
					t.Errorf("%d calls before the answer: %v", server.Books().Received, err)
				}
				must.Get(io.WriteString(o.master, c.typed))(t)
			}
			code := o.end()
			shown := o.shown.String()
			if got := server.Books().Accepted; code != c.code || got != c.calls || !strings.Contains(shown, c.says) || strings.Contains(shown, question) != (c.typed != "") || strings.Contains(shown, "in flight finish") {
				t.Errorf("exit code %d, %d calls: %s", code, got, shown)
			}
		})
	}
}

// Over lanes a person is asked about the dearest that the lines could go to.
func TestAskedWhatItMayCostOverLanes(t *testing.T) {
	for name, c := range map[string]struct {
		flags, typed string
		code, calls  int
		says         string
	}{
		"no":                 {"", "n\n", exit.Interrupted, 0, "100 items to do for $30.69 to $306.86, which may be more than $100.00 (--confirm-above). Continue?"},
		"yes":                {"", "y\n", exit.OK, 100, "100 answered"},
		"--yes":              {" --yes", "", exit.OK, 100, "100 answered"},
		"a higher threshold": {" --confirm-above 600", "", exit.OK, 100, "100 answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, base := serveFor(t, sim.Config{})
			lane := func(name, price string) string {
				return "  " + name + ":\n    base-url: " + base + "\n    api-key-env: none\n    price: {input: " + price + ", output: " + price + "}\n"
			}
			config := lanesFile(t, "lanes:\n"+lane("cheap", "1000")+lane("dear", "10000")+"pools:\n  all:\n    prefer: [cheap, dear]\n")
			o := startOnTerminal(t, "exec headrace run "+promptsFile(t, 100)+" -o "+t.TempDir()+"/out.jsonl --model m --config "+config+c.flags, usual)
			if c.typed != "" {
				o.until("Continue? [y/N] ")
				must.Get(io.WriteString(o.master, c.typed))(t)
			}
			code, shown := o.end(), o.shown.String()
			if got := server.Books().Accepted; code != c.code || got != c.calls || !strings.Contains(shown, c.says) || strings.Contains(shown, "Continue?") != (c.typed != "") {
				t.Errorf("exit code %d, %d calls: %s", code, got, shown)
			}
		})
	}
}
