package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// Text writes the plan for a person.
func (p *Plan) Text(out io.Writer) {
	fmt.Fprintf(out, "%s: %s, %s%s: no call was made\n", printable.Line(p.cfg.Input), amountOf(p.lines, "line"), amountOf(p.items, "item"), p.leftOutText())
	p.Figures(out)
}

// Figures writes the plan without its first line.
func (p *Plan) Figures(out io.Writer) {
	if p.items == 0 {
		return
	}
	fmt.Fprintln(out)
	if p.cfg.Routes != nil {
		p.printRoutes(out)
	} else {
		p.printModels(out)
	}
	fmt.Fprintf(out, "\nTime: about %s%s%s\n", durationText(p.forecast.Took), p.timeRange(), p.boundText())
	if p.cfg.Routes == nil { // half of what each lane of several has is nothing that a person could ask for
		fmt.Fprintln(out)
		p.printLimits(out)
	}
	p.printNotes(out)
	p.printAdvice(out)
}

// leftOutText returns the number of lines that are left out, as the end of the first sentence; "" if there
// are none.
func (p *Plan) leftOutText() string {
	var parts []string
	if p.bad > 0 {
		parts = append(parts, amountOf(p.bad, "bad line"))
	}
	if p.untranslatable > 0 {
		parts = append(parts, amountOf(p.untranslatable, "untranslatable line"))
	}
	if parts == nil {
		return ""
	}
	return ", " + strings.Join(parts, " and ") + " left out"
}

// mostModels is the number of models listed; the less used ones share one line.
const mostModels = 20

// printModels prints a row for each of the models with the most items, one for all others, and one for the
// sum.
func (p *Plan) printModels(out io.Writer) {
	rows := [][]string{{"model", "items", "tokens in", "tokens out", "cost", "at most"}}
	row := func(name string, model modelPlan, cost, most string) {
		rows = append(rows, []string{name, words.Thousands(float64(model.items)), words.Thousands(model.input), words.Thousands(model.output), cost, most})
	}
	models := slices.SortedStableFunc(slices.Values(p.models), func(a, b *modelPlan) int { return b.items - a.items })
	var sum, rest modelPlan
	for i, model := range models {
		sum = sum.plus(*model)
		if i < mostModels {
			row(shortName(model.name), *model, money(model.knownCost()), model.atMostText())
		} else {
			rest = rest.plus(*model)
		}
	}
	if n := len(models) - mostModels; n > 0 {
		row(fmt.Sprintf("(%s)", words.Count(n, "other")), rest, "", "")
	}
	if len(models) > 1 {
		row("in all", sum, p.totalCost(), sum.atMostText())
	}
	printTable(out, rows)
	if _, unpriced := p.Cost(); unpriced > 0 && unpriced < p.items {
		fmt.Fprintf(out, "  + %s\n", words.Unpriced(unpriced))
	}
}

func (m modelPlan) plus(n modelPlan) modelPlan {
	m.items, m.input, m.output = m.items+n.items, m.input+n.input, m.output+n.output
	m.flex += n.flex
	m.usd, m.most, m.unpriced, m.unbounded = m.usd+n.usd, m.most+n.most, m.unpriced+n.unpriced, m.unbounded+n.unbounded
	m.low, m.high = m.low+n.low, m.high+n.high
	return m
}

// costAtMost returns the most that the items can cost, in USD, apart from the error in their tokens;
// false: a price or a bound is not known.
func (m *modelPlan) costAtMost() (usd float64, known bool) {
	return m.most, m.unpriced == 0 && m.unbounded == 0
}

// atMostText says what the items can cost at most.
func (m *modelPlan) atMostText() string {
	if m.unpriced == 0 && m.unbounded > 0 {
		return "no max_tokens"
	}
	return money(m.costAtMost())
}

// timeRange says how far the time may be off; "" if that does not show.
func (p *Plan) timeRange() string {
	if quick, slow := durationText(p.quick), durationText(p.slow); quick != slow {
		return fmt.Sprintf(" (%s to %s)", quick, slow)
	}
	return ""
}

// shortName returns a name from a file, cut to what a table has room for.
func shortName(name string) string {
	const longest = 48
	name = printable.Line(name)
	if utf8.RuneCountInString(name) > longest {
		name = string([]rune(name)[:longest-1]) + "…"
	}
	return name
}

// printTable prints rows with aligned columns: the first to the left, as it has words, and the others to the
// right.
func printTable(out io.Writer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := "  "
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line += cell + pad
			} else {
				line += "   " + pad + cell
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
}

// knownCost returns the cost of the items, in USD; false if some price is unknown. A lane without a price
// does not matter if it gets no items.
func (m *modelPlan) knownCost() (usd float64, known bool) {
	if m.route == nil {
		return m.usd, m.unpriced == 0
	}
	return m.usd, !slices.ContainsFunc(m.lanes, func(l laneOnRoute) bool {
		_, known := l.costOfItems(m.items)
		return !known
	})
}

