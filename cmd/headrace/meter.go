package main

import (
	"math"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
)

// scale is what progress is measured against.
type scale struct {
	began  time.Time
	total  int          // items of the input; unknownTotal while a stream goes on
	before int          // of these, ended by earlier runs
	failed func() int64 // items that have failed so far
}

const unknownTotal = -1

// rateWindow is the stretch over which the rate is measured: long enough to be
// steady, short enough to show a cooldown.
const rateWindow = 10 * time.Second

// mark is how many items had ended at a time.
type mark struct {
	at   time.Time
	done uint64
}

// meter makes figures for people of a run's pictures.
type meter struct {
	scale
	marks []mark // of the rate window, oldest first
}

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

func (m *meter) read(s batch.Status) picture {
	p := picture{
		elapsed: s.At.Sub(m.began), done: m.before + int(s.Totals.Settled), total: m.total,
		failed: m.failed(), waiting: s.Held, perSecond: m.rate(s), ofLanes: s.Known,
		open: s.Open, halfOpen: s.HalfOpen,
	}
	for _, l := range s.Lanes {
		p.inFlight += l.InFlight
		p.addLane(l, s.At)
	}
	if s.Known == 1 && len(s.Lanes) == 1 {
		p.belief = s.Lanes[0].View.String()
	}
	if p.perSecond > 0 && m.total > p.done {
		p.left = time.Duration(float64(m.total-p.done) / p.perSecond * float64(time.Second))
	}
	return p
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

func (p *picture) addLane(l machine.LaneStatus, now time.Time) {
	if l.Slowed > 0 {
		p.slowed++
		p.broke = max(p.broke, l.Errors)
	}
	if p.cause == "" {
		p.cause = reasonOf(l.Cause)
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

// rate is items a second over the window.
func (m *meter) rate(s batch.Status) float64 {
	if len(m.marks) == 0 {
		m.marks = append(m.marks, mark{at: m.began})
	}
	m.marks = append(m.marks, mark{s.At, s.Totals.Settled})
	for len(m.marks) > 2 && s.At.Sub(m.marks[1].at) >= rateWindow {
		m.marks = m.marks[1:]
	}
	first := m.marks[0]
	seconds := s.At.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(s.Totals.Settled-first.done) / seconds
}

// percent is the share that is done; false while the total is not known.
func (p picture) percent() (int, bool) {
	if p.total <= 0 {
		return 0, false
	}
	return int(math.Floor(100 * float64(p.done) / float64(p.total))), true
}
