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

// commandLine returns a command as it was given, ready to be pasted into a shell. A run to
// standard output has kept no record: it goes on from the file in which its results were
// saved.
func commandLine(name string, args []string, toStdout bool) string {
	if toStdout {
		args = toFile(args)
	}
	words := []string{name}
	if !strings.HasPrefix(name, "go run ") {
		words[0] = ShellQuote(name)
	}
	for _, a := range args {
		words = append(words, quotedFlag(a))
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

// AfterPilot removes the flag of a pilot that is over.
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

// NotAgain removes the flags that would start over again.
func NotAgain(args []string) []string {
	kept := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return a == "--fresh" || strings.HasPrefix(a, "--fresh=")
	})
	if len(kept) == len(args) { // it came from the environment or the config file
		kept = append(kept, "--fresh=false")
	}
	return kept
}

// WithMaxCost returns the arguments with another --max-cost.
func WithMaxCost(args []string, usd string) []string {
	const flag = "--max-cost"
	out := slices.Clone(args)
	for i, a := range out {
		switch {
		case a == flag && i+1 < len(out):
			out[i+1] = usd
			return out
		case strings.HasPrefix(a, flag+"="):
			out[i] = flag + "=" + usd
			return out
		}
	}
	return append(out, flag, usd) // it came from the environment or the config file
}

// toFile names a file where the arguments say "-o -".
func toFile(args []string) []string {
	out, named := make([]string, 0, len(args)+2), false
	for i, a := range args {
		after := ""
		if i > 0 {
			after = args[i-1]
		}
		switch {
		case a == "-" && (after == "-o" || after == "--output"):
			a, named = ResultsName, true
		case a == "-o-" || a == "-o=-" || a == "--output=-":
			a, named = "--output="+ResultsName, true
		}
		out = append(out, a)
	}
	if !named { // it came from the environment
		out = append(out, "-o", ResultsName)
	}
	return out
}

// ShellQuote makes one word of s for a POSIX shell, on one line and of printable characters
// only.
func ShellQuote(s string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !harmless(r) }) < 0 {
		return s
	}
	if hidden := printable.Line(s) != s; hidden && !strings.HasSuffix(s, "\n") { // whose end the shell would cut off
		return `"$(printf ` + ShellQuote(octal(s)) + `)"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// octal writes s as the format of printf(1).
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
