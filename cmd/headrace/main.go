package main

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
	"golang.org/x/term"

	"github.com/headrace/headrace/cmd/headrace/internal/progress"
)

// world is everything outside that the command touches.
type world struct {
	name    string   // how the command was called, for the line that resumes
	args    []string // without the name
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	screen  io.Writer // stderr as it is, for what steers a terminal; run sets it
	env     func(string) (string, bool)
	clock   clockwork.Clock
	chance  uint64           // seeds what the user does not seed
	width   func() int       // columns of the terminal at stderr; nil: it is none
	signals <-chan os.Signal // Ctrl-C, SIGTERM
	asks    <-chan os.Signal // SIGUSR1, and SIGINFO where there is one: how does it stand?
	release func()           // gives the signals their usual effect back
}

func main() { os.Exit(command()) }

// command runs in the process as it is.
func command() int {
	signals := make(chan os.Signal, 2) // two are told apart
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	asks := make(chan os.Signal, 1)
	if list := askSignals(); len(list) > 0 {
		signal.Notify(asks, list...)
	}
	// A closed pipe is then an error of the write, which ends a run with whole files.
	signal.Ignore(syscall.SIGPIPE)
	ignoreFullQuota()
	w := &world{
		name: calledAs(os.Args[0]), args: os.Args[1:],
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		env: os.LookupEnv, clock: clockwork.NewRealClock(),
		chance: rand.Uint64(), //nolint:forbidigo // the seed of all other chance; --seed replaces it
		width:  widthOf(os.Stderr), signals: signals, asks: asks,
		release: func() { signal.Reset(os.Interrupt, syscall.SIGTERM) },
	}
	return run(context.Background(), w)
}

// widthOf is how to ask a terminal for its columns; nil if f is none.
func widthOf(f *os.File) func() int {
	fd := int(f.Fd())
	if !term.IsTerminal(fd) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() int {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			return columns
		}
		return progress.DefaultWidth
	}
}

// calledAs is what to type to call this program again. "go run" builds it in a
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
