package event

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
)

// How wide words may be, in cells of a terminal.
const (
	rowCells   = 70 // a row: behind its name, of nine cells, in 80 columns
	shortCells = 31 // what holds a run back, where there are but 40 columns
	laneCells  = 16 // and in a table of lanes
)

// cells is how wide a text is. Where a locale takes some signs for two cells wide it may be
// wider; whoever paints knows.
func cells(s string) int { return narrow.StringWidth(s) }

var narrow = &runewidth.Condition{}

// clip makes words of others harmless, and at most n cells wide.
func clip(s string, n int) string {
	s = printable.Line(s)
	if cells(s) <= n {
		return s
	}
	return narrow.Truncate(s, n, "…")
}

// row joins parts, as far as there is room for them; of the first as much as there is.
func row(gap string, parts ...string) (line string) {
	for _, part := range parts {
		part = harmless(part)
		switch {
		case part == "":
		case line == "":
			line = clip(part, rowCells)
		case cells(line)+cells(gap)+cells(part) <= rowCells:
			line += gap + part
		}
	}
	return line
}

// clauses are parts in a row, each as far as there is room for its clauses: the last of
// them are left out first.
func clauses(parts ...string) (line string) {
	for _, part := range parts {
		part = harmless(part)
		with := line
		if with != "" && part != "" {
			with += "; "
		}
		for end := len(part); end > 0; end = strings.LastIndex(part[:end], "; ") {
			if cells(with+part[:end]) <= rowCells {
				line = with + part[:end]
				break
			}
		}
		if line == "" {
			line = clip(part, rowCells)
		}
	}
	return line
}

// amount is a number of which the first three digits matter: 196 k, 18.2 M. Under ten
// thousand it is whole.
func amount(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "?"
	case math.Abs(x) < 9999.5:
		return number(int(math.Round(x)))
	case math.Abs(x) < 999_500:
		return fmt.Sprintf("%.0f k", x/1e3)
	case math.Abs(x) < 99.95e6:
		return fmt.Sprintf("%.1f M", x/1e6)
	case math.Abs(x) < 9999.5e6:
		return fmt.Sprintf("%.0f M", x/1e6)
	}
	return fmt.Sprintf("%.0f bn", x/1e9)
}

// perSecond is a speed: one decimal while that says something.
func perSecond(x float64) string {
	if x >= 99.95 {
		return amount(x) + "/s"
	}
	return fmt.Sprintf("%.1f/s", x)
}

// lasting is a time that passes while one looks: to the tenth of a second up to 20 s.
func lasting(d time.Duration) string {
	switch {
	case d < 99*time.Millisecond:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case d < 19_950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return span(d)
}

// span is a length of time that is about so: 8 s, 4 min, 1 h 21 min, 3 d 4 h.
func span(d time.Duration) string {
	switch minutes := int(math.Round(d.Minutes())); {
	case d < 99_500*time.Millisecond:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	case minutes < 24*60:
		return two(minutes/60, "h", minutes%60, "min")
	default:
		hours := (minutes + 30) / 60
		return two(hours/24, "d", hours%24, "h")
	}
}

func two(large int, unit string, small int, units string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, unit)
	}
	return fmt.Sprintf("%d %s %d %s", large, unit, small, units)
}

// number is a whole number with commas at the thousands.
func number(n int) string { return words.Number(n) }

// count says how many of something there are; the noun takes an s.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// share is a part of a whole, in per cent.
func share(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// seconds is a time of JSON.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// plainWord is a kind or a code as it is said.
func plainWord(s string) string { return strings.ReplaceAll(printable.Line(s), "_", " ") }

// harmless are words in which others may have said something.
func harmless(s string) string { return printable.Line(s) }
