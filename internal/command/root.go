package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run runs the command and returns the exit code.
func run(ctx context.Context, w *World) int {
	w.screen, w.stderr = w.stderr, forPeople(w.stderr)
	root := newRoot(w)
	root.SetArgs(w.args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	err := root.ExecuteContext(ctx)
	if word, ok := unknownWord(err); ok {
		err = unknownCommand(root, word)
	}
	return w.report(err)
}

// unknownWord returns the word that cobra takes for a missing command.
func unknownWord(err error) (word string, ok bool) {
	if err == nil {
		return "", false
	}
	quoted, ok := strings.CutPrefix(err.Error(), "unknown command ")
	if !ok {
		return "", false
	}
	if quoted, err = strconv.QuotedPrefix(quoted); err == nil {
		word, err = strconv.Unquote(quoted)
	}
	return word, err == nil
}

func newRoot(w *World) *cobra.Command {
	root := &cobra.Command{
		Use:   "headrace",
		Short: "Run prompt files against rate-limited model APIs, every item exactly once",
		Long: `headrace runs prompt files against rate-limited model APIs: as fast as the provider
allows, without running into its limits again and again, and without losing or repeating
an item.`,
		Example: `  headrace run examples/prompts.jsonl -o results.jsonl --provider sim
  headrace run prompts.jsonl -o results.jsonl --model gpt-4o-mini
  headrace run prompts.jsonl -o results.jsonl --provider anthropic --model claude-haiku-4-5`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionText(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version and how it was built")
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(newRunCommand(w), newPlanCommand(w), newStatusCommand(w), newRepairCommand(w), newSimCommand(w), newVersionCommand(), newConfigTopic(), newInputTopic(), newNetworkTopic(), newProvidersTopic(), newTimeTopic())
	w.addExtras(root)
	return root
}

// flagFault says what is wrong with a flag, and never repeats the value of one
// that does not exist: it may be a key.
func flagFault(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
		missing *pflag.ValueRequiredError
	)
	advice := fmt.Sprintf("see %s --help", cmd.CommandPath())
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown) && isKeyFlag(unknown.GetSpecifiedName()):
		return refuse("%v: %s", err, keyAdvice)
	case errors.As(err, &unknown) && isShortFlag(unknown.GetSpecifiedShortnames(), cmd.Flags()):
		typed := unknown.GetSpecifiedShortnames()
		return refuse("unknown flag: -%s: %s%s", typed, didYouMean(nearestFlag(typed, cmd.Flags())), advice)
	case errors.As(err, &unknown) && !isFlagName(unknown.GetSpecifiedName()):
		return refuse("unknown flag (not shown, as it may contain a key): %s", keyAdvice)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return refuse("--%s: %s is not a %s: %s", f.Name, quotedUnlessKey(invalid.GetValue()), kindOfFlag(f), advice)
	case errors.As(err, &missing):
		return refuse("--%s needs a %s: %s", missing.GetFlag().Name, kindOfFlag(missing.GetFlag()), advice)
	case unknown == nil:
		return refuse("malformed flag: %s", advice) // the error's text contains the whole word
	default:
		advice = didYouMean(nearestFlag(unknown.GetSpecifiedName(), cmd.Flags())) + advice
	}
	return refuse("%v: %s", err, advice)
}

// nearestFlag returns the flag that a name was most likely meant for, "" if there is none.
func nearestFlag(name string, fs *pflag.FlagSet) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name = nearest(name, names); name == "" {
		return ""
	}
	return "--" + name
}

// unknownCommand says that a word is no command, and what the user may have meant.
func unknownCommand(root *cobra.Command, word string) error {
	if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
		return refuse("unknown command %q: to run that file: headrace run %s -o %s", word, shellQuote(word), resultsName)
	}
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden { // a command of another build is no help
			names = append(names, c.Name())
		}
	}
	return refuse("unknown command %q: %ssee headrace --help", word, didYouMean(nearest(word, names)))
}

// newHelpCommand is cobra's, except that an unknown command is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(help *cobra.Command, args []string) error {
			cmd, rest, err := help.Root().Find(args)
			if err != nil || cmd == help.Root() && len(args) > 0 || len(rest) > 0 {
				return unknownCommand(help.Root(), args[len(args)-1-max(0, len(rest)-1)])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

const keyAdvice = "a key is never a flag: put it into the provider's variable, such as OPENAI_API_KEY, or name another with --api-key-env"

// flagName matches the names of flags, and mistyped ones.
var flagName = regexp.MustCompile(`^[a-z]{2,12}(-[a-z]{1,12}){0,2}$`)

// shortFlags are a few short flags written together. Keys are longer.
var shortFlags = regexp.MustCompile(`^[A-Za-z0-9?]{1,4}$`)

// isShortFlag reports whether an error may repeat the text after a single dash. It may repeat
// short flags, or roughly the name of a long flag that lacks a dash.
func isShortFlag(typed string, fs *pflag.FlagSet) bool {
	return shortFlags.MatchString(typed) || isFlagName(typed) && nearestFlag(typed, fs) != ""
}

func isFlagName(name string) bool { return flagName.MatchString(name) && !keyShape.MatchString(name) }

// keyShape matches the beginnings of providers' keys, with enough characters after them to
// be of use.
var keyShape = regexp.MustCompile(`\b(?:sk|rk|gsk|csk|hf|r8|xai|nvapi|pplx|tgp|ghp|github_pat|bedrock-api-key)[-_][A-Za-z0-9_-]{8,}|\bfw_[A-Za-z0-9]{8,}|\b(?:AIza|ABSK)[A-Za-z0-9_-]{8,}`)

// tokenShape matches the token that lets others into a cluster, as it stands in a line to
// join by.
var tokenShape = regexp.MustCompile(`\b(nats|tls)://[^\s@/]+@`)

// withoutKeys returns a text that repeats the user's words, with anything that looks like a key, or like a
// cluster's token, redacted.
func withoutKeys(text string) string {
	return keyShape.ReplaceAllString(tokenShape.ReplaceAllString(text, "$1://[redacted]@"), "[redacted]")
}

func quotedUnlessKey(value string) string {
	if withoutKeys(value) != value {
		return "its value"
	}
	return strconv.Quote(value)
}

func isKeyFlag(name string) bool {
	switch name {
	case "api-key", "apikey", "api_key", "key", "token":
		return true
	}
	return false
}

// kindOfFlag names the kind of value that a flag takes, in words.
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
	case "string":
		return "value"
	case boundType:
		return "number of items, such as 20, or share of them, such as 5% (more than 0% and less than 100%)"
	}
	return value.Type()
}
