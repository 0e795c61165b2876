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
	fmt.Fprintf(out, "%s: %s, %s%s: no call was made\n", printable.Line(p.cfg.Input), amountOf(p.lines, "line"), amountOf(p.items, "item"), p.leftOut())
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
	fmt.Fprintf(out, "\nTime: about %s%s%s\n", long(p.forecast.Took), p.timeRange(), p.boundBy())
	if p.cfg.Routes == nil { // half of what each lane of several has is nothing that a person could ask for
		fmt.Fprintln(out)
		p.printLimits(out)
	}
	p.printNotes(out)
	p.printAdvice(out)
}

// leftOut says which lines are no items, as the end of the first sentence; "" if there are none.
func (p *Plan) leftOut() string {
	var left []string
	if p.bad > 0 {
		left = append(left, amountOf(p.bad, "bad line"))
	}
	if p.untranslatable > 0 {
		left = append(left, amountOf(p.untranslatable, "untranslatable line"))
	}
	if left == nil {
		return ""
	}
	return ", " + strings.Join(left, " and ") + " left out"
}

// mostModels is the number of models listed; the less used ones share one line.
const mostModels = 20

// printModels prints a row for each of the models with the most items, one for all others
// together, and one for the sum.
func (p *Plan) printModels(out io.Writer) {
	rows := [][]string{{"model", "items", "tokens in", "tokens out", "cost", "at most"}}
	row := func(name string, m modelPlan, cost, most string) {
		rows = append(rows, []string{name, words.Thousands(float64(m.items)), words.Thousands(m.input), words.Thousands(m.output), cost, most})
	}
	models := slices.SortedStableFunc(slices.Values(p.models), func(a, b *modelPlan) int { return b.items - a.items })
	var all, rest modelPlan
	for i, m := range models {
		all = all.plus(*m)
		if i < mostModels {
			row(shortName(m.name), *m, money(m.cost()), m.atMost())
		} else {
			rest = rest.plus(*m)
		}
	}
	if n := len(models) - mostModels; n > 0 {
		row(fmt.Sprintf("(%s)", words.Count(n, "other")), rest, "", "")
	}
	if len(models) > 1 {
		row("in all", all, p.totalCost(), all.atMost())
	}
	printTable(out, rows)
	if _, unpriced := p.Cost(); unpriced > 0 && unpriced < p.items {
		fmt.Fprintf(out, "  + %s\n", words.Unpriced(unpriced))
	}
}

func (m modelPlan) plus(n modelPlan) modelPlan {
	m.items, m.input, m.output = m.items+n.items, m.input+n.input, m.output+n.output
	m.flex += n.flex
	m.usd, m.most, m.unpriced, m.open = m.usd+n.usd, m.most+n.most, m.unpriced+n.unpriced, m.open+n.open
	m.low, m.high = m.low+n.low, m.high+n.high
	return m
}

// bounded returns the most that the items can cost, in USD, apart from the error in their tokens;
// false: a price or a bound is not known.
func (m *modelPlan) bounded() (usd float64, known bool) {
	return m.most, m.unpriced == 0 && m.open == 0
}

// atMost says what the items can cost at most.
func (m *modelPlan) atMost() string {
	if m.unpriced == 0 && m.open > 0 {
		return "no max_tokens"
	}
	return money(m.bounded())
}

// timeRange says how far the time may be off; "" if that does not show.
func (p *Plan) timeRange() string {
	if quick, slow := long(p.quick), long(p.slow); quick != slow {
		return fmt.Sprintf(" (%s to %s)", quick, slow)
	}
	return ""
}

// shortName returns a name from a file as a table shows it.
func shortName(name string) string {
	const longest = 48
	name = printable.Line(name)
	if utf8.RuneCountInString(name) > longest {
		name = string([]rune(name)[:longest-1]) + "…"
	}
	return name
}

// printTable aligns columns: the first, which has words, to the left, the others to the
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

// cost returns the cost of a model's items, in USD. A lane without a price that gets no items does not matter.
func (m *modelPlan) cost() (usd float64, known bool) {
	if m.route == nil {
		return m.usd, m.unpriced == 0
	}
	return m.usd, !slices.ContainsFunc(m.lanes, func(l onLane) bool {
		_, known := l.cost(m.items)
		return !known
	})
}

// sum returns the known part of the whole cost, and the number of models whose cost is not
// known.
func (p *Plan) sum() (usd float64, unknown int) {
	for _, m := range p.models {
		c, known := m.cost()
		if !known {
			unknown++
			continue
		}
		usd += c
	}
	return usd, unknown
}

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

