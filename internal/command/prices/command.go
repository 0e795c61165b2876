package prices

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

const long = `Show the price that a run would use for a model, where it is from, and its day. Nothing is
called. A run takes the first of these that knows the cost of a call:

  provider   the answer itself says what it cost (OpenRouter, xAI, Perplexity)
  lane       the price of the lane in the file of --config
  file       --prices FILE: our own form, the data.json of genai-prices, or
             model_prices_and_context_window.json of litellm
  flag       --price IN,OUT[,CACHED[,WRITE]]
  table      the built-in list, from the data of genai-prices

Without --provider all vendors of the list are asked, and each that knows the model has a row.
A model that nobody knows is an error, exit code 2. docs/prices.md describes the files.`

// flags are those of prices.
type flags struct{ provider, price, file string }

// Command returns the command headrace prices.
func Command(w *world.World) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "prices MODEL [flags]",
		Short: "Show which price a run would use for a model, and its day",
		Long:  long,
		Example: `  headrace prices gpt-5-mini
  headrace prices claude-sonnet-4-5 --provider bedrock-anthropic
  headrace prices my-model --prices own.json`,
		Args: settings.One("model"),
		RunE: func(_ *cobra.Command, args []string) error { return f.show(w, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.provider, "provider", "", "who would be called (headrace help providers); without it, all who have the model")
	fs.StringVar(&f.price, "price", "", "as in headrace run")
	fs.StringVar(&f.file, "prices", "", "as in headrace run")
	settings.NameValues(fs, map[string]string{"provider": "NAME", "price": "IN,OUT[,CACHED[,WRITE]]", "prices": "FILE"})
	settings.CompleteValues(cmd)
	return cmd
}

// offer is the price that a vendor asks for a model.
type offer struct {
	vendor, source string
	price          price.Price
}

// show prints the prices of a model, or refuses one that has none.
func (f *flags) show(w *world.World, model string) error {
	offers, err := f.offers(model)
	if err != nil {
		return settings.Usage(err)
	}
	if len(offers) == 0 {
		ofProvider := ""
		if f.provider != "" {
			ofProvider = " of " + f.provider
		}
		return exit.Refuse("prices: %s: no known price%s: give it with --price IN,OUT or --prices FILE, in USD per million tokens; a model of your own server is free with --price 0", printable.Line(model), ofProvider)
	}
	out, now := exit.ForPeople(w.Stdout), w.Clock.Now()
	fmt.Fprintf(out, "%s, in USD per million tokens:\n\n", printable.Line(model))
	writeTable(out, offers, now)
	for _, candidate := range offers {
		if old := price.Old(now); old != "" && candidate.source == price.FromTable() {
			fmt.Fprintf(out, "\n%s\n", old)
			break
		}
	}
	return nil
}

// offers returns the price of each vendor that has the model. A price of the user's own is the same for all,
// and is returned once.
func (f *flags) offers(model string) ([]offer, error) {
	names := []string{f.provider}
	if f.provider == "" {
		names = append(names, price.Vendors()...)
	} else if _, known := catalog.Named(f.provider); !known && f.provider != settings.ProviderSim {
		return nil, fmt.Errorf("--provider %q is unknown: see headrace help providers", f.provider)
	}
	var list []offer
	for _, name := range names {
		vendor := name
		if name == settings.ProviderSim {
			vendor = ""
		}
		table, err := price.Read(f.file, f.price, vendor)
		if err != nil {
			return nil, err
		}
		p, source, ok := table.Of(model)
		if !ok {
			continue
		}
		found := offer{vendor: name, source: source, price: p}
		if source == price.FromFlag || name == "" { // the same for all
			found.vendor = "any"
			return []offer{found}, nil
		}
		list = append(list, found)
	}
	return list, nil
}

// writeTable writes a row for each price, and one for each of its steps and cases. Vendors with the same
// price share a row.
func writeTable(out io.Writer, offers []offer, now time.Time) {
	var table strings.Builder
	fmt.Fprintln(&table, "  PROVIDER\tINPUT\tOUTPUT\tCACHED\tWRITE\tWRITE 1H\tFROM")
	var texts, vendors []string
	for _, o := range offers {
		text := rowsOf(&o, now)
		for i := range texts {
			if texts[i] == text {
				vendors[i], text = vendors[i]+", "+o.vendor, ""
				break
			}
		}
		if text != "" {
			texts, vendors = append(texts, text), append(vendors, o.vendor)
		}
	}
	for i, text := range texts {
		names := wrapNames(vendors[i])
		first, rest, _ := strings.Cut(text, "\n")
		fmt.Fprintf(&table, "  %s%s\n", names[0], first)
		for _, more := range names[1:] {
			fmt.Fprintf(&table, "  %s\t\t\t\t\t\t\n", more)
		}
		table.WriteString(rest)
	}
	words.Columns(out, 2, table.String())
}

// vendorCells is the width of the first column: with the others, a line has at most 100 cells.
const vendorCells = 34

// wrapNames divides a list of names into lines that fit the first column.
func wrapNames(names string) (lines []string) {
	line := ""
	for name := range strings.SplitAfterSeq(names, ", ") {
		if line != "" && len(line)+len(strings.TrimSpace(name)) > vendorCells {
			lines, line = append(lines, strings.TrimSpace(line)), ""
		}
		line += name
	}
	return append(lines, line)
}

// rowsOf returns the rows of an offer: its rates now, their steps, and the cases that may still hold.
func rowsOf(o *offer, now time.Time) string {
	var rows strings.Builder
	row := func(name string, r price.Rates, source string) {
		fmt.Fprintf(&rows, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, number(r.Input), number(r.Output), number(r.Cached), number(r.Write), number(r.LongWrite), source)
	}
	schedule := func(name string, s *price.Schedule, source string) {
		row(name, s.Rates, source)
		for _, step := range s.Above {
			row(fmt.Sprintf("    prompts over %d tokens", step.Tokens), step.Rates, "")
		}
	}
	base := &o.price.Schedule
	var others []*price.Case
	for i := range o.price.When {
		switch priceCase := &o.price.When[i]; {
		case priceCase.Over(now):
		case priceCase.Begin == priceCase.End && priceCase.Tier == provider.StandardTier && priceCase.Holds(now): // it replaces those before it
			base = &priceCase.Schedule
		default:
			others = append(others, priceCase)
		}
	}
	schedule("", base, o.source)
	for _, priceCase := range others {
		if name := "    " + caseConditions(priceCase); priceCase.Tier != provider.StandardTier && priceCase.Times >= 0 {
			fmt.Fprintf(&rows, "%s\t× %s\t\t\t\t\t\n", name, number(priceCase.Times))
		} else {
			schedule(name, &priceCase.Schedule, "")
		}
	}
	return rows.String()
}

// caseConditions describes when a price applies: its tier, dates and hours.
func caseConditions(priceCase *price.Case) string {
	var parts []string
	if priceCase.Tier != provider.StandardTier {
		parts = append(parts, "tier "+priceCase.Tier.String())
	}
	if !priceCase.From.IsZero() {
		parts = append(parts, "from "+priceCase.From.Format(time.DateOnly))
	}
	if !priceCase.Until.IsZero() {
		parts = append(parts, "until "+priceCase.Until.Format(time.DateOnly))
	}
	if priceCase.Begin != priceCase.End {
		clock := func(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }
		parts = append(parts, clock(priceCase.Begin)+"–"+clock(priceCase.End)+" UTC")
	}
	return strings.Join(parts, ", ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
