package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/cmd/headrace/internal/printable"
	"github.com/headrace/headrace/limiter"
)

// print shows the plan to a person.
func (s *scheme) print() {
	fmt.Fprintf(s.stdout, "%s: %s, %s: no call was made\n", printable.Line(s.input), amountOf(s.lines, "line"), amountOf(s.items, "item"))
	if s.items == 0 {
		return
	}
	fmt.Fprintln(s.stdout)
	s.printModels()
	fmt.Fprintf(s.stdout, "\nTime: about %s%s\n\n", long(s.forecast.Took), s.boundBy())
	s.printLimits()
	s.printNotes()
}

// mostModels is how many models are listed; what is less used is one line.
const mostModels = 20

func (s *scheme) printModels() {
	rows := [][]string{{"model", "items", "tokens in", "tokens out", "cost"}}
	row := func(name string, m modelPlan, cost string) {
		rows = append(rows, []string{name, thousands(float64(m.items)), thousands(m.input), thousands(m.output), cost})
	}
	models := slices.SortedStableFunc(slices.Values(s.models), func(a, b *modelPlan) int { return b.items - a.items })
	var all, rest modelPlan
	for i, m := range models {
		all = all.plus(*m)
		if i < mostModels {
			row(shortName(m.name), *m, money(s.cost(m)))
		} else {
			rest = rest.plus(*m)
		}
	}
	if n := len(models) - mostModels; n > 0 {
		row(fmt.Sprintf("(%s)", countOf(n, "other")), rest, "")
	}
	if len(models) > 1 {
		row("in all", all, s.totalCost())
	}
	s.printTable(rows)
}

func (m modelPlan) plus(n modelPlan) modelPlan {
	m.items, m.input, m.output = m.items+n.items, m.input+n.input, m.output+n.output
	return m
}

// shortName is a name out of a file as a table shows it.
func shortName(name string) string {
	const longest = 48
	name = printable.Line(name)
	if utf8.RuneCountInString(name) > longest {
		name = string([]rune(name)[:longest-1]) + "…"
	}
	return name
}

// printTable aligns columns: the first to the left, as it has words, the others
// to the right.
func (s *scheme) printTable(rows [][]string) {
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
		fmt.Fprintln(s.stdout, strings.TrimRight(line, " "))
	}
}

// cost is what a model's items come to, in USD.
func (s *scheme) cost(m *modelPlan) (usd float64, known bool) {
	p, _, known := s.flags.list.of(m.name)
	return p.of(m.input, m.output), known
}

// sum is what is known of the whole cost, and of how many models it is not.
func (s *scheme) sum() (usd float64, unknown int) {
	for _, m := range s.models {
		c, known := s.cost(m)
		if !known {
			unknown++
			continue
		}
		usd += c
	}
	return usd, unknown
}

func (s *scheme) totalCost() string {
	usd, unknown := s.sum()
	switch {
	case unknown == len(s.models):
		return money(0, false)
	case unknown > 0:
		return money(usd, true) + " and unknown"
	}
	return money(usd, true)
}

// money never shows an unknown price as one of nothing.
func money(usd float64, known bool) string {
	switch {
	case !known:
		return "unknown"
	case usd > 0 && usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	case usd >= 1000:
		return "$" + thousands(usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// boundBy says what holds the batch back.
func (s *scheme) boundBy() string {
	d, ok := s.binding()
	switch {
	case !ok && s.anyFull():
		return ", held back by no single limit"
	case !ok:
		return ": over before any limit is full"
	}
	return ", held back by " + limitWord(d)
}

func (s *scheme) printLimits() {
	rows := [][]string{{"limit", "", "in use", "time with half", "with twice"}}
	for _, x := range s.whatIfs {
		rows = append(rows, []string{limitWord(x.on), s.limitAmount(x.on), fmt.Sprintf("%.0f %%", 100*s.used(x.on)), long(x.halved), long(x.double)})
	}
	s.printTable(rows)
}

func limitWord(d limiter.Dimension) string {
	if d == limiter.None {
		return "calls in flight (-c)"
	}
	return d.String() + " a minute"
}

// limitAmount is how much a limit allows: one number, or from least to most.
func (s *scheme) limitAmount(d limiter.Dimension) string {
	if d == limiter.None {
		return thousands(float64(s.flags.concurrency))
	}
	least, most := math.Inf(1), 0.0
	for _, m := range s.models {
		if x := m.limits.PerMinute(d); x > 0 {
			least, most = min(least, x), max(most, x)
		}
	}
	if least == most {
		return thousands(most)
	}
	return thousands(least) + "–" + thousands(most)
}

// long shows a length of time as wait does, and hours and days where there are.
func long(d time.Duration) string {
	if d >= 100*time.Hour {
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	}
	return wait(d)
}

// thousands groups the digits of a whole number.
func thousands(x float64) string {
	s := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func amountOf(n int, noun string) string {
	return strings.Replace(countOf(n, noun), strconv.Itoa(n), thousands(float64(n)), 1)
}
