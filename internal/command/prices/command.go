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

// Command makes headrace prices.
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
		by := ""
		if f.provider != "" {
			by = " of " + f.provider
		}
		return exit.Refuse("prices: %s: no known price%s: give it with --price IN,OUT or --prices FILE, in USD per million tokens; a model of your own server is free with --price 0", printable.Line(model), by)
	}
	out, now := exit.ForPeople(w.Stdout), w.Clock.Now()
	fmt.Fprintf(out, "%s, in USD per million tokens:\n\n", printable.Line(model))
	writeTable(out, offers, now)
	for _, o := range offers {
		if old := price.Old(now); old != "" && o.source == price.FromTable() {
			fmt.Fprintf(out, "\n%s\n", old)
			break
		}
	}
	return nil
}

// offers returns the price that counts for each vendor that is asked; the user's own price is
// that of all.
func (f *flags) offers(model string) ([]offer, error) {
	names := []string{f.provider}
	if f.provider == "" {
		names = append(names, price.Vendors()...)
	} else if _, known := catalog.Named(f.provider); !known && f.provider != settings.ProviderSim {
		return nil, fmt.Errorf("--provider %q is unknown: see headrace help providers", f.provider)
	}
	var all []offer
	for _, name := range names {
		of := name
		if name == settings.ProviderSim {
			of = ""
		}
		table, err := price.Read(f.file, f.price, of)
		if err != nil {
			return nil, err
		}
		p, source, ok := table.Of(model)
		if !ok {
			continue
		}
		o := offer{vendor: name, source: source, price: p}
		if source == price.FromFlag || name == "" { // the same for all
			o.vendor = "any"
			return []offer{o}, nil
		}
		all = append(all, o)
	}
	return all, nil
}

// writeTable writes a row for each price, and one for each of its steps and cases. Vendors of one
// price share a row.
func writeTable(out io.Writer, offers []offer, now time.Time) {
	var table strings.Builder
	fmt.Fprintln(&table, "  PROVIDER\tINPUT\tOUTPUT\tCACHED\tWRITE\tWRITE 1H\tFROM")
	var texts, vendors []string
	for _, o := range offers {
		text := rows(&o, now)
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
		names := wrapped(vendors[i])
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

// wrapped divides a list of names into lines.
func wrapped(names string) (lines []string) {
	line := ""
	for name := range strings.SplitAfterSeq(names, ", ") {
		if line != "" && len(line)+len(strings.TrimSpace(name)) > vendorCells {
			lines, line = append(lines, strings.TrimSpace(line)), ""
		}
		line += name
	}
	return append(lines, line)
}

func rows(o *offer, now time.Time) string {
	var b strings.Builder
	row := func(name string, r price.Rates, source string) {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, number(r.Input), number(r.Output), number(r.Cached), number(r.Write), number(r.LongWrite), source)
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
		switch c := &o.price.When[i]; {
		case c.Over(now):
		case c.Begin == c.End && c.Tier == provider.StandardTier && c.Holds(now): // it replaces those before it
			base = &c.Schedule
		default:
			others = append(others, c)
		}
	}
	schedule("", base, o.source)
	for _, c := range others {
		if name := "    " + nameOf(c); c.Tier != provider.StandardTier && c.Times >= 0 {
			fmt.Fprintf(&b, "%s\t× %s\t\t\t\t\t\n", name, number(c.Times))
		} else {
			schedule(name, &c.Schedule, "")
		}
	}
	return b.String()
}

// nameOf says when a case holds.
func nameOf(c *price.Case) string {
	var parts []string
	if c.Tier != provider.StandardTier {
		parts = append(parts, "tier "+c.Tier.String())
	}
	if !c.From.IsZero() {
		parts = append(parts, "from "+c.From.Format(time.DateOnly))
	}
	if !c.Until.IsZero() {
		parts = append(parts, "until "+c.Until.Format(time.DateOnly))
	}
	if c.Begin != c.End {
		clock := func(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }
		parts = append(parts, clock(c.Begin)+"–"+clock(c.End)+" UTC")
	}
	return strings.Join(parts, ", ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
