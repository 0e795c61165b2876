package event

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider"
)

// latency returns the time that an answer takes, of the lane or of all.
func (s *scene) latency() time.Duration {
	if s.lane != nil && s.lane.Latency > 0 {
		return s.lane.Latency
	}
	return s.p.P50
}

// cooldown says until when no call leaves after a refusal.
func (s *scene) cooldown(w *sentence) {
	why := "refused (429)"
	at := time.Time{}
	switch l := s.lane; {
	case l == nil:
		why = "refused"
	case l.Phase == machine.Cooling:
		if at = l.Until; l.Reason == machine.ByMemory {
			why = "as an earlier run left it"
		}
	case !l.View.Hold.IsZero():
		at, why = l.View.Hold, "told to wait"
	}
	s.pause(w, why, at)
}

// overload says that the server is too busy, and when the next call leaves. Where the law has
// found that nothing is let in, it says since when.
func (s *scene) overload(w *sentence) {
	at := time.Time{}
	if s.lane != nil && s.lane.Phase == machine.Cooling {
		at = s.lane.Until
	}
	busy := "the server is too busy"
	if s.lane != nil && (s.lane.Phase == machine.Flowing || s.lane.Phase == machine.Ramping) {
		busy = "the server was too busy"
	}
	s.pause(w, busy, at)
	if s.lane == nil || s.lane.View.Probed < 2 || s.lane.View.Drought.IsZero() { // it lets calls in, or that it does not is news
		return
	}
	since := "nothing is let in since " + s.zoned(s.lane.View.Drought).Format(time.TimeOnly)
	what := "an overload" + s.ofModel() + ": " + since
	if wait := s.wait(at); wait != "" {
		w.by = []string{what + "; the next call leaves in " + wait, what + "; next call in " + wait, "an overload: " + since + "; next call in " + wait}
	} else {
		w.by = []string{what, "an overload: " + since}
	}
	w.more = []string{"the server says that it is too busy", s.met()}
}

// pause describes a wait after which calls leave again.
func (s *scene) pause(w *sentence, why string, until time.Time) {
	what, word := w.short[0], w.lane[0]
	w.by = []string{what + s.ofModel() + ": " + why}
	if wait := s.wait(until); wait != "" {
		w.by = []string{w.by[0] + "; the next call leaves in " + wait, what + ": " + why + "; the next call leaves in " + wait}
		w.short = []string{what + ": next call in " + wait, what + ": " + wait, what}
		w.lane = []string{word + " " + wait, word}
	}
	w.more = []string{s.met()}
}

// met says how many calls met a wave of refusals, and what waits for its end.
func (s *scene) met() string {
	if s.lane == nil {
		return ""
	}
	var parts []string
	if n := s.lane.Wave; n > 0 {
		parts = append(parts, count(n, "call")+" met this wave")
	}
	if n := s.lane.Parked; n > 0 {
		parts = append(parts, count(n, "item")+words.OneOr(n, " waits for it and goes first", " wait for it and go first"))
	}
	return strings.Join(parts, "; ")
}

// outage says how calls broke, and when the next trial call leaves.
func (s *scene) outage(w *sentence) {
	if s.p.Open > 1 {
		w.by = []string{fmt.Sprintf("an outage: the calls of %d %s break", s.p.Open, s.lanesWord())}
	}
	l := s.lane
	if l == nil {
		return
	}
	how := "calls break"
	switch {
	case l.Failures > 1:
		how = words.Number(l.Failures) + " calls in a row broke"
	case l.Errors > 0:
		how = share(l.Errors) + " of the latest calls broke"
	}
	w.by = []string{"an outage" + s.ofModel() + ": " + how}
	if wait := s.wait(l.Until); wait != "" {
		w.by = []string{w.by[0] + "; next try in " + wait, "an outage: next try in " + wait}
		w.short = []string{"an outage: next try in " + wait, "an outage"}
		w.lane = []string{"outage " + wait, "outage"}
	}
	if l.Cause != nil {
		w.more = []string{l.Cause.Error()}
	}
	w.more = append(w.more, s.met())
}

// recovery says how far a lane has recovered.
func (s *scene) recovery(w *sentence) {
	l := s.lane
	if l == nil {
		if s.p.OfLanes > 1 {
			w.by = []string{fmt.Sprintf("coming back after refusals, more than one of %d %s", s.p.OfLanes, s.lanesWord())}
		}
		return
	}
	w.more = []string{s.met(), s.beliefs()}
	if l.Phase == machine.Probing {
		w.by = []string{w.by[0] + ": a probe finds out whether calls are let in"}
		w.short, w.lane = []string{"coming back: a probe is out"}, []string{"probe"}
		return
	}
	ends := l.View.Ramp
	if ends.IsZero() && l.Phase == machine.Ramping {
		ends = l.Until
	}
	if wait := s.wait(ends); wait != "" {
		w.by = []string{w.by[0] + ": the pace rises for " + wait + " more"}
		w.short = []string{"coming back: full in " + wait, "coming back"}
	}
}

// backoff says how many items wait for a retry of their own.
func (s *scene) backoff(w *sentence) {
	n := s.p.Delayed
	if n == 0 {
		return
	}
	text := "their own retry: " + count(n, "item") + words.OneOr(n, " waits", " wait") + " for it"
	w.by = []string{text}
	if wait := s.wait(s.p.FirstDue); wait != "" {
		w.by = []string{text + ", the first goes in " + wait}
		w.lane = []string{"backoff " + wait, "backoff"}
	}
	w.short = append([]string{"retries of " + count(n, "item")}, w.short...)
}

