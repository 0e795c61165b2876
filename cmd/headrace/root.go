package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run is the command: it gives the exit code.
func run(ctx context.Context, w *world) int {
	root := newRoot(w)
	root.SetArgs(w.args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	return w.report(root.ExecuteContext(ctx))
}

func newRoot(w *world) *cobra.Command {
	root := &cobra.Command{
		Use:   "headrace",
		Short: "Run prompt files against rate-limited model APIs, every item exactly once",
		Long: `headrace runs prompt files against rate-limited model APIs: as fast as the provider
allows, without tripping its limits twice, without losing or repeating an item.`,
		Example: `  headrace run examples/prompts.jsonl -o results.jsonl --provider sim
  headrace run prompts.jsonl -o results.jsonl --model gpt-4o-mini`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagFault)
	root.AddCommand(newRunCommand(w), newPlanCommand(w), newStatusCommand(w), newSimCommand(w), newVersionCommand(), newConfigTopic())
	return root
}

// flagFault says what is wrong with a flag, and never repeats the value of one
// that does not exist: it may be a key.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	advice := fmt.Sprintf("see %s --help", cmd.CommandPath())
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown) && isKeyFlag(unknown.GetSpecifiedName()):
		advice = "a key is never a flag: put it into OPENAI_API_KEY, or name another variable with --api-key-env"
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return refuse("--%s: %q is no %s: %s", f.Name, invalid.GetValue(), kindOfFlag(f), advice)
	}
	return refuse("%v: %s", err, advice)
}

func isKeyFlag(name string) bool {
	switch name {
	case "api-key", "apikey", "api_key", "key", "token":
		return true
	}
	return false
}

// kindOfFlag names what a flag takes, in words.
func kindOfFlag(f *pflag.Flag) string {
	value := f.Value
	if n, ok := value.(named); ok {
		value = n.Value
	}
	switch value.Type() {
	case "int", "uint64":
		return "whole number"
	case "float64":
		return "number"
	case "bool":
		return "choice between true and false"
	case "duration":
		return "length of time such as 500ms, 30s or 2m"
	}
	return value.Type()
}
