package event

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
)

// OfTransition returns the event of a lane's transition. The run began at that time.
func OfTransition(transition *batch.Transition, began time.Time) Transition {
	out := Transition{
		Event: "transition", ElapsedS: Round(transition.At.Sub(began).Seconds()), Lane: transition.Lane,
		From: transition.From.String(), To: transition.To.String(), Reason: transition.Reason.String(),
		Epoch: transition.Epoch, Met: transition.Wave, Rate: Finite(transition.Rate), Belief: transition.Belief, At: Stamp(transition.At), Text: Story(transition),
	}
	if transition.Cause != nil {
		out.Cause = transition.Cause.Error()
	}
	if transition.Span > 0 {
		out.Slowed, out.Errors = Round(transition.Slowed), Finite(transition.Errors)
	}
	if !transition.Until.IsZero() {
		out.ForS = Round(max(0, transition.Until.Sub(transition.At)).Seconds())
	}
	return out
}

// Story describes a lane's transition in plain words, with the law's belief about the lane.
func Story(t *batch.Transition) string {
	belief := t.Belief
	if t.To == machine.Ramping || t.To == machine.Flowing { // the belief lasted until this step
		isDrought := func(belief string) bool { return strings.HasPrefix(belief, "nothing is let in") }
		belief = strings.Join(slices.DeleteFunc(strings.Split(belief, "; "), isDrought), "; ")
	}
	if belief == "" {
		return stepText(t)
	}
	return stepText(t) + " — " + belief
}

// stepText describes what happened to the lane, why, and for how long. It checks the reason first: a lane
// that slows down or recovers stays in its phase.
func stepText(transition *batch.Transition) string {
	because := ""
	if transition.Cause != nil {
		because = " (" + transition.Cause.Error() + ")"
	}
	switch transition.Reason {
	case machine.ByErrors:
		to := "to half"
		if transition.Slowed != 0.5 {
			to = fmt.Sprintf("to %.0f %%", 100*transition.Slowed)
		}
		return fmt.Sprintf("%s: slowed down %s: %s", transition.Lane, to, brokeText(transition))
	case machine.ByAnswers:
		return fmt.Sprintf("%s: as fast as before again: %s", transition.Lane, brokeText(transition))
	}
	switch transition.To {
	case machine.Cooling:
		forHowLong := "" // a cooldown of an earlier run may be over
		if transition.Until.After(transition.At) {
			forHowLong = " for " + words.Wait(transition.Until.Sub(transition.At))
		}
		return fmt.Sprintf("%s: %s: cooling%s (epoch %d)", transition.Lane, whyCooling(transition.Reason)+because, forHowLong, transition.Epoch)
	case machine.Probing:
		return fmt.Sprintf("%s: cooled%s: sending one probe", transition.Lane, metBy(transition.Wave))
	case machine.Ramping:
		why := "the probe passed"
		switch transition.Reason {
		case machine.ByMemory:
			why = inheritedState
		case machine.ByKnowledge:
			why = fmt.Sprintf("cooled%s; the limit is known, no probe needed", metBy(transition.Wave))
		}
		return fmt.Sprintf("%s: %s: ramping up%s over %s", transition.Lane, why, upTo(" to ", transition.Rate), words.Wait(transition.Until.Sub(transition.At)))
	case machine.Stopped:
		if errors.Is(transition.Cause, batch.ErrWaitTooLong) { // it needs no other words
			return fmt.Sprintf("%s: stopped: %s", transition.Lane, transition.Cause.Error())
		}
		why := "the provider no longer serves it"
		switch says := refusalOf(transition.Cause); {
		case needsNoOtherWords[says.kind]:
			return fmt.Sprintf("%s: stopped: %s", transition.Lane, transition.Cause.Error())
		case says.kind != nil:
			why = says.text
		}
		return fmt.Sprintf("%s: stopped: %s%s", transition.Lane, why, because)
	case machine.Flowing:
		why := "cooled"
		switch {
		case transition.Reason == machine.ByHand:
			return fmt.Sprintf("%s: reset by hand: flowing", transition.Lane)
		case transition.From == machine.Ramping:
			why = "the ramp is over"
		}
		return fmt.Sprintf("%s: %s: flowing%s", transition.Lane, why, upTo(", at first at up to ", transition.Rate))
	}
	return transition.String()
}

