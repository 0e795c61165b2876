package progress

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/cmd/headrace/internal/words"
	"github.com/headrace/headrace/coordinator/machine"
)

// picture is what is shown of a run at one moment.
type picture struct {
	elapsed           time.Duration
	done, total       int
	failed            int64
	inFlight, waiting int
	perSecond         float64
	left              time.Duration // 0: not known
	lanes             int           // that are not flowing
	ofLanes           int
	phase             machine.Phase // the gravest of them
	wait              time.Duration // until that one changes, as far as time decides
	slowed            int           // that go slower because calls break
	broke             float64       // the greatest share of calls that broke on one of these
	belief            string        // of the only lane, if there is but one
	open, halfOpen    int           // breakers
	cause             string        // why the busiest model that has stopped, or whose breaker is not closed, is so; "" if none is
}

// gravity orders the phases by how much they hold back.
func gravity(p machine.Phase) int {
	switch p {
	case machine.Ramping:
		return 1
	case machine.Probing:
		return 2
	case machine.Cooling:
		return 3
	case machine.Stopped:
		return 4
	default:
		return 0
	}
}

func (p *picture) add(l machine.LaneStatus, now time.Time) {
	if l.Slowed > 0 {
		p.slowed++
		p.broke = max(p.broke, l.Errors)
	}
	if p.cause == "" {
		p.cause = textOf(l.Cause)
	}
	if l.Phase == machine.Flowing {
		return
	}
	p.lanes++
	if gravity(l.Phase) > gravity(p.phase) {
		p.phase, p.wait = l.Phase, 0
		if !l.Until.IsZero() {
			p.wait = max(0, l.Until.Sub(now))
		}
	}
}

// percent is the share that is done; false while the total is not known.
func (p picture) percent() (int, bool) {
	if p.total <= 0 {
		return 0, false
	}
	return int(math.Floor(100 * float64(p.done) / float64(p.total))), true
}

// figures are what a picture says, the most telling first.
func (p picture) figures() []string {
	list := []string{p.progress()}
	if percent, ok := p.percent(); ok {
		list = append(list, fmt.Sprintf("%d%%", percent))
	}
	list = append(list, rate(p.perSecond))
	if p.left > 0 {
		list = append(list, "~"+words.Wait(p.left)+" left")
	}
	if p.failed > 0 {
		list = append(list, fmt.Sprintf("%d failed", p.failed))
	}
	if phase := phaseWords(p); phase != "" {
		list = append(list, phase)
	}
	if breakers := breakerWords(p); breakers != "" {
		list = append(list, breakers)
	}
	if slowed := slowedWords(p); slowed != "" {
		list = append(list, slowed)
	}
	list = append(list, fmt.Sprintf("%d in flight", p.inFlight), fmt.Sprintf("%d waiting", p.waiting))
	if p.belief != "" {
		list = append(list, "("+p.belief+")")
	}
	if p.cause != "" {
		list = append(list, p.cause)
	}
	return list
}

func (p picture) progress() string {
	if p.total < 0 {
		return fmt.Sprintf("%d done", p.done)
	}
	return fmt.Sprintf("%d/%d", p.done, p.total)
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
		text += " " + words.Wait(p.wait)
	}
	if p.ofLanes > 1 {
		text += fmt.Sprintf(" (%d of %d models held back)", p.lanes, p.ofLanes)
	}
	return text
}

// breakerWords tells breakers that are open from those that are half-open; "" if all are
// closed. Of an only one no number is said.
func breakerWords(p picture) string {
	var list []string
	for _, b := range []struct {
		n    int
		word string
	}{{p.open, "open"}, {p.halfOpen, "half-open"}} {
		switch {
		case b.n == 0:
		case p.ofLanes == 1:
			list = append(list, b.word)
		default:
			list = append(list, fmt.Sprintf("%d %s", b.n, b.word))
		}
	}
	switch {
	case len(list) == 0:
		return ""
	case p.ofLanes == 1:
		return "breaker " + list[0]
	}
	return "breakers: " + strings.Join(list, ", ")
}
