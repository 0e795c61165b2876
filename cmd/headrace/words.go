package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
)

// story tells a lane's transition in plain words, and what is believed of the lane.
func story(t batch.Transition) string {
	if t.Belief == "" {
		return step(t)
	}
	return step(t) + " — " + t.Belief
}

func step(t batch.Transition) string {
	switch t.Reason {
	case machine.ByErrors:
		return fmt.Sprintf("%s: slowed down%s: %s", t.Lane, toShare(t.Slowed), broke(t))
	case machine.ByAnswers:
		return fmt.Sprintf("%s: as fast as before again: %s", t.Lane, broke(t))
	}
	switch t.To {
	case machine.Cooling:
		return fmt.Sprintf("%s: %s: cooling for %s (epoch %d)", t.Lane, whyCooling(t.Reason)+because(t.Cause), wait(t.Until.Sub(t.At)), t.Epoch)
	case machine.Probing:
		return fmt.Sprintf("%s: cooled; %s met that wave: sending one probe", t.Lane, countOf(t.Wave, "call"))
	case machine.Ramping:
		return fmt.Sprintf("%s: %s: ramping up%s over %s", t.Lane, whyRamping(t), upTo(" to ", t.Rate), wait(t.Until.Sub(t.At)))
	case machine.Stopped:
		return fmt.Sprintf("%s: stopped: %s", t.Lane, whyStopped(t.Cause))
	case machine.Flowing:
		if t.Reason == machine.ByHand {
			return fmt.Sprintf("%s: reset by hand: flowing", t.Lane)
		}
		if t.From == machine.Ramping {
			return fmt.Sprintf("%s: the ramp is over: flowing%s", t.Lane, upTo(" at up to ", t.Rate))
		}
		return fmt.Sprintf("%s: cooled: flowing%s", t.Lane, upTo(" at up to ", t.Rate))
	}
	return t.String()
}

// whyStopped is why a lane is served no more. A wait that is too long says that itself.
func whyStopped(cause error) string {
	if w := new(batch.WaitError); errors.As(cause, &w) {
		return waitReason(w)
	}
	return "the provider serves it no more" + because(cause)
}

// because adds the cause, if there is one.
func because(cause error) string {
	if cause == nil {
		return ""
	}
	return " (" + reasonOf(cause) + ")"
}

// toShare says what of the pace is left.
func toShare(x float64) string {
	if x == 0.5 {
		return " to half"
	}
	return fmt.Sprintf(" to %.0f %%", 100*x)
}

// broke says how many calls broke of late.
func broke(t batch.Transition) string {
	span := "minute"
	if t.Span != time.Minute {
		span = wait(t.Span)
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

// leftSo is why a lane begins as it does, by what is known of it from before.
const leftSo = "as an earlier run left it"

func whyRamping(t batch.Transition) string {
	switch t.Reason {
	case machine.ByMemory:
		return leftSo
	case machine.ByKnowledge:
		return fmt.Sprintf("cooled; %s met that wave; the limit is known, no probe needed", countOf(t.Wave, "call"))
	}
	return "the probe passed"
}

// upTo says to what rate, if one was learned.
func upTo(words string, perSecond float64) string {
	if math.IsInf(perSecond, 1) {
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

// wait shows a length of time, at most three digits of it.
func wait(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// slowedWords says which lanes go slower because their calls break; "" if none does.
func slowedWords(p picture) string {
	switch {
	case p.slowed == 0:
		return ""
	case p.ofLanes > 1:
		return fmt.Sprintf("calls break: %d of %d models slowed down", p.slowed, p.ofLanes)
	}
	return fmt.Sprintf("%.0f %% of calls break: slowed down", 100*p.broke)
}

// phaseWords says what holds a run back; "" if nothing does.
func phaseWords(p picture) string {
	if p.lanes == 0 {
		return ""
	}
	text := p.phase.String()
	if p.phase == machine.Cooling && p.wait > 0 {
		text += " " + wait(p.wait)
	}
	if p.ofLanes > 1 {
		text += fmt.Sprintf(" (%d of %d models held back)", p.lanes, p.ofLanes)
	}
	return text
}

// breakerWords tells breakers that are open from those that are half-open; "" if all are
// closed. Of an only one no number is said.
func breakerWords(p picture) string {
	var words []string
	for _, b := range []struct {
		n    int
		word string
	}{{p.open, "open"}, {p.halfOpen, "half-open"}} {
		switch {
		case b.n == 0:
		case p.ofLanes == 1:
			words = append(words, b.word)
		default:
			words = append(words, fmt.Sprintf("%d %s", b.n, b.word))
		}
	}
	switch {
	case len(words) == 0:
		return ""
	case p.ofLanes == 1:
		return "breaker " + words[0]
	}
	return "breakers: " + strings.Join(words, ", ")
}