// knownCost returns the known part of the whole cost, and the number of models whose cost is unknown.
func (p *Plan) knownCost() (usd float64, unknown int) {
	for _, m := range p.models {
		c, known := m.knownCost()
		if !known {
			unknown++
			continue
		}
		usd += c
	}
	return usd, unknown
}

// totalCost returns the cost of all items in words, or its known part.
func (p *Plan) totalCost() string {
	usd, unpriced := p.Cost()
	switch {
	case unpriced == p.items:
		return money(0, false)
	case unpriced > 0:
		return "at least " + words.Money(usd)
	}
	return words.Money(usd)
}

// money never shows an unknown price as 0.
func money(usd float64, known bool) string {
	if !known {
		return "unknown"
	}
	return words.Money(usd)
}

// boundText describes what holds the batch back, as the end of a sentence.
func (p *Plan) boundText() string {
	dimension, isBound := p.binding()
	switch {
	case !isBound && (p.anyFull() || p.cfg.Lane.Target > 0 || p.cfg.Lane.Rate.Ceiling > 0): // the user's own bounds have no row
		return ", held back by no single limit"
	case !isBound:
		return ": over before any limit is full"
	}
	if dimension == limiter.None && p.cfg.Routes != nil {
		return ", held back by calls in flight" // -c does not bound a lane
	}
	return ", held back by " + limitWord(dimension)
}

func (p *Plan) printLimits(out io.Writer) {
	rows := [][]string{{"limit", "", "in use", "time with half", "with twice"}}
	for _, x := range p.whatIfs {
		rows = append(rows, []string{limitWord(x.dimension), p.limitAmount(x.dimension), fmt.Sprintf("%.0f %%", 100*p.fullest(x.dimension)), durationText(x.halved), durationText(x.double)})
	}
	printTable(out, rows)
}

func limitWord(d limiter.Dimension) string {
	if d == limiter.None {
		return "calls in flight (-c)"
	}
	return d.String() + " a minute"
}

// limitAmount returns how much a limit allows: one number, or a range over all quotas.
func (p *Plan) limitAmount(d limiter.Dimension) string {
	if d == limiter.None {
		return words.Thousands(float64(p.cfg.Concurrency))
	}
	least, most := math.Inf(1), 0.0
	for _, l := range p.quotas {
		if perMinute := l.PerMinute(d); perMinute > 0 {
			least, most = min(least, perMinute), max(most, perMinute)
		}
	}
	if least == most {
		return words.Thousands(most)
	}
	return words.Thousands(least) + "–" + words.Thousands(most)
}

// durationText shows a duration as wait does, and hours and days for long ones.
func durationText(d time.Duration) string {
	if d >= 100*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return words.Wait(d)
}

func amountOf(n int, noun string) string {
	return strings.Replace(words.Count(n, noun), strconv.Itoa(n), words.Thousands(float64(n)), 1)
}

// planJSON is the plan for scripts. Its names are a promise.
type planJSON struct {
	Lines          int             `json:"lines"`
	Items          int             `json:"items"`
	BadLines       int             `json:"bad_lines"`                      // left out
	Untranslatable int             `json:"untranslatable_lines,omitempty"` // likewise
	Models         []planModelJSON `json:"models"`
	InputTokens    int64           `json:"input_tokens"`
	Output         int64           `json:"output_tokens"`
	CostUSD        *float64        `json:"cost_usd"`         // null: it is not known for some model
	AtMostUSD      *float64        `json:"cost_at_most_usd"` // null: likewise, or some line has no max_tokens
	PricesAsOf     string          `json:"prices_as_of"`
	Preset         string          `json:"preset"`
	Tier           string          `json:"tier"`         // "": none
	LimitsAsOf     string          `json:"limits_as_of"` // of the tier; "": there is none
	Seconds        float64         `json:"seconds"`
	Quick          float64         `json:"seconds_low"`
	Slow           float64         `json:"seconds_high"`
	Bound          string          `json:"bound"` // "": nothing binds
	Limits         []planLimitJSON `json:"limits"`
	TooLarge       int             `json:"too_large"`
	Scaled         bool            `json:"scaled"`
	Assumed        int             `json:"output_assumed"`
	Notes          []string        `json:"notes"`
	Advice         []Advice        `json:"advice"`
}

type planModelJSON struct {
	Model   string   `json:"model"`
	Items   int      `json:"items"`
	Input   int64    `json:"input_tokens"`
	Output  int64    `json:"output_tokens"`
	CostUSD *float64 `json:"cost_usd"`
	Seconds float64  `json:"seconds"`

	// In a run over several lanes:
	Pool    string         `json:"pool,omitempty"`
	LowUSD  *float64       `json:"cost_low_usd,omitempty"` // on the cheapest lane alone; absent: some lane has no known price
	HighUSD *float64       `json:"cost_high_usd,omitempty"`
	Lanes   []planLaneJSON `json:"lanes,omitempty"`
}

