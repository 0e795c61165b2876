package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// figures holds the results of one contestant in one round.
type figures struct {
	wall, cpu   time.Duration
	peak        int64   // bytes
	allocs      float64 // objects
	connections int64
}

// round is one turn of each contestant, by name.
type round map[string]figures

// compete runs all contestants in turns. Another one begins in each round: the first after a
// pause finds the machine in another state than the second.
func (s *stage) compete(some []contestant) ([]round, error) {
	var rounds []round
	for n := range s.rounds {
		r := round{}
		for i := range some {
			c := some[(n+i)%len(some)]
			f, err := s.turn(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			r[c.name] = f
		}
		rounds = append(rounds, r)
	}
	return rounds, s.countCommand(some, rounds)
}

// turn runs one contestant on a fresh output file, and checks in the server's books that
// each prompt was asked once.
func (s *stage) turn(c contestant) (figures, error) {
	folder := filepath.Join(s.folder, "out")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return figures{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // no contestant continues the output of another
	out := filepath.Join(folder, "out.jsonl")
	if c.run == nil {
		return s.measure(exec.CommandContext(s.ctx, c.args(s, out)[0], c.args(s, out)[1:]...))
	}
	return s.measure(exec.CommandContext(s.ctx, s.self, childWord, c.name,
		"-prompts", s.prompts, "-out", out, "-url", s.url, "-inflight", strconv.Itoa(s.inFlight)))
}

// measure runs a contestant's process and returns its figures. It first empties the server's books,
// and then demands as many calls as there are prompts. The command prints no allocs: they stay 0
// until countCommand.
func (s *stage) measure(cmd *exec.Cmd) (f figures, err error) {
	if _, err := s.readBooks(); err != nil {
		return f, err
	}
	var says, tells bytes.Buffer
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stdout, cmd.Stderr = &says, &tells
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return f, fmt.Errorf("%w: %s", err, tells.Bytes())
	}
	f.wall = time.Since(began)
	f.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	f.peak = peakMemory(cmd.ProcessState)
	f.allocs, _ = strconv.ParseFloat(strings.TrimSpace(says.String()), 64) // the command prints none
	b, err := s.readBooks()
	if err == nil && b.Calls != int64(s.items) {
		err = fmt.Errorf("%d calls were made for %d prompts", b.Calls, s.items)
	}
	f.connections = b.Connections
	return f, err
}

// countCommand runs the command once more, in a build that reports its allocations. That run
// is not timed.
func (s *stage) countCommand(some []contestant, rounds []round) error {
	for _, c := range some {
		if c.run != nil {
			continue // it reports them itself
		}
		allocs, err := s.count(c)
		if err != nil {
			return err
		}
		for _, r := range rounds {
			f := r[c.name]
			f.allocs = allocs
			r[c.name] = f
		}
	}
	return nil
}

// count runs a contestant once more, in the counting build, and returns the number of objects that
// it allocated. It works on a copy of the stage.
func (s *stage) count(c contestant) (float64, error) {
	file := filepath.Join(s.folder, "allocs")
	counting := *s
	counting.binary, counting.env = s.counting, []string{tellerVariable + "=" + file}
	if _, err := counting.turn(c); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
}
