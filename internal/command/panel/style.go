package panel

import "strings"

// StyleOf is what a terminal can show, by its environment, in which env looks variables up.
// Windows names no locale, and its terminals show all signs. Whether there is colour is not
// said here.
func StyleOf(env func(string) (string, bool), windows bool) Style {
	locale := localeOf(env)
	if term, _ := env("TERM"); term == "linux" || !windows && !isUTF8(locale) {
		return Style{ASCII: true}
	}
	return Style{Wide: isCJK(locale)}
}

// localeOf is the locale of signs, as setlocale finds it: the first of these that is not empty.
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

// isCJK is true for locales of languages whose terminals take ambiguous signs for two cells.
func isCJK(locale string) bool {
	for _, language := range []string{"zh", "ja", "ko"} {
		if strings.HasPrefix(locale, language+"_") || strings.HasPrefix(locale, language+".") {
			return true
		}
	}
	return false
}
