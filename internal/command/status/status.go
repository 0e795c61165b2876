package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// statusFlags are the flags of status.
type statusFlags struct {
	errors, format, timeline string
	input                    []string
	watch, json              bool
}

// Command makes headrace status.
func Command(w *world.World) *cobra.Command {
	flags := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status OUTPUT [flags]",
		Short: "Show the state of an output: done, failed, remaining, spent",
		Long: `Show what the result files of a run contain: how many items are done and failed, and what
they used and cost, as far as their lines say. Nothing is changed, and a run may be writing
to them. What remains is said by the timeline of the latest run; --input counts the input again.

status exits as the run did: with 0 if every item succeeded, 1 if some failed, 3 if the provider
stopped it, 4 or 5 by a limit of yours or the disk, and with 130 if it was interrupted or killed.
While the run goes on it exits with 0. An output that cannot be read, or a mistake, is 2.

--watch shows the panel of a running run from any other terminal, until the run ends or until
Ctrl-C, which ends only the watching. Without a terminal it prints a line when the reason that
holds the run back changes, when something fails, and every 5 s. --json prints the latest
progress event of the run, as --progress json does, and ends; the state of a run that was killed
is "killed". Both read the timeline of the run, results.run.jsonl for results.jsonl, and show the
last state of a run that was killed.`,
		Example: `  headrace status results.jsonl
  headrace status results.jsonl --input prompts.jsonl
  headrace status results.jsonl --watch
  headrace status results.jsonl --json | jq .held_by`,
		Args: settings.One("output"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.watch || flags.json {
				return follow(cmd.Context(), w, flags, args[0])
			}
			return printCounted(w, flags, args[0])
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&flags.errors, "errors", "", "file of failed items (default: OUTPUT with .errors before its ending)")
	fs.StringArrayVar(&flags.input, "input", nil, "the prompt file, to count what remains; once for each of several files, or a pattern")
	fs.StringVar(&flags.format, "format", settings.FormatAuto, "format of the input, as in headrace run")
	fs.BoolVar(&flags.watch, "watch", false, "show the run until it ends")
	fs.BoolVar(&flags.json, "json", false, "print the latest progress event of the run")
	fs.StringVar(&flags.timeline, "timeline", "", "the timeline that --watch and --json read, as in headrace run (default: OUTPUT with .run.jsonl for .jsonl)")
	settings.NameValues(fs, map[string]string{"errors": "FILE", "input": "FILE", "format": "NAME", "timeline": "FILE"})
	settings.CompleteValues(cmd)
	return cmd
}

// follow shows a run of another process by its timeline: once with --json, until its end with --watch.
func follow(ctx context.Context, w *world.World, flags *statusFlags, output string) error {
	if flags.watch && flags.json {
		return exit.Refuse("--watch and --json exclude each other: give one of them")
	}
	run, err := watchedRun(w, flags, output)
	if err != nil {
		return err
	}
	if flags.json {
		return run.printProgress(ctx)
	}
	return run.watch(ctx)
}

// anyColumns makes every row count, no matter what its columns are called.
var anyColumns = template.Must(template.New("").Parse("-"))

// unknownItems is the length of an input that the user has not named.
const unknownItems = -1

// printCounted prints what the result files of a run contain, and ends with the run's exit code. It reads the input
// only if the user has named it.
func printCounted(w *world.World, flags *statusFlags, output string) error {
	if _, err := os.Stat(output); errors.Is(err, fs.ErrNotExist) {
		return exit.Refuse("%s: there is no such file: check the name of the output", output)
	}
	of := settings.Flags{Output: output, Errors: flags.errors, InputFlags: settings.InputFlags{Format: flags.format}}
	if err := settings.OneOf("format", of.Format, settings.FormatAuto, settings.FormatJSONL, settings.FormatText, settings.FormatCSV); err != nil {
		return settings.Usage(err)
	}
	p, err := journal.ReadProgress(output, of.ErrorsPath())
	if err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	items, input := unknownItems, promptfile.Input{}
	if len(flags.input) > 0 {
		paths, err := settings.Matching(flags.input)
		if err != nil {
			return err
		}
		if input, err = settings.OpenInputs(w.Stdin, paths, of.FormatOf); err != nil {
			return err
		}
		if items, err = countItems(&of, input); err != nil {
			return err
		}
	}
	latest := viewOf(w, flags, output)
	remaining := remainingIn(p, latest.Progress)
	if items != unknownItems {
		remaining = fmt.Sprintf("%d of %d in %s, if no line of %s has changed since", max(0, items-p.Done-p.Failed), items, input.Name, words.OneOr(len(input.Files()), "it", "them"))
	}
	printStatus(exit.ForPeople(w.Stdout), &of, p, latest, remaining)
	return endAsRun(w, flags, output, p)
}

