package progress

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/words"
)

// Line shows how a run stands in one line, as Plain does. The caller has to make it
// printable, no matter where its texts come from.
func Line(p *event.Progress) string {
	return clockTime(elapsed(p)) + "  " + strings.Join(figures(p), "  ")
}

func elapsed(p *event.Progress) time.Duration { return span(p.ElapsedS) }

// span converts a time of JSON.
func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// figures returns the parts of the line about a run, the most important first.
func figures(p *event.Progress) []string {
	list := []string{doneOf(p)}
	if percent, ok := percent(p); ok {
		list = append(list, fmt.Sprintf("%d%%", percent))
	}
	list = append(list, rate(p.PerSecond))
	if p.Ends != nil {
		list = append(list, "~"+words.Wait(span(p.Ends.LikelyS))+" left")
	}
	if p.Failed > 0 {
		list = append(list, fmt.Sprintf("%d failed", p.Failed))
	}
	for _, text := range []string{phaseWords(p), breakerWords(p), slowedWords(p)} {
		if text != "" {
			list = append(list, text)
		}
	}
	list = append(list, fmt.Sprintf("%d in flight", p.InFlight), fmt.Sprintf("%d waiting", p.Waiting))
	if p.HeldShort != "" && p.Bound != "" {
		list = append(list, "held by "+p.HeldShort)
	}
	for _, text := range []string{belief(p), cause(p)} {
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}

func doneOf(p *event.Progress) string {
	if p.Total == nil {
		return fmt.Sprintf("%d done", p.Done)
	}
	return fmt.Sprintf("%d/%d", p.Done, *p.Total)
}

// percent returns the share that is done; false while the total is not known.
func percent(p *event.Progress) (int, bool) {
	if p.Total == nil || *p.Total <= 0 {
		return 0, false
	}
	return int(math.Floor(100 * float64(p.Done) / float64(*p.Total))), true
}

// gravity orders the phases by how much they hold back.
var gravity = map[string]int{"ramping": 1, "probing": 2, "cooling": 3, "stopped": 4}

// phaseWords names the gravest phase of the lanes that do not flow, and how long it cools;
// "" if all flow.
func phaseWords(p *event.Progress) string {
	lanes, gravest, wait := 0, "", 0.0
	for i := range p.Lanes {
		l := &p.Lanes[i]
		if gravity[l.Phase] == 0 {
			continue
		}
		if lanes++; gravity[l.Phase] > gravity[gravest] {
			gravest, wait = l.Phase, l.WaitS
		}
	}
	if lanes == 0 {
		return ""
	}
	text := gravest
	if gravest == "cooling" && wait > 0 {
		text += " " + words.Wait(span(wait))
	}
	if p.OfModels > 1 {
		text += fmt.Sprintf(" (%d of %d models held back)", lanes, p.OfModels)
	}
	return text
}

// slowedWords says which lanes go slower because their calls break; "" if there are none.
func slowedWords(p *event.Progress) string {
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
		return fmt.Sprintf("calls break: %d of %d models slowed down", slowed, p.OfModels)
	}
	return fmt.Sprintf("%.0f %% of calls break: slowed down", 100*broke)
}

// belief returns the belief about the only lane, if there is only one.
func belief(p *event.Progress) string {
	if p.OfModels != 1 || len(p.Lanes) != 1 || p.Lanes[0].Belief == "" {
		return ""
	}
	return "(" + p.Lanes[0].Belief + ")"
}

// cause returns the cause of the first model that has stopped or whose breaker is not
// closed.
func cause(p *event.Progress) string {
	for i := range p.Lanes {
		if c := p.Lanes[i].Cause; c != "" {
			return c
		}
	}
	return ""
}

// breakerWords counts open and half-open breakers; "" if all are closed. A single lane gets
// no number.
func breakerWords(p *event.Progress) string {
	var list []string
	for _, b := range []struct {
		n    int
		word string
	}{{p.Open, "open"}, {p.HalfOpen, "half-open"}} {
		switch {
		case b.n == 0:
		case p.OfModels == 1:
			list = append(list, b.word)
		default:
			list = append(list, fmt.Sprintf("%d %s", b.n, b.word))
		}
	}
	switch {
	case len(list) == 0:
		return ""
	case p.OfModels == 1:
		return "breaker " + list[0]
	}
	return "breakers: " + strings.Join(list, ", ")
}
