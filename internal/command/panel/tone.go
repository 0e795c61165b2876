package panel

import "strings"

// A tone is the meaning of a row that colour repeats.
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
	named = "\x1b[1m" // a row's name
	reset = "\x1b[0m"
)

// gravity returns how serious the reason is that holds the run back.
func (g *page) gravity() tone {
	switch g.Bound {
	case "breaker", "stopped", "unanswered":
		return bad
	case "cooldown", "overload", "errors", "trial", "backoff", "recovery", "paused", "draining":
		return wary
	}
	return calm
}

// paint joins a row, and colours it if the user wants that: nothing is measured afterwards.
func (g *page) paint(r row) string {
	if !g.Color {
		return r.name + r.text
	}
	line := r.text
	if r.tone != calm && line != "" {
		line = tones[r.tone] + line + reset
	}
	if strings.TrimSpace(r.name) == "" {
		return r.name + line
	}
	return named + r.name + reset + line
}

// withoutColour returns a painted row as it was measured.
func withoutColour(line string) string {
	if !strings.Contains(line, "\x1b") {
		return line
	}
	for _, code := range append(tones[1:], named, reset) {
		line = strings.ReplaceAll(line, code, "")
	}
	return line
}
