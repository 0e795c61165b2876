package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Valid reports whether b is one JSON value that nests at most MaxNesting deep.
func Valid(b []byte) bool {
	p := Parser{Skim: true}
	return p.Parse(b)
}

// Member is one name and value of an object. Its slices point into the object.
type Member struct {
	Name       []byte // without quotes, escapes undone
	Value      []byte
	Raw        []byte // both, as they stand
	Start, End int    // where the name's quote opens, where the value has ended
}

// Members appends the members of obj to ms.
func Members(obj []byte, ms []Member) []Member {
	for w := WalkIn(obj); w.Next(); {
		value := w.Skip()
		ms = append(ms, Member{Name: w.Name, Value: value, Raw: obj[w.start:w.i], Start: w.start, End: w.i})
	}
	return ms
}

// First returns the first element of an array, nil if it is empty, or no array.
func First(array []byte) []byte {
	if len(array) == 0 || array[0] != '[' {
		return nil
	}
	w := WalkIn(array)
	if !w.Next() {
		return nil
	}
	return w.Skip()
}

// SkipSpace returns the index of the first byte from i on that is no white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// Trim returns text without the white space around it.
func Trim(text []byte) []byte {
	start, end := SkipSpace(text, 0), len(text)
	for end > start && IsSpace(text[end-1]) {
		end--
	}
	return text[start:end]
}

// IsSpace reports whether c is JSON's white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// SkipString returns the index after the string whose opening quote is at i.
func SkipString(b []byte, i int) int {
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

// SkipValue returns the index after the value that begins at i, which is beyond i.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	return SkipScalar(b, i)
}

func skipNested(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = SkipString(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if i++; depth == 0 {
			return i
		}
	}
	return len(b)
}

// SkipScalar passes over a number or a literal, and over one byte at least: a byte that ends
// one is not part of it.
func SkipScalar(b []byte, i int) int {
	for i++; i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' '; {
		i++
	}
	return i
}

// Unquote undoes quotes and escapes; without escapes the result points into quoted.
func Unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return Inner(quoted)
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return Inner(quoted)
	}
	return []byte(s)
}

// Inner returns a string without its quotes, escapes as they stand.
func Inner(quoted []byte) []byte { return quoted[1:max(1, len(quoted)-1)] }

// AppendEscaped appends the character for the escape at the beginning of text, and returns the
// escape's length in bytes. Half a surrogate pair is U+FFFD.
func AppendEscaped(dst, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return dst, len(text)
	}
	switch c := text[1]; c {
	case 'u':
		r, size := hexRune(text), 6
		if utf16.IsSurrogate(r) && len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
			if whole := utf16.DecodeRune(r, hexRune(text[6:])); whole != utf8.RuneError {
				r, size = whole, 12
			}
		}
		return utf8.AppendRune(dst, r), min(size, len(text))
	case 'b', 'f', 'n', 'r', 't':
		return append(dst, "\b\f\n\r\t"[bytes.IndexByte([]byte("bfnrt"), c)]), 2
	default:
		return append(dst, c), 2
	}
}

// hexRune returns the rune of an escape with four digits.
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

// Number returns the value of a number, 0 for anything else. Beyond the largest float64 it is
// infinite.
func Number(value []byte) float64 {
	if len(value) == 0 || value[0] != '-' && !isDigit(value[0]) {
		return 0
	}
	n, _ := strconv.ParseFloat(string(value), 64)
	return n
}

// IsString reports whether a valid value is a string; nil is none.
func IsString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// IsObject reports whether a valid value is an object; nil is none.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsWord reports whether a value is that string.
func IsWord(value []byte, word string) bool {
	return len(value) >= len(word)+2 && value[0] == '"' && string(Unquote(value)) == word
}

// IsNull reports whether a valid value is null, or nil.
func IsNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// KindOf says what a valid JSON value is, in a word for people.
func KindOf(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}