// input says how fast the input comes.
func (s *scene) input(w *sentence) {
	speed := perSecond(Round(s.p.Speed))
	items := strings.Replace(speed, "/s", " items/s", 1)
	flying := fmt.Sprintf("(%s of %s in flight)", words.Number(s.p.InFlight), words.Number(s.p.Concurrency))
	w.by = []string{"your input: it gives " + items + ", nothing waits " + flying, "your input: it gives " + items + ", nothing waits"}
	w.short = []string{"your input: " + items, "your input"}
}

// draining says what ends the run, and what happens to the calls in flight.
func (s *scene) draining(w *sentence) {
	why := s.c.Draining
	if why == "" {
		why = "it is to end"
	}
	again := "Ctrl-C drops "
	if why == CtrlC {
		again = "Ctrl-C again drops "
	}
	n := s.p.InFlight
	finish := why + ": " + count(n, "call") + words.OneOr(n, " finishes and is saved", " finish and are saved")
	w.by = []string{finish + "; " + again + words.OneOr(n, "it", "them"), finish}
	w.short = []string{why + ": " + count(n, "call") + " to finish", count(n, "call") + " to finish", "stopping"}
	if n == 0 {
		w.by, w.short = []string{why + ": nothing is in flight"}, []string{why, "stopping"}
	}
}

// CtrlC is a [Context]'s Draining for most runs that a user ends.
const CtrlC = "your Ctrl-C"

// A refusal is a reason for which a provider no longer serves a run, in words.
type refusal struct {
	of   error
	says string
}

// refusals lists the reasons for which a provider no longer serves a run.
var refusals = []refusal{
	{batch.ErrAlike, "all items failed alike"},
	{batch.ErrOutage, "nothing is answered"},
	{provider.QuotaExhausted, "the quota is used up"},
	{provider.Unauthorized, "the key is refused"},
	{provider.ModelNotFound, "the model is not found"},
	{provider.Misconfigured, "the server cannot be called"},
}

// refusalOf returns the refusal that an error is; the zero value: none of them.
func refusalOf(err error) refusal {
	for _, r := range refusals {
		if errors.Is(err, r.of) {
			return r
		}
	}
	return refusal{}
}

// Error and Unwrap make it a cause that says no more than its kind.
func (r refusal) Error() string { return r.says }
func (r refusal) Unwrap() error { return r.of }

// Unquoted returns a cause in the words of this program, for readers who may not see what providers say: they may quote
// prompts. nil: it is not of a known kind.
func Unquoted(cause error) error {
	if r := refusalOf(cause); r.of != nil {
		return r
	}
	return nil
}

// saysItself lists the reasons whose causes need no other words.
var saysItself = map[error]bool{provider.Unauthorized: true, batch.ErrAlike: true, batch.ErrOutage: true}

// stopped says why the provider no longer serves the run.
func (s *scene) stopped(w *sentence) {
	if s.c.Stopped != "" {
		w.by, w.short = []string{s.c.Stopped, "it has stopped"}, []string{"it has stopped"}
	}
	why := ""
	if cause := s.whyStopped(); cause != nil && cause.Error() != "" {
		w.by = []string{cause.Error()}
		if r := refusalOf(cause); r.of != nil {
			text := cause.Error()
			if !saysItself[r.of] && text != r.says {
				text = r.says + ": " + text
			}
			if w.by, w.short = []string{text, r.says + s.ofModel()}, []string{r.says}; cells(text) > rowCells {
				why = cause.Error()
			}
		}
	}
	more := "nothing more is sent"
	if n := s.p.InFlight; n > 0 {
		more += "; " + count(n, "call") + " in flight" + words.OneOr(n, " finishes and is saved", " finish and are saved")
	}
	w.more = []string{more, why}
}

// whyStopped returns the cause of the first lane that has stopped; nil: it is not known.
func (s *scene) whyStopped() error {
	if s.lane != nil && s.lane.Phase == machine.Stopped {
		return s.lane.Cause
	}
	for i := range s.p.Lanes {
		if l := &s.p.Lanes[i]; l.Phase == machine.Stopped && l.Cause != nil {
			return l.Cause
		}
	}
	return nil
}

// unanswered says that calls are overdue, and what the run does about it.
func (s *scene) unanswered(w *sentence) {
	w.by = []string{w.by[0] + ": none of " + words.Number(s.p.InFlight) + " has ended for a long time"}
	if s.p.InFlight < s.p.Concurrency { // the longer one first: the row takes what fits
		w.by = append([]string{w.by[0] + "; one more leaves at a time"}, w.by...)
	}
	if s.p.Oldest > 0 {
		w.more = []string{"the oldest has been under way for " + lasting(s.p.Oldest)}
	}
}

// hanging is the least ratio of a call's age to the slowest answer's time at which a sentence
// mentions the call.
const hanging = 2

// tail says how long the last calls take.
func (s *scene) tail(w *sentence) {
	n, oldest := s.p.InFlight, s.p.Oldest
	if n == 0 {
		return
	}
	w.by, w.short = []string{"the last calls: " + count(n, "call") + " in flight"}, []string{"the last " + count(n, "call")}
	if oldest <= 0 {
		return
	}
	w.by = []string{w.by[0] + ", the oldest for " + lasting(oldest), w.by[0]}
	w.short = []string{w.short[0] + ": " + lasting(oldest), w.short[0]}
	if s.p.Slowest > 0 && oldest > hanging*s.p.Slowest {
		w.more = []string{"the slowest answer took " + lasting(s.p.Slowest)}
	}
	if left := s.c.Timeout - oldest; s.c.Timeout > 0 && left > 0 && len(w.more) > 0 {
		w.more = append(w.more, words.OneOr(n, "it times out", "they time out")+" in "+span(left))
	}
}
