package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

// NewCommand makes headrace ctl.
func NewCommand(w *world.World) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "ctl OUTPUT [WORD ...]",
		Short: "Look at a run while it goes on, pause it, or change its limits",
		Long:  longHelp(),
		Example: `  headrace ctl results.jsonl
  headrace ctl results.jsonl pause
  headrace ctl results.jsonl concurrency 200
  headrace ctl results.jsonl limit rpm=500 tpm=200000
  headrace ctl 127.0.0.1:8470 status`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Refuse("ctl takes an output, and a word: see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return send(cmd.Context(), w, args[0], args[1:], asJSON)
		},
		ValidArgsFunction: complete,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON: of status, the event of --progress json")
	return cmd
}

// longHelp returns the help of headrace ctl, with a line for each word.
func longHelp() string {
	var b strings.Builder
	b.WriteString(`Look at a run of yours on this machine while it goes on, or change it. OUTPUT is the run's output; of
headrace serve it is its address, or the file of its --state. Without a word it is status.

`)
	for _, one := range words {
		name, means := strings.TrimSpace(one.name+" "+one.args), one.means
		if len(name) > 24 {
			fmt.Fprintf(&b, "  %s\n", name)
			name = ""
		}
		fmt.Fprintf(&b, "  %-24s  %s\n", name, means)
	}
	b.WriteString(`
Each change is an event in --progress json. It is in the log, in the timeline and in the report.
A pause costs no attempt of any item. Its time counts for --deadline and --item-timeout, and the
forecast of the end is unknown as long as it lasts.

The run listens at a unix socket in $XDG_RUNTIME_DIR/headrace, in a folder that only you can enter;
processes of other users are not heard. headrace run --ctl off opens none. A run with -o - has no
name, and cannot be found. On Windows there is no control.

Exit codes:
  0    it is done
  2    the words are wrong, or refused, or there is no such run`)
	return b.String()
}

// complete offers the words that may follow the output, and then the arguments of that word.
func complete(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return nil, cobra.ShellCompDirectiveDefault
	case len(args) == 1:
		var list []string
		for _, one := range words {
			list = append(list, one.name+"\t"+one.means)
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
	switch args[1] {
	case LogLevel:
		return []string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp
	case Limit:
		var list []string
		for _, name := range limitNames {
			list = append(list, name+"=")
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	case Report:
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// send asks a target to carry out a command, and prints its answer.
func send(ctx context.Context, w *world.World, target string, list []string, asJSON bool) error {
	c, err := Parse(list)
	if err != nil {
		return exit.Refuse("%s", err)
	}
	name, shown := "", printable.Line(target)
	if isAddress(target) {
		name = OfAddress(target)
	} else if name, err = OfFile(target); err != nil {
		return exit.Refuse("%s: %s", shown, exit.PlainText(err))
	}
	if c.Word == Report {
		if err := report.Check(Report, c.File); err != nil {
			return err
		}
	}
	a, err := Send(ctx, w.Runtime, name, list)
	switch {
	case errors.Is(err, ErrNone) && isAddress(target):
		return exit.Refuse("%s: no headrace serve of yours is there on this machine", shown)
	case errors.Is(err, ErrNone):
		return exit.Refuse("%s: no run of yours writes to it now on this machine: headrace status %s says how it stands", shown, settings.ShellQuote(target))
	case err != nil:
		return exit.Refuse("%s: %s", shown, exit.PlainText(err))
	}
	if c.Word == Report {
		if a.Text, err = writeReport(w, &a, c.File); err != nil {
			return err
		}
	}
	if asJSON {
		return printJSON(w, &a)
	}
	_, err = fmt.Fprintln(exit.ForPeople(w.Stdout), a.Text)
	return err
}

// writeReport writes the report in this process, as the run has its calls to make. It returns a line that names the
// file.
func writeReport(w *world.World, a *Answer, file string) (text string, err error) {
	if a.Files == nil {
		return "", exit.Refuse("report: it has no report")
	}
	of := settings.Flags{Output: a.Files.Output, Errors: a.Files.Errors, Timeline: a.Files.Timeline}
	if of.Timeline == "" {
		of.Timeline = settings.TimelineNone
	}
	if err := report.Write(w, &of, file); err != nil {
		return "", exit.End(exit.Output, "the report could not be written: %s", exit.PlainText(err))
	}
	full, err := filepath.Abs(file)
	if err != nil {
		full = file
	}
	return "report: " + full, nil
}

// printJSON prints an answer as JSON. Of a status it prints the figures alone.
func printJSON(w *world.World, a *Answer) error {
	var v any = a
	switch {
	case a.Progress != nil:
		v = a.Progress
	case a.Status != nil:
		v = a.Status
	}
	text, _ := json.Marshal(v) // it came as JSON
	_, err := w.Stdout.Write(append(printable.JSON(text), '\n'))
	return err
}
