package chat

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/headrace/headrace/provider/rawjson"
)

// eachMember passes each known member of an object to take, in order. It passes over members that are
// null. It refuses a value that is not an object, an unknown member, and one that stands twice:
// readers differ in which of two they take.
func eachMember(value []byte, known []string, take func(name string, value []byte) *refusal) *refusal {
	if value[0] != '{' {
		return refuse("is not an object")
	}
	var seen uint64 // a bit for each of known, which are fewer than 64
	for w := rawjson.WalkIn(value); w.Next(); {
		i := slices.Index(known, string(w.Name))
		if i < 0 {
			return refuse("is not known").in(quotedName(w.Name))
		}
		if seen&(1<<i) != 0 {
			return refuse("stands twice").in(known[i])
		}
		seen |= 1 << i
		if member := w.Skip(); !isNull(member) {
			if r := take(known[i], member); r != nil {
				return r.in(known[i])
			}
		}
	}
	return nil
}

// eachUnique passes each member of an object to take, whatever its name. It refuses a name that
// stands twice.
func eachUnique(value []byte, take func(value []byte) *refusal) *refusal {
	seen := map[string]bool{}
	for w := rawjson.WalkIn(value); w.Next(); {
		name := string(w.Name)
		if seen[name] {
			return refuse("stands twice").in(quotedName(w.Name))
		}
		seen[name] = true
		if refused := take(w.Skip()); refused != nil {
			return refused.in(quotedName([]byte(name)))
		}
	}
	return nil
}

// eachElement passes each element of a list to take. It refuses a value that is not a list, and an
// empty list.
func eachElement(value []byte, take func(i int, value []byte) *refusal) *refusal {
	if value[0] != '[' {
		return refuse("is not a list")
	}
	i := 0
	for w := rawjson.WalkIn(value); w.Next(); i++ {
		if r := take(i, w.Skip()); r != nil {
			return r.at(i)
		}
	}
	if i == 0 {
		return refuse("is empty")
	}
	return nil
}

func isNull(value []byte) bool { return string(value) == "null" }

// isEmpty reports whether a list or an object has nothing in it.
func isEmpty(value []byte) bool {
	if value[0] != '[' && value[0] != '{' {
		return false
	}
	w := rawjson.WalkIn(value)
	return !w.Next()
}

// isEmptyList reports whether a value is a list with nothing in it.
func isEmptyList(value []byte) bool { return value[0] == '[' && isEmpty(value) }

// keepText keeps a string that is not empty.
func keepText(to *[]byte, value []byte) *refusal {
	if r := keepString(to, value); r != nil {
		return r
	}
	if len(value) == len(`""`) {
		return refuse("is empty")
	}
	return nil
}

// keepString keeps a string.
func keepString(to *[]byte, value []byte) *refusal {
	if value[0] != '"' {
		return refuse("is not a string")
	}
	*to = value
	return nil
}

// requireValue refuses every value but the wanted one.
func requireValue(value []byte, wanted string) *refusal {
	if string(value) != wanted {
		return refuse("is not " + wanted)
	}
	return nil
}

// requireEmpty refuses every list and object with something in it.
func requireEmpty(value []byte) *refusal {
	if !isEmpty(value) {
		return refuse("has no counterpart")
	}
	return nil
}

// requireZero refuses every number but 0, however it is written.
func requireZero(value []byte) *refusal {
	digits, _, _ := bytes.Cut(bytes.ToLower(value), []byte("e"))
	if !isNumber(value) || bytes.ContainsAny(digits, "123456789") {
		return refuse("is not 0")
	}
	return nil
}

// isOne reports whether a number is 1, however it is written.
func isOne(value []byte) bool {
	n, err := strconv.ParseFloat(string(value), 64)
	return err == nil && n == 1
}

func isNumber(value []byte) bool { return value[0] == '-' || value[0] >= '0' && value[0] <= '9' }

// keepNumber keeps a number from 0 to most.
func keepNumber(to *[]byte, value []byte, most float64) *refusal {
	if !isNumber(value) {
		return refuse("is not a number")
	}
	if n, err := strconv.ParseFloat(string(value), 64); err != nil || n < 0 || n > most {
		return refuse("is not between 0 and " + strconv.FormatFloat(most, 'g', -1, 64))
	}
	*to = value
	return nil
}

// readCount reads a number of tokens, written in digits.
func readCount(to *int, value []byte) *refusal {
	n, err := strconv.ParseInt(string(value), 10, 32)
	if err != nil || n < 1 {
		return refuse("is not a whole number from 1 to " + strconv.Itoa(math.MaxInt32))
	}
	*to = int(n)
	return nil
}

// keepInteger keeps a whole number, written in digits.
func keepInteger(to *[]byte, value []byte) *refusal {
	if _, err := strconv.ParseInt(string(value), 10, 64); err != nil {
		return refuse("is not a whole number of 64 bits")
	}
	*to = value
	return nil
}

// stringOf returns the string in value, escapes undone; "" if value is no string.
func stringOf(value []byte) string {
	if len(value) == 0 || value[0] != '"' || len(value) > maxWord {
		return ""
	}
	return string(rawjson.Unquote(value))
}

// maxWord bounds a string that is compared with known words, in bytes.
const maxWord = 512

// AppendMember appends a member to an object that is being written, with a comma unless it
// is the first. A value of nothing is left out.
func AppendMember(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(AppendName(dst, name), value...)
}

// AppendName appends a name, which needs no escapes, and the colon after it.
func AppendName(dst []byte, name string) []byte {
	dst = append(AppendComma(dst), '"')
	dst = append(dst, name...)
	return append(dst, `":`...)
}

// AppendComma appends the comma before a further member or element: none after a bracket.
// What has been written ends with a value or with a bracket that opens.
func AppendComma(dst []byte) []byte {
	switch dst[len(dst)-1] {
	case '{', '[':
		return dst
	}
	return append(dst, ',')
}

// AppendStrings appends strings as a list.
func AppendStrings(dst []byte, strings [][]byte) []byte {
	dst = append(dst, '[')
	for _, s := range strings {
		dst = append(AppendComma(dst), s...)
	}
	return append(dst, ']')
}

// Blank reports whether a string is white space and nothing else.
func Blank(text []byte) bool {
	for i := 1; i < len(text)-1; i++ {
		switch text[i] {
		case ' ':
		case '\\':
			if i++; text[i] != 'n' && text[i] != 't' && text[i] != 'r' {
				return false
			}
		default:
			return false
		}
	}
	return true
}
