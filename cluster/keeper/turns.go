package keeper

import (
	"math"
	"slices"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/limiter"
)

// The next turn goes to the job under a limit that has had the least for its weight. The workers of that job take
// turns one after the other.
//
//	job a, weight 1: spent 10 ─┐
//	job b, weight 2: spent  8 ─┼─▶ b's line: w3 w1 w7 ─▶ a permit for w3, which goes to the end
//	job c: nobody wants        ┘
//
// This is deficit round robin with a quantum of nothing, as each permit is judged by itself. So no job is ahead of
// another by more than one call of its own, however much dearer that call is. Turns count what is scarce: a call
// counts one if requests bind the limit, and its tokens if tokens bind it. Counted by calls, a job of long prompts
// would take most of a limit on tokens. Counted by tokens where calls bind, it would get hardly any.
//
// A job that wants nothing for a while saves nothing up, except for what flows in a second. Its workers ask ten times
// a second, and between two asks all that they want may be under way.

// A team is a job's workers under one limit.
type team struct {
	job    string
	weight float64
	spent  float64 // units that the team was given, by weight
	peers  int
	line   []*peer // those that want more
	given  uint64  // permits, in all
}

// units returns how much a permit counts in turns; on is the dimension that binds the limit.
func units(on limiter.Dimension, c limiter.Cost) float64 {
	if on == limiter.None {
		on = limiter.Requests
	}
	return max(c.In(on), 1e-3) // a call without an estimate counts for little, but not for nothing
}

// teamOf returns a job's team under the limit, and makes it if needed.
func (l *limit) teamOf(job string, weight float64) *team {
	t := l.teams[job]
	if t == nil {
		t = &team{job: job, weight: weight, spent: l.floor}
		l.teams[job] = t
		l.turns = append(l.turns, t)
	}
	return t
}

// leave takes a peer out of its team.
func (l *limit) leave(p *peer) {
	t := p.team
	t.line = slices.DeleteFunc(t.line, func(q *peer) bool { return q == p })
	if t.peers--; t.peers == 0 {
		delete(l.teams, t.job)
		l.turns = slices.DeleteFunc(l.turns, func(o *team) bool { return o == t })
	}
}

// joinLine puts a peer in its team's line if it wants more.
func (t *team) joinLine(p *peer) {
	if !p.needs() || p.inLine {
		return
	}
	if len(t.line) == 0 {
		t.spent = max(t.spent, p.limit.floor-p.limit.unitsPerSecond())
	}
	p.inLine = true
	t.line = append(t.line, p)
}

// unitsPerSecond returns the units that a weight of one gets in a second.
func (l *limit) unitsPerSecond() float64 {
	weights := 0.0
	for _, t := range l.turns {
		weights += t.weight
	}
	return l.flow / max(weights, 1e-9)
}

// silentAfter is the time after a worker's last ask from which it gets no more offers. A worker that wants permits asks
// each permit.AskAgain, and three asks in a row do not get lost. Permits that it is given meanwhile are lost.
const silentAfter = 3 * permit.AskAgain

// nextPeer returns the peer whose turn it is; nil if no peer wants anything.
func (l *limit) nextPeer(now time.Time) *peer {
	var first *team
	for _, t := range l.turns {
		for len(t.line) > 0 && (!t.line[0].needs() || now.Sub(t.line[0].heard) > silentAfter) {
			t.pop() // until it asks again
		}
		if len(t.line) > 0 && (first == nil || t.spent < first.spent) {
			first = t
		}
	}
	if first == nil {
		return nil
	}
	l.floor = max(l.floor, first.spent)
	return first.pop()
}

// pop takes the first peer out of the team's line.
func (t *team) pop() *peer {
	p := t.line[0]
	t.line[0] = nil
	if t.line = t.line[1:]; len(t.line) == 0 {
		t.line = nil
	}
	p.inLine = false
	return p
}

// A charge is what a permit cost its team in turns.
type charge struct {
	units   float64
	weighed float64 // units divided by the weight of the team at that time
	unit    uint64  // the limit's unit at that time
}

// spend counts a permit that is offered for the job.
func (l *limit) spend(now time.Time, t *team, h *knownPermit) {
	l.fade(now)
	n := units(l.binds, h.item.Cost)
	h.counted = charge{n, n / t.weight, l.unit}
	t.spent += h.counted.weighed
	l.flow += n
}

// refund takes back, once, the charge of an unused permit, unless turns now count in another unit.
func (l *limit) refund(h *knownPermit) {
	if c := &h.counted; c.unit == l.unit {
		h.peer.team.spent -= c.weighed
		l.flow = max(0, l.flow-c.units)
	}
	h.counted = charge{unit: l.unit}
}

// reweigh gives a job another weight, from now on.
func (t *team) reweigh(weight float64) { t.weight = weight }

// fade forgets what flowed more than about a second ago.
func (l *limit) fade(now time.Time) {
	if dt := now.Sub(l.fadedAt).Seconds(); dt > 0 {
		l.flow *= math.Exp(-dt)
		l.fadedAt = now
	}
}

// countIn makes turns count in another unit from now on, and clears what was spent: it says nothing in the new unit.
func (l *limit) countIn(on limiter.Dimension) {
	if on == l.binds {
		return
	}
	l.binds, l.floor, l.flow = on, 0, 0
	l.unit++
	for _, t := range l.turns {
		t.spent = 0
	}
}
