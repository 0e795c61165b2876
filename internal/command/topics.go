package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/provider"
)

// This file holds topics of the help. They are no commands: "headrace help exit-codes" shows one. A test compares each
// with the code that it is about.

// newTopics makes the topics of the help in this file.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit code of a run says", Long: exitCodesHelp},
		{Use: "files", Short: "The files that a run reads and writes", Long: filesHelp},
		{Use: "failures", Short: "The kinds of failure in the errors file", Long: failuresHelp()},
		{Use: "events", Short: "The lines of --progress json", Long: eventsHelp},
		{Use: "metrics", Short: "The metrics of --metrics-addr and --metrics-file", Long: metricsHelp()},
	}
}

const exitCodesHelp = `  0    every item succeeded
  1    the run finished and some items failed; or a bad line came after calls were made, or the
       input changed meanwhile
  2    usage, configuration or input is wrong, and nothing was called
  3    stopped by the provider: quota or balance is used up, the key is refused, there was never an
       answer, or none for too long; or by a mistake in every line
  4    stopped by a bound of yours: --deadline, --max-failures, --max-cost, the end of a --pilot
  5    the output cannot be written, or could not for a while
  130  interrupted by Ctrl-C or SIGTERM
  141  nobody reads standard output, as in | head

After 3, 4, 5 and 130 the last line is the command that continues: what was saved is not bought
again. headrace status OUTPUT ends with the code of that run, also long after it.`

const filesHelp = `For -o results.jsonl a run has these files.

  results.jsonl          a line for each answer, in the form of OpenAI's offline batches
  results.errors.jsonl   a line for each item that failed for good, with the calls that it took
                         (--errors); also lines that were skipped
  results.state.json     what was learned of the provider: waits, limits, the tries of items that are
                         not over. It may be deleted; --forget ignores it
  results.run.jsonl      how the run went, a line a second, at most 3 MiB: headrace status and report
                         read it (--timeline; none turns it off)
  results.jsonl.lock     keeps a second run from the same output; it may be deleted when none runs
  results.jsonl.bak      the old output, after --fresh or headrace repair; then .bak.1 and so on

All are next to the output. With -o - results go to standard output, and failed items to
headrace.errors.jsonl in the current folder. Files of flags are for you to write: --config,
--prices, and --clients of headrace serve. headrace run --print-config shows one for --config.`

// failureMeans says what each kind of failure stands for.
var failureMeans = map[provider.Kind]string{
	provider.Unknown:        "anything that no other kind describes",
	provider.Throttled:      "429: too many calls or tokens for the limit",
	provider.Overloaded:     "503, 529: the provider is too full",
	provider.QuotaExhausted: "the balance, budget or quota is used up",
	provider.Unauthorized:   "the key, the account or the region is refused",
	provider.Timeout:        "no answer within --timeout",
	provider.TransportFault: "no answer, or not a whole one: reset, refused connection, HTML",
	provider.EmptyAnswer:    "a good status and nothing in it",
	provider.Server:         "500, 502, 504: a fault of the provider's own",
	provider.Invalid:        "400: no repetition makes the request acceptable",
	provider.Refused:        "a content filter stopped the request or the answer",
	provider.Truncated:      "the answer ended at its max_tokens: it is a result, and marked",
	provider.Canceled:       "an end that you asked for",
	provider.ModelNotFound:  "404: the model or the address is wrong",
	provider.Misconfigured:  "a certificate or an address with which no call can succeed",
	provider.Misfit:         "the answer does not fit --schema, also when it was asked for again",
}

