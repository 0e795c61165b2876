package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flagGroup is flags that are shown under one heading.
type flagGroup struct {
	heading string
	flags   string // names, in order
}

// runGroups has each flag of run once.
var runGroups = []flagGroup{
	{"Files", "output errors timeline text filtered durable fresh retry-failed"},
	{"Whom to call", "provider base-url api-key-env api-key-file model endpoint region project location resource preset sim-profile"},
	{"Input", "format template system param max-tokens on-bad-line on-untranslatable order limit"},
	{"What it costs", "price prices"},
	{"How fast", "concurrency rpm tpm input-tpm output-tpm burst latency-target law max-bodies forget"},
	{"When to give up", "max-attempts timeout item-timeout first-answer outage-patience max-failures keep-going deadline"},
	{"What is shown", "progress verbose color long-wait log-level log-format log-file"},
	{"Many machines", "cluster"},
	{"The rest", "config seed help"},
}

// groupFlags shows a command's flags under headings, and of another command first those that
// stand under none. Each heading keeps its own columns.
func groupFlags(cmd *cobra.Command, groups []flagGroup) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		out := cmd.OutOrStderr()
		fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
		if cmd.HasExample() {
			fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
		}
		shown := append([]flagGroup{{"Flags", ungrouped(cmd.Flags(), groups)}}, groups...)
		for _, g := range shown {
			if flags := g.of(cmd.Flags()); flags.HasFlags() {
				fmt.Fprintf(out, "\n%s:\n%s", g.heading, flags.FlagUsages())
			}
		}
		return nil
	})
}

// ungrouped names the flags that stand under no heading.
func ungrouped(all *pflag.FlagSet, groups []flagGroup) string {
	var names, grouped []string
	for _, g := range groups {
		grouped = append(grouped, strings.Fields(g.flags)...)
	}
	all.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(grouped, f.Name) {
			names = append(names, f.Name)
		}
	})
	return strings.Join(names, " ")
}

func (g flagGroup) of(all *pflag.FlagSet) *pflag.FlagSet {
	fs := pflag.NewFlagSet(g.heading, pflag.ContinueOnError)
	fs.SortFlags = false
	for name := range strings.FieldsSeq(g.flags) {
		if f := all.Lookup(name); f != nil {
			fs.AddFlag(f)
		}
	}
	return fs
}

// newConfigTopic explains the file of --config. It is no command: "headrace help config"
// shows it.
func newConfigTopic() *cobra.Command {
	var text strings.Builder
	writeConfigHelp(&text)
	return &cobra.Command{Use: "config", Short: "What the file of --config may say", Long: strings.TrimRight(text.String(), "\n")}
}

const configHelp = `The file of --config is YAML. A flag of headrace run is a line, without its dashes; a flag
or a variable beats it. Nothing in it is executed, expanded or included, and no key
belongs into it.

  base-url: http://127.0.0.1:8080/v1
  rpm: 600
  law: plain
  ramp:
    initial: 5
    target: 20
    duration: 5m

What has no flag is about every model that is called. What is left out has its default,
which is shown. rate, ramp and cooldown are parts of --law plain, where a lane without ramp
climbs to the rate that it learned, within 10 s; of rate, --law model takes initial. Under
--law model a breaker without open and max-open is open for 2.3s at a time. --law none
limits nothing but the calls in flight, and takes neither these nor error-window.
`

// writeConfigHelp lists the settings that have no flag, section by section.
func writeConfigHelp(out io.Writer) {
	fmt.Fprint(out, configHelp)
	s, latest := newLaneSettings(""), ""
	for _, one := range s.table() {
		section, key, within := strings.Cut(one.name, ".")
		if !within {
			section = "" // those that stand alone stand together
		}
		if section != latest {
			fmt.Fprintln(out)
			latest = section
		}
		if !within {
			fmt.Fprintf(out, "  %-16s %-6s %s (%s)\n", one.name+":", s.shown(one.name), one.means, one.allowed())
			continue
		}
		if key == s.keys(section)[0] {
			fmt.Fprintf(out, "  %s:\n", section)
		}
		fmt.Fprintf(out, "    %-14s %-6s %s (%s)\n", key+":", s.shown(one.name), one.means, one.allowed())
	}
}
