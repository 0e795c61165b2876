package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
)

// A State says how well a thing is.
type State string

// The states. Only a fault changes the exit code.
const (
	Well    State = "ok"
	Warning State = "warning" // a run works, but not as well as it may
	Fault   State = "fault"   // a run would fail
	Skipped State = "skipped" // nobody has looked
)

// The checks, in the order in which they are made.
const (
	Settings = "settings"
	Input    = "input"
	Output   = "output"
	Disk     = "disk"
	Files    = "open files"
	Screen   = "terminal"
	Key      = "key"
	Network  = "network"
	Clock    = "clock"
	Call     = "call"
)

// A Finding says how one thing is.
type Finding struct {
	Check string `json:"check"`
	Lane  string `json:"lane,omitempty"` // of the file of --config; "": the only one
	State State  `json:"state"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what mends it; "" if nothing must be mended
}

// findings collects them, and the exit code of a run that would meet the same.
type findings struct {
	all     []Finding
	code    int
	secrets []string
}

// add keeps a finding. Its texts are made printable, without keys, and get one line each.
func (f *findings) add(one Finding) {
	clean := func(text string) string {
		text = provider.RedactText(exit.WithoutSecrets(text), f.secrets...)
		return strings.TrimSpace(printable.Line(strings.ReplaceAll(text, "\n", "; ")))
	}
	one.Text, one.Do = clean(one.Text), clean(one.Do)
	f.all = append(f.all, one)
}

// fault keeps a finding that makes the command exit with that code. A fault of this machine outranks one of the
// provider.
func (f *findings) fault(code int, one Finding) {
	one.State = Fault
	if f.code == exit.OK || code == exit.Usage {
		f.code = code
	}
	f.add(one)
}

// refusal keeps an error of a setting or a file: each of its lines is a fault.
func (f *findings) refusal(check string, err error) {
	text, _, _ := strings.Cut(exit.PlainText(err), "\nthen run:")
	for line := range strings.SplitSeq(text, "\n") {
		f.fault(exit.Usage, Finding{Check: check, Text: line})
	}
}

// count returns the number of findings in a state.
func (f *findings) count(state State) (n int) {
	for _, one := range f.all {
		if one.State == state {
			n++
		}
	}
	return n
}

// summary counts the faults and warnings, in a few words.
func (f *findings) summary() string {
	switch faults, warnings := f.count(Fault), f.count(Warning); {
	case faults > 0 && warnings > 0:
		return fmt.Sprintf("%s and %s", words.Count(faults, "fault"), words.Count(warnings, "warning"))
	case faults > 0:
		return words.Count(faults, "fault")
	case warnings > 0:
		return words.Count(warnings, "warning") + ", no fault"
	}
	return "no fault"
}

// print prints the findings in columns, each with its remedy below it.
func (f *findings) print(out io.Writer) {
	for _, one := range f.all {
		text := one.Text
		if one.Lane != "" {
			text = one.Lane + ": " + text
		}
		fmt.Fprintf(out, "%-8s %-10s  %s\n", one.State, one.Check, text)
		if one.Do != "" {
			fmt.Fprintf(out, "%21s%s\n", "do: ", one.Do)
		}
	}
	fmt.Fprintln(out, f.summary())
}

// report is the form of --json.
type report struct {
	Format   string    `json:"format"`
	Headrace string    `json:"headrace"`
	OK       bool      `json:"ok"`
	ExitCode int       `json:"exit_code"`
	Findings []Finding `json:"findings"`
}

// reportFormat is the version of that form: a field that goes or changes its meaning raises the first number.
const reportFormat = "1.0"

// printJSON prints the findings as the report of --json.
func (f *findings) printJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(report{reportFormat, account.Version(), f.code == exit.OK, f.code, f.all})
}

// end returns the error with which the command ends.
func (f *findings) end() error {
	if f.code == exit.OK {
		return nil
	}
	return &exit.Ending{Code: f.code}
}
