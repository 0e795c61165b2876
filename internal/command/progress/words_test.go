package progress

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
)

// A rate that no process reaches is not said: it is not what holds a run back.
func TestRatesThatNobodyReachesAreNotSaid(t *testing.T) {
	at := time.Unix(0, 0)
	for perSecond, want := range map[float64]string{
		130056825: "l: the probe passed: ramping up over 10.0 s", math.Inf(1): "l: the probe passed: ramping up over 10.0 s",
		99999: "l: the probe passed: ramping up to 99999/s over 10.0 s",
	} {
		got := Story(batch.Transition{Lane: "l", To: machine.Ramping, Rate: perSecond, At: at, Until: at.Add(10 * time.Second)})
		if got != want {
			t.Errorf("%v: %q, want %q", perSecond, got, want)
		}
	}
}

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

// A lane that is let in again is not said to be let in nothing.
func TestStoryAfterADrought(t *testing.T) {
	step := batch.Transition{Lane: "l", To: machine.Cooling, Belief: "nothing is let in, for 41 s now; 600 a minute"}
	if got := Story(step); !strings.HasSuffix(got, " — nothing is let in, for 41 s now; 600 a minute") {
		t.Error(got)
	}
	if step.To = machine.Flowing; !strings.HasSuffix(Story(step), " — 600 a minute") {
		t.Error(Story(step))
	}
	if step.Belief = "nothing is let in"; strings.Contains(Story(step), "—") {
		t.Error(Story(step))
	}
}
