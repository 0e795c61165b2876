package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// process is the command running on its own, its standard error read as events.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Reader
	last   string // line read
}

// start runs "headrace run" with JSON progress.
func start(t *testing.T, stdin io.Reader, args ...string) *process {
	t.Helper()
	return startTo(t, nil, stdin, args...)
}

// startTo is start with a standard output.
func startTo(t *testing.T, stdout *os.File, stdin io.Reader, args ...string) *process {
	t.Helper()
	cmd := exec.Command("headrace", append([]string{"run", "--progress", "json"}, args...)...)
	cmd.Stdin = stdin
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.Dir = t.TempDir()
	pipe := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &process{t: t, cmd: cmd, stderr: bufio.NewReader(pipe)}
}

// shownEvent holds the fields of an event that the tests look at.
type shownEvent struct {
	Event    string `json:"event"`
	Message  string `json:"message"`
	Code     string `json:"code"`
	Done     int    `json:"done"`
	InFlight int    `json:"in_flight"`
	NotRun   int    `json:"not_run"`
	Proved   bool   `json:"proved"`
	State    string `json:"state"`
	From     string `json:"from"` // of a change
	To       string `json:"to"`
}

// until reads events up to one that is wanted.
func (p *process) until(wanted func(shownEvent) bool) shownEvent {
	p.t.Helper()
	for {
		e, ok := p.next()
		if !ok {
			p.t.Fatalf("the process has ended, its last line is %q", p.last)
		}
		if wanted(e) {
			return e
		}
	}
}

// next reads one line; what is no event leaves e empty.
func (p *process) next() (e shownEvent, ok bool) {
	line, err := p.stderr.ReadString('\n')
	if err != nil {
		return e, false
	}
	p.last = strings.TrimSpace(line)
	_ = json.Unmarshal([]byte(line), &e)
	return e, true
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	must.Do(p.t, p.cmd.Process.Signal(s))
}

// end waits for the end, and gives the exit code and the summary.
func (p *process) end() (code int, sum shownEvent) {
	p.t.Helper()
	for {
		e, ok := p.next()
		if !ok {
			break
		}
		if e.Event == "summary" {
			sum = e
		}
	}
	_ = p.cmd.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode(), sum
}

func stopping(e shownEvent) bool { return strings.HasPrefix(e.Message, "stopping:") }

// serveFor serves a provider for one test.
func serveFor(t *testing.T, cfg sim.Config) (*sim.Server, string) {
	t.Helper()
	cfg.TrackIDs = true
	server := sim.New(cfg, clockwork.NewRealClock())
	base, stop := serveSim(server)
	t.Cleanup(stop)
	return server, base
}

// promptsFile is a file of n prompts.
func promptsFile(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompts.jsonl")
	text := strings.Repeat(`{"prompt":"again and again"}`+"\n", n)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// wholeLines returns the number of lines of a result file; each must be JSON, with its end.
func wholeLines(t *testing.T, path string) int {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		t.Error("the last line is torn")
	}
	n := 0
	for line := range bytes.Lines(text) {
		if n++; !json.Valid(line) {
			t.Errorf("line %d is not JSON: %s", n, line)
		}
	}
	return n
}

// childSim serves the simulated provider, with nothing in the way but what the flags say,
// in a process of its own.
func childSim(t *testing.T, flags ...string) (p *process, base string) {
	t.Helper()
	cmd := exec.Command("headrace", append([]string{"sim", "--addr", "127.0.0.1:0", "--profile", "fast"}, flags...)...)
	pipe := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p = &process{t: t, cmd: cmd, stderr: bufio.NewReader(pipe)}
	for base == "" {
		if _, ok := p.next(); !ok {
			t.Fatal("it has ended")
		}
		_, base, _ = strings.Cut(p.last, "listening on ")
	}
	return p, base
}
