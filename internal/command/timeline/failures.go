package timeline

import (
	"encoding/json"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/observe"
)

// failuresLine lists what failed in a run so far.
type failuresLine struct {
	Event    string        `json:"event"`
	At       string        `json:"at"`
	Failures []failureLine `json:"failures"`
}

type failureLine struct {
	Kind     string        `json:"kind"`
	Code     string        `json:"code"`
	Message  string        `json:"message"`
	Count    int           `json:"count"`
	Examples []exampleLine `json:"examples"`
}

type exampleLine struct {
	Line    int    `json:"line"` // 0: not known
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Bounds of a failure, in runes, and of its examples.
const (
	maxMessage  = 200
	maxWord     = 64 // of a kind, a code or an id
	maxExamples = 3
)

// encodeFailures returns the line of failures, with its line feed. It leaves out the rarest
// if the line would be too long.
func encodeFailures(list []observe.Failure, at time.Time) []byte {
	l := failuresLine{Event: "failures", At: event.Stamp(at), Failures: []failureLine{}}
	size := 0
	for _, f := range list {
		one := encodeFailure(&f)
		text, _ := json.Marshal(one) // text and numbers cannot fail
		if size += len(text) + 1; size > maxFailures {
			break
		}
		l.Failures = append(l.Failures, one)
	}
	text, _ := json.Marshal(l) // likewise
	return append(printable.JSON(text), '\n')
}

func encodeFailure(f *observe.Failure) failureLine {
	l := failureLine{clip(f.Kind, maxWord), clip(f.Code, maxWord), clip(f.Message, maxMessage), f.Count, []exampleLine{}}
	for _, e := range f.Examples[:min(len(f.Examples), maxExamples)] {
		l.Examples = append(l.Examples, exampleLine{e.Line, clip(e.ID, maxWord), clip(e.Message, maxMessage)})
	}
	return l
}
