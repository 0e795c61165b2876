package command

import (
	"context"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/world"
)

// Main runs the command in this process, with what the extras add to it, and returns the
// code to exit with. Without extras it is the light command, for one machine.
func Main(extras ...Extra) int {
	signals := make(chan os.Signal, 2) // room for the two that differ in their effect
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it: the run is to outlive its terminal
		signal.Notify(signals, syscall.SIGHUP)
	}
	asks := make(chan os.Signal, 1)
	if list := world.AskSignals(); len(list) > 0 {
		signal.Notify(asks, list...)
	}
	// With SIGPIPE ignored, a closed pipe is an error of the write, which ends a run with
	// whole files.
	signal.Ignore(syscall.SIGPIPE)
	world.IgnoreFullQuota()
	w := &world.World{
		Name: world.CalledAs(os.Args[0]), Args: os.Args[1:],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.LookupEnv, Clock: clockwork.NewRealClock(),
		Chance:  rand.Uint64(), //nolint:forbidigo // the seed of all other chance; --seed replaces it
		Signals: signals, Asks: asks, Terminal: world.TerminalAt(os.Stderr), Converse: world.Converse(os.Stdin, os.Stderr),
		Release: func() { signal.Reset(os.Interrupt, syscall.SIGTERM) },
		Runtime: world.RuntimeFolder(os.LookupEnv),
	}
	return Run(context.Background(), w, extras...)
}
