package exit

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
)

// The exit codes are a promise: scripts are written against them.
const (
	OK          = 0
	ItemsFailed = 1   // the run finished, some items failed; or a bad line came after calls, or the input changed
	Usage       = 2   // usage, configuration or input is wrong, nothing was called
	Stopped     = 3   // the provider no longer serves this run
	Bound       = 4   // the run reached a bound that the user set
	Output      = 5   // the output cannot be written, or could not for a while
	Interrupted = 130 // Ctrl-C, SIGTERM
	Pipe        = 141 // the reader of the results has gone, as in | head: 128 + SIGPIPE, as other tools have it
)

// Ending says how a command ends with an error: the words and the exit code.
type Ending struct {
	Code   int
	List   []error // complaints about lines, in the form that editors jump to
	Text   string  // "" says nothing
	Resume string  // the command that continues from here; "" if there is none
}

func (e *Ending) Error() string { return e.Text }

// End returns the error of a command that ends with that exit code, in words for people.
// Each argument stays on its line, and nothing that looks like a provider's key is shown.
func End(code int, format string, args ...any) error {
	return &Ending{Code: code, Text: Sayf(format, args...)}
}

// IsEnd reports whether an error is one that [End] has made.
func IsEnd(err error) bool {
	var end *Ending
	return errors.As(err, &end)
}

// Refuse ends a command before any call.
func Refuse(format string, args ...any) error { return End(Usage, format, args...) }

// Report prints how a command ended, and returns its exit code. The command that resumes is alone on the last line,
// so that it can be copied.
func Report(out io.Writer, err error) int {
	if err == nil {
		return OK
	}
	var end *Ending
	if !errors.As(err, &end) { // cobra's own
		end = &Ending{Code: Usage, Text: printable.Line(OneLine(err.Error())) + ": see headrace --help"}
	}
	for _, complaint := range end.List {
		fmt.Fprintln(out, WithoutKeys(linesOf(complaint)))
	}
	if end.Text != "" {
		fmt.Fprintf(out, "headrace: %s\n", strings.ReplaceAll(WithoutKeys(end.Text), "\n", "\nheadrace: "))
	}
	if end.Resume != "" {
		fmt.Fprintln(out, WithoutKeys(end.Resume))
	}
	return end.Code
}

// OneLine returns the first line of a text: some libraries add suggestions below it.
func OneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// ownPackages matches the package names that begin errors shown to a user. Such a name
// stands at the beginning, or after the prefix of another package.
var ownPackages = regexp.MustCompile(
	`(?m)(^|: |; |\()(?:(?:promptfile|prompts|serve|line|queue|journal|saver|disk|sim|node|job|index|parts|store|bus|claim|executor|keeper|permit|paced|batch|coordinator|machine|limiter|provider|catalog|auth|fleet|wire|chat): )+`)

// WithoutPackages removes the names of packages from a text, as they tell a user nothing.
func WithoutPackages(text string) string { return ownPackages.ReplaceAllString(text, "$1") }

// PlainText puts an error into words for people. An error that joins several has a line for
// each.
func PlainText(err error) string { return WithoutPackages(linesOf(err)) }

// EndOf is [End] with the text of an error, in words for people. An error that joins several has a line
// for each.
func EndOf(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Ending{Code: code, Text: PlainText(err)}
}

// OwnLines is a text of ours with several lines, in which texts of others are printable
// already.
type OwnLines string

// Sayf formats like fmt.Sprintf, but makes each argument printable on one line, no matter where its text comes from.
func Sayf(format string, args ...any) string {
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

// linesOf returns the text of an error. Several errors that were joined get a line each.
func linesOf(err error) string {
	if own, ok := err.(*Ending); ok { //nolint:errorlint // the error itself, not what it wraps
		return own.Text
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

// ForPeople keeps texts on the terminal from steering it. Results are for programs, and do
// not go through here.
func ForPeople(out io.Writer) io.Writer { return printable.Writer{Out: out} }
