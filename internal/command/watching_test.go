package command

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// What people are advised to use is there: each flag in the words of what holds a run back.
func TestAdviceNamesFlags(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join("event", "testdata", "held.txt")))(t)
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(settings.Flags).Register(fs)
	named := regexp.MustCompile(`--([a-z-]+)`).FindAllSubmatch(text, -1)
	for _, m := range named {
		if fs.Lookup(string(m[1])) == nil {
			t.Errorf("there is no --%s", m[1])
		}
	}
	if len(named) < 4 || fs.ShorthandLookup("c") == nil {
		t.Errorf("%d flags are named", len(named))
	}
}
