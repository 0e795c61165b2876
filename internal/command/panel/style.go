package panel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
)

// StyleOf returns what a terminal can show, by the variables that env looks up. Windows
// names no locale, and its terminals show all characters. StyleOf does not decide about
// colour.
func StyleOf(env func(string) (string, bool), windows bool) Style {
	locale := "" // of characters, as setlocale finds it: the first of these variables that is not empty
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value, _ := env(name); value != "" {
			locale = strings.ToLower(value)
			break
		}
	}
	utf8 := strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
	if term, _ := env("TERM"); term == "linux" || !windows && !utf8 {
		return Style{ASCII: true}
	}
	return Style{Wide: slices.ContainsFunc([]string{"zh", "ja", "ko"}, func(language string) bool { // terminals there show ambiguous characters two cells wide
		return strings.HasPrefix(locale, language+"_") || strings.HasPrefix(locale, language+".")
	})}
}

// reflowing lists the variables of terminals that break rows again when they become
// narrower.
var reflowing = []string{
	"TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "ALACRITTY_WINDOW_ID", "WEZTERM_PANE", "KONSOLE_VERSION", "WT_SESSION", "GHOSTTY_RESOURCES_DIR", "TERM_PROGRAM",
}

// Reflows reports whether a terminal is known to break its rows again when it becomes
// narrower. GNU screen never does, in any terminal.
func Reflows(env func(string) (string, bool)) bool {
	is := func(name string) bool { value, _ := env(name); return value != "" }
	return is("TMUX") || !is("STY") && slices.ContainsFunc(reflowing, is)
}

// A tone says how serious a row is, or that it is past. The row's words say so, too: colour only repeats it.
type tone uint8

const (
	calm  tone = iota
	faint      // it belongs to the past
	wary       // something slows the run down
	bad        // something is broken
)

// The sequences that begin a tone.
var tones = [...]string{calm: "", faint: "\x1b[2m", wary: "\x1b[33m", bad: "\x1b[31m"}

const (
	nameStyle  = "\x1b[1m" // a row's name
	resetStyle = "\x1b[0m"
)

// boundTone returns the tone of what holds the run back.
func (g *page) boundTone() tone {
	switch g.Bound {
	case "breaker", "stopped", "unanswered":
		return bad
	case "cooldown", "overload", "errors", "trial", "backoff", "recovery", "paused", "draining", "budget":
		return wary
	}
	return calm
}

// paint joins the name and the text of a row, and colours them if the user wants that. It comes last, as the
// sequences would count as width.
func (g *page) paint(r row) string {
	if !g.Color {
		return r.name + r.text
	}
	line := r.text
	if r.tone != calm && line != "" {
		line = tones[r.tone] + line + resetStyle
	}
	if strings.TrimSpace(r.name) == "" {
		return r.name + line
	}
	return nameStyle + r.name + resetStyle + line
}

// withoutColour returns a painted row without its sequences: as it was when its width was measured.
func withoutColour(line string) string {
	if !strings.Contains(line, "\x1b") {
		return line
	}
	for _, code := range slices.Concat(tones[1:], []string{nameStyle, resetStyle}) { // calm has none
		line = strings.ReplaceAll(line, code, "")
	}
	return line
}

// The widths of characters, where ambiguous ones are one cell wide and where they are two.
var (
	narrow = &runewidth.Condition{StrictEmojiNeutral: true}
	wide   = &runewidth.Condition{StrictEmojiNeutral: true, EastAsianWidth: true}
)

// Cells returns the greatest width that a text may have. It adds up the runes, as terminals differ in
// which of them they join.
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

// mostPlainBytes bounds the bytes of a text that plain looks at. It is more than fits in any row.
const mostPlainBytes = 4096

// plain makes one line of a text that others may have written, without control sequences. It uses only characters
// that the terminal can show.
func (s Style) plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF {
			return -1 // it only chooses between two pictures of a character: terminals do not agree on its width then
		}
		return r
	}, printable.Line(text[:min(len(text), mostPlainBytes)]))
	if !s.ASCII {
		return text
	}
	var b strings.Builder
	for _, r := range asciiSigns.Replace(text) {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// asciiSigns replaces our own special characters by ASCII. Letters of others are shown by their
// numbers.
var asciiSigns = strings.NewReplacer("± ", "+-", "±", "+-", "→", ">", "…", "...", "—", "-", "–", "-", "·", ".", "×", "x", "≤", "<=", "≥", ">=", "’", "'")

// Clip returns the part of a text that fits in n cells, with a mark at the end if some is cut off.
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

// shorten leaves out the last parts of a text that do not fit in n cells, and clips what
// even then does not fit.
func (s Style) shorten(text string, n int) string {
	return s.shortenAt(text, n, gap, s.plain(" — "), "; ", ", ")
}

// shortenToName shortens a text for places where a name must do.
func (s Style) shortenToName(text string, n int) string {
	return s.shortenAt(text, n, "; ", ", ", ": ")
}

// shortenAt cuts a text that does not fit in n cells at the last of the given separators; without one it clips the
// text.
func (s Style) shortenAt(text string, n int, between ...string) string {
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

// prefix returns the length in bytes of the part that fits in n cells, and whether that is the whole text.
func (s Style) prefix(text string, n int) (end int, whole bool) {
	for i, r := range text {
		if n -= s.cellsOf(r); n < 0 {
			return i, false
		}
	}
	return len(text), true
}

// lastBetween returns the index of the last separator outside brackets, at most at end; -1 if there is none.
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

// padded pads a text of ours to at least n cells; its characters are one cell wide.
func padded(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-len([]rune(text))))
}

// thousands formats a number in at most four digits and a unit.
func thousands(n int) string {
	switch {
	case n < 10_000:
		return words.Number(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%dM", n/1_000_000)
}
