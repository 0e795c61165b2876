package lanes

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

const lanesLong = `Show the lanes and the pools that the file of --config makes: where the calls of each go, which
variable or file has its key and whether it is there, its limits, the price of its model and the
day of that price, and its pool and tier. Nothing is called, and no key is shown.

--try makes one call of one token for each lane, and adds the status of the answer, the time that
it took, the limits that it told, and the organisation that answered. Lanes of one organisation
and model draw on one limit, however many keys they have: --try names them.

headrace help config lists the words of a lane and of a pool; docs/pools.md explains them.`

// ofRun are the flags of run that the command has.
var ofRun = []string{"config", "model", "service-tier", "prices", "timeout", "ca-file", "client-cert", "client-key"}

// Command makes headrace lanes.
func Command(w *world.World) *cobra.Command {
	flags, try := &settings.Flags{ManyLanes: true}, false
	cmd := &cobra.Command{
		Use:   "lanes --config FILE [flags]",
		Short: "Show the lanes and pools of a --config file, and try them",
		Long:  lanesLong,
		Example: `  headrace lanes --config lanes.yaml
  headrace lanes --config lanes.yaml --try --model gpt-5-mini`,
		Args: settings.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Release() // there is nothing to save: Ctrl-C has its usual effect
			if err := flags.Complete(cmd.Flags(), w.Env); err != nil {
				return err
			}
			out := exit.ForPeople(w.Stdout)
			switch {
			case flags.Config == "":
				return exit.Refuse("no file: name the one with the lanes, as in headrace lanes --config lanes.yaml")
			case flags.Fleet == nil:
				return exit.Refuse("%s: it has no lanes: write lanes: with a name and a provider for each (headrace help config)", flags.Config)
			}
			show(w, flags, out)
			if !try {
				return nil
			}
			return tryAll(cmd.Context(), w, flags, out)
		},
	}
	run := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.Register(run)
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&try, "try", false, "make one call of one token for each lane")
	for _, name := range ofRun {
		cmd.Flags().AddFlag(run.Lookup(name))
	}
	cmd.Flags().Lookup("model").Usage = "model of lanes that list none, for their price and for --try"
	return cmd
}

// show prints a row for each lane.
func show(w *world.World, flags *settings.Flags, out io.Writer) {
	rows := [][]string{columns}
	for i := range flags.Fleet.Lanes {
		rows = append(rows, cells(w, flags, &flags.Fleet.Lanes[i]))
	}
	printTable(out, rows)
}

// printTable prints rows with their columns side by side.
func printTable(out io.Writer, rows [][]string) {
	var text strings.Builder
	for _, cells := range rows {
		fmt.Fprintln(&text, strings.Join(cells, "\t"))
	}
	words.Columns(out, 2, text.String())
}

// columns are the names of what is shown of a lane.
var columns = []string{"LANE", "PROVIDER", "DIALECT", "HOST", "KEY", "LIMITS", "PRICE", "POOL"}

// cells returns what is shown of a lane, in the order of the columns.
func cells(w *world.World, flags *settings.Flags, l *settings.LaneSpec) []string {
	f := l.Flags
	return []string{l.Name, f.Name(), f.Dialect.Name(), hostOf(f), account.PlaceOfKey(w, f).String(), limitsOf(l), priceOf(l, flags.DefaultModel(), w.Clock.Now()), poolsOf(flags.Fleet, l.Name)}
}

// LogAttrs returns what headrace lanes shows of a lane, as attributes of a line in a log.
func LogAttrs(w *world.World, flags *settings.Flags, l *settings.LaneSpec) (attrs []any) {
	for i, cell := range cells(w, flags, l) {
		attrs = append(attrs, strings.ToLower(columns[i]), cell)
	}
	return attrs
}

// hostOf returns the host that a lane calls, with the port if the address has one.
func hostOf(f *settings.Flags) string {
	if f.Provider == settings.ProviderSim {
		return "none"
	}
	base := cmp.Or(f.BaseURL, f.Vendor.Base)
	host := settings.HostPortOf(base)
	if strings.HasPrefix(base, "http://") {
		host = "http://" + host
	}
	return host
}

// limitsOf lists the limits that the file sets for a lane, and the most calls in flight.
func limitsOf(l *settings.LaneSpec) string {
	parts := limitWords(l.Flags.Limits())
	if len(parts) == 0 {
		parts = []string{"learned"}
	}
	parts = append(parts, fmt.Sprintf("%d in flight", l.Window()))
	if l.Quota != "" {
		parts = append(parts, "quota "+l.Quota)
	}
	if l.Weight > 0 {
		parts = append(parts, fmt.Sprintf("weight %d", l.Weight))
	}
	return strings.Join(parts, ", ")
}

// limitWords formats each limit that is set, with its unit.
func limitWords(l limiter.Limits) (parts []string) {
	for _, one := range []struct {
		n    float64
		unit string
	}{{l.RPM, "rpm"}, {l.TPM, "tpm"}, {l.InputTPM, "input tpm"}, {l.OutputTPM, "output tpm"}} {
		if one.n > 0 {
			parts = append(parts, words.Thousands(one.n)+" "+one.unit)
		}
	}
	return parts
}

// ModelsOf lists the models that a lane calls, by the provider's names. A lane without a map has the usual model.
func ModelsOf(l *settings.LaneSpec, usual string) (models []string) {
	for _, word := range l.Models {
		models = append(models, word)
	}
	slices.Sort(models)
	if models = slices.Compact(models); len(models) == 0 && usual != "" {
		models = []string{usual}
	}
	return models
}

// priceOf returns the price of a lane's first model, in dollars per million tokens, with the date of built-in prices.
func priceOf(l *settings.LaneSpec, usual string, now time.Time) string {
	models := ModelsOf(l, usual)
	if len(models) == 0 {
		models = []string{""} // whose price only the lane itself can have
	}
	const thousand = 1000 // a million tokens in one prompt may have another price
	known := &l.Flags.Known
	input, _, ok := known.Cost(models[0], provider.Usage{InputTokens: thousand, Tier: l.Flags.PriceTier()}, now)
	output, _, alsoOK := known.Cost(models[0], provider.Usage{OutputTokens: thousand, Tier: l.Flags.PriceTier()}, now)
	switch {
	case l.Flags.Provider == settings.ProviderSim && !ok:
		return "none"
	case !ok || !alsoOK:
		return "unknown"
	}
	text := fmt.Sprintf("$%s in, $%s out", perMillion(input.USD()), perMillion(output.USD()))
	if _, source, _ := known.Of(models[0]); source == price.FromTable() {
		text += " (" + price.AsOf() + ")"
	}
	if more := len(models) - 1; more > 0 {
		text += fmt.Sprintf(", and %s", words.Count(more, "more model"))
	}
	return text
}

func perMillion(ofThousand float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.4f", ofThousand*1000), "0"), ".")
}

// poolsOf lists the pools of a lane, with its tier where a pool has several.
func poolsOf(f *settings.Fleet, lane string) string {
	var all []string
	for _, p := range f.UsedPools() {
		for tier, lanes := range p.Tiers {
			if !slices.Contains(lanes, lane) {
				continue
			}
			name := p.Name
			if len(p.Tiers) > 1 {
				name = fmt.Sprintf("%s, tier %d", p.Name, tier+1)
			}
			if p.Patience > 0 {
				name += ", sticky by " + p.By
			}
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return "none: it gets no line"
	}
	return strings.Join(all, "; ")
}
