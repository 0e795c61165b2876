package command

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/provider"
)

// What people are advised to use is there: each flag in the words of what holds a run back.
func TestAdviceNamesFlags(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("event", "testdata", "held.txt"))
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
	new(runFlags).register(fs)
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

// What is done for each call that was answered, and for its item, allocates nothing.
func TestAnswersAreWatchedWithoutAllocation(t *testing.T) {
	item := &promptfile.Item{Request: prompts.Request{Model: "gpt-4o-mini", Body: []byte("{}")}}
	used := provider.Usage{InputTokens: 61, OutputTokens: 14}
	known, err := price.Read("", "", "openai")
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{flags: &runFlags{}}
	r.flags.known = known
	for what, f := range map[string]func(){
		"an answer": func() { r.noteFault(nil, nil) },
		"a size":    func() { sizeOf(&item) },
		"a price":   func() { r.priceOf(&item, used) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
