package provider

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// weighString weighs what stands between the quotes of a string, escapes undone.
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
		char, size := appendEscaped(room[:0], text[i:])
		s.add(char)
		text = text[i+size:]
	}
}

// unescape undoes the escapes of a string without its quotes.
func unescape(text []byte) (out []byte) {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(out, text...)
		}
		var size int
		out, size = appendEscaped(append(out, text[:i]...), text[i:])
		text = text[i+size:]
	}
}

// appendEscaped appends the character that the escape at the beginning of text stands
// for, and tells how long the escape is. Half a surrogate pair is U+FFFD.
func appendEscaped(dst, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return dst, len(text)
	}
	switch c := text[1]; c {
	case 'u':
		r, size := hexRune(text), 6
		if utf16.IsSurrogate(r) && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
			r, size = utf16.DecodeRune(r, hexRune(text[6:])), 12
		}
		return utf8.AppendRune(dst, r), min(size, len(text))
	case 'b', 'f', 'n', 'r', 't':
		return append(dst, "\b\f\n\r\t"[bytes.IndexByte([]byte("bfnrt"), c)]), 2
	default:
		return append(dst, c), 2
	}
}

// hexRune is the rune of an escape with four digits.
func hexRune(text []byte) rune {
	if len(text) < 6 {
		return utf8.RuneError
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}

// inner is a string without its quotes.
func inner(quoted []byte) []byte { return quoted[1:max(1, len(quoted)-1)] }

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// skipString gives the index after the string whose opening quote is at i.
func skipString(b []byte, i int) int {
	for open := i; ; {
		quote := bytes.IndexByte(b[i+1:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote + 1
		slashes := 0
		for b[i-1-slashes] == '\\' && i-1-slashes > open {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue gives the index after the value that begins at i, which is beyond i.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			i = skipScalar(b, i)
		}
		if depth <= 0 {
			return i
		}
		for i < len(b) && (b[i] <= ' ' || b[i] == ',' || b[i] == ':') {
			i++
		}
	}
	return len(b)
}

// skipScalar passes over a number or a literal: whatever ends one is not in one.
func skipScalar(b []byte, i int) int {
	for i++; i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' && b[i] != ':' && b[i] != '"'; {
		i++
	}
	return i
}
