// Package printable makes text that others wrote harmless to terminals and logs. Characters
// that would steer a terminal, reverse its text or begin a line of their own are shown as Go
// would write them, and do nothing. Letters of all languages stay.
//
// Line is for words of others within a line, and JSON for a line that programs read. A Writer
// stands in front of the terminal for everything else.
//
// It is a package of its own because most rooms of the command print, and none may import another for that.
package printable

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns s on one line. It escapes line feeds, tabs and all that is not graphic, as
// \n, \x1b and \u202e, and bytes that are not UTF-8 as \xff.
func Line(s string) string { return escape(s, "") }

// Text is Line for a text that may have several lines: line feeds and tabs stay.
func Text(s string) string { return escape(s, "\n\t") }

// JSON escapes everything in a line of JSON that is not graphic. The meaning stays, as such
// characters can only stand in strings, where they may be escaped. Line feeds stay. JSON
// does not change its argument.
func JSON(line []byte) []byte {
	s := string(line)
	if strings.IndexFunc(s, isHidden) < 0 {
		return line
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || !isHidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			unit(&b, high)
			unit(&b, low)
		default:
			unit(&b, r)
		}
	}
	return []byte(b.String())
}

// unit writes a UTF-16 unit as \u and four digits.
func unit(b *strings.Builder, r rune) {
	hex := strconv.FormatInt(int64(r), 16)
	b.WriteString(`\u` + "0000"[len(hex):] + hex)
}

// escape escapes hidden runes and bytes that are not UTF-8. The runes in stays may remain.
func escape(s, stays string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, isHidden) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatInt(int64(s[0]), 16)) // at least 80: two digits
		case strings.ContainsRune(stays, r) || !isHidden(r):
			b.WriteString(s[:n])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// isHidden reports whether a terminal shows no character for a rune.
func isHidden(r rune) bool { return !unicode.IsGraphic(r) }

// A Writer writes texts to Out, each Write a whole one. It escapes everything that a terminal
// would obey, except line feeds and tabs.
type Writer struct{ Out io.Writer }

// Write writes p as Text shows it.
func (w Writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Out, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
