package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// Lanes whose law is in touch with the outside: it is led from there, is told words, says
// some.
//
//	Told ──▶ Hear ──▶ the lane stops, flows again, or is but asked again
//	what changes a lane ──▶ stirred ──▶ Say ──▶ Ready.Words
//	the end of a call on a lane that is led ──▶ Ended

// A Leader is a law that leads its lane: somebody outside decides, to whom it tells what
// calls meet, and nobody decides here besides. A lane whose law is a Leader is led:
//
//   - It is told how each call of its own ended by Ended, whole and before anybody else,
//     and by nothing else: Answered, Failed, Refused, Straggled, Vanished and Broken are
//     not called.
//   - The lane is Flowing until a [limiter.Reply] stops it. It has no cooldown, no probe,
//     no breaker; it is not given up for silence, a quota that is used up or a wait that is
//     too long. What holds its calls back is Wait, and the windows: that of its config, and
//     the law's. A Wait for limiter.ByHold says that the lane cools outside: a pool for
//     which that is the reason to fall back uses its next lane meanwhile.
//   - An item that was refused, in whatever way, is parked if it is handed over: it goes
//     first when the law lets a call leave. One that failed is delayed, as ever; nothing of it
//     is in doubt. One that was refused for good in words that do not say whom they concern is
//     called once more: by then the lane has stopped, or the item fails.
//   - A call whose ticket says Probe is a probe: its failure uses up no attempt.
//   - When a person resets the lane it flows again, and keeps its law: what is held against
//     it outside is to be forgiven there.
//   - Nothing of it is saved if its Save is the zero Memory.
//
// Wait, Tick, Sent, Window, Remaining, SetLimits, SetRamp, View and Save are asked as of
// any law. A call is identified by the Number of the ticket that Sent has answered.
type Leader interface {
	limiter.Law
	// Ended says how a call ended, in the words in which whoever made it did: where it is
	// one for another machine's item, that machine may be told it by [Settled] as it is.
	// What left under an earlier law of the lane is told to nobody.
	Ended(now time.Time, k limiter.Ticket, o Outcome)
}

// A Word is what a lane's law says to the outside; see [limiter.Speaker].
type Word struct {
	Lane string
	Said any
}

// Told says a word from outside to the law of a lane, if that is a [limiter.Listener]: the
// lane's pools are asked again at once. A lane that no item has used yet, or that is
// forgotten, hears nothing, as it has no law: whoever tells what lasts says it again.
func Told(lane string, word any) Event { return Event{kind: evTold, name: lane, config: word} }

// outside is what a lane has whose law is in touch with the outside.
type outside struct {
	leads   Leader           // nil: the lane's own rules hold
	hears   limiter.Listener // nil: it is told nothing
	says    limiter.Speaker  // nil: it says nothing
	stirred bool             // it is in the machine's line of those to be asked
	alarm   alarm            // when its law wants to be asked
}

// outsideOf is nil for a law of the usual kind.
func outsideOf(l *lane) *outside {
	f, foreign := l.law.(*foreignLaw)
	if !foreign {
		return nil
	}
	_, leads := f.law.(Leader)
	_, listens := f.law.(limiter.Listener)
	_, speaks := f.law.(limiter.Speaker)
	if !leads && !listens && !speaks {
		return nil
	}
	o := &outside{alarm: alarm{pos: -1, lane: l}}
	if leads {
		o.leads = f
	}
	if listens {
		o.hears = f
	}
	if speaks {
		o.says = f
	}
	return o
}

// led reports whether the lane's law decides alone.
func (l *lane) led() bool { return l.outside != nil && l.outside.leads != nil }

// restsOutside reports whether a lane that is led cools, as its law says: what is decided
// outside is no phase here.
func (l *lane) restsOutside() bool { return l.led() && l.bound == BoundCooldown }

// told passes a word on.
func (m *Machine) told(now time.Time, name string, word any) {
	l := m.lanes[name]
	if l == nil || l.outside == nil || l.outside.hears == nil {
		return
	}
	r := l.outside.hears.Hear(now, word)
	if r.Answered {
		l.answers, l.answered = max(1, l.answers), true
	}
	switch {
	case r.Stop != nil:
		m.stop(now, l, r.Stop)
	case r.Resume && l.phase == Stopped:
		l.nextEpoch()
		m.revive(now, l)
	}
	m.stir(l)
	m.wake(l)
}

