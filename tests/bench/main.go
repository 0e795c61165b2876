package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// plan is the measurement that the flags ask for.
type plan struct {
	items    int
	size     int // bytes of a prompt line
	inFlight int
	latency  time.Duration
	rounds   int
	only     string // contestants, with commas; "": all
	durable  string
	dir      string // for files: its disk decides what a sync costs
	binary   string // of headrace; "": built first
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == childWord {
		exit(child(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures the chosen contestants and prints the table. It stops the server and removes the
// files at the end.
func run(ctx context.Context, args []string, out io.Writer) error {
	p, err := parse(args)
	if err != nil {
		return err
	}
	some, err := choose(p.only)
	if err != nil {
		return err
	}
	s, err := prepare(ctx, p)
	if err != nil {
		return err
	}
	defer s.clean()
	rounds, err := s.compete(some)
	if err != nil {
		return err
	}
	return table(out, p, some, rounds)
}

// parse reads the flags, and refuses values that no measurement can have.
func parse(args []string) (plan, error) {
	var p plan
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&p.items, "items", 50_000, "prompts in a round")
	flags.IntVar(&p.size, "size", 300, "bytes of a prompt line")
	flags.IntVar(&p.inFlight, "inflight", 64, "calls in flight")
	flags.DurationVar(&p.latency, "latency", 0, "how long the server takes to answer")
	flags.IntVar(&p.rounds, "rounds", 5, "rounds; each contestant runs once in each")
	flags.StringVar(&p.only, "only", "", "only these contestants, as a,b: "+strings.Join(names(), ", "))
	flags.StringVar(&p.durable, "durable", "sync", "the command's --durable")
	flags.StringVar(&p.dir, "dir", "", "where files are written (default: the folder for temporary files)")
	flags.StringVar(&p.binary, "binary", "", "a headrace that is built already (default: build it)")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	switch {
	case flags.NArg() > 0:
		return p, fmt.Errorf("%q is too much: there are flags only", flags.Arg(0))
	case p.items < 1 || p.inFlight < 1 || p.rounds < 1 || p.latency < 0:
		return p, errors.New("-items, -inflight and -rounds are at least 1, -latency at least 0")
	case p.size < minSize:
		return p, fmt.Errorf("-size: a prompt line has at least %d bytes", minSize)
	}
	return p, nil
}
