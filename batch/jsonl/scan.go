package jsonl

import (
	"bytes"
	"encoding/json"
)

// validJSON reports whether b is one JSON value that nests at most maxNesting deep.
func validJSON(b []byte) bool {
	p := parser{skim: true}
	return p.parse(b)
}

// member is one name and value of an object. Its slices point into the object.
type member struct {
	name       []byte // without quotes, escapes undone
	value      []byte
	raw        []byte // both, as they stand
	start, end int    // where the name's quote opens, where the value has ended
}

// members appends the members of obj to ms. Here and below the text is known to
// be valid JSON: that is what makes so little code enough.
func members(obj []byte, ms []member) []member {
	i := skipSpace(obj, 1)
	for obj[i] != '}' {
		m := member{start: i}
		i = skipString(obj, i)
		m.name = unquote(obj[m.start:i])
		i = skipSpace(obj, skipSpace(obj, i)+1)
		m.end = skipValue(obj, i)
		m.value, m.raw = obj[i:m.end], obj[m.start:m.end]
		ms = append(ms, m)
		if i = skipSpace(obj, m.end); obj[i] == ',' {
			i = skipSpace(obj, i+1)
		}
	}
	return ms
}

// skipSpace gives the index of the first byte from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// trim gives text without the white space around it.
func trim(text []byte) []byte {
	start, end := skipSpace(text, 0), len(text)
	for end > start && isSpace(text[end-1]) {
		end--
	}
	return text[start:end]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// skipString gives the index after the string whose opening quote is at i.
func skipString(b []byte, i int) int {
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

// skipValue gives the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	return skipScalar(b, i)
}

func skipNested(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
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

// skipScalar passes over a number or a literal: whatever ends one is not in one.
func skipScalar(b []byte, i int) int {
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	return i
}

// unquote undoes quotes and escapes; without escapes the answer points into quoted.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return quoted[1 : len(quoted)-1]
	}
	return []byte(s)
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

func isNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

// kindOf says what a valid JSON value is, in a word for people.
func kindOf(value []byte) string {
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
