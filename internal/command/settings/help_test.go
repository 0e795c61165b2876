package settings

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// "headrace help network" names each flag and variable of the network, and each header that is
// refused or has the key's place. It fits 80 columns, and headrace help lists it.
func TestHelpOfNetwork(t *testing.T) {
	words := strings.Fields(flagsIn[Net] + " timeout stream stream-idle item-timeout deadline insecure-http first-answer outage-patience api-key-env")
	for i, name := range words {
		words[i] = "--" + name
	}
	words = append(words, "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "HTTP/2", "User-Agent", "env:", "file:")
	for name := range notForUsers {
		words = append(words, strings.TrimPrefix(name, "X-"))
	}
	for _, word := range append(words, ofKeys...) {
		if !strings.Contains(strings.ToLower(networkHelp), strings.ToLower(word)) {
			t.Errorf("no %s", word)
		}
	}
	for line := range strings.Lines(networkHelp) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// The groups have each flag of run once, but for the one that says where, and for verbose and
// print-config: only headrace run ends with a summary, and shows its settings.
func TestEachFlagIsInOneGroup(t *testing.T) {
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(Flags).Register(fs)
	names := strings.Fields(strings.Join(slices.Collect(maps.Values(flagsIn)), " ") + " cluster verbose print-config")
	fs.VisitAll(func(f *pflag.Flag) {
		if n := len(names); n != len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == f.Name }))+1 {
			t.Errorf("--%s is not in one group", f.Name)
		}
	})
	if len(names) != countFlags(fs) {
		t.Errorf("%d names for %d flags", len(names), countFlags(fs))
	}
}

func countFlags(fs *pflag.FlagSet) (n int) {
	fs.VisitAll(func(*pflag.Flag) { n++ })
	return n
}
