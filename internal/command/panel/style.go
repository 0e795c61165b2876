package panel

import (
	"slices"
	"strings"
)

// StyleOf returns what a terminal can show, by the variables that env looks up. Windows
// names no locale, and its terminals show all characters. StyleOf does not decide about
// colour.
func StyleOf(env func(string) (string, bool), windows bool) Style {
	locale := localeOf(env)
	if term, _ := env("TERM"); term == "linux" || !windows && !isUTF8(locale) {
		return Style{ASCII: true}
	}
	return Style{Wide: isCJK(locale)}
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

// localeOf returns the locale of characters, as setlocale finds it: the first of these
// variables that is not empty.
func localeOf(env func(string) (string, bool)) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value, _ := env(name); value != "" {
			return strings.ToLower(value)
		}
	}
	return ""
}

func isUTF8(locale string) bool {
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// isCJK reports whether terminals of a locale's language show ambiguous characters two cells
// wide.
func isCJK(locale string) bool {
	for _, language := range []string{"zh", "ja", "ko"} {
		if strings.HasPrefix(locale, language+"_") || strings.HasPrefix(locale, language+".") {
			return true
		}
	}
	return false
}
