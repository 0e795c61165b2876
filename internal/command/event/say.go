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

// The widths of texts, in cells of a terminal.
const (
	rowCells   = 70 // a row: after its name, of nine cells, in 80 columns
	shortCells = 31 // what holds a run back, where there are only 40 columns
	laneCells  = 16 // and in a table of lanes
)

// cells returns the width of a text. Where a locale shows some characters two cells wide the
// text may be wider; the code that paints it knows.
func cells(s string) int { return narrow.StringWidth(s) }

var narrow = &runewidth.Condition{}

// clip makes texts of others harmless, and at most n cells wide.
func clip(s string, n int) string {
	s = printable.Line(s)
	if cells(s) <= n {
		return s
	}
	return narrow.Truncate(s, n, "…")
}

// row joins parts with the gap, as many as fit. The first is cut off if it is too long.
func row(gap string, parts ...string) (line string) {
	for _, part := range parts {
		part = printableText(part)
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

// clauses joins parts with semicolons. If a part does not fit, it leaves out the last clauses of it.
func clauses(parts ...string) (line string) {
	for _, part := range parts {
		part = printableText(part)
		prefix := line
		if prefix != "" && part != "" {
			prefix += "; "
		}
		for end := len(part); end > 0; end = strings.LastIndex(part[:end], "; ") {
			if cells(prefix+part[:end]) <= rowCells {
				line = prefix + part[:end]
				break
			}
		}
		if line == "" {
			line = clip(part, rowCells)
		}
	}
	return line
}

// amount returns a number with three significant digits, such as 196 k or 18.2 M. Numbers below ten thousand
// are whole.
func amount(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "?"
	case math.Abs(x) < 9999.5:
		return words.Number(int(math.Round(x)))
	case math.Abs(x) < 999_500:
		return fmt.Sprintf("%.0f k", x/1e3)
	case math.Abs(x) < 99.95e6:
		return fmt.Sprintf("%.1f M", x/1e6)
	case math.Abs(x) < 9999.5e6:
		return fmt.Sprintf("%.0f M", x/1e6)
	}
	return fmt.Sprintf("%.0f bn", x/1e9)
}

// perSecond shows a speed, with one decimal where that matters.
func perSecond(x float64) string {
	if x >= 99.95 {
		return amount(x) + "/s"
	}
	return fmt.Sprintf("%.1f/s", x)
}

// shortDuration returns a duration for somebody who watches: in tenths of a second up to 20 s.
func shortDuration(d time.Duration) string {
	switch {
	case d < 99*time.Millisecond:
		return fmt.Sprintf("%d ms", max(0, d.Milliseconds()))
	case d < 19_950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return roughDuration(d)
}

// roughDuration returns a rough duration, such as 8 s, 4 min, 1 h 21 min or 3 d 4 h.
func roughDuration(d time.Duration) string {
	switch minutes := int(math.Round(d.Minutes())); {
	case d < 99_500*time.Millisecond:
		return fmt.Sprintf("%.0f s", max(0, d.Seconds()))
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	case minutes < 24*60:
		return twoUnits(minutes/60, "h", minutes%60, "min")
	default:
		hours := (minutes + 30) / 60
		return twoUnits(hours/24, "d", hours%24, "h")
	}
}

func twoUnits(large int, unit string, small int, units string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, unit)
	}
	return fmt.Sprintf("%d %s %d %s", large, unit, small, units)
}

// count shows a number of things; the noun takes an s.
func count(n int, noun string) string {
	return words.Number(n) + " " + noun + words.OneOr(n, "", "s")
}

// share shows a part of a whole, in per cent.
func share(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// seconds converts a time of JSON.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// plainWord shows a kind or a code in plain words.
func plainWord(s string) string { return strings.ReplaceAll(printable.Line(s), "_", " ") }

// printableText makes a text printable that may contain words of others.
func printableText(s string) string { return printable.Line(s) }
