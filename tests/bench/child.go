package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/metrics"
	"strings"
	"time"
)

// childWord is the first argument of a process that is one contestant, or the server.
const childWord = "child"

// job is the work of a contestant.
type job struct {
	prompts  string // the file
	out      string // the file that answers are appended to
	url      string // of the server, without /v1
	inFlight int
}

// child is a process of this program that was started to be one contestant.
func child(args []string) error {
	if len(args) == 0 {
		return errors.New("a child needs a name")
	}
	var (
		j       job
		latency time.Duration
	)
	flags := flag.NewFlagSet(childWord, flag.ContinueOnError)
	flags.StringVar(&j.prompts, "prompts", "", "")
	flags.StringVar(&j.out, "out", "", "")
	flags.StringVar(&j.url, "url", "", "")
	flags.IntVar(&j.inFlight, "inflight", 1, "")
	flags.DurationVar(&latency, "latency", 0, "")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if args[0] == serveWord {
		return serve(os.Stdout, latency)
	}
	return compete(args[0], j)
}

// compete runs a contestant and prints what it allocated.
func compete(name string, j job) error {
	for _, c := range contestants() {
		if c.name == name && c.run != nil {
			if err := c.run(j); err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(allocated())
		}
	}
	return fmt.Errorf("no contestant is called %q", name)
}

// allocated counts the objects that this process has allocated.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// lines yields the lines of the prompt file, each in memory of its own.
func (j job) lines(yield func([]byte) bool) error {
	file, err := os.Open(j.prompts)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if !yield([]byte(strings.TrimSpace(scanner.Text()))) {
			return nil
		}
	}
	return scanner.Err()
}

// create makes the file that answers are appended to.
func (j job) create() (*os.File, error) {
	return os.OpenFile(j.out, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
