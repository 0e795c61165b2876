package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/command/simulator"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider/sim"
)

// TestMain makes the test binary the command, for scripts and for tests that start
// it as a process of its own.
func TestMain(m *testing.M) {
	if file, err := filepath.Abs(schemaFile); err == nil && os.Getenv(schemaVariable) == "" {
		_ = os.Setenv(schemaVariable, file)
	}
	testscript.Main(leakFree{m}, map[string]func(){"headrace": checkedMain})
}

// leakFree fails tests that leave a goroutine behind.
type leakFree struct{ *testing.M }

func (l leakFree) Run() int {
	code := l.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// The scripts are sessions of a user: what is typed, and what is then read.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "NO_PROXY=127.0.0.1", schemaVariable+"="+os.Getenv(schemaVariable))
			env.Values[theProvider{}] = &theProvider{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"provider": startProvider, "books": checkBooks, "prompts": writePrompts, "wrongserver": startWrongServer,
			"lines": countLines, "cut": cutFile, "lastline": checkLastLine, "costs": checkCosts, "bounded": writeBounded, "within": checkWithin,
		},
	})
}

// theProvider is the simulated provider of one script.
type theProvider struct{ server *sim.Server }

// startProvider serves the simulated provider, with the flags of headrace sim, and
// puts its base URL into $BASE, and its address into $ADDR.
func startProvider(ts *testscript.TestScript, _ bool, args []string) {
	var flags simulator.SimFlags
	fs := pflag.NewFlagSet("provider", pflag.ContinueOnError)
	flags.Register(fs)
	key := fs.String("key", "", "the only key that is accepted")
	ts.Check(fs.Parse(append([]string{"--profile=fast"}, args...)))
	cfg, err := flags.Config(fs)
	ts.Check(err)
	if *key != "" {
		cfg.Keys = []string{*key}
	}
	server := sim.New(cfg, clockwork.NewRealClock())
	base, stop := serveSim(server)
	ts.Defer(stop)
	ts.Setenv("BASE", strings.TrimSuffix(base, "/v1")+simulator.SimBase(cfg))
	ts.Setenv("ADDR", strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1"))
	ts.Value(theProvider{}).(*theProvider).server = server
}

// serveSim serves on a free port; stop waits for its end.
func serveSim(server *sim.Server) (base string, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ready, over := make(chan string, 1), make(chan error, 1)
	go func() {
		over <- sim.Serve(ctx, "127.0.0.1:0", server, sim.OnReady(func(a net.Addr) { ready <- a.String() }))
	}()
	select {
	case addr := <-ready:
		return "http://" + addr + "/v1", func() { cancel(); <-over }
	case err := <-over:
		panic(err)
	}
}

// checkBooks compares what the provider has counted: books accepted 5 repeats 1.
func checkBooks(ts *testscript.TestScript, _ bool, args []string) {
	b := ts.Value(theProvider{}).(*theProvider).server.Books()
	counts := map[string]int{
		"received": b.Received, "accepted": b.Accepted, "refused": b.Refused429,
		"distinct": b.Distinct, "abandoned": b.Abandoned, "repeats": b.MaxRepeats, "bad_request": b.Errors[sim.BadRequest],
	}
	for i := 0; i+1 < len(args); i += 2 {
		if got := strconv.Itoa(counts[args[i]]); got != args[i+1] {
			ts.Fatalf("the provider counts %s: %s, want %s", args[i], got, args[i+1])
		}
	}
}

// writePrompts makes a prompt file: prompts FILE N.
func writePrompts(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{"prompt":"What is %d times two?","id":"p%d"}`+"\n", i, i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// countLines checks how many lines a file has, all whole: lines FILE N.
func countLines(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if got := strconv.Itoa(strings.Count(text, "\n")); got != args[1] {
		ts.Fatalf("%s has %s lines, want %s", args[0], got, args[1])
	}
	if text != "" && !strings.HasSuffix(text, "}\n") {
		ts.Fatalf("%s ends in a torn line", args[0])
	}
}

// cutFile takes bytes off the end of a file: cut FILE BYTES.
func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text[:len(text)-n]), 0o600))
}

// checkLastLine compares the last line of a file or stream: lastline stderr 'headrace …'.
func checkLastLine(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(strings.TrimRight(ts.ReadFile(args[0]), "\n"), "\n")
	if got := lines[len(lines)-1]; got != args[1] {
		ts.Fatalf("the last line of %s is %q, want %q", args[0], got, args[1])
	}
}

// inWorld runs the command in this process, with that environment.
func inWorld(t *testing.T, stdin io.Reader, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var errs strings.Builder
	code, stdout = inWorldTo(t, &errs, stdin, env, args...)
	return code, stdout, errs.String()
}

// inWorldTo is inWorld with a standard error that is read meanwhile.
func inWorldTo(t *testing.T, stderr io.Writer, stdin io.Reader, env map[string]string, args ...string) (code int, stdout string) {
	t.Helper()
	var out strings.Builder
	w := &world.World{
		Name: "headrace", Args: args, Stdin: stdin, Stdout: &out, Stderr: stderr, Clock: clockwork.NewRealClock(),
		Env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Signals: make(chan os.Signal), Release: func() {},
	}
	code = Run(t.Context(), w)
	return code, out.String()
}
