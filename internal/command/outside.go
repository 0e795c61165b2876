package command

import (
	"context"
	"io"
	"os"

	"github.com/jonboulle/clockwork"
)

// Outside holds what a command touches when it is not a process of its own: in the tests of another main. There is no
// terminal.
type Outside struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            map[string]string
	Signals        <-chan os.Signal // nil: no signals
	Seed           uint64           // the seed where the user sets none
}

// RunIn runs the command there, with what the extras add to it, and returns the code that a process would exit with. When
// it returns, nothing of it runs any more.
func RunIn(ctx context.Context, o Outside, extras ...Extra) int {
	w := &World{
		name: "headrace", args: o.Args, stdin: o.Stdin, stdout: o.Stdout, stderr: o.Stderr, clock: clockwork.NewRealClock(),
		env:    func(name string) (string, bool) { v, ok := o.Env[name]; return v, ok },
		chance: o.Seed, signals: o.Signals, release: func() {}, extras: extras,
	}
	return run(ctx, w)
}
