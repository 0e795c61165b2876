package event

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/words"
)

// Line shows how a run stands in one line, for logs. The caller has to make it printable, no
// matter where its texts come from.
func Line(p *Progress) string {
	return ClockTime(seconds(p.ElapsedS)) + "  " + strings.Join(Figures(p), "  ")
}

// ClockTime shows the time since the start, in a column.
func ClockTime(d time.Duration) string { return fmt.Sprintf("%7.1fs", d.Seconds()) }

// Figures returns the parts of a line about the run, the most important first.
func Figures(progress *Progress) []string {
	parts := []string{fmt.Sprintf("%d done", progress.Done)}
	if progress.Total != nil {
		parts[0] = fmt.Sprintf("%d/%d", progress.Done, *progress.Total)
		if *progress.Total > 0 {
			parts = append(parts, fmt.Sprintf("%d%%", int(math.Floor(100*float64(progress.Done)/float64(*progress.Total)))))
		}
	}
	parts = append(parts, rate(progress.PerSecond))
	if progress.Ends != nil {
		parts = append(parts, "~"+words.Wait(seconds(progress.Ends.LikelyS))+" left")
	}
	if progress.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", progress.Failed))
	}
	parts = append(parts, phaseWords(progress), breakerWords(progress), slowedWords(progress), fmt.Sprintf("%d in flight", progress.InFlight), fmt.Sprintf("%d waiting", progress.Waiting))
	if progress.BoundShort != "" && progress.Bound != "" {
		parts = append(parts, "held by "+progress.BoundShort)
	}
	if progress.OfModels == 1 && len(progress.Lanes) == 1 && progress.Lanes[0].Belief != "" {
		parts = append(parts, "("+progress.Lanes[0].Belief+")")
	}
	if i := slices.IndexFunc(progress.Lanes, func(l Lane) bool { return l.Cause != "" }); i >= 0 { // it has stopped, or its breaker is not closed
		text := progress.Lanes[i].Cause
		if progress.OfFile() {
			text = progress.Lanes[i].Name + ": " + text
		}
		parts = append(parts, text)
	}
	return slices.DeleteFunc(parts, func(text string) bool { return text == "" })
}

// gravity orders the phases by how much they hold back.
var gravity = map[string]int{"ramping": 1, "probing": 2, "cooling": 3, "stopped": 4}

// phaseWords returns the gravest phase of the lanes that are held back, and how long it cools. It is "" if
// all lanes flow.
func phaseWords(progress *Progress) string {
	heldBack, gravest, wait := 0, "", 0.0
	for i := range progress.Lanes {
		lane := &progress.Lanes[i]
		if gravity[lane.Phase] == 0 {
			continue
		}
		if heldBack++; gravity[lane.Phase] > gravity[gravest] {
			gravest, wait = lane.Phase, lane.WaitS
		}
	}
	if heldBack == 0 {
		return ""
	}
	text := gravest
	if gravest == "cooling" && wait > 0 {
		text += " " + words.Wait(seconds(wait))
	}
	if progress.OfModels > 1 {
		text += fmt.Sprintf(" (%d of %d %s held back)", heldBack, progress.OfModels, progress.LanesWord())
	}
	return text
}

// slowedWords describes the lanes that go slower because their calls break; "" if there are none.
func slowedWords(progress *Progress) string {
	slowed, broke := 0, 0.0
	for i := range progress.Lanes {
		if lane := &progress.Lanes[i]; lane.Slowed > 0 {
			slowed++
			broke = max(broke, lane.Errors)
		}
	}
	switch {
	case slowed == 0:
		return ""
	case progress.OfModels > 1:
		return fmt.Sprintf("calls break: %d of %d %s slowed down", slowed, progress.OfModels, progress.LanesWord())
	}
	return fmt.Sprintf("%.0f %% of calls break: slowed down", 100*broke)
}

// breakerWords counts open and half-open breakers; "" if all are closed. A single lane gets no number.
func breakerWords(progress *Progress) string {
	switch {
	case progress.Open+progress.HalfOpen == 0:
		return ""
	case progress.OfModels == 1 && progress.Open > 0:
		return "breaker open"
	case progress.OfModels == 1:
		return "breaker half-open"
	case progress.HalfOpen == 0:
		return fmt.Sprintf("breakers: %d open", progress.Open)
	case progress.Open == 0:
		return fmt.Sprintf("breakers: %d half-open", progress.HalfOpen)
	}
	return fmt.Sprintf("breakers: %d open, %d half-open", progress.Open, progress.HalfOpen)
}
