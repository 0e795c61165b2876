package rawjson

import (
	"bytes"
	"encoding/json"
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

// Members appends the members of obj to ms. Here and below the text is known to
// be valid JSON: that is what makes so little code enough.
func Members(obj []byte, ms []Member) []Member {
	i := SkipSpace(obj, 1)
	for obj[i] != '}' {
		m := Member{Start: i}
		i = SkipString(obj, i)
		m.Name = Unquote(obj[m.Start:i])
		i = SkipSpace(obj, SkipSpace(obj, i)+1)
		m.End = SkipValue(obj, i)
		m.Value, m.Raw = obj[i:m.End], obj[m.Start:m.End]
		ms = append(ms, m)
		if i = SkipSpace(obj, m.End); obj[i] == ',' {
			i = SkipSpace(obj, i+1)
		}
	}
	return ms
}

// First is the first element of a valid array, nil if it is empty.
func First(array []byte) []byte {
	i := SkipSpace(array, 1)
	if array[i] == ']' {
		return nil
	}
	return array[i:SkipValue(array, i)]
}

// SkipSpace gives the index of the first byte from i on that is no white space.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// Trim gives text without the white space around it.
func Trim(text []byte) []byte {
	start, end := SkipSpace(text, 0), len(text)
	for end > start && IsSpace(text[end-1]) {
		end--
	}
	return text[start:end]
}

// IsSpace reports whether c is JSON's white space.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// SkipString gives the index after the string whose opening quote is at i.
func SkipString(b []byte, i int) int {
	open := i
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		slashes := 0
		for j := i - 1; j > open && b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// SkipValue gives the index after the value that begins at i.
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
	for depth := 0; ; {
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
}

// SkipScalar passes over a number or a literal: whatever ends one is not in one.
func SkipScalar(b []byte, i int) int {
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// Unquote undoes quotes and escapes; without escapes the answer points into quoted.
func Unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return quoted[1 : len(quoted)-1]
	}
	return []byte(s)
}

// IsString reports whether a valid value is a string; nil is none.
func IsString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

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
