package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/printable"
)

// resultsName is the output that is proposed where the user names none.
const resultsName = "results.jsonl"

// resumeLine returns the command as it was given, ready to be pasted into a shell. A run to
// standard output has kept no record: it goes on from the file in which its results were
// saved.
func (w *World) resumeLine(toStdout bool) string {
	return w.commandLine(w.args, toStdout)
}

func (w *World) commandLine(args []string, toStdout bool) string {
	if toStdout {
		args = toFile(args)
	}
	words := []string{w.name}
	if !strings.HasPrefix(w.name, "go run ") {
		words[0] = shellQuote(w.name)
	}
	for _, a := range args {
		words = append(words, quotedFlag(a))
	}
	return strings.Join(words, " ")
}

// clusterAgain stands for the line to join by, which is a secret and is not shown again. If the variable is not set,
// the shell stops and says why: without its cluster the command would run on this machine.
const clusterAgain = `--cluster="${HEADRACE_CLUSTER:?set it to the line to join by}"`

// quotedFlag quotes a word of a command line for a shell.
func quotedFlag(word string) string {
	if address, is := strings.CutPrefix(word, "--cluster="); is && address != ClusterTrial {
		return clusterAgain
	}
	return shellQuote(word)
}

// notAgain removes the flags that would start over again.
func notAgain(args []string) []string {
	kept := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return a == "--fresh" || strings.HasPrefix(a, "--fresh=")
	})
	if len(kept) == len(args) { // it came from the environment or the config file
		kept = append(kept, "--fresh=false")
	}
	return kept
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
			a, named = resultsName, true
		case a == "-o-" || a == "-o=-" || a == "--output=-":
			a, named = "--output="+resultsName, true
		}
		out = append(out, a)
	}
	if !named { // it came from the environment
		out = append(out, "-o", resultsName)
	}
	return out
}

// shellQuote makes one word of s for a POSIX shell, on one line and of printable characters
// only.
func shellQuote(s string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !harmless(r) }) < 0 {
		return s
	}
	if hidden := printable.Line(s) != s; hidden && !strings.HasSuffix(s, "\n") { // whose end the shell would cut off
		return `"$(printf ` + shellQuote(octal(s)) + `)"`
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
