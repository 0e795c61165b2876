package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/headrace/headrace/internal/command/printable"
)

const (
	mostFaults = 3    // that are named: a line in a terminal shows no more
	mostLooked = 1000 // at which the search ends: an answer may have a million
	mostWords  = 200  // bytes of a fault, and of its place: both may quote the answer
)

// describe names the first faults of an answer, each with its place, in one line.
func describe(e *jsonschema.ValidationError) string {
	var found []string
	gather(e, &found)
	slices.Sort(found) // members of objects come in any order
	found = slices.Compact(found)
	text := strings.Join(found[:min(len(found), mostFaults)], "; ")
	if more := len(found) - mostFaults; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// gather collects faults. Where alternatives have failed, it names a fault of the first one.
func gather(e *jsonschema.ValidationError, found *[]string) {
	if len(*found) == mostLooked {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			gather(cause, found)
		}
		if len(e.Causes) > 0 {
			return
		}
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
	}
	text := ownWords(e)
	if len(e.Causes) > 0 {
		var inner []string
		gather(e.Causes[0], &inner)
		text += " (" + strings.TrimPrefix(slices.Min(inner), placeOf(e)+": ") + ")"
	}
	*found = append(*found, text)
}

// ownWords returns the place and the text of an error, without its causes.
func ownWords(e *jsonschema.ValidationError) string {
	alone := *e
	alone.Causes, alone.InstanceLocation = nil, nil
	const nowhere = "at '': "
	text := alone.Error()
	if at := strings.LastIndex(text, nowhere); at >= 0 {
		text = text[at+len(nowhere):]
	}
	return clipped(placeOf(e) + ": " + clipped(printable.Line(text)))
}

// placeOf returns the path in the answer at which the fault lies.
func placeOf(e *jsonschema.ValidationError) string {
	var path strings.Builder
	for _, step := range e.InstanceLocation {
		if path.WriteString("/" + step); path.Len() > mostWords {
			break
		}
	}
	if path.Len() == 0 {
		path.WriteByte('/')
	}
	return "at " + printable.Line(clipped(path.String()))
}

func clipped(text string) string {
	if len(text) > mostWords {
		return strings.ToValidUTF8(text[:mostWords], "") + "…"
	}
	return text
}
