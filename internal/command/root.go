package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/doctor"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/export"
	"github.com/headrace/headrace/internal/command/lanes"
	"github.com/headrace/headrace/internal/command/plan"
	"github.com/headrace/headrace/internal/command/prices"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/serve"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/simulator"
	"github.com/headrace/headrace/internal/command/status"
	"github.com/headrace/headrace/internal/command/world"
)

// Run runs the command in that world, with what the extras add to it, and returns the exit code. When it returns, nothing
// of it runs any more.
func Run(ctx context.Context, w *world.World, extras ...Extra) int {
	w.Screen, w.Stderr = w.Stderr, exit.ForPeople(w.Stderr)
	stdout := &exit.Told{Out: w.Stdout}
	w.Window, w.Stdout, w.Unread = w.Stdout, stdout, stdout.Broken
	root := newRoot(w, extras...)
	root.SetArgs(w.Args)
	root.SetIn(w.Stdin)
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	err := root.ExecuteContext(ctx)
	if word, ok := unknownWord(err); ok {
		err = unknownCommand(root, word)
	}
	return exit.Report(w.Stderr, stdout.End(err))
}

// unknownWord returns the word that cobra took for a missing command, read from the text of its error; false for any
// other error.
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

// newRoot makes the command headrace with its subcommands and those of the extras. cobra prints
// no errors: the caller reports them.
func newRoot(w *world.World, extras ...Extra) *cobra.Command {
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
	}
	version := root.Flags().Bool("version", false, "print the version and how it was built")
	root.RunE = func(cmd *cobra.Command, _ []string) error { // cobra's own way needs a template, and each method that one could call
		if *version {
			fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return nil
		}
		return cmd.Help()
	}
	root.SetFlagErrorFunc(flagFault)
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(run.Command(w, clusterForRun(extras)), plan.Command(w), doctor.Command(w), lanes.Command(w), status.Command(w), report.Command(w), export.Command(w), prices.Command(w), serve.Command(w, clusterForServe(w, extras)), ctl.NewCommand(w), newRepairCommand(w), simulator.Command(w), newVersionCommand(), newConfigTopic(), newInputTopic(), settings.NewNetworkTopic(), newProvidersTopic(), newTimeTopic(), export.NewTopic())
	root.AddCommand(newTopics()...)
	addExtras(root, w, extras)
	return root
}

// flagFault returns a refusal that says what is wrong with a flag. It never repeats an unknown flag's value, which
// may be a key.
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
	case errors.As(err, &unknown) && settings.IsKeyFlag(unknown.GetSpecifiedName()):
		return exit.Refuse("%v: %s", err, keyAdvice)
	case errors.As(err, &unknown) && isOfRun(cmd, unknown):
		return exit.Refuse("unknown flag: %s: %s does without that flag of headrace run: leave it out", typedFlag(unknown), cmd.CommandPath())
	case errors.As(err, &unknown) && isShortFlag(unknown.GetSpecifiedShortnames(), cmd.Flags()):
		typed := unknown.GetSpecifiedShortnames()
		return exit.Refuse("unknown flag: -%s: %s%s", typed, settings.DidYouMean(nearestFlag(typed, cmd.Flags())), advice)
	case errors.As(err, &unknown) && !isFlagName(unknown.GetSpecifiedName()):
		return exit.Refuse("unknown flag (not shown, as it may contain a key): %s", keyAdvice)
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return exit.Refuse("--%s: %s is not a %s: %s", f.Name, quotedUnlessKey(invalid.GetValue()), settings.KindOfFlag(f), advice)
	case errors.As(err, &missing):
		return exit.Refuse("--%s needs a %s: %s", missing.GetFlag().Name, settings.KindOfFlag(missing.GetFlag()), advice)
	case unknown == nil:
		return exit.Refuse("malformed flag: %s", advice) // the error's text contains the whole word
	default:
		advice = settings.DidYouMean(nearestFlag(unknown.GetSpecifiedName(), cmd.Flags())) + advice
	}
	return exit.Refuse("%v: %s", err, advice)
}

// isOfRun reports whether headrace run has the flag that this command lacks. Users often reuse the flags of run with
// another command.
func isOfRun(cmd *cobra.Command, unknown *pflag.NotExistError) bool {
	run, _, err := cmd.Root().Find([]string{"run"})
	if err != nil || run == cmd {
		return false
	}
	if short := unknown.GetSpecifiedShortnames(); len(short) == 1 {
		return run.Flags().ShorthandLookup(short) != nil
	}
	return run.Flags().Lookup(unknown.GetSpecifiedName()) != nil
}

// typedFlag returns a flag as the user has typed it.
func typedFlag(unknown *pflag.NotExistError) string {
	if short := unknown.GetSpecifiedShortnames(); short != "" {
		return "-" + short
	}
	return "--" + unknown.GetSpecifiedName()
}

