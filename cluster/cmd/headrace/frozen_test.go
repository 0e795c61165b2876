package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var rewriteFrozen = flag.Bool("rewrite-frozen", false, "write the list of the cluster's commands and flags again")

// Scripts rely on the commands of a cluster, too. A flag of run that joins a group also joins the commands that take the
// group. Each machine of a cluster must then know it: by the job's record, by its settings, or by a refusal of submit.
// -rewrite-frozen writes the list anew once that is so.
func TestCommandsOfAClusterAreFrozen(t *testing.T) {
	var is []string
	var walk func(name string, c *cobra.Command)
	walk = func(name string, c *cobra.Command) {
		is = append(is, name)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			is = append(is, fmt.Sprintf("%s --%s %s %q", name, f.Name, f.Value.Type(), f.DefValue))
		})
		for _, sub := range c.Commands() {
			walk(name+" "+sub.Name(), sub)
		}
	}
	for _, c := range commands(newHere(t).world(nil, &said{}, &said{})) {
		walk(c.Name(), c)
	}
	ofServe := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	newServe(nil).Register(ofServe)
	ofServe.VisitAll(func(f *pflag.Flag) {
		is = append(is, fmt.Sprintf("serve --%s %s %q", f.Name, f.Value.Type(), f.DefValue))
	})
	const path = "testdata/frozen.txt"
	if *rewriteFrozen {
		if err := os.WriteFile(path, []byte(strings.Join(is, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		was[strings.TrimRight(line, "\n")] = true
	}
	for _, line := range is {
		if !was[line] {
			t.Errorf("new, and not in %s: %s", path, line)
		}
		delete(was, line)
	}
	for line := range was {
		t.Errorf("gone or changed: %s", line)
	}
}