// endAsRun prints whether the run goes on or was killed, and ends with the run's exit code.
func endAsRun(w *world.World, flags *statusFlags, output string, p *journal.Progress) error {
	run, err := watchedRun(w, flags, output)
	if err != nil { // there is no timeline
		run = &watched{World: w, output: output}
	}
	v, who, killed := run.fate()
	switch {
	case who != "":
		fmt.Fprintf(w.Stdout, "  %-10s goes on (%s)\n", "run", who)
	case killed:
		fmt.Fprintf(w.Stdout, "  %-10s was killed, or its machine went down: the same command resumes it\n", "run")
	}
	return run.exitAsRun(&v, p.Failed > 0)
}

// countItems reads an input to its end and counts its items. It takes lines of any model and endpoint.
func countItems(of *settings.Flags, input promptfile.Input) (items int, err error) {
	cfg := prompts.Config{DefaultModel: settings.SimDefaultModel, Serves: prompts.Operations(), Checked: true, Passing: true, NoKeys: true, Format: of.FormatOf(input.Name)}
	if slices.ContainsFunc(input.Files(), func(name string) bool { return of.FormatOf(name) == prompts.FormatCSV }) {
		cfg.Template = anyColumns
	}
	err = input.Read(cfg, func(file io.Reader, cfg prompts.Config) error {
		for _, err := range prompts.NewReader(file, cfg).All() {
			if _, bad := errors.AsType[*prompts.LineError](err); err != nil && !bad {
				return err
			}
			items++
		}
		return nil
	})
	switch {
	case errors.Is(err, promptfile.ErrInput):
		return 0, settings.InputFault(input.Name, err)
	case err != nil:
		return 0, exit.Refuse("%s", exit.PlainText(err))
	}
	return items, nil
}

// remainingIn describes what remains of the latest run, by its timeline. Lines may have been lost, so the result
// files count if they show fewer done.
func remainingIn(p *journal.Progress, latest *event.Progress) string {
	if latest == nil || latest.Total == nil || *latest.Total == 0 && p.Done+p.Failed > 0 { // a stream whose items all have a result counts none
		return "unknown without the input: add --input FILE" + spanWords(p)
	}
	return fmt.Sprintf("%d of the %d that the latest run was to do, of %s: --input FILE counts its lines again",
		max(0, *latest.Total-min(latest.Done, p.Done+p.Failed)), *latest.Total, latest.Input)
}

// printStatus prints a row for each fact in the files.
func printStatus(out io.Writer, of *settings.Flags, p *journal.Progress, latest timeline.View, remaining string) {
	lanes, stopped := lanesOf(latest)
	row := func(name string, format string, args ...any) {
		fmt.Fprintf(out, "  %-10s %s\n", name, exit.Sayf(format, args...))
	}
	fmt.Fprintln(out, printable.Line(of.Output))
	row("done", "%d%s", p.Done, inBrackets(p.Models, ""))
	if p.Filtered > 0 {
		row("filtered", "%d of these: a content filter cut them short or emptied them", p.Filtered)
	}
	row("failed", "%d%s", p.Failed, inBrackets(p.Failures, "see "+of.ErrorsPath()))
	if p.Simulated > 0 {
		row("simulated", "%d: no provider was asked", p.Simulated)
	}
	row("remaining", "%s", remaining)
	row("spent", "%s", spentWords(p))
	printLanes(row, p, lanes)
	printStopped(row, stopped)
	if d := &p.Doubtful; d.Calls > 0 {
		row("doubtful", "%s", words.Doubtful(int(d.Calls), d.InputTokens, d.OutputTokens))
	}
	if p.Torn > 0 {
		row("torn", "the last line, after %d bytes: a run was killed, or is writing now; the next run repairs it", p.Torn)
	}
	if !p.Changed.IsZero() {
		row("changed", "%s", p.Changed.Format("2006-01-02 15:04:05"))
	}
}

func spanWords(p *journal.Progress) string {
	if p.LastLine == 0 {
		return ""
	}
	return fmt.Sprintf(" (lines %d to %d were reached)", p.FirstLine, p.LastLine)
}

