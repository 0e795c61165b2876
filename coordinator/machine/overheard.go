package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is about calls that another machine let go, on a lane that is now this one's. A
// machine that takes over from one that has died hears how its last calls end. The present law
// did not charge for them, and was not asked. Their ends tell the truth about the server all
// the same.

// departure records when an overheard call left, and its cost.
type departure struct {
	sent time.Time
	cost limiter.Cost
}

// Overheard reports the end of a call that this machine never granted: an earlier machine did, whose
// lane this one has taken over. sent is when the call left, by this machine's clock. cost is the
// estimate of what it draws, zero if that is not known.
//
// Its answer counts, with its latency, and its headers count for the moment at which it left. Its
// refusal is a straggler: it begins no cooldown, and can only lengthen one by the wait that it
// names. A refusal for good stops the lane if [Outcome].Alike is 0, and so does a used-up daily
// limit. Neither does if a person has reset the lane since the call left. Its charge is not given
// back, and the number of calls in flight stays as it is. A lane that was not in use is in use from
// then on. A lane that is led ignores the call.
func Overheard(lane string, sent time.Time, cost limiter.Cost, o Outcome) Event {
	return Event{kind: evOverheard, name: lane, outcome: o, config: departure{sent: sent, cost: cost}}
}

// overheard takes the lesson of a call of another machine's. On a led lane it does nothing: the
// leader hears of such calls outside.
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