// boundBy says what holds the batch back.
func (p *Plan) boundBy() string {
	d, ok := p.binding()
	switch {
	case !ok && (p.anyFull() || p.cfg.Lane.Target > 0 || p.cfg.Lane.Rate.Ceiling > 0): // the user's own bounds have no row
		return ", held back by no single limit"
	case !ok:
		return ": over before any limit is full"
	}
	if d == limiter.None && p.cfg.Routes != nil {
		return ", held back by calls in flight" // -c does not bound a lane
	}
	return ", held back by " + limitWord(d)
}

func (p *Plan) printLimits(out io.Writer) {
	rows := [][]string{{"limit", "", "in use", "time with half", "with twice"}}
	for _, x := range p.whatIfs {
		rows = append(rows, []string{limitWord(x.on), p.limitAmount(x.on), fmt.Sprintf("%.0f %%", 100*p.used(x.on)), long(x.halved), long(x.double)})
	}
	printTable(out, rows)
}

func limitWord(d limiter.Dimension) string {
	if d == limiter.None {
		return "calls in flight (-c)"
	}
	return d.String() + " a minute"
}

// limitAmount says how much a limit allows: one number, or from least to most.
func (p *Plan) limitAmount(d limiter.Dimension) string {
	if d == limiter.None {
		return words.Thousands(float64(p.cfg.Concurrency))
	}
	least, most := math.Inf(1), 0.0
	for _, l := range p.quotas {
		if x := l.PerMinute(d); x > 0 {
			least, most = min(least, x), max(most, x)
		}
	}
	if least == most {
		return words.Thousands(most)
	}
	return words.Thousands(least) + "–" + words.Thousands(most)
}

// long shows a duration as wait does, and hours and days for long ones.
func long(d time.Duration) string {
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
	if err := e.Encode(p.picture()); err != nil {
		return err
	}
	_, err := out.Write(printable.JSON(text.Bytes()))
	return err
}

// picture returns the plan as JSON has it. Its lists are never null; a cost is null if some
// price is unknown.
func (p *Plan) picture() planJSON {
	t := planJSON{
		Lines: p.lines, Items: p.items, BadLines: p.bad, Untranslatable: p.untranslatable, Models: []planModelJSON{}, PricesAsOf: price.AsOf(), Preset: p.cfg.Counts,
		Tier: p.cfg.Tier.Name, LimitsAsOf: p.cfg.Tier.AsOf,
		Seconds: p.forecast.Took.Seconds(), Limits: []planLimitJSON{}, TooLarge: p.tooLarge(),
		Scaled: p.forecast.Scaled, Assumed: p.assumed, Notes: []string{}, Advice: []Advice{},
		Quick: p.quick.Seconds(), Slow: p.slow.Seconds(),
	}
	for _, m := range p.models {
		t.Models = append(t.Models, p.rowOf(m))
		t.InputTokens, t.Output = t.InputTokens+whole(m.input), t.Output+whole(m.output)
	}
	usd, unknown := p.sum()
	t.CostUSD = orNull(usd, unknown == 0)
	var all modelPlan
	for _, m := range p.models {
		all = all.plus(*m)
	}
	t.AtMostUSD = orNull(all.bounded())
	for _, x := range p.whatIfs {
		t.Limits = append(t.Limits, planLimitJSON{limitName(x.on), p.used(x.on), x.halved.Seconds(), x.double.Seconds()})
	}
	if d, ok := p.binding(); ok {
		t.Bound = limitName(d)
	}
	if p.items > 0 {
		t.Notes, t.Advice = p.notes(), append(t.Advice, p.advice()...)
	}
	return t
}

// rowOf returns a model, or a route, as JSON has it.
func (p *Plan) rowOf(m *modelPlan) planModelJSON {
	row := planModelJSON{
		Model: m.name, Items: m.items, Input: whole(m.input), Output: whole(m.output),
		CostUSD: orNull(m.cost()), Seconds: p.tookOf(m).Seconds(),
	}
	if m.route == nil {
		return row
	}
	row.Model, row.Pool = m.route.Model, m.route.Pool.Name
	row.LowUSD, row.HighUSD = orNull(m.low, m.unpriced == 0), orNull(m.high, m.unpriced == 0)
	for i := range m.lanes {
		l := &m.lanes[i]
		usd, known := l.cost(m.items)
		one := planLaneJSON{
			Lane: p.laneNames[l.lane], Tier: l.tier + 1, Items: int(math.Round(l.items)),
			CostUSD: orNull(usd, known), AllUSD: orNull(l.usd, !l.unpriced),
		}
		if _, source, priced := l.spec.Price(m.route.Model); priced {
			one.Source = source
		}
		if l.items > 0 {
			one.Seconds = p.forecast.Lanes[l.lane].Took.Seconds()
		}
		row.Lanes = append(row.Lanes, one)
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
