package metrics

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// A name that is not UTF-8 is shown mended: labels must be UTF-8, and a call that was paid must not fail by that.
func TestNamesThatAreNotUTF8(t *testing.T) {
	g := NewGenAI()
	g.Note(&Call{Endpoint: provider.Chat, Vendor: "v", Model: "a\xff", Server: "h\xff", Took: time.Second, Usage: provider.Usage{InputTokens: 1}})
	s := Stand{}
	s.Lanes = []observe.Lane{{Answered: 1, Calls: 1}}
	s.Lanes[0].Name = "a\xff"
	s.Times = []observe.Times{{Lane: "a\xff"}}
	g.Note(&Call{Endpoint: provider.Chat, Vendor: "v", Model: "a\xfe", Server: "h\xfe", Took: time.Second, Usage: provider.Usage{InputTokens: 1}})
	text := textOf(g) + textOf(NewCollector(func() (Stand, bool) { return s, true }))
	if !utf8.ValidString(text) || !strings.Contains(text, "headrace_items_total{lane=\"a\uFFFD\"") {
		t.Errorf("%q", text)
	}
	if n := strings.Count(text, genAIDuration+"_count{"); n != 1 {
		t.Errorf("%d series of names that are shown alike, want one", n)
	}
}
