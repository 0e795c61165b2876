package estimate

import (
	"bytes"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// weighString weighs the text between the quotes of a string, escapes undone.
func weighString(text []byte) float64 {
	var s scale
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			s.add(text)
			return s.tokens()
		}
		s.add(text[:i])
		var room [utf8.UTFMax]byte
		char, size := rawjson.AppendEscaped(room[:0], text[i:])
		s.add(char)
		text = text[i+size:]
	}
}
