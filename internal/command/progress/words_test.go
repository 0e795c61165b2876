package progress

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
)

// One is not several, anywhere in a summary; and one with nothing to do has none.
func TestSummaryOfOne(t *testing.T) {
	s := &Report{Results: "out.jsonl", Reading: "cat out.jsonl", Verbose: true}
	s.Succeeded = 1
	s.Counters = batch.Counters{
		Offered: 1, Settled: 1, Calls: 1, Throttled: 1, Cooldowns: 1, Participants: 1,
		Parked: 1, Delayed: 1, Stragglers: 1, Released: 1,
	}
	text := s.text()
	for _, want := range []string{
		"met by 1 call\n", "1  time an item waited behind", "1  time an item waited alone",
		"1 answered\n", ", 1 call, 1 refused by a rate limit\n", "\nresults        out.jsonl; to read them:\n  cat out.jsonl\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	s.Left = 1
	if text := s.text(); strings.Contains(text, "to read them") || !strings.Contains(text, "\nresults        out.jsonl\n") {
		t.Errorf("some are left: %s", text)
	}
	if text := (&Report{Before: 3, Results: "out.jsonl", Reading: "cat out.jsonl"}).text(); text != "" {
		t.Errorf("nothing was to do: %q", text)
	}
}