type planLaneJSON struct {
	Lane    string   `json:"lane"`
	Tier    int      `json:"tier"`         // in its pool, from 1
	Items   int      `json:"items"`        // that it is expected to do
	CostUSD *float64 `json:"cost_usd"`     // of those; null: it is not known
	AllUSD  *float64 `json:"cost_all_usd"` // if it did all items of the model
	Source  string   `json:"price_source"` // "": there is no price
	Seconds float64  `json:"seconds"`      // 0: it has no items
}

type planLimitJSON struct {
	Limit   string  `json:"limit"`
	InUse   float64 `json:"in_use"`
	Halved  float64 `json:"seconds_if_halved"`
	Doubled float64 `json:"seconds_if_doubled"`
}

// JSON writes the plan for programs, as one object. The error is that of the write.
func (p *Plan) JSON(out io.Writer) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(p.toJSON()); err != nil {
		return err
	}
	_, err := out.Write(printable.JSON(text.Bytes()))
	return err
}

// toJSON returns the plan in the form of JSON. Its lists are never null; a cost is null if some price is
// unknown.
func (p *Plan) toJSON() planJSON {
	out := planJSON{
		Lines: p.lines, Items: p.items, BadLines: p.bad, Untranslatable: p.untranslatable, Models: []planModelJSON{}, PricesAsOf: price.AsOf(), Preset: p.cfg.Counts,
		Tier: p.cfg.Tier.Name, LimitsAsOf: p.cfg.Tier.AsOf,
		Seconds: p.forecast.Took.Seconds(), Limits: []planLimitJSON{}, TooLarge: p.tooLarge(),
		Scaled: p.forecast.Scaled, Assumed: p.assumed, Notes: []string{}, Advice: []Advice{},
		Quick: p.quick.Seconds(), Slow: p.slow.Seconds(),
	}
	for _, m := range p.models {
		out.Models = append(out.Models, p.rowJSON(m))
		out.InputTokens, out.Output = out.InputTokens+whole(m.input), out.Output+whole(m.output)
	}
	usd, unknown := p.knownCost()
	out.CostUSD = orNull(usd, unknown == 0)
	var sum modelPlan
	for _, m := range p.models {
		sum = sum.plus(*m)
	}
	out.AtMostUSD = orNull(sum.costAtMost())
	for _, change := range p.whatIfs {
		out.Limits = append(out.Limits, planLimitJSON{limitName(change.dimension), p.fullest(change.dimension), change.halved.Seconds(), change.double.Seconds()})
	}
	if d, ok := p.binding(); ok {
		out.Bound = limitName(d)
	}
	if p.items > 0 {
		out.Notes, out.Advice = p.notes(), append(out.Advice, p.advice()...)
	}
	return out
}

// rowJSON returns a model, or a route with its lanes, in the form of JSON.
func (p *Plan) rowJSON(m *modelPlan) planModelJSON {
	row := planModelJSON{
		Model: m.name, Items: m.items, Input: whole(m.input), Output: whole(m.output),
		CostUSD: orNull(m.knownCost()), Seconds: p.timeOfRow(m).Seconds(),
	}
	if m.route == nil {
		return row
	}
	row.Model, row.Pool = m.route.Model, m.route.Pool.Name
	row.LowUSD, row.HighUSD = orNull(m.low, m.unpriced == 0), orNull(m.high, m.unpriced == 0)
	for i := range m.lanes {
		lane := &m.lanes[i]
		usd, known := lane.costOfItems(m.items)
		laneRow := planLaneJSON{
			Lane: p.laneNames[lane.lane], Tier: lane.tier + 1, Items: int(math.Round(lane.items)),
			CostUSD: orNull(usd, known), AllUSD: orNull(lane.usd, !lane.unpriced),
		}
		if _, source, priced := lane.spec.Price(m.route.Model); priced {
			laneRow.Source = source
		}
		if lane.items > 0 {
			laneRow.Seconds = p.forecast.Lanes[lane.lane].Took.Seconds()
		}
		row.Lanes = append(row.Lanes, laneRow)
	}
	return row
}

func limitName(d limiter.Dimension) string {
	if d == limiter.None {
		return "concurrency"
	}
	return strings.ReplaceAll(d.String(), " ", "_")
}

func whole(x float64) int64 { return int64(math.Round(min(x, 1e18))) }

func orNull(usd float64, known bool) *float64 {
	if !known {
		return nil
	}
	usd = limiter.USD(usd).USD()
	return &usd
}
