package command

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/panel"
)

// A World is everything outside the command that it touches. Only Main makes a real one;
// tests give another.
type World struct {
	name    string   // how the command was called, for the line that resumes
	args    []string // without the name
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	screen  io.Writer // stderr as it is, for what steers a terminal; run sets it
	env     func(string) (string, bool)
	clock   clockwork.Clock
	chance  uint64           // the seed where the user sets none
	signals <-chan os.Signal // Ctrl-C, SIGTERM, SIGHUP
	asks    <-chan os.Signal // SIGUSR1, and SIGINFO where it exists: the user asks how the run stands
	release func()           // gives the signals their usual effect back
	runtime string           // the folder in which runs of this user find each other; "": they do not

	terminal terminal
	extras   []Extra
}

// Clock returns the clock of this world.
func (w *World) Clock() clockwork.Clock { return w.clock }

// Chance returns the seed where the user sets none.
func (w *World) Chance() uint64 { return w.chance }

// Env looks up a variable of the environment.
func (w *World) Env(name string) (value string, ok bool) { return w.env(name) }

// terminal is the one at stderr.
type terminal struct {
	size       func() (columns, rows int) // nil: stderr is no terminal, or one that cannot be steered
	foreground func() bool                // whether this process is in its foreground; nil: always
	continued  func() bool                // whether it was stopped, and goes on, since the last call; nil: never
}

// Main runs the command in this process, with what the extras add to it, and returns the
// code to exit with. Without extras it is the light command, for one machine.
func Main(extras ...Extra) int {
	signals := make(chan os.Signal, 2) // room for the two that differ in their effect
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it: the run is to outlive its terminal
		signal.Notify(signals, syscall.SIGHUP)
	}
	asks := make(chan os.Signal, 1)
	if list := askSignals(); len(list) > 0 {
		signal.Notify(asks, list...)
	}
	// With SIGPIPE ignored, a closed pipe is an error of the write, which ends a run with
	// whole files.
	signal.Ignore(syscall.SIGPIPE)
	ignoreFullQuota()
	w := &World{
		name: calledAs(os.Args[0]), args: os.Args[1:],
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.LookupEnv, clock: clockwork.NewRealClock(),
		chance:  rand.Uint64(), //nolint:forbidigo // the seed of all other chance; --seed replaces it
		signals: signals, asks: asks, terminal: terminalAt(os.Stderr),
		release: func() { signal.Reset(os.Interrupt, syscall.SIGTERM) },
		runtime: runtimeFolder(os.LookupEnv),
		extras:  extras,
	}
	return run(context.Background(), w)
}

// terminalAt returns the terminal at f.
func terminalAt(f *os.File) terminal {
	size := panel.SizeOf(f)
	if size == nil {
		return terminal{}
	}
	return terminal{size: size, foreground: panel.ForegroundOf(f), continued: panel.Continued()}
}

// calledAs returns the words to type to call this program again. "go run" builds it in a
// folder that is gone afterwards.
func calledAs(arg0 string) string {
	path := filepath.ToSlash(arg0)
	if !strings.Contains(path, "/go-build") || !strings.Contains(path, "/exe/") {
		return arg0
	}
	if info, err := os.Stat("cmd/headrace"); err == nil && info.IsDir() {
		return "go run ./cmd/headrace"
	}
	return "headrace"
}
