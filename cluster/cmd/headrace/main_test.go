package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command"
	"github.com/headrace/headrace/internal/command/world"
)

// together is the number of parallel tests: they wait for leases and periods, and not for processors.
const together = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", together) // the flag is there
	goleak.VerifyTestMain(m)
}

var seeds atomic.Uint64

// said collects the output of a command, written by several goroutines.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// here is a folder in which commands are typed, and the environment that they have.
type here struct {
	t   *testing.T
	dir string
	env map[string]string
}

func newHere(t *testing.T) *here {
	t.Helper()
	return &here{t, t.TempDir(), map[string]string{}}
}

// typed runs a command; {} is the folder.
func (h *here) typed(line string) (code int, stdout, stderr string) {
	h.t.Helper()
	var out, errs said
	code = h.run(line, &out, &errs, nil)
	return code, out.String(), errs.String()
}

func (h *here) run(line string, out, errs *said, signals <-chan os.Signal) int {
	args := strings.Fields(strings.ReplaceAll(line, "{}", h.dir))
	w := h.world(args, out, errs)
	w.Signals = signals
	return command.Run(h.t.Context(), w, command.Extra{Heading: "Many machines", Commands: commands, Cluster: runTrial, Serve: newServe})
}

// world has the environment of the test, and no terminal.
func (h *here) world(args []string, out, errs *said) *world.World {
	return &world.World{
		Name: "headrace", Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Clock: clockwork.NewRealClock(), Chance: seeds.Add(1),
		Env: func(name string) (string, bool) { v, ok := h.env[name]; return v, ok }, Release: func() {},
	}
}

// must runs a command that ends so, and gives its standard output.
func (h *here) must(code int, line string, says ...string) string {
	h.t.Helper()
	got, stdout, stderr := h.typed(line)
	if got != code {
		h.t.Fatalf("headrace %s: exit code %d, want %d\n%s%s", line, got, code, stdout, stderr)
	}
	for _, want := range says {
		if !strings.Contains(stdout+stderr, want) {
			h.t.Errorf("headrace %s: no %q in\n%s%s", line, want, stdout, stderr)
		}
	}
	return stdout
}

// hub starts one for the test, whose line is in the environment from then on.
func (h *here) hub() (line string) {
	h.t.Helper()
	hub, err := bus.StartHub(bus.HubConfig{Dir: filepath.Join(h.dir, "hub"), Listen: "127.0.0.1:0", Say: func(err error) { h.t.Log(err) }})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(hub.Shutdown)
	line = node.JoinLine(hub.JoinURL(), filepath.Join(h.dir, "home"))
	h.env["HEADRACE_CLUSTER"] = line
	return line
}

// oneKeeper is a lease that outlasts a stall of the machine. Only the first keeper knows which limits have stopped and how many calls
// have ended.
const oneKeeper = " --lease 1m"

// worker starts one; what it gives ends it softly and gives its exit code.
func (h *here) worker(flags string) (end func() int) {
	h.t.Helper()
	signals, over := make(chan os.Signal, 1), make(chan int, 1)
	errs := &said{}
	go func() { over <- h.run("worker "+flags, errs, errs, signals) }()
	ended := sync.OnceValue(func() int {
		signals <- os.Interrupt
		code := <-over
		h.t.Logf("the worker:\n%s", errs)
		return code
	})
	h.t.Cleanup(func() { ended() })
	return ended
}

func (h *here) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func questions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"prompt\":\"question %d\"}\n", i)
	}
	return b.String()
}

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer takes all
	_ = w.Close()
	return b.String()
}

// resultsOf returns the lines of a result file, without the fields that depend on time and on their maker.
func (h *here) resultsOf(name string) (lines []string) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l struct {
			ID       string `json:"id"`
			CustomID string `json:"custom_id"`
			Response struct {
				Status int `json:"status_code"`
				Body   struct {
					Model   string          `json:"model"`
					Choices json.RawMessage `json:"choices"`
				} `json:"body"`
			} `json:"response"`
			Headrace struct {
				Line int    `json:"line"`
				Key  string `json:"key"`
				Lane string `json:"lane"`
			} `json:"headrace"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			h.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%+v", l))
	}
	return lines
}
