package command

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
)

var rewriteFrozen = flag.Bool("rewrite-frozen", false, "write the list of commands, flags and exit codes again")

// Scripts rely on commands, flags, defaults and exit codes. One that is added gets a line in
// testdata/frozen.txt (-rewrite-frozen writes it). One that goes or changes also gets a line in CHANGELOG.md.
func TestCommandsAndFlagsAreFrozen(t *testing.T) {
	var b strings.Builder
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		fmt.Fprintln(&b, c.UseLine())
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			short := ""
			if f.Shorthand != "" {
				short = " -" + f.Shorthand
			}
			fmt.Fprintf(&b, "  --%s%s %s %q\n", f.Name, short, f.Value.Type(), f.DefValue)
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&world.World{Stdout: &b, Stderr: &b}))
	fmt.Fprintln(&b, "exit codes", exit.OK, exit.ItemsFailed, exit.Usage, exit.Stopped, exit.Bound, exit.Output, exit.Interrupted, exit.Pipe)

	const path = "testdata/frozen.txt"
	if *rewriteFrozen {
		must.Do(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	frozen := must.Get(os.ReadFile(path))(t)
	was, is := lineSet(string(frozen)), lineSet(b.String())
	for line := range was {
		if !is[line] {
			t.Errorf("gone or changed: %s", line)
		}
	}
	for line := range is {
		if !was[line] {
			t.Errorf("new, and not in %s: %s", path, line)
		}
	}
}

// lineSet gives the lines of a text, each flag with its command.
func lineSet(text string) map[string]bool {
	set, command := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			command = line
			set[line] = true
			continue
		}
		set[command+line] = true
	}
	return set
}
