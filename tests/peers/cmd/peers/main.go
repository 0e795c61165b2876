package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

// plan is the measurement that the flags ask for.
type plan struct {
	only  *regexp.Regexp // nil: all
	short bool
	json  string
	bin   string
	times int
	room  int64
}

// errMissed repeats what the table has already said.
var errMissed = errors.New("a row fails")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// run runs the chosen rows and reports on them. A row that fails makes it return errMissed.
func run(ctx context.Context, args []string, out io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	some := choose(p)
	if len(some) == 0 {
		return fmt.Errorf("-only: no row matches %v", p.only)
	}
	dir, err := os.MkdirTemp("", "peers-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the system clears what is left
	found, err := all(ctx, p, dir, some)
	if err != nil {
		return err
	}
	return report(out, p, found)
}

// report saves the outcomes if the flags ask for that, and prints them. Only faults make a row
// fail: one that misses its target passes.
func report(out io.Writer, p plan, found []outcome) error {
	if p.json != "" {
		if err := save(p.json, found); err != nil {
			return err
		}
	}
	passed, failed, absent := table(out, found)
	fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", passed, failed, absent)
	if failed > 0 {
		return errMissed
	}
	return nil
}

// parse reads the flags, and finds the command that is measured.
func parse(args []string) (p plan, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.Func("only", "rows whose name matches this regular expression", func(text string) (err error) {
		p.only, err = regexp.Compile(text)
		return err
	})
	flags.BoolVar(&p.short, "short", false, "fewer rows, fewer items, wider bounds")
	flags.StringVar(&p.json, "json", "", "also write the figures to this file")
	flags.StringVar(&p.bin, "bin", "headrace", "the built command that is measured")
	flags.IntVar(&p.times, "times", 1, "run each row so often, and take the run in the middle")
	flags.Int64Var(&p.room, "room", whole, "how much goes on at once, where a row of 50 calls a second takes 1; a busy machine bears less")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	switch {
	case flags.NArg() > 0:
		return p, fmt.Errorf("%q is too much: there are flags only", flags.Arg(0))
	case p.times < 1 || p.room < 1:
		return p, errors.New("-times and -room are at least 1")
	}
	return p, p.locate()
}

// locate turns the name of the command into one that is valid in any folder.
func (p *plan) locate() error {
	path, err := exec.LookPath(p.bin)
	if err != nil {
		return fmt.Errorf("-bin: %w (go build ./cmd/headrace makes one)", err)
	}
	p.bin, err = filepath.Abs(path)
	return err
}
