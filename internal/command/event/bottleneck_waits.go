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
	return s.snapshot.P50
}

// describeCooldown writes the sentence of a cooldown: why, and until when no call leaves.
func (s *scene) describeCooldown(w *sentence) {
	why := "refused (429)"
	until := time.Time{}
	switch lane := s.lane; {
	case lane == nil:
		why = "refused"
	case lane.Phase == machine.Cooling:
		if until = lane.Until; lane.Reason == machine.ByMemory {
			why = "as an earlier run left it"
		}
	case !lane.View.Hold.IsZero():
		until, why = lane.View.Hold, "told to wait"
	}
	s.describePause(w, why, until)
}

// describeOverload writes the sentence of a server that is too busy, and when the next call leaves. It adds
// since when nothing is let in, if the law has found that.
func (s *scene) describeOverload(w *sentence) {
	until := time.Time{}
	if s.lane != nil && s.lane.Phase == machine.Cooling {
		until = s.lane.Until
	}
	busy := "the server is too busy"
	if s.lane != nil && (s.lane.Phase == machine.Flowing || s.lane.Phase == machine.Ramping) {
		busy = "the server was too busy"
	}
	s.describePause(w, busy, until)
	if s.lane == nil || s.lane.View.Probed < 2 || s.lane.View.Drought.IsZero() { // it lets calls in, or that it does not is news
		return
	}
	since := "nothing is let in since " + s.inZone(s.lane.View.Drought).Format(time.TimeOnly)
	what := "an overload" + s.ofModel() + ": " + since
	if wait := s.waitText(until); wait != "" {
		w.text = []string{what + "; the next call leaves in " + wait, what + "; next call in " + wait, "an overload: " + since + "; next call in " + wait}
	} else {
		w.text = []string{what, "an overload: " + since}
	}
	w.more = []string{"the server says that it is too busy", s.waveText()}
}

// describePause writes the sentence of a wait after which calls leave again.
func (s *scene) describePause(w *sentence, why string, until time.Time) {
	what, word := w.short[0], w.lane[0]
	w.text = []string{what + s.ofModel() + ": " + why}
	if wait := s.waitText(until); wait != "" {
		w.text = []string{w.text[0] + "; the next call leaves in " + wait, what + ": " + why + "; the next call leaves in " + wait}
		w.short = []string{what + ": next call in " + wait, what + ": " + wait, what}
		w.lane = []string{word + " " + wait, word}
	}
	w.more = []string{s.waveText()}
}

