package settings

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A bound on answers is reckoned with only where calls are sent with it: where a dialect demands one.
func TestAnswerBounds(t *testing.T) {
	for args, want := range map[string][2]int{
		"--provider anthropic":                 {0, 4096},
		"--provider anthropic --max-tokens 50": {50, 50},
		"--provider openai":                    {},
		"--provider openai --max-tokens 50":    {},
		"--provider gemini --max-tokens 50":    {},
		"--provider sim":                       {},
	} {
		f, fs := &Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.Register(fs)
		if err := fs.Parse(append([]string{"-o", "x"}, strings.Fields(args)...)); err != nil {
			t.Fatal(err)
		}
		if err := f.Complete(fs, func(string) (string, bool) { return "", false }); err != nil {
			t.Fatal(err)
		}
		if chats, ofPrompts := f.AnswerBounds(); chats != want[0] || ofPrompts != want[1] {
			t.Errorf("%s: %d, %d, want %v", args, chats, ofPrompts, want)
		}
	}
}
