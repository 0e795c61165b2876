package export

import (
	"slices"
	"strconv"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// A path leads to a value in an item: name, .name, [0] or ["name"] again and again.
type path []step

// step is a member's name, or the place of an element.
type step struct {
	name  string
	place int // from 0, if there is no name
}

// roots are the words that a path may begin with.
var roots = []string{"custom_id", "response", "error", "headrace", "answer", "input"}

// parsePath reads a path. It ignores a $ or a dot at the beginning, as JSONPath and jq write it.
func parsePath(text string) (p path, ok bool) {
	for rest := "." + strings.TrimPrefix(strings.TrimPrefix(text, "$"), "."); rest != ""; {
		var s step
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil {
				return nil, false
			}
			s.name, _ = strconv.Unquote(quoted) // it is quoted
			if rest, ok = strings.CutPrefix(rest[1+len(quoted):], "]"); !ok || s.name == "" {
				return nil, false
			}
		case rest[0] == '[':
			inner, after, closed := strings.Cut(rest[1:], "]")
			n, err := strconv.ParseUint(inner, 10, 31)
			if err != nil || !closed {
				return nil, false
			}
			s.place, rest = int(n), after
		default:
			end := len(rest)
			if next := strings.IndexAny(rest[1:], ".["); next >= 0 {
				end = 1 + next
			}
			if s.name, rest = rest[1:end], rest[end:]; s.name == "" || rest == "." {
				return nil, false
			}
		}
		p = append(p, s)
	}
	return p, slices.Contains(roots, p[0].name)
}

// valueIn returns the value that the path leads to in an item; nil if there is none.
func (p path) valueIn(r *row) []byte {
	var at []byte
	switch p[0].name {
	case "answer":
		at = r.answerJSON()
	case "input":
		at = r.input
	default:
		for _, m := range r.record.Members {
			if string(m.Name) == p[0].name {
				at = m.Value
			}
		}
	}
	for _, s := range p[1:] {
		if at == nil {
			return nil
		}
		if s.name != "" {
			at = rawjson.Lookup(at, s.name)
			continue
		}
		at = element(at, s.place)
	}
	return at
}

// element returns the element at that place of an array; nil if there is none.
func element(array []byte, place int) []byte {
	if array[0] != '[' {
		return nil
	}
	for w := rawjson.WalkIn(array); w.Next(); place-- {
		if v := w.Skip(); place == 0 {
			return v
		}
	}
	return nil
}
