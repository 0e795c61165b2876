package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/status"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/disk"
)

// flags are those of report.
type flags struct {
	file, errors, timeline string
	json                   bool
}

// Command returns the command headrace report.
func Command(w *world.World) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "report OUTPUT [flags]",
		Short: "Make a report of an output: a page with plots, Markdown, or JSON",
		Long: `Make a report of an output: the outcome, what held the runs back, plots over time, what failed with
examples, where the time of items went, cost by model, each run, settings and the proof. It works at
any time: while a run goes on, after its end, and after it was killed. Nothing is changed.

-o F.html is one file of at most 200 KB that loads nothing and runs no script; -o F.md is Markdown,
for a pull request, and -o F.json has the figures. Without -o the Markdown goes to standard output.
headrace run --report F writes the same at the end of a run. For headrace serve, name the file of its --state: the
report has its clients, classes, waits and cost.

Items, tokens and money are those of the result files, as headrace status counts them. Time, calls
and plots are from the timeline of the runs, results.run.jsonl for results.jsonl: without one, the
report has all the rest. Up to three examples of each kind of failure are shown. Their messages are
the provider's, and may quote a prompt.`,
		Example: `  headrace report results.jsonl -o report.html
  headrace report results.jsonl >> $GITHUB_STEP_SUMMARY
  headrace report results.jsonl --json | jq .bounds
  headrace report serve.state.json -o serve.html`,
		Args: settings.One("output"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(w, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "output", "o", "", "file to write: its name ends in .html, .md or .json (default: Markdown to standard output)")
	fs.BoolVar(&f.json, "json", false, "print the figures as JSON")
	fs.StringVar(&f.errors, "errors", "", "file of failed items (default: OUTPUT with .errors before its ending)")
	fs.StringVar(&f.timeline, "timeline", "", "the timeline, as in headrace run (default: OUTPUT with .run.jsonl for .jsonl); none: without")
	settings.NameValues(fs, map[string]string{"output": "FILE", "errors": "FILE", "timeline": "FILE"})
	return cmd
}

// run makes the report of an output, and writes it where the flags say.
func (f *flags) run(w *world.World, output string) error {
	if err := CheckForm(f.file, f.json); err != nil {
		return err
	}
	if _, err := os.Stat(output); errors.Is(err, fs.ErrNotExist) {
		return exit.Refuse("%s: there is no such file: check the name of the output", output)
	}
	r, err := f.readReport(w, output)
	if err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	return writeForm(w, r, f.file, f.json)
}

// CheckForm refuses a file that no report can be written to, and a file together with --json.
func CheckForm(file string, asJSON bool) error {
	switch {
	case asJSON && file != "":
		return exit.Refuse("--json and --output exclude each other: -o FILE.json writes the same to a file")
	case file != "":
		return Check("--output", file)
	}
	return nil
}

// Put writes the report to a file, or to standard output: as JSON, or else as Markdown.
func (r *Report) Put(w *world.World, file string, asJSON bool) error {
	return writeForm(w, r, file, asJSON)
}

// writeForm writes a report as JSON, to the file, or as Markdown to standard output.
func writeForm(w *world.World, r texts, file string, asJSON bool) error {
	switch {
	case asJSON:
		_, err := w.Stdout.Write(r.JSON())
		return err
	case file == "":
		_, err := fmt.Fprint(exit.ForPeople(w.Stdout), r.Markdown())
		return err
	}
	if err := writeFile(r, file); err != nil {
		return &exit.Ending{Code: exit.Output, Text: fmt.Sprintf("the report could not be written: %s", exit.PlainText(err))}
	}
	return nil
}

// readReport makes the report of an output, or of a server.
func (f *flags) readReport(w *world.World, output string) (texts, error) {
	if r, err := readServed(output, w.Clock.Now()); err != nil || r != nil {
		return r, err
	}
	return readOutput(w, &settings.Flags{Output: output, Errors: f.errors, Timeline: f.timeline})
}

// texts are the forms of a report.
type texts interface {
	HTML() string
	Markdown() string
	JSON() []byte
}

// readOutput makes the report of an output from its files.
func readOutput(w *world.World, of *settings.Flags) (*Report, error) {
	source := facts{output: of.Output, errors: of.ErrorsPath(), timeline: of.TimelinePath(), now: w.Clock.Now(), zone: time.Local, version: account.Version(), state: Ended}
	switch runs, killed := status.Fate(w, source.output, source.timeline); {
	case runs:
		source.state = Running
	case killed:
		source.state = Killed
	}
	return newReport(source)
}

// Write writes the report of a run that has ended.
func Write(w *world.World, of *settings.Flags, file string) error {
	r, err := readOutput(w, of)
	if err == nil {
		err = writeFile(r, file)
	}
	return err
}

// Page returns the report of an output as a page, during a run or afterwards.
func Page(w *world.World, of *settings.Flags) ([]byte, error) {
	r, err := readOutput(w, of)
	if err != nil {
		return nil, err
	}
	return []byte(r.HTML()), nil
}

// form is a form of reports, by the ending of a file's name.
type form struct {
	firstBytes string // begins each file of that form
	text       func(texts) []byte
}

var forms = map[string]form{
	".html": {pageMark, func(r texts) []byte { return []byte(r.HTML()) }},
	".htm":  {pageMark, func(r texts) []byte { return []byte(r.HTML()) }},
	".md":   {markdownMark, func(r texts) []byte { return []byte(r.Markdown()) }},
	".json": {jsonMark, texts.JSON},
}

// jsonMark begins each report in JSON.
const jsonMark = "{\n  \"headrace_report\": "

// Check refuses a file that no report can be written to. flag is the flag that names the file, for the error.
func Check(flag, file string) error {
	form, known := forms[strings.ToLower(filepath.Ext(file))]
	if !known {
		return exit.Refuse("%s %q is invalid: want a name that ends in .html, .md or .json", flag, printable.Line(file))
	}
	if text := settings.NoFolder(file); text != "" {
		return exit.Refuse("%s: %s", flag, text)
	}
	if err := disk.Inspect(file, disk.Marked(form.firstBytes)); err != nil {
		return exit.Refuse("%s: %s", flag, exit.PlainText(err))
	}
	return nil
}

// fileMode lets only the owner read the examples of failures, as in the errors file.
const fileMode = 0o600

// writeFile writes a report in the form that the file's name says. An old report is replaced at once.
func writeFile(r texts, file string) error {
	of := forms[strings.ToLower(filepath.Ext(file))]
	if err := disk.Inspect(file, disk.Marked(of.firstBytes)); err != nil {
		return err
	}
	return disk.Real().Unsynced().Write(file, of.text(r), fileMode)
}

// JSON returns the figures.
func (r *Report) JSON() []byte {
	text, _ := json.MarshalIndent(r, "", "  ") // numbers are finite, and all else is text
	return append(printable.JSON(bytes.TrimSpace(text)), '\n')
}
