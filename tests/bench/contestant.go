package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// contestant is one way to get the prompts answered.
type contestant struct {
	name string
	run  func(job) error                     // in a process of this program; nil: a program of its own
	args func(s *stage, out string) []string // of that other program
}

// yardstick is the contestant that the others are compared with.
const yardstick = "bare"

func contestants() []contestant {
	return []contestant{
		{name: yardstick, run: bare},
		{name: "naive", run: naive},
		{name: "typed", run: typed},
		{name: "library", run: library},
		{name: "command", args: command},
		{name: "quiet", args: quiet},
	}
}

// command has all reports of a run on: pictures, a timeline and costs. The server is on
// loopback, so headrace takes it for one's own and opens a window instead of keeping to a
// rate.
func command(s *stage, out string) []string {
	return append(headrace(s, out), "--progress", "json", "--price", "1,2")
}

// quiet reports only the results: next to it one sees what reports cost.
func quiet(s *stage, out string) []string {
	return append(headrace(s, out), "--progress", "none", "--timeline", "none")
}

func headrace(s *stage, out string) []string {
	return []string{
		s.binary, "run", s.prompts, "-o", out, "--base-url", s.url + "/v1",
		"--concurrency", strconv.Itoa(s.inFlight), "--durable", s.durable,
	}
}

func names() []string {
	var all []string
	for _, c := range contestants() {
		all = append(all, c.name)
	}
	return all
}

// choose picks contestants by name, the yardstick always among them.
func choose(list string) ([]contestant, error) {
	if list == "" {
		return contestants(), nil
	}
	asked := strings.Split(list, ",")
	for _, name := range asked {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("-only: %q is none of %s", name, strings.Join(names(), ", "))
		}
	}
	return slices.DeleteFunc(contestants(), func(c contestant) bool {
		return c.name != yardstick && !slices.Contains(asked, c.name)
	}), nil
}
