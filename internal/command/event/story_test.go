package event

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// Plain words describe each step of a lane.
// said is an error in the words of a run, with its kind.
type said struct {
	text string
	kind error
}

func (s said) Error() string { return s.text }
func (s said) Unwrap() error { return s.kind }

func saying(text string, kind error) error { return said{text, kind} }

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
		"l: stopped: the provider no longer serves it (EOF)":                                          {To: machine.Stopped, Cause: io.EOF},
		"l: the probe passed: ramping up to 10.0/s over 10.0 s":                                       {To: machine.Ramping, Reason: machine.ByProbe, Rate: 10, Until: in(10 * time.Second)},
		"l: cooled; 1 call met that wave; the limit is known, no probe needed: ramping up over 3 min": {To: machine.Ramping, Reason: machine.ByKnowledge, Wave: 1, Rate: math.Inf(1), Until: in(3 * time.Minute)},
		"l: the ramp is over: flowing, at first at up to 250/s":                                       {From: machine.Ramping, To: machine.Flowing, Reason: machine.ByTime, Rate: 250},
		"l: cooled: flowing, at first at up to 250/s":                                                 {From: machine.Cooling, To: machine.Flowing, Reason: machine.ByKnowledge, Rate: 250},
		"l: slowed down to half: 34 % of its calls broke in the last minute":                          {Reason: machine.ByErrors, Slowed: 0.5, Errors: 0.34, Span: time.Minute},
		"l: slowed down to 25 %: 51 % of its calls broke in the last 30.0 s":                          {Reason: machine.ByErrors, Slowed: 0.25, Errors: 0.512, Span: 30 * time.Second},
		"l: as fast as before again: 3 % of its calls broke in the last minute":                       {Reason: machine.ByAnswers, Errors: 0.03, Span: time.Minute},
		"l: as an earlier run left it: cooling (epoch 0)":                                             {To: machine.Cooling, Reason: machine.ByMemory},
		"l: cooled: sending one probe":                                                                {To: machine.Probing},
		"l: cooled; the limit is known, no probe needed: ramping up over 3 min":                       {To: machine.Ramping, Reason: machine.ByKnowledge, Rate: math.Inf(1), Until: in(3 * time.Minute)},
		"l: stopped: openai refuses the key: 401":                                                     {To: machine.Stopped, Cause: saying("openai refuses the key: 401", provider.Unauthorized)},
		"l: stopped: the quota is used up (account a: no money)":                                      {To: machine.Stopped, Cause: saying("account a: no money", provider.QuotaExhausted)},
		"l: stopped: the model is not found (404)":                                                    {To: machine.Stopped, Cause: saying("404", provider.ModelNotFound)},
		"l: stopped: the provider no longer serves it":                                                {To: machine.Stopped},
	}
	for want, tr := range tests {
		tr.At, tr.Lane = at, "l"
		if got := Story(&tr); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		tr.Belief = "no more than 8 in flight"
		if got := Story(&tr); got != want+" — no more than 8 in flight" {
			t.Errorf("with a belief: %s", got)
		}
	}
}

// A cause that is not to be quoted keeps its kind and loses its words; of one of another kind nothing stays.
func TestUnquoted(t *testing.T) {
	for says, kind := range map[string]error{
		"the quota is used up": provider.QuotaExhausted, "the key is refused": provider.Unauthorized, "all items failed alike": batch.ErrAlike,
		"nothing is answered": batch.ErrOutage, "the model is not found": provider.ModelNotFound,
	} {
		cause := Unquoted(saying("a prompt", kind))
		if cause == nil || cause.Error() != says || !errors.Is(cause, kind) {
			t.Errorf("%s: %v", says, cause)
		}
		p := observe.Snapshot{State: observe.Stopped, OfLanes: 1, Lanes: make([]observe.Lane, 1)}
		p.Lanes[0].Name, p.Lanes[0].Phase, p.Lanes[0].Cause = "l", machine.Stopped, cause
		if e := Of(&p, Context{}); e.BoundText != says || !strings.HasPrefix(e.BoundWide, says+"; nothing more is sent") || e.Lanes[0].Cause != says {
			t.Errorf("%s: %s, %s, %s", says, e.BoundText, e.BoundWide, e.Lanes[0].Cause)
		}
	}
	if cause := Unquoted(saying("a prompt", io.EOF)); cause != nil {
		t.Error(cause)
	}
}

