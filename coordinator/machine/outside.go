package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is about lanes whose law is in touch with the outside. Such a law is led from
// there, hears words, or says some.
//
//	Told ──▶ Hear ──▶ the lane stops, flows again, or is only asked again
//	what changes a lane ──▶ stirred ──▶ Say ──▶ Ready.Words
//	the end of a call on a lane that is led ──▶ Ended

// A Leader is a law that leads its lane. It reports the fate of its calls to somebody outside,
// who alone decides about the lane. A lane whose law is a Leader is led:
//
//   - The machine reports the end of each of the lane's own calls by Ended, whole and before anybody
//     else sees it. It calls nothing else for that: not Answered, Failed, Refused, Straggled,
//     Vanished or Broken.
//   - The lane is Flowing until a [limiter.Reply] stops it. It has no cooldown, no probe,
//     no breaker. Silence, a used-up quota or too long a wait do not stop it. Only Wait and the
//     windows hold its calls back: that of its config, and the law's. A Wait for
//     limiter.BoundCooldown says that the lane cools outside. A pool that falls back while a lane cools
//     uses its next lane meanwhile.
//   - An item that was refused, in whatever way, is parked if it is handed over: it goes
//     first when the law lets a call leave. One that failed is delayed, as ever; none of its
//     failures is in doubt. One that was refused for good in words that do not say whom they
//     concern is called once more: by then the lane has stopped, or the item fails.
//   - A call whose ticket says Probe is a probe: its failure uses up no attempt.
//   - When a person resets the lane it flows again, and keeps its law: the outside forgives
//     what it holds against the lane.
//   - The machine saves nothing of it if its Save returns the zero Memory.
//
// The machine calls Wait, Tick, Sent, Window, Remaining, SetLimits, SetRamp, View and Save as
// it does for any law. A call is identified by the Number of the ticket that Sent returned.
type Leader interface {
	limiter.Law
	// Ended reports the end of a call, in the words of the caller who made it. If the call was
	// for another machine's item, [Settled] may pass o on to that machine as it is. The machine
	// does not report calls that left under an earlier law of the lane.
	Ended(now time.Time, k limiter.Ticket, o Outcome)
}

// A Word is a message of a lane's law to the outside; see [limiter.Speaker].
type Word struct {
	Lane string
	Said any
}

// Told says a word from outside to the law of a lane, if that is a [limiter.Listener]. The
// machine then asks the lane's pools again at once. A lane that no item has used yet, or that
// is forgotten, has no law and hears nothing: repeat words that are to last.
func Told(lane string, word any) Event { return Event{kind: evTold, name: lane, config: word} }

// outside holds the links of a lane's law with the outside.
type outside struct {
	leads   Leader           // nil: the lane's own rules hold
	hears   limiter.Listener // nil: it hears nothing
	says    limiter.Speaker  // nil: it says nothing
	stirred bool             // it is in the machine's line of those to be asked
	alarm   alarm            // when its law next wants to say something
}

// outsideOf returns nil for a law of the usual kind.
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

// restsOutside reports whether a led lane cools, by its law's word. A cooldown that is decided
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

// revive has a lane flow with its present law, and holds nothing against it.
func (m *Machine) revive(now time.Time, l *lane) {
	l.beginBreaker()
	l.forgive()
	m.forgiveItems(l)
	l.vouchedAt = now
	m.enter(now, l, Flowing, ByHand)
	m.wake(l)
}

// learnLed takes the end of a call on a led lane: it counts and measures, and decides nothing.
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

// quiet stops the wake-ups for the lane's law: the lane gets another law, or is forgotten.
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

// upcoming returns the calls that are to come on a lane.
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

// nextCosts yields the charges of the next calls. Where several pools have items, each gives as
// many, in turn.
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

// foremost returns the first n items of the pool in the order in which they would go.
func (p *pool) foremost(n int) []*Item {
	first := p.returned.firsts(n)
	for it := p.waiting.first; it != nil && len(first) < n; it = it.next {
		first = append(first, it)
	}
	return first
}

// report passes the end of a call to the law that leads the lane, before the machine reads a
// meaning into it.
func (m *Machine) report(now time.Time, it *Item, o *Outcome) {
	if l := it.lane; l.led() && it.epoch >= l.began {
		o.Again = it.counted
		l.outside.leads.Ended(now, it.ticket, *o)
	}
	m.stir(it.lane)
}
