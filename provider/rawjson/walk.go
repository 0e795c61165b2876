package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A Walk goes through the members of an object, or the elements of an array. Next stops before
// a value. Its caller then passes over the value, by Skip, or by a walk Into it that Leave
// brings to its end:
//
//	for w := WalkIn(object); w.Next(); {
//		if string(w.Name) == "model" {
//			model = w.Skip()
//		} else {
//			w.Skip()
//		}
//	}
//
// It allocates nothing but for names with escapes in them. In a text that is not JSON it ends
// somewhere, and its results mean nothing.
type Walk struct {
	Name []byte // of the next value, without quotes and escapes; nil in an array

	b     []byte
	i     int  // where the next value begins
	start int  // where its name's quote opens
	list  bool // an array
}

// WalkIn returns a walk through value, which has no white space before it. The walk is empty if
// value is neither an object nor an array.
func WalkIn(value []byte) Walk {
	if len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return Walk{}
	}
	return Walk{b: value, i: 1, list: value[0] == '['}
}

// Next reports whether there is another value.
func (w *Walk) Next() bool {
	w.i = SkipSpace(w.b, w.i)
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i = SkipSpace(w.b, w.i+1)
	}
	if w.i < len(w.b) && (w.b[w.i] == '}' || w.b[w.i] == ']') {
		w.i++
		return false
	}
	if !w.list && !w.skipName() {
		w.i = len(w.b)
	}
	return w.i < len(w.b)
}

// skipName passes over the name of a member and the colon after it. It returns false if there is no
// name.
func (w *Walk) skipName() bool {
	if w.start = w.i; w.i == len(w.b) || w.b[w.i] != '"' {
		return false
	}
	end := SkipString(w.b, w.i)
	w.Name = Unquote(w.b[w.i:end])
	if w.i = SkipSpace(w.b, end); w.i == len(w.b) || w.b[w.i] != ':' {
		return false
	}
	w.i = SkipSpace(w.b, w.i+1)
	return true
}

// Ahead returns the text from the next value on.
func (w *Walk) Ahead() []byte { return w.b[w.i:] }

// Skip passes over the value and returns it.
func (w *Walk) Skip() []byte {
	start := w.i
	w.i = SkipValue(w.b, start)
	return w.b[start:w.i]
}

// Into begins a walk through the next value, which is an object or an array.
func (w *Walk) Into() Walk { return Walk{b: w.b, i: w.i + 1, list: w.b[w.i] == '['} }

// Leave passes over the value that in has walked through to its end.
func (w *Walk) Leave(in *Walk) { w.i = in.i }

// Lookup returns the value of the first member of that name, nil if an object has none, or
// object is not an object.
func Lookup(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for w := WalkIn(object); w.Next(); {
		if value := w.Skip(); string(w.Name) == name {
			return value
		}
	}
	return nil
}

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
	for opening := i; ; {
		quote := bytes.IndexByte(b[i+1:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote + 1
		slashes := 0
		for b[i-1-slashes] == '\\' && i-1-slashes > opening {
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

// skipNested returns the index after the object or array that begins at i, or the end of b if it
// has no end. It counts braces and brackets together, as the text is not checked.
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

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
// Line and paragraph separators are escaped: some readers of lines break at them.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	unwritten := 0 // s[unwritten:i] needs no escape and is not appended yet
	for i := 0; i < len(s); {
		if i+8 <= len(s) && Plain(s[i:i+8]) {
			i += 8
			continue
		}
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' || c == 0x7F {
				dst = appendEscape(append(dst, s[unwritten:i]...), c)
				unwritten = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && n == 1 {
			dst = appendRune(append(dst, s[unwritten:i]...), r)
			unwritten = i + n
		}
		i += n
	}
	return append(append(dst, s[unwritten:]...), '"')
}

// appendEscape appends the escape of a quote, a backslash or a control character: the short form
// for the most frequent ones, else four digits.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

func appendRune(dst []byte, r rune) []byte {
	if r == utf8.RuneError {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&0xF], hexDigits[r>>8&0xF], hexDigits[r>>4&0xF], hexDigits[r&0xF])
}

// AppendText appends the contents of a JSON string; of anything else, nothing.
func AppendText(dst, value []byte) []byte {
	if !IsString(value) {
		return dst
	}
	return append(dst, Unquote(value)...)
}
