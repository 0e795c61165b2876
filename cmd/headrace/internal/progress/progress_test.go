package progress

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The live line never reaches the last column, and tells the most telling first.
func TestLiveLineFits(t *testing.T) {
	p := picture{
		elapsed: time.Minute, done: 84, total: 240, perSecond: 9.81, left: 16 * time.Second, failed: 2,
		inFlight: 16, waiting: 140, lanes: 1, ofLanes: 1, phase: machine.Cooling, wait: 1200 * time.Millisecond,
	}
	for width := range 120 {
		if got := fit(p.figures(), width); len([]rune(got)) > width {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	if got := fit(p.figures(), 19); got != "84/240  35%  9.8/s" {
		t.Errorf("20 columns: %q", got)
	}
	if got := fit(p.figures(), 200); got != "84/240  35%  9.8/s  ~16.0 s left  2 failed  cooling 1.2 s  16 in flight  140 waiting" {
		t.Errorf("wide: %q", got)
	}
}

// A terminal that takes nothing holds nothing up: what has no room is left out,
// and it is said how much.
func TestSlowTerminal(t *testing.T) {
	r, w := io.Pipe() // a write waits until it is read
	c := Open(Manner{display: &plain{out: w, meter: meter{Scale: Scale{Failed: func() int64 { return 0 }}}}})
	const told = 10 * consoleRoom
	for i := range told {
		c.Notice(fmt.Sprint(i)) // would never return, if it waited
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
	if !strings.Contains(got, fmt.Sprintf("%d lines were left out", told-shown)) {
		t.Errorf("%d of %d lines shown, then %q", shown, told, got[max(0, len(got)-900):])
	}
}

// Lines that happen are written above the live one, which is drawn again.
func TestLiveLineStaysBelow(t *testing.T) {
	var out strings.Builder
	l := newLive(&out, func() int { return 20 })
	l.scale(Scale{Total: 10, Failed: func() int64 { return 0 }})
	l.status(batch.Status{At: time.Time{}.Add(time.Second), Totals: batch.Counters{Settled: 4}})
	l.notice("hello")
	l.summary(&Report{})
	want := eraseLine + "4/10  40%  4.0/s" + eraseLine + "headrace: hello\n" + "4/10  40%  4.0/s" + eraseLine
	if got, _, _ := strings.Cut(out.String(), "\nsummary"); got+"" != want && got != want+"\n" {
		t.Errorf("%q, want %q", got, want)
	}
}

// The rate is that of the last seconds, not of the whole run.
func TestMeterForgets(t *testing.T) {
	m := meter{Scale: Scale{Total: 1000, Before: 100, Failed: func() int64 { return 3 }}}
	var p picture
	for s := 1; s <= 60; s++ {
		done := uint64(min(s, 40)) * 10 // ten a second, and nothing more after 40 s
		p = m.read(batch.Status{At: time.Time{}.Add(time.Duration(s) * time.Second), Totals: batch.Counters{Settled: done}})
		if s == 30 && (math.Abs(p.perSecond-10) > 0.01 || p.left != 60*time.Second || p.done != 400 || p.failed != 3) {
			t.Errorf("after 30 s: %+v", p)
		}
	}
	if p.perSecond != 0 || p.left != 0 {
		t.Errorf("20 s after the last item: %+v", p)
	}
}

// Each step of a lane is told in plain words.
func TestStory(t *testing.T) {
	at := time.Time{}.Add(time.Hour)
	in := func(d time.Duration) time.Time { return at.Add(d) }
	tests := map[string]batch.Transition{
		"l: rate limit hit: cooling for 2.0 s (epoch 3)":                                              {To: machine.Cooling, Reason: machine.ByThrottle, Until: in(2 * time.Second), Epoch: 3},
		"l: calls break, the provider seems to be down (EOF): cooling for 4.0 s (epoch 0)":            {To: machine.Cooling, Reason: machine.ByBreaker, Until: in(4 * time.Second), Cause: io.EOF},
		"l: calls break, the provider seems to be down: cooling for 4.0 s (epoch 0)":                  {To: machine.Cooling, Reason: machine.ByBreaker, Until: in(4 * time.Second)},
		"l: the provider is overloaded: cooling for 500 ms (epoch 0)":                                 {To: machine.Cooling, Reason: machine.ByOverload, Until: in(500 * time.Millisecond)},
		"l: cooled; 47 calls met that wave: sending one probe":                                        {To: machine.Probing, Wave: 47},
		"l: stopped: machine: the server asks for too long a wait":                                    {To: machine.Stopped, Cause: batch.ErrWaitTooLong},
		"l: stopped: the provider serves it no more (EOF)":                                            {To: machine.Stopped, Cause: io.EOF},
		"l: the probe passed: ramping up to 10.0/s over 10.0 s":                                       {To: machine.Ramping, Reason: machine.ByProbe, Rate: 10, Until: in(10 * time.Second)},
		"l: cooled; 1 call met that wave; the limit is known, no probe needed: ramping up over 3 min": {To: machine.Ramping, Reason: machine.ByKnowledge, Wave: 1, Rate: math.Inf(1), Until: in(3 * time.Minute)},
		"l: the ramp is over: flowing at up to 250/s":                                                 {From: machine.Ramping, To: machine.Flowing, Reason: machine.ByTime, Rate: 250},
		"l: cooled: flowing at up to 250/s":                                                           {From: machine.Cooling, To: machine.Flowing, Reason: machine.ByKnowledge, Rate: 250},
		"l: slowed down to half: 34 % of its calls broke in the last minute":                          {Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute},
		"l: slowed down to 25 %: 51 % of its calls broke in the last 30.0 s":                          {Reason: machine.ByErrors, Slowed: 0.25, Errors: 0.512, Span: 30 * time.Second},
		"l: as fast as before again: 3 % of its calls broke in the last minute":                       {Reason: machine.ByAnswers, Errors: 0.03, Span: time.Minute},
		"l: as an earlier run left it: cooling (epoch 0)":                                             {To: machine.Cooling, Reason: machine.ByMemory},
		"l: cooled: sending one probe":                                                                {To: machine.Probing},
		"l: cooled; the limit is known, no probe needed: ramping up over 3 min":                       {To: machine.Ramping, Reason: machine.ByKnowledge, Rate: math.Inf(1), Until: in(3 * time.Minute)},
		"l: stopped: the provider serves it no more":                                                  {To: machine.Stopped},
	}
	for want, tr := range tests {
		tr.At, tr.Lane = at, "l"
		if got := story(tr); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		tr.Belief = "no more than 8 in flight"
		if got := story(tr); got != want+" — no more than 8 in flight" {
			t.Errorf("with a belief: %s", got)
		}
	}
}

// A picture of a run with one lane says what is believed of it, in lines for people and
// in JSON; of several lanes only the latter does.
func TestBeliefIsShown(t *testing.T) {
	l := machine.LaneStatus{Name: "l", View: limiter.View{Cap: 8}}
	began := time.Time{}.Add(time.Hour)
	of := Scale{Began: began, Total: 10, Failed: func() int64 { return 0 }}
	for lanes, want := range map[int]string{1: "(no more than 8 in flight)", 2: "0 waiting"} {
		var out strings.Builder
		p := &plain{out: &out, meter: meter{Scale: of}}
		s := batch.Status{At: began, Known: lanes, Lanes: []machine.LaneStatus{l, l}[:lanes]}
		if p.status(s); !strings.HasSuffix(out.String(), want+"\n") {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
		out.Reset()
		e := &events{out: &out, meter: meter{Scale: of}}
		e.status(s)
		e.transition(batch.Transition{At: began, Belief: "600 a minute"})
		if strings.Count(out.String(), `"belief":"no more than 8 in flight"`) != lanes || !strings.Contains(out.String(), `"belief":"600 a minute"`) {
			t.Errorf("%d lanes: %s", lanes, out.String())
		}
	}
}

// That a lane is slowed down because its calls break stands in the line of progress, and
// in JSON with the share that broke; so does the step.
func TestSlowedIsShown(t *testing.T) {
	slow := machine.LaneStatus{Name: "l", Slowed: 0.5, Errors: 0.34}
	began := time.Time{}.Add(time.Hour)
	of := Scale{Began: began, Total: 10, Failed: func() int64 { return 0 }}
	for want, lanes := range map[string][]machine.LaneStatus{
		"34 % of calls break: slowed down":       {slow},
		"calls break: 1 of 2 models slowed down": {slow, {Name: "m"}},
		"  0 in flight  0 waiting":               {{Name: "m", Errors: 0.3}},
	} {
		var out strings.Builder
		p := &plain{out: &out, meter: meter{Scale: of}}
		if p.status(batch.Status{At: began, Known: len(lanes), Lanes: lanes}); !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
	var out strings.Builder
	e := &events{out: &out, meter: meter{Scale: of}}
	e.status(batch.Status{At: began, Known: 1, Lanes: []machine.LaneStatus{slow}})
	e.transition(batch.Transition{At: began, Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute})
	e.transition(batch.Transition{At: began, Reason: machine.ByAnswers, Span: time.Minute})
	for _, want := range []string{`"error_rate":0.34,"slowed":0.5`, `"reason":"calls break"`, `"slowed":0.5,"error_rate":0.34`, `"reason":"calls are answered"`, `"error_rate":0}`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
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

// The live line is the only thing that steers the terminal.
func TestOnlyTheLiveLineSteers(t *testing.T) {
	var out strings.Builder
	l := newLive(&out, func() int { return DefaultWidth })
	l.line = "live"
	l.log([]byte("\x1b[2J"))
	if text := strings.ReplaceAll(out.String(), eraseLine, ""); text != `\x1b[2J`+"live" {
		t.Errorf("%q", text)
	}
}
