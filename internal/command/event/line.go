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
func Figures(p *Progress) []string {
	parts := []string{fmt.Sprintf("%d done", p.Done)}
	if p.Total != nil {
		parts[0] = fmt.Sprintf("%d/%d", p.Done, *p.Total)
		if *p.Total > 0 {
			parts = append(parts, fmt.Sprintf("%d%%", int(math.Floor(100*float64(p.Done)/float64(*p.Total)))))
		}
	}
	parts = append(parts, rate(p.PerSecond))
	if p.Ends != nil {
		parts = append(parts, "~"+words.Wait(seconds(p.Ends.LikelyS))+" left")
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	parts = append(parts, phaseWords(p), breakerWords(p), slowedWords(p), fmt.Sprintf("%d in flight", p.InFlight), fmt.Sprintf("%d waiting", p.Waiting))
	if p.BoundShort != "" && p.Bound != "" {
		parts = append(parts, "held by "+p.BoundShort)
	}
	if p.OfModels == 1 && len(p.Lanes) == 1 && p.Lanes[0].Belief != "" {
		parts = append(parts, "("+p.Lanes[0].Belief+")")
	}
	if i := slices.IndexFunc(p.Lanes, func(l Lane) bool { return l.Cause != "" }); i >= 0 { // it has stopped, or its breaker is not closed
		text := p.Lanes[i].Cause
		if p.OfFile() {
			text = p.Lanes[i].Name + ": " + text
		}
		parts = append(parts, text)
	}
	return slices.DeleteFunc(parts, func(text string) bool { return text == "" })
}

// gravity orders the phases by how much they hold back.
var gravity = map[string]int{"ramping": 1, "probing": 2, "cooling": 3, "stopped": 4}

// phaseWords returns the gravest phase of the lanes that are held back, and how long it cools. It is "" if
// all lanes flow.
func phaseWords(p *Progress) string {
	heldBack, gravest, wait := 0, "", 0.0
	for i := range p.Lanes {
		l := &p.Lanes[i]
		if gravity[l.Phase] == 0 {
			continue
		}
		if heldBack++; gravity[l.Phase] > gravity[gravest] {
			gravest, wait = l.Phase, l.WaitS
		}
	}
	if heldBack == 0 {
		return ""
	}
	text := gravest
	if gravest == "cooling" && wait > 0 {
		text += " " + words.Wait(seconds(wait))
	}
	if p.OfModels > 1 {
		text += fmt.Sprintf(" (%d of %d %s held back)", heldBack, p.OfModels, p.LanesWord())
	}
	return text
}

// slowedWords describes the lanes that go slower because their calls break; "" if there are none.
func slowedWords(p *Progress) string {
	slowed, broke := 0, 0.0
	for i := range p.Lanes {
		if l := &p.Lanes[i]; l.Slowed > 0 {
			slowed++
			broke = max(broke, l.Errors)
		}
	}
	switch {
	case slowed == 0:
		return ""
	case p.OfModels > 1:
		return fmt.Sprintf("calls break: %d of %d %s slowed down", slowed, p.OfModels, p.LanesWord())
	}
	return fmt.Sprintf("%.0f %% of calls break: slowed down", 100*broke)
}

// breakerWords counts open and half-open breakers; "" if all are closed. A single lane gets no number.
func breakerWords(p *Progress) string {
	switch {
	case p.Open+p.HalfOpen == 0:
		return ""
	case p.OfModels == 1 && p.Open > 0:
		return "breaker open"
	case p.OfModels == 1:
		return "breaker half-open"
	case p.HalfOpen == 0:
		return fmt.Sprintf("breakers: %d open", p.Open)
	case p.Open == 0:
		return fmt.Sprintf("breakers: %d half-open", p.HalfOpen)
	}
	return fmt.Sprintf("breakers: %d open, %d half-open", p.Open, p.HalfOpen)
}