// nearestFlag returns the flag with the name most like the given one; "" if none is near.
func nearestFlag(name string, fs *pflag.FlagSet) string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name = settings.Nearest(name, names); name == "" {
		return ""
	}
	return "--" + name
}

// unknownCommand returns a refusal of a word that is no command, with what the user may have meant.
func unknownCommand(root *cobra.Command, word string) error {
	if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
		return exit.Refuse("unknown command %q: to run that file: headrace run %s -o %s", word, settings.ShellQuote(word), settings.ResultsName)
	}
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden { // a command of another build is no help
			names = append(names, c.Name())
		}
	}
	return exit.Refuse("unknown command %q: %ssee headrace --help", word, settings.DidYouMean(settings.Nearest(word, names)))
}

// newHelpCommand makes the help command. Other than cobra's, it refuses an unknown command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		ValidArgsFunction: func(help *cobra.Command, args []string, _ string) (words []cobra.Completion, _ cobra.ShellCompDirective) {
			if cmd, _, err := help.Root().Find(args); err == nil {
				for _, sub := range cmd.Commands() {
					if !sub.Hidden {
						words = append(words, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
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

// isFlagName reports whether a text looks like a flag's name, and not like a key.
func isFlagName(name string) bool {
	return flagName.MatchString(name) && !exit.KeyShape.MatchString(name)
}

// quotedUnlessKey quotes a value, unless it may be a key.
func quotedUnlessKey(value string) string {
	if exit.WithoutKeys(value) != value {
		return "its value"
	}
	return strconv.Quote(value)
}

// An Extra is a set of features that only some mains have. The zero value adds nothing, but
// marks the main as not the light one.
type Extra struct {
	// Heading stands above the commands in headrace help, without a colon, such as "Many
	// machines". The commands of every main then stand under a heading of their own.
	Heading string
	// Commands makes them. A command ends with End; any other error ends it with exit.Usage.
	Commands func(*world.World) []*cobra.Command
	// Cluster takes over headrace run where --cluster is given. Until then only the flags
	// are checked. Among several extras the first that has it takes over.
	Cluster func(ctx context.Context, s *run.Settings, input string) error
	// Serve lets headrace serve share the limits of a cluster. Among several extras the first that has it does.
	Serve func(*world.World) serve.Cluster
}

// clusterCommands lists the commands that only the full command has.
var clusterCommands = []string{"worker", "hub", "submit", "jobs", "limits", "cluster"}

// ownHeading stands above the commands that every main has, where an extra adds others. It
// is cobra's heading where there are no groups.
const ownHeading = "Available Commands"

// addExtras gives the root the commands of the extras. Without any, it adds words that say
// where to get those commands.
func addExtras(root *cobra.Command, w *world.World, extras []Extra) {
	if len(extras) == 0 {
		for _, word := range clusterCommands {
			root.AddCommand(absentCommand(word))
		}
		return
	}
	groupUnder(root, ownHeading, root.Commands()...)
	root.SetHelpCommandGroupID(ownHeading)
	root.SetCompletionCommandGroupID(ownHeading)
	for _, e := range extras {
		if e.Commands == nil {
			continue
		}
		commands := e.Commands(w)
		groupUnder(root, e.Heading, commands...)
		root.AddCommand(commands...)
	}
}

// groupUnder puts commands under a heading of the help.
func groupUnder(root *cobra.Command, heading string, commands ...*cobra.Command) {
	if !root.ContainsGroup(heading) {
		root.AddGroup(&cobra.Group{ID: heading, Title: heading + ":"})
	}
	for _, c := range commands {
		c.GroupID = heading
	}
}

// absentCommand makes a hidden command that says that another build has this word, no matter which arguments follow.
func absentCommand(word string) *cobra.Command {
	return &cobra.Command{
		Use: word, Hidden: true, Long: run.NotHere(word), DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return exit.Refuse("%s", run.NotHere(word)) },
	}
}

// clusterForServe returns what lets headrace serve join a cluster; nil if no extra does.
func clusterForServe(w *world.World, extras []Extra) serve.Cluster {
	for _, e := range extras {
		if e.Serve != nil {
			return e.Serve(w)
		}
	}
	return nil
}

// clusterForRun returns the first function among the extras that takes over a run with --cluster; nil if none does.
func clusterForRun(extras []Extra) run.OnCluster {
	for _, e := range extras {
		if e.Cluster != nil {
			return e.Cluster
		}
	}
	return nil
}

// newVersionCommand makes headrace version.
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Args:  settings.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return nil
		},
	}
}

// versionText is the text that version and --version print.
func versionText() string {
	info, _ := debug.ReadBuildInfo()
	return versionLine(account.Version(), info)
}

// versionLine returns the version, the commit, and what it was built with.
func versionLine(version string, info *debug.BuildInfo) string {
	words := []string{"headrace", version}
	if info != nil {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				words = append(words, "commit "+s.Value)
			case s.Key == "vcs.modified" && s.Value == "true":
				words = append(words, "(with changes)")
			}
		}
	}
	return strings.Join(append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), " ")
}
