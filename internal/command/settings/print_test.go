package settings

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag that the command has and no file can set, such as --join of headrace serve, is named: the printed file alone is not
// all of it. Its value may be a token.
func TestPrintedConfigNamesWhatItLacks(t *testing.T) {
	f, run, fs := &Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError), pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.Register(run)
	fs.AddFlagSet(run)
	fs.String("join", "", "")
	fs.Int("weight", 1, "")
	if err := fs.Parse(strings.Fields("--join some-token --provider sim --print-config")); err != nil {
		t.Fatal(err)
	}
	if err := f.Complete(fs, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := f.WriteConfig(&out, fs); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasSuffix(text, "\n# --join is set, too, and no file can set it\n") || strings.Contains(text, "some-token") || strings.Contains(text, "weight") {
		t.Error(text)
	}
}
