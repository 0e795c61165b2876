package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// options are the flags.
type options struct {
	root    string
	in      string
	from, n int
	seed    uint64
	list    bool
	timeout time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", "", "the module's folder (default: the nearest above that holds limiter/)")
	flag.StringVar(&o.in, "in", "", "only mutants in this package, file, or file:line")
	flag.IntVar(&o.n, "n", 40, "how many mutants are tried, spread evenly over the packages")
	flag.IntVar(&o.from, "from", 0, "leave out so many of those chosen: to go on where another run was")
	flag.Uint64Var(&o.seed, "seed", 1, "which mutants are chosen")
	flag.BoolVar(&o.list, "list", false, "say what would be tried, and try nothing")
	flag.DurationVar(&o.timeout, "timeout", 90*time.Second, "of one test binary; a mutant that takes longer is killed by that")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1) //nolint:gocritic // the signal's handler needs no undoing at exit
	}
}

// run finds, chooses and tries mutants, or lists those that it would try. The scratch folder is
// removed at the end.
func run(ctx context.Context, o options) error {
	root, err := findRoot(o.root)
	if err != nil {
		return err
	}
	all, err := findAll(root, o.in)
	if err != nil {
		return err
	}
	chosen := choose(all, o.seed)
	chosen = chosen[min(max(0, o.from), len(chosen)):]
	if o.list {
		for _, m := range chosen[:min(o.n, len(chosen))] {
			fmt.Println(m)
		}
		return nil
	}
	scratch, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t := trier{root: root, scratch: scratch, timeout: o.timeout}
	return t.tryAll(ctx, chosen, o.n, len(all))
}

var errNoRoot = errors.New("no folder above holds limiter/ and go.mod: say -root")

// findRoot goes up from here to the module under test.
func findRoot(given string) (string, error) {
	dir, err := filepath.Abs(given)
	if err != nil || given != "" {
		return dir, err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "limiter", "law.go")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errNoRoot
		}
		dir = up
	}
}
