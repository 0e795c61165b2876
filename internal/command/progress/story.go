package progress

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// Story describes a lane's transition in plain words, with the belief about the lane.
func Story(t batch.Transition) string {
	belief := t.Belief
	if t.To == machine.Ramping || t.To == machine.Flowing { // the belief lasted until this step
		belief = strings.Join(slices.DeleteFunc(strings.Split(belief, "; "), isDrought), "; ")
	}
	if belief == "" {
		return step(t)
	}
	return step(t) + " — " + belief
}

func isDrought(belief string) bool { return strings.HasPrefix(belief, "nothing is let in") }

func step(t batch.Transition) string {
	switch t.Reason {
	case machine.ByErrors:
		return fmt.Sprintf("%s: slowed down%s: %s", t.Lane, toShare(t.Slowed), broke(t))
	case machine.ByAnswers:
		return fmt.Sprintf("%s: as fast as before again: %s", t.Lane, broke(t))
	}
	switch t.To {
	case machine.Cooling:
		return fmt.Sprintf("%s: %s: cooling%s (epoch %d)", t.Lane, whyCooling(t.Reason)+because(t.Cause), forHowLong(t), t.Epoch)
	case machine.Probing:
		return fmt.Sprintf("%s: cooled%s: sending one probe", t.Lane, metBy(t.Wave))
	case machine.Ramping:
		return fmt.Sprintf("%s: %s: ramping up%s over %s", t.Lane, whyRamping(t), upTo(" to ", t.Rate), words.Wait(t.Until.Sub(t.At)))
	case machine.Stopped:
		return fmt.Sprintf("%s: stopped: %s", t.Lane, whyStopped(t.Cause))
	case machine.Flowing:
		if t.Reason == machine.ByHand {
			return fmt.Sprintf("%s: reset by hand: flowing", t.Lane)
		}
		if t.From == machine.Ramping {
			return fmt.Sprintf("%s: the ramp is over: flowing%s", t.Lane, upTo(", at first at up to ", t.Rate))
		}
		return fmt.Sprintf("%s: cooled: flowing%s", t.Lane, upTo(", at first at up to ", t.Rate))
	}
	return t.String()
}

// whyStopped says why a lane is no longer served. Some causes say that themselves.
func whyStopped(cause error) string {
	for _, itself := range []error{batch.ErrWaitTooLong, batch.ErrAlike, batch.ErrOutage} {
		if errors.Is(cause, itself) {
			return cause.Error()
		}
	}
	return "the provider no longer serves it" + because(cause)
}

// forHowLong says how long a lane cools, if it does: a cooldown of an earlier run may be
// over.
func forHowLong(t batch.Transition) string {
	if !t.Until.After(t.At) {
		return ""
	}
	return " for " + words.Wait(t.Until.Sub(t.At))
}

// metBy says how many calls met a wave; a run that only inherits the wave has none.
func metBy(calls int) string {
	if calls == 0 {
		return ""
	}
	return fmt.Sprintf("; %s met that wave", words.Count(calls, "call"))
}

// because adds the cause, if there is one.
func because(cause error) string {
	if cause == nil {
		return ""
	}
	return " (" + cause.Error() + ")"
}

// toShare says which share of the pace is left.
func toShare(x float64) string {
	if x == 0.5 {
		return " to half"
	}
	return fmt.Sprintf(" to %.0f %%", 100*x)
}

// broke says how many calls broke recently.
func broke(t batch.Transition) string {
	span := "minute"
	if t.Span != time.Minute {
		span = words.Wait(t.Span)
	}
	return fmt.Sprintf("%.0f %% of its calls broke in the last %s", 100*t.Errors, span)
}

func whyCooling(r machine.Reason) string {
	switch r {
	case machine.ByThrottle:
		return "rate limit hit"
	case machine.ByOverload:
		return "the provider is overloaded"
	case machine.ByBreaker:
		return "calls break, the provider seems to be down"
	case machine.ByMemory:
		return leftSo
	default:
		return r.String()
	}
}

// leftSo says that a lane begins with what an earlier run has left.
const leftSo = "as an earlier run left it"

