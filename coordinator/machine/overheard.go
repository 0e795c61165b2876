package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// Calls that another machine let go, on a lane that is now this one's: who takes over from
// a machine that has died hears how its last calls end. The present law was not charged for
// them, and was not asked. What their ends say of the server is true all the same.

// departure is how a call left that was overheard.
type departure struct {
	sent time.Time
	cost limiter.Cost
}

// Overheard says how a call ended that this machine never granted: one of the machine
// before it, for whose lane it has taken over. sent is when it left, by this machine's
// clock; cost what it was estimated to draw, zero if that is not known.
//
// It counts as an answer, with its latency, and what headers showed is taken for the moment
// at which it left. A refusal of it is a straggler: it begins no cooldown, and can but
// lengthen one by the wait that it names. A refusal for good stops the lane, and so does a
// day's limit of which nothing is left, unless a person has reset it since the call left. Nothing is given back for it, and no call in
// flight is one less. A lane that is not in use yet is, from then on.
func Overheard(lane string, sent time.Time, cost limiter.Cost, o Outcome) Event {
	return Event{kind: evOverheard, name: lane, outcome: o, config: departure{sent: sent, cost: cost}}
}

// overheard takes what a call of another machine's teaches. On a lane that is led it is
// for the leader to hear.
func (m *Machine) overheard(now time.Time, name string, d departure, o *Outcome) {
	if m.lanes[name] == nil && m.roomFor([]string{name}) != nil {
		return
	}
	l := m.laneNamed(now, name)
	if l.led() {
		return
	}
	m.idle.touch(l, now)
	o.disbelieve()
	n := newsOf(&Item{Sent: d.sent, Cost: d.cost.Drawn()}, o, false)
	n.Overheard = true
	if l.ruled {
		l.settle(&n, o)
	}
	if s := l.usedUp(o); s != nil && d.sent.After(l.vouchedAt) {
		m.stop(now, l, l.waitFor(now, s.Reset, &UsedUpError{Dimension: s.Dimension, Limit: s.Limit, Window: s.Window}))
	}
	switch o.Signal {
	case Succeeded, Answered:
		m.wasAnswered(now, l, &n, o.asHoped())
		l.letIn()
	case Throttled, Overloaded:
		m.refusedElsewhere(now, l, &n)
	case Failed:
		l.law.Failed(now, n)
		l.letIn()
	case Exhausted:
		switch {
		case o.Alike != 0:
			l.answers++ // the server is there
		case d.sent.After(l.vouchedAt):
			m.stop(now, l, o.Cause)
		}
	}
	m.stir(l)
	m.wake(l)
}

// refusedElsewhere takes a refusal of another machine's call.
func (m *Machine) refusedElsewhere(now time.Time, l *lane, n *limiter.News) {
	l.elsewhere = true
	if n.Latency > 0 {
		l.refusal.Observe(n.Latency)
	}
	n.Directed = n.Directed && n.RetryAfter <= l.cfg.longestWait() && l.phase == Cooling
	if until := l.law.Straggled(now, *n); n.Directed {
		m.lengthen(l, until)
	}
}
