package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flagGroup holds the flags under one heading.
type flagGroup struct {
	heading string
	flags   string // names, in order
}

// runGroups contains each flag of run once.
var runGroups = []flagGroup{
	{"Files", "output errors timeline text filtered durable fresh retry-failed"},
	{"Provider", "provider base-url insecure-http api-key-env api-key-file model endpoint region project location resource preset sim-profile"},
	{"Network", "header ca-file client-cert client-key"},
	{"Input", "format template system param max-tokens on-bad-line on-untranslatable order limit"},
	{"Prices", "price prices"},
	{"How fast", "concurrency rpm tpm input-tpm output-tpm burst latency-target law max-bodies forget"},
	{"When to give up", "max-attempts timeout stream stream-idle item-timeout first-answer outage-patience max-failures keep-going deadline"},
	{"Output on the terminal", "progress verbose color long-wait log-level log-format log-file"},
	{"Many machines", "cluster"},
	{"Other", "config seed help"},
}

// groupFlags shows a command's flags under headings. Flags of another command that stand
// under none come first. Each heading keeps its own columns.
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

// newConfigTopic explains the file of --config. It is not a command: "headrace help config"
// shows it.
func newConfigTopic() *cobra.Command {
	var text strings.Builder
	writeConfigHelp(&text)
	return &cobra.Command{Use: "config", Short: "Settings of the --config file", Long: strings.TrimRight(text.String(), "\n")}
}

const configHelp = `The file of --config is YAML. Each flag of headrace run is a line, without its dashes; a flag
or a variable beats it. Nothing in it is executed, expanded or included, and keys are not
allowed in it: a secret of headers is named by its variable or file (headrace help network).

  base-url: http://127.0.0.1:8080/v1
  rpm: 600
  headers:
    X-Title: nightly
    x-portkey-api-key: env:PORTKEY_API_KEY
  law: plain
  ramp:
    initial: 5
    target: 20
    duration: 5m

The settings below have no flag and apply to every model. Each line shows the default. rate,
ramp and cooldown belong to --law plain: without ramp, a model climbs within 10 s to the rate
that headrace has learned. --law model takes rate.initial only, and its breaker, if open and
max-open are not set, opens for 2.3s at a time. --law none limits only the calls in flight,
and takes neither these nor error-window.
`

// writeConfigHelp lists the settings that have no flag, section by section.
func writeConfigHelp(out io.Writer) {
	fmt.Fprint(out, configHelp)
	s, latest := newLaneSettings(""), ""
	for _, one := range s.table() {
		section, key, within := strings.Cut(one.name, ".")
		if !within {
			section = "" // the settings without a section stand together
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

// newTimeTopic explains the words in the sum of a run's time. It is not a command: "headrace
// help time" shows it.
func newTimeTopic() *cobra.Command {
	return &cobra.Command{Use: "time", Short: "The words in the time line of --verbose", Long: timeHelp}
}

const timeHelp = `With --verbose a run ends with a sum of its time: for each moment, the one thing that held
it back most. Finding the limit is search, trial and recovery together.

  requests, tokens, input tokens, output tokens
                limits of the provider on these, from headers, from flags or learned
  search        the limit is not known yet: the pace rises until a call is refused
  trial         going slower for a while to see whether refusals stop
  cooldown      a wait after a refusal: as long as the provider asked, or as estimated
  recovery      a probe and a ramp after a cooldown, back to full speed
  overload      the server says that it is too busy
  breaker       an outage: calls fail, and one at a time tests whether the server is back
  errors        slower, as a share of the calls fails
  unanswered    calls that get no answer hold the places of others
  window        the number of calls in flight that the server can take, as measured
  concurrency   your -c: that many calls were in flight
  backoff       all remaining items wait for their own retry
  input         the input did not deliver items fast enough
  output        results were written, or read by another program, too slowly
  slept         this computer slept, or the process was stopped
  paused        you paused the run
  draining      after Ctrl-C or a deadline: finishing the calls in flight
  stopped       after the provider stopped the run: finishing the calls in flight
  tail          the last calls: nothing is left to start`
