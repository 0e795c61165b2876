package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// A name that is not UTF-8 is shown mended: labels must be UTF-8, and a call that was paid must not fail by that.
func TestNamesThatAreNotUTF8(t *testing.T) {
	g := NewGenAI()
	g.Note(&Call{Endpoint: provider.Chat, Vendor: "v", Model: "a\xff", Server: "h\xff", Took: time.Second, Usage: provider.Usage{InputTokens: 1}})
	r := prometheus.NewPedanticRegistry()
	s := Stand{}
	s.Lanes = []observe.Lane{{Answered: 1, Calls: 1}}
	s.Lanes[0].Name = "a\xff"
	s.Times = []observe.Times{{Lane: "a\xff"}}
	r.MustRegister(g, NewCollector(func() (Stand, bool) { return s, true }))
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