// spentWords describes tokens, calls and cost. It does not mention missing prices where every item was simulated and
// had none.
func spentWords(p *journal.Progress) string {
	in, out, cached := p.Usage.InputTokens+p.Lost.InputTokens, p.Usage.OutputTokens+p.Lost.OutputTokens, p.Usage.CachedTokens+p.Lost.CachedTokens
	text := fmt.Sprintf("%d tokens in, %d out, in %s", in, out, words.Count(int(p.Attempts+p.Tried), "call"))
	if cached > 0 {
		text += fmt.Sprintf(", %d of them cached", cached)
	}
	known := p.Priced > 0 || p.CostUSD > 0 // earlier tries may have a price where the latest have none
	if known || p.Unpriced > 0 && p.Simulated < p.Done+p.Failed {
		text += "; " + words.Cost(p.CostUSD, known, p.Unpriced)
	}
	if p.FailedUSD > 0 {
		text += fmt.Sprintf(", of it %s for items that failed", words.Money(p.FailedUSD))
	}
	if p.AgainUSD > 0 {
		text += fmt.Sprintf(", %s for earlier tries", words.Money(p.AgainUSD))
	}
	return text
}

// viewOf returns the latest run's view by its timeline; the zero view if that cannot be read.
func viewOf(w *world.World, flags *statusFlags, output string) timeline.View {
	run, err := watchedRun(w, flags, output)
	if err != nil {
		return timeline.View{}
	}
	v, err := run.reader.Read()
	if err != nil {
		return timeline.View{}
	}
	return v
}

// lanesOf returns the lanes of a run, and those of them that have stopped.
func lanesOf(v timeline.View) (lanes []event.Lane, stopped []event.StoppedLane) {
	if v.Progress == nil {
		return nil, nil
	}
	if v.Ended {
		return v.Progress.Lanes, v.Stopped
	}
	for i := range v.Progress.Lanes {
		if l := &v.Progress.Lanes[i]; l.Account != "" && l.Phase == machine.Stopped.String() {
			stopped = append(stopped, event.StoppedLane{Lane: l.Name, Cause: l.Cause, Advice: l.Advice})
		}
	}
	return v.Progress.Lanes, stopped
}

// printStopped prints a row for each stopped lane of a file, with the reason and what to do. Lanes of one account
// share a row.
func printStopped(row func(name, format string, args ...any), stopped []event.StoppedLane) {
	all := event.ByAccount(stopped)
	for _, stop := range all[:min(shownLanes, len(all))] {
		row("stopped", "%s: %s", printable.Line(stop.Lane), printable.Line(stop.Words()))
	}
	if more := len(all) - shownLanes; more > 0 {
		row("", "and %s", words.Count(more, "more"))
	}
}

// printLanes says what each lane has cost, the dearest first, and each account of several lanes;
// nothing if there is one lane.
func printLanes(row func(name, format string, args ...any), p *journal.Progress, lanes []event.Lane) {
	if len(p.Lanes) < 2 || p.Priced == 0 {
		return
	}
	accounts := map[string]string{}
	for i := range lanes {
		accounts[lanes[i].Name] = lanes[i].Account
	}
	sums, laneCounts := map[string]journal.LaneCost{}, map[string]int{}
	for name, l := range p.Lanes {
		account := accounts[name]
		sum := sums[account]
		sums[account] = journal.LaneCost{USD: sum.USD + l.USD, Priced: sum.Priced + l.Priced, Unpriced: sum.Unpriced + l.Unpriced}
		if laneCounts[account]++; account == "" {
			laneCounts[account] = 0
		}
	}
	maps.DeleteFunc(sums, func(name string, _ journal.LaneCost) bool { return laneCounts[name] < 2 })
	printCosts(row, p.Lanes, "lane", func(name string) string { return "on " + name })
	printCosts(row, sums, "account", func(name string) string {
		return fmt.Sprintf("by account %s (%d lanes)", name, laneCounts[name])
	})
}

// printCosts prints a row for each cost, the greatest first.
func printCosts(row func(name, format string, args ...any), costs map[string]journal.LaneCost, noun string, label func(string) string) {
	names := slices.SortedFunc(maps.Keys(costs), func(a, b string) int {
		return cmp.Or(cmp.Compare(costs[b].USD, costs[a].USD), cmp.Compare(a, b))
	})
	for _, name := range names[:min(shownLanes, len(names))] {
		l := costs[name]
		row("", "%s %s, %s", words.Cost(l.USD, l.Priced > 0, l.Unpriced), label(printable.Line(name)), words.Count(l.Priced+l.Unpriced, "item"))
	}
	if more := len(names) - shownLanes; more > 0 {
		row("", "and %s", words.Count(more, "more "+noun))
	}
}

// shownLanes bounds the lanes that have a row.
const shownLanes = 10

// shownNames bounds how many names a row lists, the most frequent first.
const shownNames = 5

// inBrackets lists the most frequent names with their counts and then a hint, in brackets; "" if there are none.
func inBrackets(counts map[string]int, hint string) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return ""
	}
	var shown []string
	for _, name := range names[:min(shownNames, len(names))] {
		shown = append(shown, fmt.Sprintf("%d %s", counts[name], name))
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if hint != "" {
		text += "; " + hint
	}
	return "  (" + text + ")"
}