// waveText describes how many calls met the latest wave of refusals, and how many items wait for its end.
func (s *scene) waveText() string {
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

// describeOutage writes the sentence of an outage: how calls broke, and when the next trial call leaves.
func (s *scene) describeOutage(w *sentence) {
	if s.snapshot.Open > 1 {
		w.text = []string{fmt.Sprintf("an outage: the calls of %d %s break", s.snapshot.Open, s.lanesWord())}
	}
	lane := s.lane
	if lane == nil {
		return
	}
	how := "calls break"
	switch {
	case lane.Failures > 1:
		how = words.Number(lane.Failures) + " calls in a row broke"
	case lane.Errors > 0:
		how = share(lane.Errors) + " of the latest calls broke"
	}
	w.text = []string{"an outage" + s.ofModel() + ": " + how}
	if wait := s.waitText(lane.Until); wait != "" {
		w.text = []string{w.text[0] + "; next try in " + wait, "an outage: next try in " + wait}
		w.short = []string{"an outage: next try in " + wait, "an outage"}
		w.lane = []string{"outage " + wait, "outage"}
	}
	if lane.Cause != nil {
		w.more = []string{lane.Cause.Error()}
	}
	w.more = append(w.more, s.waveText())
}

// describeRecovery writes the sentence of a lane that recovers from refusals.
func (s *scene) describeRecovery(w *sentence) {
	lane := s.lane
	if lane == nil {
		if s.snapshot.OfLanes > 1 {
			w.text = []string{fmt.Sprintf("coming back after refusals, more than one of %d %s", s.snapshot.OfLanes, s.lanesWord())}
		}
		return
	}
	w.more = []string{s.waveText(), s.beliefs()}
	if lane.Phase == machine.Probing {
		w.text = []string{w.text[0] + ": a probe finds out whether calls are let in"}
		w.short, w.lane = []string{"coming back: a probe is out"}, []string{"probe"}
		return
	}
	rampEnd := lane.View.Ramp
	if rampEnd.IsZero() && lane.Phase == machine.Ramping {
		rampEnd = lane.Until
	}
	if wait := s.waitText(rampEnd); wait != "" {
		w.text = []string{w.text[0] + ": the pace rises for " + wait + " more"}
		w.short = []string{"coming back: full in " + wait, "coming back"}
	}
}

// describeBackoff writes the sentence of a run whose items wait for their own retries.
func (s *scene) describeBackoff(w *sentence) {
	items := s.snapshot.Delayed
	if items == 0 {
		return
	}
	text := "their own retry: " + count(items, "item") + words.OneOr(items, " waits", " wait") + " for it"
	w.text = []string{text}
	if wait := s.waitText(s.snapshot.FirstDue); wait != "" {
		w.text = []string{text + ", the first goes in " + wait}
		w.lane = []string{"backoff " + wait, "backoff"}
	}
	w.short = append([]string{"retries of " + count(items, "item")}, w.short...)
}

// describeInput says how fast the input comes.
func (s *scene) describeInput(w *sentence) {
	speed := perSecond(Round(s.snapshot.Speed))
	items := strings.Replace(speed, "/s", " items/s", 1)
	flying := fmt.Sprintf("(%s of %s in flight)", words.Number(s.snapshot.InFlight), words.Number(s.snapshot.Concurrency))
	w.text = []string{"your input: it gives " + items + ", nothing waits " + flying, "your input: it gives " + items + ", nothing waits"}
	w.short = []string{"your input: " + items, "your input"}
}

// describeDraining writes the sentence of a run that is ending: why, and what happens to the calls in flight.
func (s *scene) describeDraining(w *sentence) {
	why := s.context.Draining
	if why == "" {
		why = "it is to end"
	}
	dropHint := "Ctrl-C drops "
	if why == CtrlC {
		dropHint = "Ctrl-C again drops "
	}
	calls := s.snapshot.InFlight
	finish := why + ": " + count(calls, "call") + words.OneOr(calls, " finishes and is saved", " finish and are saved")
	w.text = []string{finish + "; " + dropHint + words.OneOr(calls, "it", "them"), finish}
	w.short = []string{why + ": " + count(calls, "call") + " to finish", count(calls, "call") + " to finish", "stopping"}
	if calls == 0 {
		w.text, w.short = []string{why + ": nothing is in flight"}, []string{why, "stopping"}
	}
}

// CtrlC is a [Context]'s Draining for most runs that a user ends.
const CtrlC = "your Ctrl-C"

// A refusal is a reason for which a provider no longer serves a run, in words.
type refusal struct {
	kind error
	text string
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

// refusalOf returns the known refusal that an error is; the zero value if it is none.
func refusalOf(err error) refusal {
	for _, r := range refusals {
		if errors.Is(err, r.kind) {
			return r
		}
	}
	return refusal{}
}

// Error and Unwrap make it a cause that says no more than its kind.
func (r refusal) Error() string { return r.text }
func (r refusal) Unwrap() error { return r.kind }

// Unquoted returns a cause in the words of this program, for readers who may not see what providers say: they may quote
// prompts. nil: it is not of a known kind.
func Unquoted(cause error) error {
	if r := refusalOf(cause); r.kind != nil {
		return r
	}
	return nil
}

// needsNoOtherWords lists the reasons whose causes need no other words.
var needsNoOtherWords = map[error]bool{provider.Unauthorized: true, batch.ErrAlike: true, batch.ErrOutage: true}

// describeStopped writes the sentence of a run that the provider no longer serves.
func (s *scene) describeStopped(w *sentence) {
	if s.context.Stopped != "" {
		w.text, w.short = []string{s.context.Stopped, "it has stopped"}, []string{"it has stopped"}
	}
	why := ""
	if cause := s.whyStopped(); cause != nil && cause.Error() != "" {
		w.text = []string{cause.Error()}
		if known := refusalOf(cause); known.kind != nil {
			text := cause.Error()
			if !needsNoOtherWords[known.kind] && text != known.text {
				text = known.text + ": " + text
			}
			if w.text, w.short = []string{text, known.text + s.ofModel()}, []string{known.text}; cells(text) > rowCells {
				why = cause.Error()
			}
		}
	}
	more := "nothing more is sent"
	if calls := s.snapshot.InFlight; calls > 0 {
		more += "; " + count(calls, "call") + " in flight" + words.OneOr(calls, " finishes and is saved", " finish and are saved")
	}
	w.more = []string{more, why}
}

// whyStopped returns the cause of the first lane that has stopped; nil if it is not known.
func (s *scene) whyStopped() error {
	if s.lane != nil && s.lane.Phase == machine.Stopped {
		return s.lane.Cause
	}
	for i := range s.snapshot.Lanes {
		if l := &s.snapshot.Lanes[i]; l.Phase == machine.Stopped && l.Cause != nil {
			return l.Cause
		}
	}
	return nil
}

// describeUnanswered writes the sentence of a run whose calls are overdue.
func (s *scene) describeUnanswered(w *sentence) {
	w.text = []string{w.text[0] + ": none of " + words.Number(s.snapshot.InFlight) + " has ended for a long time"}
	if s.snapshot.InFlight < s.snapshot.Concurrency { // the longer one first: the row takes what fits
		w.text = append([]string{w.text[0] + "; one more leaves at a time"}, w.text...)
	}
	if s.snapshot.Oldest > 0 {
		w.more = []string{"the oldest has been under way for " + shortDuration(s.snapshot.Oldest)}
	}
}

// hangingFactor is the least ratio of a call's age to the slowest answer's time at which a sentence
// mentions the call.
const hangingFactor = 2

// describeTail writes the sentence of the last calls of a run, and how long they have taken.
func (s *scene) describeTail(w *sentence) {
	calls, oldest := s.snapshot.InFlight, s.snapshot.Oldest
	if calls == 0 {
		return
	}
	w.text, w.short = []string{"the last calls: " + count(calls, "call") + " in flight"}, []string{"the last " + count(calls, "call")}
	if oldest <= 0 {
		return
	}
	w.text = []string{w.text[0] + ", the oldest for " + shortDuration(oldest), w.text[0]}
	w.short = []string{w.short[0] + ": " + shortDuration(oldest), w.short[0]}
	if s.snapshot.Slowest > 0 && oldest > hangingFactor*s.snapshot.Slowest {
		w.more = []string{"the slowest answer took " + shortDuration(s.snapshot.Slowest)}
	}
	if left := s.context.Timeout - oldest; s.context.Timeout > 0 && left > 0 && len(w.more) > 0 {
		w.more = append(w.more, words.OneOr(calls, "it times out", "they time out")+" in "+roughDuration(left))
	}
}
