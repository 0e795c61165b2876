package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

const long = `Look at all that a run needs, and say what is wrong and what to do. Write doctor in the place of run,
with the same flags: nothing is run, and no file of a run changes.

  settings    those that are set, and where each comes from: flag, environment or file
  input       how many items it has, and its first bad lines
  output      whether a run may write there, and whether it would continue
  disk        how long it takes to make a line safe from power loss, and how much room there is
  open files  whether --concurrency connections may be open at once
  terminal    what a run would show here
  key         where it is looked for, and whether it is there; it is never shown
  network     proxy, name, TLS and certificate of the server, and whether it answers
  clock       the difference between the clock here and the server's
  call        one call of one token, which shows what the key may do, and the limits that its answer names

The call costs a small part of a cent. --offline calls nobody, and leaves out the last three.

Exit codes:
  0    there is no fault; there may be warnings
  2    a setting, a file or this machine is at fault
  3    the provider does not answer, or refuses the call`

// notOfDoctor lists the flags of run that have no meaning here.
var notOfDoctor = map[string]bool{"cluster": true, "ctl": true, "print-config": true}

// options are the flags of doctor that run does not have.
type options struct{ offline, json bool }

// Command makes headrace doctor.
func Command(w *world.World) *cobra.Command {
	flags, own := &settings.Flags{ManyLanes: true, Looks: true}, options{}
	cmd := &cobra.Command{
		Use:   "doctor [INPUT...] [flags]",
		Short: "Say what would keep a run from working, and what to do",
		Long:  long,
		Example: `  headrace doctor --model gpt-4o-mini
  headrace doctor prompts.jsonl -o results.jsonl --provider anthropic --model claude-haiku-4-5
  headrace doctor --config lanes.yaml --offline --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Release() // there is nothing to save: Ctrl-C has its usual effect
			d := &doctor{World: w, flags: flags, options: own, patience: longestLook}
			d.runChecks(cmd.Context(), cmd.Flags(), args)
			if own.json {
				if err := d.found.printJSON(w.Stdout); err != nil {
					return err
				}
			} else {
				d.found.print(exit.ForPeople(w.Stdout))
			}
			return d.found.end()
		},
	}
	run := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.Register(run)
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&own.offline, "offline", false, "call nobody")
	cmd.Flags().BoolVar(&own.json, "json", false, "print JSON")
	run.VisitAll(func(f *pflag.Flag) {
		if !notOfDoctor[f.Name] {
			cmd.Flags().AddFlag(f)
		}
	})
	cmd.Flags().Lookup("output").Usage = "results file of the run; - is standard output"
	settings.CompleteValues(cmd)
	settings.GroupFlags(cmd, settings.RunGroups)
	return cmd
}

// A doctor looks at one run that might be.
type doctor struct {
	*world.World
	options
	flags    *settings.Flags
	found    findings
	model    string        // of the input's first line that names one
	patience time.Duration // with a server that does not answer
}

// runChecks makes all checks, from those of the settings to those of the provider.
func (d *doctor) runChecks(ctx context.Context, given *pflag.FlagSet, args []string) {
	settingsHold := d.checkSettings(given)
	d.checkInput(args, settingsHold)
	d.checkOutput(args)
	d.checkOpenFiles()
	d.checkTerminal()
	if !settingsHold {
		d.found.add(Finding{Check: Network, State: Skipped, Text: "not looked at, as the settings have a fault"})
		return
	}
	d.checkProvider(ctx)
}

// checkSettings completes the flags, lists those that are set, and reports whether they are valid.
func (d *doctor) checkSettings(given *pflag.FlagSet) bool {
	err := d.flags.Complete(given, d.Env)
	if err == nil {
		_, err = schema.Of(d.flags)
	}
	if err != nil {
		d.found.refusal(Settings, err)
		return false
	}
	text := "all have their defaults"
	all := slices.DeleteFunc(slices.Clone(d.flags.Given), func(s event.Setting) bool { return s.Name == "json" || s.Name == "offline" })
	if n := len(all); n > 0 {
		text = fmt.Sprintf("%s set: %s", words.Count(n, "setting"), settingsText(all))
	}
	d.found.add(Finding{Check: Settings, State: Well, Text: text})
	return true
}

// settingsText lists settings, each with its value and its origin.
func settingsText(all []event.Setting) string {
	var parts []string
	for _, s := range all {
		value := "not shown"
		if s.Value != nil {
			value = *s.Value
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", s.Name, value, s.From))
	}
	return strings.Join(parts, ", ")
}

// checkTerminal notes what a run would show here: its panel, or plain lines.
func (d *doctor) checkTerminal() {
	text := "standard error is no terminal: a run shows plain lines"
	if d.Terminal.Size != nil {
		columns, rows := d.Terminal.Size()
		text = fmt.Sprintf("%d columns and %d rows: a run shows its panel", columns, rows)
	}
	d.found.add(Finding{Check: Screen, State: Well, Text: text})
}
