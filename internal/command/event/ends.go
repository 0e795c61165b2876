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

// describeEnd fills in the fields about when the run ends.
func (s *scene) describeEnd(progress *Progress) {
	forecast := &s.snapshot.Ends
	if s.snapshot.State == observe.Draining || s.snapshot.State == observe.Stopped { // it only finishes what is in flight
		when, remaining := s.whenCallsEnd(), s.remainingText()
		if s.snapshot.State == observe.Stopped {
			when += fmt.Sprintf(", exit code %d", exitStopped)
		}
		progress.EndsText, progress.EndsShort, progress.EndsWide = fitting(rowCells, when+remaining, when), fitting(endCells, when), when+remaining
		return
	}
	if !forecast.Known {
		why := s.whyNoEnd()
		progress.EndsWhy, progress.EndsText = forecast.Why, clip(why, rowCells)
		if progress.EndsWide = progress.EndsText; forecast.Why == "outage" {
			why = "unknown: an outage"
		}
		if forecast.Why == "paused" {
			why = "unknown: paused"
		}
		progress.EndsShort = clip(why, endCells)
		return
	}
	progress.Ends = &Ends{LowS: Round(forecast.Low.Seconds()), LikelyS: Round(forecast.Likely.Seconds()), HighS: Round(forecast.High.Seconds())}
	moment := fmt.Sprintf("%s, in %s", s.clock(forecast.Likely), roughDuration(forecast.Likely))
	if half := (forecast.High - forecast.Low) / 2; half > forecast.Likely/2 && half > vagueFrom {
		between := "between " + s.clock(forecast.Low) + " and " + s.clock(forecast.High)
		likely := between + ", most likely at " + s.clock(forecast.Likely)
		progress.EndsText = fitting(rowCells, likely+s.conditionText(), likely, between)
		progress.EndsShort = fitting(endCells, between, moment)
		progress.EndsWide = likely + s.lastLaneText() + s.conditionText()
		return
	}
	withSpread := fmt.Sprintf("%s (± %s)", moment, roughDuration((forecast.High-forecast.Low)/2))
	progress.EndsText = fitting(rowCells, withSpread+s.conditionText(), withSpread)
	progress.EndsShort = fitting(endCells, withSpread, moment)
	progress.EndsWide = withSpread + s.lastLaneText() + s.conditionText()
}

// vagueFrom is half of an interval that is wide enough to be shown as one: a likely time, give or
// take nearly as much, would say little. It must also be more than half of what is left.
const vagueFrom = time.Minute

// clock returns the time of day at a moment ahead, with the day if that is another.
func (s *scene) clock(ahead time.Duration) string {
	now := s.inZone(s.snapshot.At)
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

// inZone returns a moment by the clock that people read.
func (s *scene) inZone(t time.Time) time.Time {
	if s.context.Zone == nil {
		return t.In(time.Local)
	}
	return t.In(s.context.Zone)
}

// conditionText returns the condition on which the forecast of the end holds; "" if there is none.
func (s *scene) conditionText() string {
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

// lastLaneText names the model that ends last; "" if all end together.
func (s *scene) lastLaneText() string {
	f := &s.snapshot.Ends
	if f.Lane == "" || f.Others <= 0 || s.snapshot.OfLanes < 2 {
		return ""
	}
	others := "others end"
	if s.snapshot.OfLanes == 2 {
		others = "other ends"
	}
	return fmt.Sprintf("; %s is the last, the %s at %s", modelOf(f.Lane), others, s.clock(f.Others))
}

// whyNoEnd returns the reason why the end is not known, in words.
func (s *scene) whyNoEnd() string {
	forecast := &s.snapshot.Ends
	switch forecast.Why {
	case "outage":
		if forecast.Left > 0 {
			return "cannot be said during an outage; " + roughDuration(forecast.Left) + " of work is left"
		}
		return "cannot be said during an outage"
	case "paused":
		if forecast.Left > 0 {
			return "cannot be said during a pause; " + roughDuration(forecast.Left) + " of work is left"
		}
		return "cannot be said during a pause"
	case "total":
		if s.context.Input == "" {
			return "when the input ends"
		}
		return "when " + clip(s.context.Input, inputCells) + " ends"
	case "over":
		return "it is over"
	}
	if s.snapshot.State == observe.Over {
		return "it is over"
	}
	return "too early to say"
}

// inputCells is the width of the input's name in a sentence.
const inputCells = 40

// exitStopped is the exit code of a run that the provider has stopped.
const exitStopped = 3

// whenCallsEnd describes when the calls in flight will have ended. It uses the time of nineteen in twenty
// calls, or else the timeout.
func (s *scene) whenCallsEnd() string {
	n := s.snapshot.InFlight
	switch left := s.snapshot.P95 - s.snapshot.Oldest; {
	case n == 0:
		return "in a moment"
	case s.snapshot.P95 > 0 && left > 0:
		return "within about " + roughDuration(max(time.Second, s.snapshot.P95.Round(time.Second)))
	case s.context.Timeout > s.snapshot.Oldest:
		return "within " + roughDuration(time.Duration(math.Ceil(s.context.Timeout.Seconds()))*time.Second) + " at most"
	}
	return "when these calls have ended"
}

// remainingText describes how many items remain, and whether a resume can take them; "" if none do.
func (s *scene) remainingText() string {
	if s.snapshot.Total < 0 {
		return ""
	}
	items := s.snapshot.Total - s.snapshot.Before - s.snapshot.Answered - s.snapshot.Failed
	if items <= 0 {
		return ""
	}
	text := "; " + count(items, "item") + words.OneOr(items, " is", " are") + " left"
	if s.context.Resumable && s.snapshot.State == observe.Stopped {
		text += " for a resume"
	}
	return text
}
