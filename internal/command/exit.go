package command

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
)

// The exit codes are a promise: scripts are written against them.
const (
	ExitOK          = 0
	ExitItemsFailed = 1   // the run finished, some items failed; or a bad line came after calls, or the input changed
	ExitUsage       = 2   // usage, configuration or input is wrong, nothing was called
	ExitStopped     = 3   // the provider no longer serves this run
	ExitBound       = 4   // the run reached a bound that the user set
	ExitOutput      = 5   // the output cannot be written, or could not for a while
	ExitInterrupted = 130 // Ctrl-C, SIGTERM
	ExitPipe        = 141 // the reader of the results has gone, as in | head: 128 + SIGPIPE, as other tools have it
)

// ending says how a command ends with an error: the words and the exit code.
type ending struct {
	code   int
	list   []error // complaints about lines, in the form that editors jump to
	text   string  // "" says nothing
	resume string  // the command that continues from here; "" if there is none
}

func (e *ending) Error() string { return e.text }

// End returns the error of a command that ends with that exit code, in words for people.
// Each argument stays on its line, and nothing that looks like a provider's key is shown.
func End(code int, format string, args ...any) error {
	return &ending{code: code, text: sayf(format, args...)}
}

// IsEnd reports whether an error is one that [End] has made.
func IsEnd(err error) bool {
	var end *ending
	return errors.As(err, &end)
}

// refuse ends a command before any call.
func refuse(format string, args ...any) error { return End(ExitUsage, format, args...) }

// report prints how a command ended and returns its exit code. The command that resumes it
// is the last line, alone, to be copied.
func (w *World) report(err error) int {
	if err == nil {
		return ExitOK
	}
	var end *ending
	if !errors.As(err, &end) { // cobra's own
		end = &ending{code: ExitUsage, text: printable.Line(oneLine(err.Error())) + ": see headrace --help"}
	}
	for _, complaint := range end.list {
		fmt.Fprintln(w.stderr, withoutKeys(linesOf(complaint)))
	}
	if end.text != "" {
		fmt.Fprintf(w.stderr, "headrace: %s\n", strings.ReplaceAll(withoutKeys(end.text), "\n", "\nheadrace: "))
	}
	if end.resume != "" {
		fmt.Fprintln(w.stderr, withoutKeys(end.resume))
	}
	return end.code
}

// oneLine returns the first line of a text: some libraries add suggestions below it.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// ownPackages matches the package names that begin errors shown to a user. Such a name
// stands at the beginning, or after the prefix of another package.
var ownPackages = regexp.MustCompile(
	`(?m)(^|: |; |\()(?:(?:promptfile|prompts|journal|saver|disk|sim|node|job|index|parts|store|bus|claim|executor|keeper|permit|batch|coordinator|machine|limiter|provider|catalog|auth|fleet|wire|chat): )+`)

// withoutPackages removes the names of packages from a text, as they tell a user nothing.
func withoutPackages(text string) string { return ownPackages.ReplaceAllString(text, "$1") }

// plainText puts an error into words for people. An error that joins several has a line for
// each.
func plainText(err error) string { return withoutPackages(linesOf(err)) }

// EndOf is [End] with the text of an error, in words for people. An error that joins several has a line
// for each.
func EndOf(code int, err error) error {
	if err == nil {
		return nil
	}
	return &ending{code: code, text: plainText(err)}
}
