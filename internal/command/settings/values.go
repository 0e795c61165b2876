package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider/catalog"
)

// named is a flag's value with a word for it in the help.
type named struct {
	pflag.Value
	word string
}

// NameValues gives flags the words for their values, and shows default times as a user would
// write them. A default of no time is not shown, as the help says what it means.
func NameValues(fs *pflag.FlagSet, kinds map[string]string) {
	for flag, word := range kinds {
		f := fs.Lookup(flag)
		f.Value = named{f.Value, word}
		if d, err := time.ParseDuration(f.DefValue); err == nil && strings.HasSuffix(f.DefValue, "s") {
			f.DefValue = words.Span(d.Seconds())
		}
		if f.DefValue == "0s" {
			f.DefValue = "0"
		}
	}
}

// Type is part of [pflag.Value]: the help shows it.
func (n named) Type() string { return n.word }

// Usage makes one refusal of all faults; nil if there are none.
func Usage(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return exit.Refuse("%v", err)
	}
	return nil
}

// KindOfFlag returns the kind of value that a flag takes, in words for users.
func KindOfFlag(f *pflag.Flag) string {
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

// IsKeyFlag reports whether a name is one under which users look for a flag with the key.
func IsKeyFlag(name string) bool {
	switch name {
	case "api-key", "apikey", "api_key", "key", "token":
		return true
	}
	return false
}

// AtLeast refuses a value below the least.
func AtLeast[N int | time.Duration](flag string, n, least N) error {
	if n < least {
		return fmt.Errorf("--%s: %v is too small: at least %v", flag, n, least)
	}
	return nil
}

func atMost(flag string, n, most int) error {
	if n > most {
		return fmt.Errorf("--%s: %d is too large: at most %d", flag, n, most)
	}
	return nil
}

// OneOf returns an error if the value of a flag is not among the words.
func OneOf(flag, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return fmt.Errorf("--%s: %q is not known: use %s or %s", flag, value,
		strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

// Nearest returns the word that the user most likely meant; "" if none is close enough.
func Nearest(typed string, words []string) string {
	nearest, fewestTypos := "", mostTypos+1
	for _, word := range words {
		if typos := distance(typed, word); typos < fewestTypos && 2*typos < len(word) {
			nearest, fewestTypos = word, typos
		}
	}
	return nearest
}

// mostTypos is the largest number of wrong letters in a word that passes for another.
const mostTypos = 2

// DidYouMean asks whether the user meant a word; "" for none.
func DidYouMean(word string) string {
	if word == "" {
		return ""
	}
	return "did you mean " + word + "? "
}

// distance returns the number of edits that turn one word into the other. An edit inserts, removes or
// replaces a letter, or swaps two neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			switch {
			case i == 0:
				rows[0][j] = j
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j-1], rows[i-1][j], rows[i][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// SomeInputs refuses a command line without an input.
func SomeInputs(cmd *cobra.Command, args []string) error {
	f := cmd.Flags().Lookup("cluster")
	switch {
	case len(args) == 0:
		return exit.Refuse("no input: name a prompt file, or \"-\" for standard input: see %s --help", cmd.CommandPath())
	case len(args) > 1 && f != nil && f.Changed && f.Value.String() == f.NoOptDefVal:
		return exit.Refuse("%d inputs, and only one can be run in a cluster: is one of them the address of --cluster? write it as in --cluster=nats://…", len(args))
	}
	return nil
}

// One returns a check that a command has exactly one argument, which its error calls by the name in what.
func One(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return exit.Refuse("%s takes one %s: see %s --help", cmd.Name(), what, cmd.CommandPath())
	}
}

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Refuse("unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
}

// ValuesOf lists the values of a flag of run that takes only these; nil for any other flag. A test compares
// them with the checks of Complete.
func ValuesOf(flag string) []string {
	switch flag {
	case "text":
		return []string{textAuto, textAlways, textNever}
	case "stream":
		return []string{streamAuto, streamAlways, streamNever}
	case "filtered":
		return []string{filteredKeep, FilteredFail}
	case "sim-profile", "profile":
		return []string{ProfileDemo, ProfileSilent, profileFast}
	case "order":
		return []string{orderCompletion, OrderInput}
	case "format":
		return []string{FormatAuto, FormatJSONL, FormatText, FormatCSV}
	case "on-bad-line":
		return []string{badLineFail, badLineSkip}
	case "on-untranslatable":
		return []string{badLineFail, badLineSkip, goElsewhere}
	case "durable":
		return []string{durableSync, durableOS}
	case "progress":
		return []string{ProgressAuto, ProgressPanel, ProgressBar, ProgressPlain, ProgressJSON, ProgressNone}
	case "color":
		return []string{ColorAuto, ColorAlways, colorNever}
	case "ctl":
		return []string{CtlOn, CtlOff}
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	case "log-format":
		return []string{logAuto, logText, logJSON}
	case "law":
		return []string{lawModel, LawPlain, LawNone}
	case "preset":
		return append([]string{presetAuto}, presets...)
	case "service-tier":
		return []string{catalog.Flex, catalog.Standard, TierAuto}
	case "endpoint":
		return prompts.Endpoints()
	}
	return nil
}

// CompleteValues sets up shell completion for the values of a command's flags. It offers words or files where
// a flag takes such, and nothing for numbers and texts.
func CompleteValues(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, given := cmd.GetFlagCompletionFunc(flag.Name); given {
			return
		}
		var offer cobra.CompletionFunc
		words := ValuesOf(flag.Name)
		switch kind := flag.Value.Type(); {
		case flag.Name == "provider":
			offer = cobra.FixedCompletions(providers(), cobra.ShellCompDirectiveNoFileComp)
		case flag.Name == "config":
			offer = cobra.FixedCompletions([]cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
		case len(words) > 0:
			offer = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
		case strings.Contains(kind, "FILE"), kind == "PATH", kind == "string", kind == "bool":
			return // the shell's own names of files
		default:
			offer = cobra.NoFileCompletions
		}
		_ = cmd.RegisterFlagCompletionFunc(flag.Name, offer) // the flag is there
	})
}

// CompleteWords offers the only values of one flag. It goes before CompleteValues, which leaves such a flag alone.
func CompleteWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// providers lists the names of the vendors.
func providers() []cobra.Completion {
	names := make([]cobra.Completion, 0, len(catalog.Rows())+1)
	for _, v := range catalog.Rows() {
		names = append(names, cobra.CompletionWithDesc(v.Name, v.Title))
	}
	return append(names, cobra.CompletionWithDesc(ProviderSim, "simulated, needs no key"))
}
