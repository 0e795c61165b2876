package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
)

// ownLines is a text of ours with several lines, in which texts of others are printable
// already.
type ownLines string

// sayf is fmt.Sprintf, but keeps each argument on its line, no matter where its text comes
// from.
func sayf(format string, args ...any) string {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			safe[i] = printable.Line(arg)
		case error:
			safe[i] = linesOf(arg)
		default:
			safe[i] = arg
		}
	}
	return fmt.Sprintf(format, safe...)
}

// linesOf returns an error's text: a line, or one for each of several errors that were
// joined.
func linesOf(err error) string {
	if own, ok := err.(*ending); ok { //nolint:errorlint // the error itself, not what it wraps
		return own.text
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return printable.Line(err.Error())
	}
	var raw, safe []string
	for _, e := range joined.Unwrap() {
		raw, safe = append(raw, e.Error()), append(safe, linesOf(e))
	}
	if err.Error() != strings.Join(raw, "\n") { // several are wrapped in one sentence
		return printable.Line(err.Error())
	}
	return strings.Join(safe, "\n")
}

// forPeople keeps texts on the terminal from steering it. Results are for programs, and do
// not go through here.
func forPeople(out io.Writer) io.Writer { return printable.Writer{Out: out} }
