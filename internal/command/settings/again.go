package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/world"
)

// ResultsName is the output that is proposed where the user names none.
const ResultsName = "results.jsonl"

// commandLine returns a command as it was given, ready for a shell. A run to standard output keeps no record
// of its items. Its command therefore names a file, into which the user has saved the results, and continues
// from there.
func commandLine(name string, args []string, toStdout bool) string {
	if toStdout {
		args = toFile(args)
	}
	words := []string{name}
	if !strings.HasPrefix(name, "go run ") {
		words[0] = ShellQuote(name)
	}
	for _, arg := range args {
		words = append(words, quotedFlag(arg))
	}
	return strings.Join(words, " ")
}

// Again is an ending from which the same command continues.
func (f *Flags) Again(w *world.World, code int, format string, args ...any) *exit.Ending {
	return f.ContinuesBy(w.Name, w.Args, code, format, args...)
}

// ContinuesBy is an ending from which that command line continues.
func (f *Flags) ContinuesBy(name string, args []string, code int, format string, a ...any) *exit.Ending {
	return &exit.Ending{Code: code, Text: exit.Sayf(format, a...), Resume: commandLine(name, args, f.ToStdout())}
}

// clusterAgain stands for the line to join by, which is a secret and is not shown again. If the variable is not set,
// the shell stops and says why: without its cluster the command would run on this machine.
const clusterAgain = `--cluster="${HEADRACE_CLUSTER:?set it to the line to join by}"`

// quotedFlag quotes a word of a command line for a shell.
func quotedFlag(word string) string {
	if address, is := strings.CutPrefix(word, "--cluster="); is && address != ClusterTrial {
		return clusterAgain
	}
	return ShellQuote(word)
}

// AfterPilot returns the arguments without --pilot, for the command that continues after one.
func AfterPilot(args []string) (kept []string) {
	found := false
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--pilot":
			found = true
			i++ // its value
		case strings.HasPrefix(args[i], "--pilot="):
			found = true
		default:
			kept = append(kept, args[i])
		}
	}
	if !found { // it came from the environment or the config file
		kept = append(kept, "--pilot=0")
	}
	return kept
}

// NotAgain returns the arguments without --fresh, so that the command continues instead of starting over.
func NotAgain(args []string) []string {
	kept := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return a == "--fresh" || strings.HasPrefix(a, "--fresh=")
	})
	if len(kept) == len(args) { // it came from the environment or the config file
		kept = append(kept, "--fresh=false")
	}
	return kept
}

// WithMaxCost returns a copy of the arguments in which --max-cost has another value. It adds the flag if it
// is missing.
func WithMaxCost(args []string, usd string) []string {
	const flag = "--max-cost"
	replaced := slices.Clone(args)
	for i, a := range replaced {
		switch {
		case a == flag && i+1 < len(replaced):
			replaced[i+1] = usd
			return replaced
		case strings.HasPrefix(a, flag+"="):
			replaced[i] = flag + "=" + usd
			return replaced
		}
	}
	return append(replaced, flag, usd) // it came from the environment or the config file
}

// toFile returns a copy of the arguments in which a file replaces the output "-".
func toFile(args []string) []string {
	replaced, named := make([]string, 0, len(args)+2), false
	for i, arg := range args {
		previous := ""
		if i > 0 {
			previous = args[i-1]
		}
		switch {
		case arg == "-" && (previous == "-o" || previous == "--output"):
			arg, named = ResultsName, true
		case arg == "-o-" || arg == "-o=-" || arg == "--output=-":
			arg, named = "--output="+ResultsName, true
		}
		replaced = append(replaced, arg)
	}
	if !named { // it came from the environment
		replaced = append(replaced, "-o", ResultsName)
	}
	return replaced
}

// ShellQuote returns s as one word for a POSIX shell, on one line and in printable characters only.
func ShellQuote(s string) string {
	isPlain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !isPlain(r) }) < 0 {
		return s
	}
	if hidden := printable.Line(s) != s; hidden && !strings.HasSuffix(s, "\n") { // whose end the shell would cut off
		return `"$(printf ` + ShellQuote(octal(s)) + `)"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// octal returns s as a format for printf(1), with every unprintable byte as an octal escape.
func octal(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c >= ' ' && c < 0x7f && c != '%' && c != '\\' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return b.String()
}