func whyRamping(t batch.Transition) string {
	switch t.Reason {
	case machine.ByMemory:
		return leftSo
	case machine.ByKnowledge:
		return fmt.Sprintf("cooled%s; the limit is known, no probe needed", metBy(t.Wave))
	}
	return "the probe passed"
}

// mostShown is the highest rate, in calls a second, that a sentence mentions: no process
// makes as many, so something else holds it back.
const mostShown = 100_000

// upTo names the rate, if one was learned.
func upTo(words string, perSecond float64) string {
	if perSecond > mostShown {
		return ""
	}
	return words + rate(perSecond)
}

func rate(perSecond float64) string {
	if perSecond >= 100 {
		return fmt.Sprintf("%.0f/s", perSecond)
	}
	return fmt.Sprintf("%.1f/s", perSecond)
}

// waitStory describes a long wait in plain words: what waits, why, and until when.
func waitStory(w batch.LongWait) string {
	if w.Own {
		return fmt.Sprintf("%s: an item waits alone: %s: %s", w.Lane, whyAlone(w), untilWords(w, "it is tried again"))
	}
	text := fmt.Sprintf("%s: %s: ", w.Lane, whyWaiting(w))
	if waited := w.At.Sub(w.Since); waited >= time.Second {
		text += fmt.Sprintf("nothing was let in for %s, ", words.Wait(waited))
	}
	return text + fmt.Sprintf("%s; %s", untilWords(w, "the next call leaves"), words.Count(w.Items, "item")+waitVerb(w.Items))
}

func waitVerb(n int) string {
	if n == 1 {
		return " waits"
	}
	return " wait"
}

func whyAlone(w batch.LongWait) string {
	if w.Cause == machine.ByThrottle {
		return "it alone was refused"
	}
	return "its call failed, and the provider named the wait"
}

// whyWaiting names what a lane waits for: its latest cooldown while that lasts, or else its
// limits.
func whyWaiting(w batch.LongWait) string {
	switch w.Phase {
	case machine.Cooling, machine.Probing:
		return whyCooling(w.Cause)
	}
	switch w.Why {
	case "requests", "tokens", "input tokens", "output tokens":
		return "its limit on " + w.Why + " is used up"
	case "rate", "ramp":
		return "few calls are allowed, and the next one waits for its turn"
	}
	return "it was asked to wait"
}

// untilWords says when the wait ends, by the clock and from now on.
func untilWords(w batch.LongWait, what string) string {
	switch {
	case !w.Until.IsZero():
		return fmt.Sprintf("%s at %s, in %s", what, w.Until.Format(time.TimeOnly), words.Wait(w.Until.Sub(w.At)))
	case w.Phase == machine.Probing:
		return "a probe is under way"
	}
	return "for how long is unknown"
}

// LogAttrs returns a long wait's attributes in the log.
func LogAttrs(w *batch.LongWait) []any {
	attrs := []any{"lane", w.Lane, "phase", w.Phase.String(), "cause", w.Cause.String(), "why", w.Why, "waited_s", seconds(w.At.Sub(w.Since)), "items", w.Items}
	if w.Own {
		attrs = append(attrs, "item", w.Item)
	}
	if !w.Until.IsZero() {
		attrs = append(attrs, "until", w.Until.Format(time.RFC3339), "for_s", seconds(w.Until.Sub(w.At)))
	}
	return attrs
}

func (e *events) longWait(w batch.LongWait) {
	out := event.LongWait{
		Event: "long_wait", ElapsedS: seconds(w.At.Sub(e.began)), Lane: w.Lane, Phase: w.Phase.String(),
		Cause: w.Cause.String(), Why: w.Why, Items: w.Items, WaitedS: seconds(w.At.Sub(w.Since)), Text: waitStory(w),
	}
	if w.Own {
		out.Item = &w.Item
	}
	if !w.Until.IsZero() {
		at := w.Until.Format(time.RFC3339)
		out.ForS, out.Until = event.Until(w.At, w.Until), &at
	}
	e.print(out)
}
