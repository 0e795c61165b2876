package event

import (
	"fmt"
	"math"
	"time"

	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
)

// endCells is the widest end where there are only 40 columns.
const endCells = 34

// ends says when the run ends.
func (s *scene) ends(e *Progress) {
	f := &s.p.Ends
	if s.p.State == observe.Draining || s.p.State == observe.Stopped { // it only finishes what is in flight
		when, left := s.soon(), s.left()
		if s.p.State == observe.Stopped {
			when += fmt.Sprintf(", exit code %d", exitStopped)
		}
		e.EndsText, e.EndsShort, e.EndsWide = fitting(rowCells, when+left, when), fitting(endCells, when), when+left
		return
	}
	if !f.Known {
		why := s.noEnd()
		e.EndsWhy, e.EndsText = f.Why, clip(why, rowCells)
		if e.EndsWide = e.EndsText; f.Why == "outage" {
			why = "unknown: an outage"
		}
		if f.Why == "paused" {
			why = "unknown: paused"
		}
		e.EndsShort = clip(why, endCells)
		return
	}
	e.Ends = &Ends{LowS: Round(f.Low.Seconds()), LikelyS: Round(f.Likely.Seconds()), HighS: Round(f.High.Seconds())}
	at := fmt.Sprintf("%s, in %s", s.clock(f.Likely), span(f.Likely))
	if half := (f.High - f.Low) / 2; half > f.Likely/2 && half > vagueFrom {
		between := "between " + s.clock(f.Low) + " and " + s.clock(f.High)
		likely := between + ", most likely at " + s.clock(f.Likely)
		e.EndsText = fitting(rowCells, likely+s.provided(), likely, between)
		e.EndsShort = fitting(endCells, between, at)
		e.EndsWide = likely + s.lastLane() + s.provided()
		return
	}
	sure := fmt.Sprintf("%s (± %s)", at, span((f.High-f.Low)/2))
	e.EndsText = fitting(rowCells, sure+s.provided(), sure)
	e.EndsShort = fitting(endCells, sure, at)
	e.EndsWide = sure + s.lastLane() + s.provided()
}

// vagueFrom is half of an interval that is wide enough to be shown as one: a likely time, give or
// take nearly as much, would say little. It must also be more than half of what is left.
const vagueFrom = time.Minute

// clock shows the time of day then, and the day if that is another.
func (s *scene) clock(ahead time.Duration) string {
	now := s.zoned(s.p.At)
	then := now.Add(ahead)
	switch {
	case ahead < 2*time.Minute:
		return then.Format(time.TimeOnly)
	case then.YearDay() == now.YearDay() && then.Year() == now.Year():
		return then.Format("15:04")
	case ahead < 6*24*time.Hour:
		return then.Format("Mon 15:04")
	}
	return then.Format("2 Jan 15:04")
}

// zoned returns a moment by the clock that people read.
func (s *scene) zoned(t time.Time) time.Time {
	if s.c.Zone == nil {
		return t.In(time.Local)
	}
	return t.In(s.c.Zone)
}

// provided names the condition on which the end holds.
func (s *scene) provided() string {
	switch s.bound() {
	case limiter.BoundRequests, limiter.BoundTokens, limiter.BoundInputTokens, limiter.BoundOutputTokens:
		return ", if that limit stays"
	case limiter.BoundCooldown, limiter.BoundOverload, limiter.BoundRecovery, limiter.BoundTrial:
		return ", if the limit of before comes back"
	case limiter.BoundErrors:
		return ", if as many break"
	}
	return ""
}

// lastLane names the model that ends last, where that is of interest.
func (s *scene) lastLane() string {
	f := &s.p.Ends
	if f.Lane == "" || f.Others <= 0 || s.p.OfLanes < 2 {
		return ""
	}
	others := "others end"
	if s.p.OfLanes == 2 {
		others = "other ends"
	}
	return fmt.Sprintf("; %s is the last, the %s at %s", modelOf(f.Lane), others, s.clock(f.Others))
}

// noEnd says why the end is not known.
func (s *scene) noEnd() string {
	f := &s.p.Ends
	switch f.Why {
	case "outage":
		if f.Left > 0 {
			return "cannot be said during an outage; " + span(f.Left) + " of work is left"
		}
		return "cannot be said during an outage"
	case "paused":
		if f.Left > 0 {
			return "cannot be said during a pause; " + span(f.Left) + " of work is left"
		}
		return "cannot be said during a pause"
	case "total":
		if s.c.Input == "" {
			return "when the input ends"
		}
		return "when " + clip(s.c.Input, inputCells) + " ends"
	case "over":
		return "it is over"
	}
	if s.p.State == observe.Over {
		return "it is over"
	}
	return "too early to say"
}

// inputCells is the width of the input's name in a sentence.
const inputCells = 40

// exitStopped is the exit code of a run that the provider has stopped.
const exitStopped = 3

// soon says when the calls in flight will have ended: after the time that nineteen in twenty
// take, or else when they time out.
func (s *scene) soon() string {
	n := s.p.InFlight
	switch left := s.p.P95 - s.p.Oldest; {
	case n == 0:
		return "in a moment"
	case s.p.P95 > 0 && left > 0:
		return "within about " + span(max(time.Second, s.p.P95.Round(time.Second)))
	case s.c.Timeout > s.p.Oldest:
		return "within " + span(time.Duration(math.Ceil(s.c.Timeout.Seconds()))*time.Second) + " at most"
	}
	return "when these calls have ended"
}

// left says how many items are left, and whether a resume can take them.
func (s *scene) left() string {
	if s.p.Total < 0 {
		return ""
	}
	n := s.p.Total - s.p.Before - s.p.Answered - s.p.Failed
	if n <= 0 {
		return ""
	}
	text := "; " + count(n, "item") + words.OneOr(n, " is", " are") + " left"
	if s.c.Resumable && s.p.State == observe.Stopped {
		text += " for a resume"
	}
	return text
}