// metBy says how many calls met a wave; a run that only inherits the wave has none.
func metBy(calls int) string {
	if calls == 0 {
		return ""
	}
	return fmt.Sprintf("; %s met that wave", words.Count(calls, "call"))
}

// brokeText says how many calls broke recently.
func brokeText(t *batch.Transition) string {
	span := "minute"
	if t.Span != time.Minute {
		span = words.Wait(t.Span)
	}
	return fmt.Sprintf("%.0f %% of its calls broke in the last %s", 100*t.Errors, span)
}

// whyCooling returns the reason for a cooldown, in plain words.
func whyCooling(r machine.Reason) string {
	switch r {
	case machine.ByThrottle:
		return "rate limit hit"
	case machine.ByOverload:
		return "the provider is overloaded"
	case machine.ByBreaker:
		return "calls break, the provider seems to be down"
	case machine.ByMemory:
		return inheritedState
	default:
		return r.String()
	}
}

// inheritedState says that a lane begins with what an earlier run has left.
const inheritedState = "as an earlier run left it"

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

// OfLongWait returns the event of a long wait. The run began at that time.
func OfLongWait(w *batch.LongWait, began time.Time) LongWait {
	out := LongWait{
		Event: "long_wait", ElapsedS: Round(w.At.Sub(began).Seconds()), Lane: w.Lane, Phase: w.Phase.String(),
		Cause: w.Cause.String(), Why: w.Why, Items: w.Items, WaitedS: Round(w.At.Sub(w.Since).Seconds()), Text: WaitStory(w),
	}
	if w.Own {
		out.Item = &w.Item
	}
	if !w.Until.IsZero() {
		at := w.Until.Format(time.RFC3339)
		out.ForS, out.Until = Until(w.At, w.Until), &at
	}
	return out
}

// WaitStory describes a long wait in plain words: what waits, why, and until when.
func WaitStory(w *batch.LongWait) string {
	if w.Own {
		why := "its call failed, and the provider named the wait"
		if w.Cause == machine.ByThrottle {
			why = "it alone was refused"
		}
		return fmt.Sprintf("%s: an item waits alone: %s: %s", w.Lane, why, untilWords(w, "it is tried again"))
	}
	text := fmt.Sprintf("%s: %s: ", w.Lane, whyWaiting(w))
	if waited := w.At.Sub(w.Since); waited >= time.Second {
		text += fmt.Sprintf("nothing was let in for %s, ", words.Wait(waited))
	}
	return text + fmt.Sprintf("%s; %s%s", untilWords(w, "the next call leaves"), words.Count(w.Items, "item"), words.OneOr(w.Items, " waits", " wait"))
}

// whyWaiting returns what a lane waits for: its latest cooldown while that lasts, or else its limits.
func whyWaiting(w *batch.LongWait) string {
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

// untilWords returns when the wait ends, by the clock and from now on. what is the event at its end.
func untilWords(w *batch.LongWait, what string) string {
	switch {
	case !w.Until.IsZero():
		return fmt.Sprintf("%s at %s, in %s", what, w.Until.Format(time.TimeOnly), words.Wait(w.Until.Sub(w.At)))
	case w.Phase == machine.Probing:
		return "a probe is under way"
	}
	return "for how long is unknown"
}

// LogAttrs returns the attributes of a long wait for the log.
func LogAttrs(w *batch.LongWait) []any {
	attrs := []any{"lane", w.Lane, "phase", w.Phase.String(), "cause", w.Cause.String(), "why", w.Why, "waited_s", Round(w.At.Sub(w.Since).Seconds()), "items", w.Items}
	if w.Own {
		attrs = append(attrs, "item", w.Item)
	}
	if !w.Until.IsZero() {
		attrs = append(attrs, "until", w.Until.Format(time.RFC3339), "for_s", Round(w.Until.Sub(w.At).Seconds()))
	}
	return attrs
}