// The line distinguishes open breakers from half-open ones. It says nothing where all are
// closed.
func TestBreakersAreDistinguished(t *testing.T) {
	for want, p := range map[string]Progress{
		"":                              {OfModels: 3},
		"breaker open":                  {OfModels: 1, Open: 1},
		"breaker half-open":             {OfModels: 1, HalfOpen: 1},
		"breakers: 1 open":              {OfModels: 3, Open: 1},
		"breakers: 2 open, 1 half-open": {OfModels: 3, Open: 2, HalfOpen: 1},
	} {
		if got := breakerWords(&p); got != want {
			t.Errorf("%+v: %q, want %q", p, got, want)
		}
	}
	line := strings.Join(Figures(&Progress{OfModels: 2, Open: 1, HalfOpen: 1}), "  ")
	if !strings.Contains(line, "breakers: 1 open, 1 half-open") {
		t.Error(line)
	}
}

// Plain words describe each long wait: what waits, why, and until when.
func TestWaitStory(t *testing.T) {
	at := time.Date(2026, 1, 2, 14, 31, 8, 0, time.UTC)
	in := func(d time.Duration) time.Time { return at.Add(d) }
	for want, w := range map[string]batch.LongWait{
		"l: rate limit hit: the next call leaves at 14:41:08, in 10 min; 21 items wait": {
			Phase: machine.Cooling, Cause: machine.ByThrottle, Why: "throttled", Since: at, Until: in(10 * time.Minute), Items: 21,
		},
		"l: calls break, the provider seems to be down: nothing was let in for 5 min, a probe is under way; 1 item waits": {
			Phase: machine.Probing, Cause: machine.ByBreaker, Why: "probe", Since: in(-5 * time.Minute), Items: 1,
		},
		"l: its limit on tokens is used up: nothing was let in for 5 min, the next call leaves at 15:01:08, in 30 min; 2 items wait": {
			Why: "tokens", Since: in(-5 * time.Minute), Until: in(30 * time.Minute), Items: 2,
		},
		"l: few calls are allowed, and the next one waits for its turn: nothing was let in for 5 min, for how long is unknown; 2 items wait": {
			Why: "rate", Since: in(-5 * time.Minute), Items: 2,
		},
		"l: it was asked to wait: the next call leaves at 14:32:08, in 60.0 s; 2 items wait": {
			Why: "hold", Since: at, Until: in(time.Minute), Items: 2,
		},
		"l: an item waits alone: its call failed, and the provider named the wait: it is tried again at 14:41:08, in 10 min": {
			Own: true, Item: 3, Why: "backoff", Since: at, Until: in(10 * time.Minute), Items: 1,
		},
		"l: an item waits alone: it alone was refused: it is tried again at 14:41:08, in 10 min": {
			Own: true, Item: 3, Cause: machine.ByThrottle, Why: "refused", Since: at, Until: in(10 * time.Minute), Items: 1,
		},
	} {
		if w.At, w.Lane = at, "l"; WaitStory(&w) != want {
			t.Errorf("got  %s\nwant %s", WaitStory(&w), want)
		}
	}
}

// A rate that no process reaches is not said: it is not what holds a run back.
func TestRatesThatNobodyReachesAreNotSaid(t *testing.T) {
	at := time.Unix(0, 0)
	for perSecond, want := range map[float64]string{
		130056825: "l: the probe passed: ramping up over 10.0 s", math.Inf(1): "l: the probe passed: ramping up over 10.0 s",
		99999: "l: the probe passed: ramping up to 99999/s over 10.0 s",
	} {
		got := Story(&batch.Transition{Lane: "l", To: machine.Ramping, Rate: perSecond, At: at, Until: at.Add(10 * time.Second)})
		if got != want {
			t.Errorf("%v: %q, want %q", perSecond, got, want)
		}
	}
}

// A lane that is let in again is not said to be let in nothing.
func TestStoryAfterADrought(t *testing.T) {
	step := batch.Transition{Lane: "l", To: machine.Cooling, Belief: "nothing is let in, for 41 s now; 600 a minute"}
	if got := Story(&step); !strings.HasSuffix(got, " — nothing is let in, for 41 s now; 600 a minute") {
		t.Error(got)
	}
	if step.To = machine.Flowing; !strings.HasSuffix(Story(&step), " — 600 a minute") {
		t.Error(Story(&step))
	}
	if step.Belief = "nothing is let in"; strings.Contains(Story(&step), "—") {
		t.Error(Story(&step))
	}
}
