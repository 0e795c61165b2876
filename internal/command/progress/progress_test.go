package progress

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The live line counts cells, of which some signs take two, and in some terminals more signs
// do: a line that wraps is never erased again.
func TestLiveLineCountsCells(t *testing.T) {
	list := []string{"模型很忙", "过载，请稍后再试", "± 3"}
	for _, c := range []struct {
		style panel.Style
		width int
		want  string
	}{
		{panel.Style{}, 8, "模型很忙"},
		{panel.Style{}, 7, "模型很…"},
		{panel.Style{}, 25, "模型很忙"},
		{panel.Style{}, 26, "模型很忙  过载，请稍后再试"},
		{panel.Style{}, 31, "模型很忙  过载，请稍后再试  ± 3"},
		{panel.Style{Wide: true}, 31, "模型很忙  过载，请稍后再试"},
		{panel.Style{Wide: true}, 32, "模型很忙  过载，请稍后再试  ± 3"},
		{panel.Style{}, 0, ""},
	} {
		if got := fitWords(list, c.width, c.style); got != c.want {
			t.Errorf("%+v, %d cells: %q, want %q", c.style, c.width, got, c.want)
		}
	}
}

// The live line never reaches the last column, and tells the most telling first.
func TestLiveLineFits(t *testing.T) {
	total := 240
	p := &event.Progress{
		ElapsedS: 60, Done: 84, Total: &total, PerSecond: 9.81, Ends: &event.Ends{LikelyS: 16}, Failed: 2,
		InFlight: 16, Waiting: 140, OfModels: 1, Lanes: []event.Lane{{Phase: "cooling", WaitS: 1.2}},
	}
	for width := range 120 {
		if got := fitWords(event.Figures(p), width, panel.Style{}); len([]rune(got)) > width {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	if got := fitWords(event.Figures(p), 19, panel.Style{}); got != "84/240  35%  9.8/s" {
		t.Errorf("20 columns: %q", got)
	}
	if got := fitWords(event.Figures(p), 200, panel.Style{}); got != "84/240  35%  9.8/s  ~16.0 s left  2 failed  cooling 1.2 s  16 in flight  140 waiting" {
		t.Errorf("wide: %q", got)
	}
}

// A terminal that takes nothing holds nothing up: what has no room is left out,
// and it is said how much.
func TestSlowTerminal(t *testing.T) {
	r, w := io.Pipe() // a write waits until it is read
	c := Open(Manner{display: &plain{out: w}}, time.Now)
	const sent = 10 * consoleRoom
	for i := range sent {
		c.Notice(event.Other, fmt.Sprint(i)) // would never return, if it waited
	}
	text := make(chan string)
	go func() {
		all, _ := io.ReadAll(r)
		text <- string(all)
	}()
	c.Close(&Report{})
	_ = w.Close()
	got := <-text
	shown := strings.Count(got, "\n") - strings.Count((&Report{}).text(), "\n") - 1
	if !strings.Contains(got, fmt.Sprintf("%d lines were left out", sent-shown)) {
		t.Errorf("%d of %d lines shown, then %q", shown, sent, got[max(0, len(got)-900):])
	}
}

// Lines that happen are written above the live one, which is drawn again.
func TestLiveLineStaysBelow(t *testing.T) {
	var out strings.Builder
	l := newLive(&out, func() int { return 20 }, panel.Style{})
	total := 10
	l.status(&event.Progress{ElapsedS: 1, Done: 4, Total: &total, PerSecond: 4})
	l.notice(time.Time{}, event.Other, "hello")
	l.summary(&Report{})
	want := eraseLine + "4/10  40%  4.0/s" + eraseLine + "headrace: hello\n" + "4/10  40%  4.0/s" + eraseLine
	if got, _, _ := strings.Cut(out.String(), "\nitems "); got+"" != want && got != want+"\n" {
		t.Errorf("%q, want %q", got, want)
	}
}

// The proof says so when it does not hold.
func TestProof(t *testing.T) {
	s := Report{Summary: batch.Summary{Succeeded: 240, Counters: batch.Counters{Offered: 240, Settled: 240, Calls: 287, HandedOver: 47}}}
	if got := s.proof(); got != "  offered 240 = settled 240 + released 0  ✓\n  calls 287 = settled 240 + handed over 47  ✓\n" {
		t.Error(got)
	}
	s.Counters.HandedOver, s.Succeeded = 46, 239
	if got := strings.Count(s.proof(), "DOES NOT HOLD"); got != 2 {
		t.Error(s.proof())
	}
}

// The time of a run is the sum of what held it back, the largest first; what is too little
// to be seen counts too.
func TestProofOfTime(t *testing.T) {
	s := Report{Summary: batch.Summary{Ran: 22_320_400 * time.Millisecond}, Bounds: observe.Ledger{
		limiter.BoundRequests: 13_980_200 * time.Millisecond, limiter.BoundInputTokens: 8_340_180 * time.Millisecond, limiter.BoundTail: 19_999_999, limiter.BoundNone: 1,
	}}
	if got := s.timeProof(); got != "  time 22,320.4 s = requests 13,980.2 + input tokens 8,340.2  ✓\n" {
		t.Error(got)
	}
	if e := s.Event(); e.ElapsedS != 22320.4 || e.BoundS["input_tokens"] != 8340.18 {
		t.Errorf("%+v", e)
	}
	s.Bounds[limiter.BoundTail]--
	if got := s.timeProof(); !strings.Contains(got, "DOES NOT HOLD") {
		t.Error(got)
	}
	short := Report{Summary: batch.Summary{Ran: 2_060 * time.Millisecond}, Bounds: observe.Ledger{limiter.BoundCooldown: 2_054 * time.Millisecond, limiter.BoundTail: 6 * time.Millisecond}}
	if got := short.timeProof(); got != "  time 2.060 s = cooldown 2.054 + tail 0.006  ✓\n" {
		t.Error(got)
	}
}

// The live line is the only thing that steers the terminal.
func TestOnlyTheLiveLineSteers(t *testing.T) {
	var out strings.Builder
	l := newLive(&out, func() int { return DefaultWidth }, panel.Style{})
	l.line = "live"
	l.log([]byte("\x1b[2J"))
	if text := strings.ReplaceAll(out.String(), eraseLine, ""); text != `\x1b[2J`+"live" {
		t.Errorf("%q", text)
	}
}

// For programs the start is the first line, with all that is known by then; what comes
// before it waits, unless somebody must not be kept waiting.
func TestStartIsTheFirstEvent(t *testing.T) {
	items := 3
	for name, c := range map[string]struct {
		do   func(e *events)
		want string
	}{
		"as usual": {func(e *events) {
			e.notice(time.Time{}, event.Simulated, "n")
			e.begin(event.Start{Event: "start", Items: &items}, time.Time{})
			e.begin(event.Start{Event: "start"}, time.Time{})
		}, "start 3 notice"},
		"a long look at the input": {func(e *events) {
			e.notice(time.Time{}, event.Simulated, "n")
			e.notice(time.Time{}, event.Checking, "n")
			e.begin(event.Start{Event: "start", Items: &items}, time.Time{})
		}, "start notice notice"},
		"refused": {func(e *events) {
			e.log([]byte("{}\n"))
			e.summary(nil)
		}, "start log"},
		"refused, nothing said": {func(e *events) { e.summary(nil) }, ""},
		"ever more": {func(e *events) {
			for range mostEarlyLines {
				e.log([]byte("{}\n"))
			}
		}, "start" + strings.Repeat(" log", mostEarlyLines)},
	} {
		var out strings.Builder
		c.do(&events{out: &out, start: event.Start{Event: "start"}})
		var got []string
		for line := range strings.Lines(out.String()) {
			word := "log"
			for _, one := range []string{"start", "notice"} {
				if strings.HasPrefix(line, `{"event":"`+one) {
					word = one
				}
			}
			if got = append(got, word); strings.Contains(line, `"items":3`) {
				got = append(got, "3")
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A snapshot of a run with one lane says what is believed of it, in lines for people; of
// several lanes only that for programs does. What holds the run back is said of any.
func TestBeliefIsShown(t *testing.T) {
	l := event.Lane{Name: "l", Belief: "no more than 8 in flight"}
	for lanes, want := range map[int]string{1: "0 waiting  held by -c 64  (no more than 8 in flight)", 2: "0 waiting  held by -c 64"} {
		var out strings.Builder
		p := &plain{out: &out}
		e := &event.Progress{OfModels: lanes, Lanes: []event.Lane{l, l}[:lanes], Bound: "concurrency", BoundShort: "-c 64"}
		if p.status(e); !strings.HasSuffix(out.String(), want+"\n") {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
		out.Reset()
		j := &events{out: &out, begun: true}
		j.status(e)
		j.transition(&batch.Transition{Belief: "600 a minute"})
		if strings.Count(out.String(), `"belief":"no more than 8 in flight"`) != lanes || !strings.Contains(out.String(), `"belief":"600 a minute"`) {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
	}
}

// That a lane is slowed down because its calls break stands in the line of progress, and
// in JSON with the share that broke; so does the step.
func TestSlowedIsShown(t *testing.T) {
	slow := event.Lane{Name: "l", Slowed: 0.5, Errors: 0.34}
	for want, lanes := range map[string][]event.Lane{
		"34 % of calls break: slowed down":       {slow},
		"calls break: 1 of 2 models slowed down": {slow, {Name: "m"}},
		"  0 in flight  0 waiting":               {{Name: "m", Errors: 0.3}},
	} {
		var out strings.Builder
		p := &plain{out: &out}
		if p.status(&event.Progress{OfModels: len(lanes), Lanes: lanes}); !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
	began := time.Time{}.Add(time.Hour)
	var out strings.Builder
	e := &events{out: &out, begun: true}
	e.status(&event.Progress{Lanes: []event.Lane{slow}})
	e.transition(&batch.Transition{At: began, Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute})
	e.transition(&batch.Transition{At: began, Reason: machine.ByAnswers, Span: time.Minute})
	for _, want := range []string{
		`"error_rate":0.34,"slowed":0.5`, `"reason":"calls break"`, `"slowed":0.5,"error_rate":0.34`, `"reason":"calls are answered"`, `"error_rate":0,"at":`,
		`"text":": slowed down to half: 34 % of its calls broke in the last minute"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
}
