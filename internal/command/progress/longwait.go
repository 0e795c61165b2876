package progress

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

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