// revive has a lane flow with the law that it has, and nothing held against it.
func (m *Machine) revive(now time.Time, l *lane) {
	l.beginBreaker()
	l.forgive()
	m.forgiveItems(l)
	l.vouchedAt = now
	m.enter(now, l, Flowing, ByHand)
	m.wake(l)
}

// learnLed takes the end of a call on a lane that is led: it is counted, and no more.
func (m *Machine) learnLed(it *Item, o *Outcome) {
	l := it.lane
	switch o.Signal {
	case Succeeded, Answered:
		l.answers++
		if o.Signal == Succeeded && o.Latency > 0 {
			l.latency.Observe(o.Latency)
		}
		l.letIn()
	case Throttled, Overloaded:
		m.count(it.run, l, throttled)
	case Failed:
		it.counted = true
		l.letIn()
	case Exhausted:
		it.counted = it.counted || o.Alike != 0
	}
}

// quiet has nobody ask the lane's law any more: it is to have another, or is forgotten.
func (m *Machine) quiet(l *lane) {
	if l.outside != nil {
		m.alarms.clear(&l.outside.alarm)
	}
}

// stir notes that something has changed on a lane: its law may have something to say.
func (m *Machine) stir(l *lane) {
	if o := l.outside; o != nil && o.says != nil && !o.stirred {
		o.stirred = true
		m.stirred = append(m.stirred, l)
	}
}

// stirAll notes that something has changed on each lane of a pool.
func (m *Machine) stirAll(p *pool) {
	for _, l := range p.lanes {
		m.stir(l)
	}
}

// speak asks the laws of the lanes on which something has changed.
func (m *Machine) speak(now time.Time) {
	for i, l := range m.stirred {
		m.stirred[i] = nil
		if o := l.outside; o != nil && m.lanes[l.name] == l {
			o.stirred = false
			m.ask(now, l, o)
		}
	}
	m.stirred = m.stirred[:0]
}

func (m *Machine) ask(now time.Time, l *lane, o *outside) {
	word, next := o.says.Say(now, m.upcoming(l))
	if word != nil {
		m.out.Words = append(m.out.Words, Word{Lane: l.name, Said: word})
	}
	m.alarms.clear(&o.alarm)
	if next.After(now) {
		m.alarms.set(&o.alarm, next)
	}
}

// upcoming is what is to come on a lane.
func (m *Machine) upcoming(l *lane) limiter.Upcoming {
	up := limiter.Upcoming{InFlight: l.inFlight, Costs: l.nextCosts}
	m.askings++
	for _, p := range l.pools {
		r := p.run
		if r.paused || r.draining {
			continue
		}
		up.Waiting += p.waiting.n + p.returned.len()
		up.Delayed += p.delayed.len()
		if r.asked != m.askings {
			r.asked = m.askings
			up.Free += max(0, r.cfg.Concurrency-r.busy)
			up.Busy += r.busy
		}
	}
	if most := m.cfg.Concurrency; most > 0 {
		up.Free = min(up.Free, most-m.flying)
	}
	return up
}

// nextCosts yields what the next calls are charged. Where several pools have items, each
// gives as many, in turn.
func (l *lane) nextCosts(yield func(limiter.Cost) bool) {
	var lines [][]*Item
	ready := 0
	for _, p := range l.pools {
		if p.head() != nil && !p.run.paused && !p.run.draining {
			ready++
		}
	}
	if ready == 0 {
		return
	}
	share := max(1, limiter.MostUpcoming/ready)
	for _, p := range l.pools {
		if p.head() != nil && !p.run.paused && !p.run.draining && len(lines) < limiter.MostUpcoming {
			lines = append(lines, p.foremost(share))
		}
	}
	for i := range share {
		for _, line := range lines {
			if i < len(line) && !yield(l.charge.Of(line[i].Cost)) {
				return
			}
		}
	}
}

// foremost are the first n items of the pool in the order in which they would go.
func (p *pool) foremost(n int) []*Item {
	first := p.returned.firsts(n)
	for it := p.waiting.first; it != nil && len(first) < n; it = it.next {
		first = append(first, it)
	}
	return first
}

// report tells the law that leads a lane how a call ended, before anybody reads a meaning
// into it.
func (m *Machine) report(now time.Time, it *Item, o *Outcome) {
	if l := it.lane; l.led() && it.epoch >= l.began {
		o.Again = it.counted
		l.outside.leads.Ended(now, it.ticket, *o)
	}
	m.stir(it.lane)
}
