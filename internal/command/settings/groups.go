package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Groups are groups of the flags of run. A command of an Extra (worker, submit, keeper) names the
// groups that it has: a flag that joins a group joins those commands, too. Names, defaults, variables
// and checks are the same.
type Groups uint

// The groups. Each flag of run is in one of them, except --cluster, --verbose, --print-config and --help.
const (
	Vendor Groups = 1 << iota // the called provider: provider, base-url, region, preset, text, …
	Keys                      // the place of the key: api-key-env, api-key-file
	Net                       // how this machine reaches the provider: header, ca-file, client-cert, client-key
	Input                     // how to read a line, and its defaults: format, template, model, …
	Files                     // what a run writes, and whether it continues: output, errors, order, fresh, …
	Pace                      // how fast: rpm, concurrency, …
	Tries                     // when to give up an item: max-attempts, timeout, stream, item-timeout, …
	Ends                      // when a run on this machine stops: first-answer, outage-patience, …
	Until                     // for how long: deadline
	Fails                     // how many items may fail: max-failures
	Costs                     // price, prices
	Checks                    // which answers are results: schema, schema-retries
	Asks                      // what is asked before calls: pilot, yes, confirm-above
	Faces                     // what a run shows: color, long-wait
	Says                      // in which form: progress, log-level, log-format, log-file
	Meters                    // what shows a run on one machine: metrics-addr, metrics-file, linger, report
	Beside                    // other programs on this machine: through, share, ctl
	Config                    // the flags --config and --seed
)

// flagsIn names the flags of each group.
var flagsIn = map[Groups]string{
	Vendor: "provider base-url insecure-http region project location resource preset sim-profile text",
	Keys:   "api-key-env api-key-file",
	Net:    "header ca-file client-cert client-key",
	Input:  "model endpoint format template system param max-tokens on-bad-line on-untranslatable limit filtered service-tier spill",
	Files:  "output errors timeline order retry-failed fresh forget durable",
	Pace:   "concurrency rpm tpm input-tpm output-tpm burst latency-target law max-bodies",
	Tries:  "max-attempts timeout stream stream-idle item-timeout",
	Ends:   "first-answer outage-patience keep-going max-cost",
	Until:  "deadline",
	Fails:  "max-failures",
	Costs:  "price prices",
	Checks: "schema schema-retries",
	Asks:   "pilot yes confirm-above",
	Faces:  "color long-wait",
	Says:   "progress log-level log-format log-file",
	Meters: "metrics-addr metrics-file linger report",
	Beside: "through share ctl",
	Config: "config seed",
}

// SetOf lists the flags of the groups that were set, from any source.
func (f *Flags) SetOf(groups Groups) (names []string) {
	f.All.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && groups.Has(flag.Name) {
			names = append(names, flag.Name)
		}
	})
	return names
}

// Has reports whether a flag is in one of the groups.
func (g Groups) Has(name string) bool {
	for one, names := range flagsIn {
		if g&one != 0 && strings.Contains(" "+names+" ", " "+name+" ") {
			return true
		}
	}
	return false
}

// A flagGroup holds the flags under one heading.
type flagGroup struct {
	heading string
	flags   string // names, in order
}

// RunGroups contains each flag of run once.
var RunGroups = []flagGroup{
	{"Files", "output errors timeline report metrics-file text filtered schema schema-retries durable fresh retry-failed"},
	{"Provider", "provider base-url insecure-http api-key-env api-key-file model endpoint region project location resource preset sim-profile"},
	{"Network", "header ca-file client-cert client-key through share"},
	{"Input", "format template system param max-tokens on-bad-line on-untranslatable order limit"},
	{"Money", "price prices max-cost service-tier spill pilot confirm-above yes"},
	{"How fast", "concurrency rpm tpm input-tpm output-tpm burst latency-target law max-bodies forget"},
	{"When to give up", "max-attempts timeout stream stream-idle item-timeout first-answer outage-patience max-failures keep-going deadline"},
	{"Output on the terminal", "progress verbose color long-wait metrics-addr linger log-level log-format log-file"},
	{"Many machines", "cluster"},
	{"Other", "ctl config print-config seed help"},
}

// GroupFlags shows a command's flags under headings. Flags of another command that stand
// under none come first. Each heading keeps its own columns.
func GroupFlags(cmd *cobra.Command, groups []flagGroup) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		out := cmd.OutOrStderr()
		fmt.Fprintf(out, "Usage:\n  %s\n", cmd.UseLine())
		if cmd.HasExample() {
			fmt.Fprintf(out, "\nExamples:\n%s\n", cmd.Example)
		}
		shown := append([]flagGroup{{"Flags", ungrouped(cmd.Flags(), groups)}}, groups...)
		for _, g := range shown {
			if flags := g.flagsFrom(cmd.Flags()); flags.HasFlags() {
				fmt.Fprintf(out, "\n%s:\n%s", g.heading, flags.FlagUsages())
			}
		}
		return nil
	})
}

// ungrouped returns the names of the flags that no heading has.
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

// flagsFrom returns those flags of all that are in the group, in the group's order.
func (g flagGroup) flagsFrom(all *pflag.FlagSet) *pflag.FlagSet {
	fs := pflag.NewFlagSet(g.heading, pflag.ContinueOnError)
	fs.SortFlags = false
	for name := range strings.FieldsSeq(g.flags) {
		if f := all.Lookup(name); f != nil {
			fs.AddFlag(f)
		}
	}
	return fs
}
