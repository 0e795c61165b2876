package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// Lines that were skipped are counted by what they were skipped for, and make a summary
// of a run that did nothing else.
func TestSummaryTellsOfSkippedLines(t *testing.T) {
	s := Report{Untranslatable: 3, ErrorsFile: "e.jsonl"}
	if got := s.text(); !strings.Contains(got, "untranslatable 3  (skipped; see e.jsonl)\n") || strings.Contains(got, "bad lines") {
		t.Errorf("%s", got)
	}
	s.Skipped = 2
	if got := s.text(); !strings.Contains(got, "bad lines      2  (skipped; see e.jsonl)\n") || s.Event().Untranslatable != 3 || s.Event().BadLines != 2 {
		t.Errorf("%s", got)
	}
}

// What became of items that had to wait stands in the summary, in words, and an ordinary
// one is not longer for it.
func TestSummaryTellsOfWaits(t *testing.T) {
	s := Report{Verbose: true, Summary: batch.Summary{Counters: batch.Counters{
		Cooldowns: 3, Participants: 41, Parked: 12, Redistributed: 11, Delayed: 5, Stragglers: 7, Released: 2,
	}}}
	for _, want := range []string{
		"cooldowns      3  met by 41 calls together\n",
		"parked         12  times an item waited behind a refusal, 11 given out again\n",
		"delayed        5  times an item waited alone: its call failed, or only it was refused\n",
		"stragglers     7  of the throttled calls had left before the cooldown\n",
	} {
		if got := s.text(); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if got := s.text(); strings.Contains(got, "released  ") { // it counts what was read ahead
		t.Errorf("items that were let go are counted in\n%s", got)
	}
	calm := (&Report{Verbose: true}).text()
	for _, word := range []string{"parked", "delayed", "stragglers", "together"} {
		if strings.Contains(calm, word) {
			t.Errorf("%q is in\n%s", word, calm)
		}
	}
	e := s.Event()
	if e.Parked != 12 || e.Redistributed != 11 || e.Participants != 41 || e.Released != 2 || e.Delayed != 5 || e.Stragglers != 7 {
		t.Errorf("for programs: %+v", e)
	}
}

// The time of a run that was over in an instant has a part all the same, and one that does
// not add up is said.
func TestProofOfAnInstant(t *testing.T) {
	s := Report{Bounds: observe.Ledger{limiter.BoundTail: 300 * time.Microsecond, limiter.BoundInput: 100 * time.Microsecond}}
	s.Ran = 400 * time.Microsecond
	if text := s.timeProof(); text != "  time 0.000 s = tail 0.000  ✓\n" {
		t.Errorf("%q", text)
	}
	for _, off := range []time.Duration{-1, 1} {
		s.Ran = 400*time.Microsecond + off
		if text := s.timeProof(); !strings.Contains(text, "DOES NOT HOLD") {
			t.Errorf("%q", text)
		}
	}
}

// A clean run ends in six lines at most, the last of which is a command. Verbose adds the
// counts of waits and the proof; a fault of the proof is shown without it.
func TestACleanRunEndsInSixLines(t *testing.T) {
	clean := func() *Report {
		s := &Report{Results: "o.jsonl", Reading: "jq . o.jsonl", Spent: event.Spent{}, Truncated: 3, Before: 7}
		s.Succeeded, s.Elapsed, s.Ran = 1000, 20*time.Second, 20*time.Second
		s.Bounds = observe.Ledger{limiter.BoundRequests: 20 * time.Second}
		s.Counters = batch.Counters{
			Offered: 1000, Settled: 1000, Calls: 1024, HandedOver: 24, Throttled: 24, Cooldowns: 2, Participants: 9, Probes: 2, Redistributed: 5, Parked: 5,
		}
		return s
	}
	text := clean().text()
	if want := `
items          1,000 answered, and 7 ended in earlier runs  (3 cut off at their max_tokens)
failed         0
time           20.0 s, 50.0 items/s, 1,024 calls, 24 refused by a rate limit
cost           none, 0 tokens in, 0 out
results        o.jsonl; to read them:
  jq . o.jsonl
`; text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	verbose := clean()
	verbose.Verbose = true
	for _, word := range []string{"\nprobes         2\n", "\nredistributed  5\n", "\nproof\n  offered 1000 = ", "  time 20.000 s = requests 20.000  ✓\n"} {
		if !strings.Contains(verbose.text(), word) || strings.Contains(text, word) {
			t.Errorf("%q is not only in\n%s", word, verbose.text())
		}
	}
	lost := clean()
	lost.Counters.Settled--
	if !strings.Contains(lost.text(), "DOES NOT HOLD") {
		t.Errorf("a fault is not shown: %s", lost.text())
	}
}