// failuresHelp returns the help about failures, with a row for each kind from the table that decides.
func failuresHelp() string {
	var b strings.Builder
	b.WriteString("An item that failed for good has a kind of failure in the errors file, as error.code, and in the\nsummary. \"again\" says whether a run repeats such a call by itself, and whether that uses an attempt\n(--max-attempts); \"all\" says what such a failure stops besides its item.\n\n")
	fmt.Fprintf(&b, "  %-16s %-11s %-12s %s\n", "kind", "again", "all", "meaning")
	for _, k := range slices.Sorted(maps.Keys(failureMeans)) {
		fmt.Fprintf(&b, "  %-16s %-11s %-12s %s\n", k, againOf(k), stopsOf(k), failureMeans[k])
	}
	b.WriteString("\nheadrace run … --retry-failed asks failed items once more. docs/failures.md says what to do about each.")
	return b.String()
}

// againOf returns whether such a failure is tried again, and whether that uses an attempt.
func againOf(k provider.Kind) string {
	switch {
	case k.Again() && k.UsesAttempt():
		return "an attempt"
	case k.Again():
		return "as needed"
	}
	return "no"
}

// stopsOf returns what such a failure stops besides its item.
func stopsOf(k provider.Kind) string {
	switch first, _ := k.StopsLaneAfter(); {
	case k.StopsRun():
		return "the run"
	case k.StopsLane(), first > 0:
		return "the model"
	case k.Cools():
		return "for a while"
	}
	return "-"
}

const eventsHelp = `With --progress json standard error has one JSON object a line. The first is start, the last is
summary, and a line without "event" is of the log. docs/progress.schema.json describes every field; a
later version adds events and fields, and readers ignore what they do not know.

  start        the run: its files, items, settings and where each comes from
  notice       something that you should know, in message; code names it
  progress     each second: done, failed, in flight, what holds the run back, its end, its cost
  transition   a model has changed its phase: cooldown, probe, ramp, outage, back to full speed
  changed      a person has changed the run by headrace ctl
  long_wait    a model or an item waits for longer than --long-wait
  summary      the end: counts, cost, time, the exit code

Codes of notices:
  simulated           the answers are simulated
  key                 where the key goes, or does not
  same_key            another process on this machine calls with the same key
  same_limits         lanes of the file draw on one limit
  checking            the input is read before any call
  empty_input         the input has no items
  bad_lines           some lines are skipped
  untranslatable      some lines are skipped, as no lane takes them
  read_otherwise      how the input would have to be read
  input_broke         no further line of the input is taken
  resumed             the run continues what an earlier run has left
  other_output        the output has answers to other questions
  renamed             an item has another id, as its own was taken
  ordered             whether the output is in the order of the input
  torn_line           the incomplete end of a file is cut off
  starting_over       an old file is kept under another name
  state               what is known of the provider is not used, or not saved
  lowered_concurrency fewer calls in flight than asked for
  narrow              a model could use more calls in flight than it may have
  unlimited           no limit but that on calls in flight
  max_tokens          the bound on answers whose lines have none
  odd_wait            the provider names an implausible wait
  failing             some items fail while the others are answered
  budget_80           four fifths of --max-cost are spent
  planned             what is left after a pilot may cost
  old_prices          the built-in prices may have changed
  unused              a setting that has no meaning here
  asked               you asked how the run stands before there was anything to say
  stopping            calls in flight finish
  abandoning          calls in flight are abandoned
  left_out            lines that the terminal was too slow for
  timeline            there is no timeline, or no longer
  report              the report could not be written
  metrics             where the metrics are, or that they are not written
  other               anything else`

// metricsHelp returns the help about metrics, from the table that makes them.
func metricsHelp() string {
	var b strings.Builder
	b.WriteString("A run shows these to Prometheus: --metrics-addr serves them, and --metrics-file writes them for\nnode_exporter. docs/metrics.md has queries and those of headrace serve, and\nexamples/prometheus/alerts.yml has alerts.\n")
	for _, m := range metrics.Names() {
		fmt.Fprintf(&b, "\n  %s (%s)\n      %s\n", m.Name, m.Kind, m.Help)
		if len(m.Labels) > 0 {
			fmt.Fprintf(&b, "      by %s\n", strings.Join(m.Labels, ", "))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
