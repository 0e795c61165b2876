package panel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
)

// How wide signs are: where a locale takes ambiguous ones for two cells, and elsewhere.
var (
	narrow = &runewidth.Condition{StrictEmojiNeutral: true}
	wide   = &runewidth.Condition{StrictEmojiNeutral: true, EastAsianWidth: true}
)

// Cells is how wide a text is at most: sign by sign, as terminals differ in which they join.
func (s Style) Cells(text string) (n int) {
	for _, r := range text {
		n += s.cellsOf(r)
	}
	return n
}

func (s Style) cellsOf(r rune) int {
	if s.Wide {
		return wide.RuneWidth(r)
	}
	return narrow.RuneWidth(r)
}

// mostBytes of a text are looked at: more than any row has room for.
const mostBytes = 4096

// plain is a text of others on one line, that steers nothing, in signs that the terminal has.
func (s Style) plain(text string) string {
	text = strings.Map(withoutSelectors, printable.Line(text[:min(len(text), mostBytes)]))
	if !s.ASCII {
		return text
	}
	return inASCII(text)
}

// withoutSelectors drops what only chooses between two pictures of a sign: terminals do not
// agree on how wide the sign then is.
func withoutSelectors(r rune) rune {
	if r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF {
		return -1
	}
	return r
}

// signsOf are our own signs in ASCII. Letters of others are shown by their numbers.
var signsOf = strings.NewReplacer("± ", "+-", "±", "+-", "→", ">", "…", "...", "—", "-", "–", "-", "·", ".", "×", "x", "≤", "<=", "≥", ">=", "’", "'")

func inASCII(text string) string {
	var b strings.Builder
	for _, r := range signsOf.Replace(text) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Clip is what of a text has room in n cells; where some is cut off, a mark says so.
func (s Style) Clip(text string, n int) string {
	text = s.plain(text)
	if _, whole := s.prefix(text, n); whole {
		return text
	}
	mark := s.plain("…")
	if s.Cells(mark) > n {
		mark = ""
	}
	end, _ := s.prefix(text, n-s.Cells(mark))
	return strings.TrimRight(text[:end], " ") + mark
}

// shorten leaves out what a text says last, as far as it has no room in n cells, and clips
// what even then has none.
func (s Style) shorten(text string, n int) string {
	return s.shorterBy(text, n, gap, s.plain(" — "), "; ", ", ")
}

// brief is shorten for where a name must do.
func (s Style) brief(text string, n int) string { return s.shorterBy(text, n, "; ", ", ", ": ") }

func (s Style) shorterBy(text string, n int, between ...string) string {
	text = s.plain(text)
	end, whole := s.prefix(text, n)
	if whole {
		return text
	}
	if cut := lastBetween(text, end, between); cut > 0 {
		return strings.TrimRight(text[:cut], " ")
	}
	return s.Clip(text, n)
}

// prefix is how many bytes of a text have room in n cells, and whether that is all of it.
func (s Style) prefix(text string, n int) (end int, whole bool) {
	for i, r := range text {
		if n -= s.cellsOf(r); n < 0 {
			return i, false
		}
	}
	return len(text), true
}

// lastBetween is where, at most at end, the last part of a text begins to be set off from
// those before it; -1 if it has but one. What is in brackets is one part with what is before
// it.
func lastBetween(text string, end int, between []string) int {
	cut, depth := -1, 0
	for i := range text[:end+1] {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth > 0 {
			continue
		}
		for _, b := range between {
			if strings.HasPrefix(text[i:], b) {
				cut = i
			}
		}
	}
	return cut
}

// padded is a text of ours, of signs that are one cell wide, n cells wide at least.
func padded(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-len([]rune(text))))
}

// number is a whole number with commas at the thousands.
func number(n int) string { return words.Number(n) }

// thousands is a number of at most four digits, and their unit.
func thousands(n int) string {
	switch {
	case n < 10_000:
		return number(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}
