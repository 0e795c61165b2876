package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// flags are those of export.
type flags struct {
	file, format, errors string
	fields, field, join  []string

	failed, json, inOrder, spreadsheet bool
}

// Command makes headrace export.
func Command(w *world.World) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "export OUTPUT [flags]",
		Short: "Write results as a table: CSV, TSV, flat JSONL or Markdown",
		Long: `Write the items of an output as a table, at any time: a row for each item, also for one that failed.
Results come first, in the order of the output, then failed items; --in-order sorts by the lines of
the input. Nothing is changed.

A value that an answer does not have is an empty cell, or null in JSONL: an answer without words has
no text, and a cost that is not known is not 0. text and finish know every dialect, and are those of
the first choice. cost_usd and the tokens are those of the last try. Other columns for --fields:
  ` + strings.Join(Fields()[usualColumns:], ", ") + `

--field NAME=PATH adds a column for any value. A path begins with ` + strings.Join(roots[:4], ", ") + `
(parts of the line), answer (the text of the answer, if it is a JSON object) or input (with --join).

Text comes into a CSV as the model wrote it. For a spreadsheet add --spreadsheet: text that begins
with = + - or @ would run there as a formula, and gets a ' before it. NUL, at which readers of CSV
stop, becomes U+FFFD. headrace help data has lines for pandas, DuckDB, jq and R.`,
		Example: `  headrace export results.jsonl -o results.csv
  headrace export results.jsonl --failed --format md
  headrace export results.jsonl --json --join prompts.jsonl -o results.csv
  headrace export results.jsonl --fields id,text --field tool=response.body.choices[0].message.tool_calls`,
		Args: settings.One("output"),
		RunE: func(_ *cobra.Command, args []string) error { return f.run(w, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "output", "o", "", "file to write (default: standard output)")
	fs.StringVar(&f.format, "format", "", "csv, tsv, jsonl or md (default: by the ending of --output, else csv)")
	fs.StringVar(&f.errors, "errors", "", "file of failed items (default: OUTPUT with .errors before its ending)")
	fs.BoolVar(&f.failed, "failed", false, "only items that failed")
	fs.StringSliceVar(&f.fields, "fields", nil, "columns, in this order (default: "+strings.Join(Fields()[:usualColumns], ",")+")")
	fs.StringArrayVar(&f.field, "field", nil, "one more column, as in tool=response.body.choices[0].message.tool_calls (repeatable)")
	fs.BoolVar(&f.json, "json", false, "read answers as JSON objects, and make their members columns")
	fs.StringArrayVar(&f.join, "join", nil, "add the fields of the input's lines, by id: JSONL, repeatable; takes 16 bytes of memory a line")
	fs.BoolVar(&f.inOrder, "in-order", false, "in the order of the input's lines; takes 16 bytes of memory an item")
	fs.BoolVar(&f.spreadsheet, "spreadsheet", false, "for Excel and others: begin with a byte order mark, and let no text be a formula")
	settings.NameValues(fs, map[string]string{"output": "FILE", "format": "FORMAT", "errors": "FILE", "fields": "NAMES", "field": "NAME=PATH", "join": "INPUT"})
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))                                  // the flag is there
	_ = cmd.RegisterFlagCompletionFunc("fields", cobra.FixedCompletions(Fields(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)) // likewise
	return cmd
}

// unsupportedEndings lists endings of tables whose readers would refuse a CSV of that name.
var unsupportedEndings = []string{".xlsx", ".xls", ".ods", ".parquet", ".feather", ".arrow"}

// complete checks the flags, and returns the columns that they name.
func (f *flags) complete(output string) ([]column, error) {
	if _, err := os.Stat(output); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file: check the name of the output", output)
	}
	if ending := strings.TrimPrefix(strings.ToLower(filepath.Ext(f.file)), "."); f.format == "" && slices.Contains(formats, ending) {
		f.format = ending
	}
	if ending := strings.ToLower(filepath.Ext(f.file)); f.format == "" && slices.Contains(unsupportedEndings, ending) {
		return nil, fmt.Errorf("--output: %s: no %s is made: write a .csv, and headrace help data says how other programs read it", f.file, ending)
	}
	f.format = cmp.Or(f.format, "csv")
	if err := settings.OneOf("format", f.format, formats...); err != nil {
		return nil, err
	}
	if f.spreadsheet && f.format != "csv" && f.format != "tsv" {
		return nil, fmt.Errorf("--spreadsheet is for csv and tsv, and the format is %s: remove one of them", f.format)
	}
	of := settings.Flags{Output: output, Errors: f.errors}
	f.errors = of.ErrorsPath()
	if text := settings.NoFolder(f.file); text != "" && f.file != "" {
		return nil, fmt.Errorf("--output: %s", text)
	}
	for _, name := range append([]string{output, f.errors}, f.join...) {
		if journal.SameFile(f.file, name) {
			return nil, fmt.Errorf("--output: %s is read: name another file", f.file)
		}
	}
	for _, name := range f.join {
		if isUnjoinable(name) {
			return nil, fmt.Errorf("--join: %s: want JSONL that is not compressed", name)
		}
	}
	return f.chosenColumns()
}

// run checks the flags and writes the table. It returns an ending with the exit code of what failed.
func (f *flags) run(w *world.World, output string) error {
	columns, err := f.complete(output)
	if err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	if w.Release != nil {
		w.Release() // there is nothing to save: Ctrl-C has its usual effect
	}
	t := &task{flags: f, output: output, columns: columns, form: formOf(f.format, f.spreadsheet)}
	err = t.run(w.Stdout)
	var unwritten *writeError
	switch {
	case errors.As(err, &unwritten) && exit.IsClosedPipe(unwritten.error):
		return &exit.Ending{Code: exit.Pipe}
	case errors.As(err, &unwritten):
		return &exit.Ending{Code: exit.Output, Text: fmt.Sprintf("the table could not be written: %s", exit.PlainText(unwritten.error))}
	case err != nil:
		return exit.Refuse("%s", exit.PlainText(err))
	}
	t.printNotes(w.Stderr)
	return nil
}

// printNotes prints the size of the table, and how many items lack a line in the input or a JSON object.
func (t *task) printNotes(out io.Writer) {
	if t.flags.file != "" {
		fmt.Fprintf(out, "headrace: %s: %s, %s\n", printable.Line(t.flags.file), words.Count(t.rows, "row"), words.Count(len(t.columns), "column"))
	}
	if t.unjoined > 0 {
		fmt.Fprintf(out, "headrace: --join: %s no line in the input\n", words.Count(t.unjoined, "item")+words.OneOr(t.unjoined, " has", " have"))
	}
	if t.unread > 0 {
		fmt.Fprintf(out, "headrace: --json: %s no JSON object\n", words.Count(t.unread, "answer")+words.OneOr(t.unread, " is", " are"))
	}
}
