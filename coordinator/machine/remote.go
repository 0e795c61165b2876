package machine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/laws"
)

// The first half is about lanes whose law is in touch with the outside. Such a law is led from
// there, hears words, or says some.
//
//	Delivered ──▶ Hear ──▶ the lane stops, flows again, or is only asked again
//	what changes a lane ──▶ sayQueue ─▶ Say ──▶ Ready.Words
//	the end of a call on a remote lane ──▶ Ended

// A Leader is a law that leads its lane. It reports the fate of its calls to somebody outside,
// who alone decides about the lane. A lane whose law is a Leader is remote:
//
//   - The machine reports the end of each of the lane's own calls by Ended, whole and before anybody
//     else sees it. It calls nothing else for that: not Answered, Failed, Refused, Straggled,
//     Vanished or Broken.
//   - The lane is Flowing until a [limiter.Reply] stops it. It has no cooldown, no probe,
//     no breaker. Silence, a used-up quota or too long a wait do not stop it. Only Wait and the
//     windows hold its calls back: that of its config, and the law's. A Wait that names
//     limiter.BoundCooldown says that the lane cools outside, even a wait of 0: a probe may leave. A pool
//     that falls back while a lane cools uses its next lane meanwhile. Until then the law of that next
//     lane hears nothing of the pool's items in its Say.
//   - An item that was refused is parked if it is handed over: it goes first when the law
//     lets a call leave. One that failed is delayed, as ever; none of its failures is in doubt.
//   - An item that was refused for good in words that do not say whom they concern is called
//     once more after [HeardWithin]. By then the lane has stopped, and the item begins anew on
//     another one, or it fails.
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

// HeardWithin is the time within which the outside has heard of a refusal. A call that a [Leader] lets leave so long after a
// refusal leaves by a word of somebody who knows of that one. It is the life of a permit, as that may be on its way when a call
// is refused.
const HeardWithin = 2 * time.Second

// A Word is a message of a lane's law to the outside; see [limiter.Speaker].
type Word struct {
	Lane string
	Said any
}

// Delivered passes a message from outside to the law of a lane, if that is a [limiter.Listener]. The
// machine then asks the lane's pools again at once. A lane that no item has used yet, or that
// is forgotten, has no law and hears nothing: repeat words that are to last.
func Delivered(lane string, message any) Event {
	return Event{kind: evDelivered, name: lane, config: message}
}

// outside holds the links of a lane's law with the outside.
type outside struct {
	leader   Leader           // nil: the lane's own rules hold
	listener limiter.Listener // nil: it hears nothing
	speaker  limiter.Speaker  // nil: it says nothing
	queued   bool             // it is in the machine's line of those to be asked
	resting  bool             // by the latest word of its law, the lane cools outside
	alarm    alarm            // when its law next wants to say something
}

// outsideOf returns the links of the lane's law with the outside; nil for a law that has none.
func outsideOf(l *lane) *outside {
	law, guarded := l.law.(*guardedLaw)
	if !guarded {
		return nil
	}
	_, leads := law.law.(Leader)
	_, listens := law.law.(limiter.Listener)
	_, speaks := law.law.(limiter.Speaker)
	if !leads && !listens && !speaks {
		return nil
	}
	o := &outside{alarm: alarm{pos: -1, lane: l}}
	if leads {
		o.leader = law
	}
	if listens {
		o.listener = law
	}
	if speaks {
		o.speaker = law
	}
	return o
}

// remote reports whether the lane's law decides alone.
func (l *lane) remote() bool { return l.outside != nil && l.outside.leader != nil }

// restsOutside reports whether a remote lane cools, by its law's word. A cooldown that is decided
// outside is no phase here.
func (l *lane) restsOutside() bool { return l.remote() && l.outside.resting }

// clears reports whether nothing is held against the item any more that has counted on the lane: the lane was to blame, or a
// person has vouched for it since.
func (l *lane) clears(it *Item) bool {
	return l.remote() && (l.phase == Stopped || it.epoch < l.vouchedEpoch)
}

// deliver passes a message from outside to the lane's law, and carries out what the law replies.
func (m *Machine) deliver(now time.Time, name string, message any) {
	l := m.lanes[name]
	if l == nil || l.outside == nil || l.outside.listener == nil {
		return
	}
	r := l.outside.listener.Hear(now, message)
	if r.Answered {
		l.answers, l.answered = max(1, l.answers), true
	}
	switch {
	case r.Stop != nil:
		m.stop(now, l, r.Stop)
	case r.Resume && l.phase == Stopped:
		m.vouch(now, name)
		l.nextEpoch()
		m.revive(now, l)
	}
	m.scheduleSay(l)
	m.wake(l)
}

// revive lets a lane flow with its present law, and clears all that is held against it.
func (m *Machine) revive(now time.Time, l *lane) {
	l.beginBreaker()
	l.forgive()
	m.forgiveItems(l)
	l.vouchedAt = now
	m.enter(now, l, Flowing, ByHand)
	m.wake(l)
}

// cancelSays stops the wake-ups for the lane's law: the lane gets another law, or is forgotten.
func (m *Machine) cancelSays(l *lane) {
	if l.outside != nil {
		m.alarms.clear(&l.outside.alarm)
	}
}

// scheduleSay notes that something has changed on a lane: its law may have something to say.
func (m *Machine) scheduleSay(l *lane) {
	if o := l.outside; o != nil && o.speaker != nil && !o.queued {
		o.queued = true
		m.sayQueue = append(m.sayQueue, l)
	}
}

// schedulePoolSays notes that something has changed on each lane of a pool.
func (m *Machine) schedulePoolSays(p *pool) {
	for _, l := range p.lanes {
		m.scheduleSay(l)
	}
}

// scheduleTierSays notes that pools may use other lanes from now on, since this one has fallen ill or is well again.
func (m *Machine) scheduleTierSays(l *lane) {
	for _, p := range l.pools {
		if p.tiers != nil {
			m.schedulePoolSays(p)
		}
	}
}

// askSpeakers lets the laws speak on whose lanes something has changed.
func (m *Machine) askSpeakers(now time.Time) {
	for i, l := range m.sayQueue {
		m.sayQueue[i] = nil
		if o := l.outside; o != nil && m.lanes[l.name] == l {
			o.queued = false
			m.askSpeaker(now, l, o)
		}
	}
	m.sayQueue = m.sayQueue[:0]
}

// askSpeaker lets the lane's law speak, passes its message on, and sets the alarm for the next
// time.
func (m *Machine) askSpeaker(now time.Time, l *lane, o *outside) {
	message, next := o.speaker.Say(now, m.upcoming(l))
	if message != nil {
		m.out.Words = append(m.out.Words, Word{Lane: l.name, Said: message})
	}
	m.alarms.clear(&o.alarm)
	if next.After(now) {
		m.alarms.set(&o.alarm, next)
	}
}

// upcoming describes the calls that are to come on a lane, for a law that speaks.
func (m *Machine) upcoming(l *lane) limiter.Upcoming {
	up := limiter.Upcoming{InFlight: l.inFlight, Costs: l.nextCosts}
	m.askings++
	for _, p := range l.pools {
		r := p.run
		if r.paused || r.draining {
			continue
		}
		if p.mayUse(l) {
			up.Waiting += p.waiting.n + p.returned.len()
			up.Delayed += p.delayed.len()
		}
		if r.asked != m.askings {
			r.asked = m.askings
			up.Free += max(0, r.cfg.Concurrency-r.busy)
			up.Busy += r.busy
		}
	}
	if most := m.cfg.Concurrency; most > 0 {
		up.Free = min(up.Free, max(0, most-m.inFlight)) // a lower ceiling leaves calls above it
	}
	return up
}

// mayUse reports whether calls of the pool could leave on the lane now, if that let them. Its law must
// not ask for what a better tier takes.
func (p *pool) mayUse(l *lane) bool {
	if p.run.paused || p.run.draining {
		return false
	}
	return p.tiers == nil || p.uses(p.run.m.now, p.tiers.tierOf[slices.Index(p.lanes, l)])
}

// nextCosts yields the charges of the next calls on the lane. Where several pools have items, the
// pools take turns, and each gives as many.
func (l *lane) nextCosts(yield func(limiter.Cost) bool) {
	var lines [][]*Item
	ready := 0
	for _, p := range l.pools {
		if p.head() != nil && p.mayUse(l) {
			ready++
		}
	}
	if ready == 0 {
		return
	}
	share := max(1, limiter.MostUpcoming/ready)
	for _, p := range l.pools {
		if p.head() != nil && p.mayUse(l) && len(lines) < limiter.MostUpcoming {
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

// reportEnd passes the end of a call to the law that leads the lane, before the machine reads a
// meaning into it.
func (m *Machine) reportEnd(now time.Time, it *Item, o *Outcome) {
	if l := it.lane; l.remote() && it.epoch >= l.lawEpoch {
		o.Again = it.counted
		l.outside.leader.Ended(now, it.ticket, *o)
	}
	m.scheduleSay(it.lane)
}

// A law that a limiter.Maker made runs code of somebody else. If it fails, its lane stops, and
// nothing else does.
//
//	a method panics ──▶ guardedLaw ─▶ spentLaw answers from then on ─▶ Machine.faulty ─▶ the lane stops
//
// The lane stops at the next decision and not at the panic: the machine is in the middle of a
// grant, of a lesson or of a picture then.

// ErrLaw is the kind of a [LawError]: the law of a lane failed.
var ErrLaw = errors.New("machine: law failed")

// A LawError says how a law failed that a [limiter.Maker] made: the maker or a method of the
// law panicked, or there was no law. errors.Is finds [ErrLaw] in it, and Value if that is an
// error.
type LawError struct {
	Lane  string
	Value any    // the value of the panic; nil: the maker returned nil
	Stack []byte // of the panic
}

// Error is one line; the stack is in the field.
func (e *LawError) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("%v: lane %s: its maker returned nil", ErrLaw, e.Lane)
	}
	return fmt.Sprintf("%v: lane %s: it panicked: %v", ErrLaw, e.Lane, e.Value)
}

// Is reports whether the target is [ErrLaw].
func (e *LawError) Is(target error) bool { return target == ErrLaw }

// Unwrap returns the value of the panic if it was an error.
func (e *LawError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// guardedLaw is a law of another package, behind the one place that recovers from its panics.
// Laws that laws.New makes by their name are in their lanes directly, and pay nothing for it.
type guardedLaw struct {
	law     limiter.Law
	machine *Machine
	lane    *lane
	fault   *LawError // nil: it is well
}

// spentLaw answers for a law that has failed until its lane stops: nothing leaves.
type spentLaw struct{ limiter.Unlimited }

func (spentLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Bound) {
	return limiter.UntilNotified, limiter.BoundNone
}

func (spentLaw) ProbeWait(time.Time, limiter.Cost) time.Duration { return limiter.UntilNotified }

// newLaw makes the law of a lane's config. A law that somebody else makes is guarded: a panic in it
// stops only its lane.
func (m *Machine) newLaw(now time.Time, l *lane) limiter.Law {
	if l.cfg.Maker == nil {
		return laws.New(l.cfg.law(), now, m.rng)
	}
	f := &guardedLaw{machine: m, lane: l}
	if f.make(now); f.law == nil {
		f.fail(&LawError{Lane: l.name})
	}
	return f
}

// make asks the maker.
func (f *guardedLaw) make(now time.Time) {
	defer func() { f.caught(recover()) }()
	f.law = laws.New(f.lane.cfg.law(), now, f.machine.rng)
}

// caught takes the value that a deferred function has recovered, and reports whether there was
// a panic.
func (f *guardedLaw) caught(v any) bool {
	if v == nil {
		return false
	}
	f.fail(&LawError{Lane: f.lane.name, Value: v, Stack: debug.Stack()})
	return true
}

// fail replaces the law by the spent law, and has the lane stopped at the next decision.
func (f *guardedLaw) fail(err *LawError) {
	f.law, f.fault = spentLaw{}, err
	f.machine.faulty = append(f.machine.faulty, f.lane)
}

// fault returns the failure of the lane's law; nil: it is well.
func (l *lane) fault() *LawError {
	if f, guarded := l.law.(*guardedLaw); guarded {
		return f.fault
	}
	return nil
}

// stopFaulty stops the lanes whose law has failed, and reports whether it stopped any. A lane that
// has another law by now goes on.
func (m *Machine) stopFaulty(now time.Time) (stopped bool) {
	for len(m.faulty) > 0 { // stopping a lane calls laws: those of lanes that share its pools may fail meanwhile
		l := m.faulty[0]
		m.faulty = m.faulty[1:]
		if err := l.fault(); err != nil && m.lanes[l.name] == l {
			m.stop(now, l, err)
			m.wake(l)
			stopped = true
		}
	}
	return stopped
}

// askLaw returns the law's answer. If the law panics, the spent law answers in its place.
func askLaw[T any](f *guardedLaw, ask func(limiter.Law) T) (answer T) {
	defer func() {
		if f.caught(recover()) {
			answer = ask(f.law)
		}
	}()
	return ask(f.law)
}

// tellLaw passes news to a law. A panic of the law is caught, and nothing is returned.
func tellLaw(f *guardedLaw, tell func(limiter.Law)) {
	defer func() { f.caught(recover()) }()
	tell(f.law)
}

func (f *guardedLaw) Tick(now time.Time, blocked bool) {
	tellLaw(f, func(l limiter.Law) { l.Tick(now, blocked) })
}

func (f *guardedLaw) Wait(now time.Time, c limiter.Cost) (wait time.Duration, by limiter.Bound) {
	wait = askLaw(f, func(l limiter.Law) (wait time.Duration) {
		wait, by = l.Wait(now, c)
		return wait
	})
	return wait, by
}

func (f *guardedLaw) ProbeWait(now time.Time, c limiter.Cost) time.Duration {
	return askLaw(f, func(l limiter.Law) time.Duration { return l.ProbeWait(now, c) })
}

// WaitInAll returns the whole wait if the law foresees it, and else the law's Wait.
func (f *guardedLaw) WaitInAll(now time.Time, c limiter.Cost) time.Duration {
	return askLaw(f, func(l limiter.Law) time.Duration {
		if foreseer, foresees := l.(limiter.Foreseer); foresees {
			return foreseer.WaitInAll(now, c)
		}
		wait, _ := l.Wait(now, c)
		return wait
	})
}

func (f *guardedLaw) Sent(now time.Time, c limiter.Cost, beside int) limiter.Ticket {
	return askLaw(f, func(l limiter.Law) limiter.Ticket { return l.Sent(now, c, beside) })
}

func (f *guardedLaw) Answered(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Answered(now, n) })
}

func (f *guardedLaw) Failed(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Failed(now, n) })
}

func (f *guardedLaw) Refused(now time.Time, n limiter.News) limiter.Refusal {
	return askLaw(f, func(l limiter.Law) limiter.Refusal { return l.Refused(now, n) })
}

func (f *guardedLaw) Straggled(now time.Time, n limiter.News) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.Straggled(now, n) })
}

func (f *guardedLaw) Vanished(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Vanished(now, n) })
}

func (f *guardedLaw) Broken(now time.Time) {
	tellLaw(f, func(l limiter.Law) { l.Broken(now) })
}

func (f *guardedLaw) Resume(now time.Time) bool {
	return askLaw(f, func(l limiter.Law) bool { return l.Resume(now) })
}

func (f *guardedLaw) Climb(now time.Time) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.Climb(now) })
}

func (f *guardedLaw) Window(now time.Time) int {
	return askLaw(f, func(l limiter.Law) int { return l.Window(now) })
}

func (f *guardedLaw) Remaining(c limiter.Cost) {
	tellLaw(f, func(l limiter.Law) { l.Remaining(c) })
}

func (f *guardedLaw) SetLimits(now time.Time, limits limiter.Limits) {
	tellLaw(f, func(l limiter.Law) { l.SetLimits(now, limits) })
}

func (f *guardedLaw) SetRamp(now time.Time, c limiter.RampConfig) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.SetRamp(now, c) })
}

func (f *guardedLaw) Slowed(now time.Time) float64 {
	return askLaw(f, func(l limiter.Law) float64 { return l.Slowed(now) })
}

func (f *guardedLaw) View(now time.Time, c limiter.Cost) limiter.View {
	return askLaw(f, func(l limiter.Law) limiter.View { return l.View(now, c) })
}

func (f *guardedLaw) Save(now time.Time) limiter.Memory {
	return askLaw(f, func(l limiter.Law) limiter.Memory { return l.Save(now) })
}

func (f *guardedLaw) Restore(now time.Time, k limiter.Memory) error {
	return askLaw(f, func(l limiter.Law) error { return l.Restore(now, k) })
}

// Hear passes a message to the law. A law that does not listen replies nothing.
func (f *guardedLaw) Hear(now time.Time, message any) limiter.Reply {
	return askLaw(f, func(l limiter.Law) (r limiter.Reply) {
		if listener, listens := l.(limiter.Listener); listens {
			r = listener.Hear(now, message)
		}
		return r
	})
}

// Say returns what the law has to say. A law that does not speak says nothing.
func (f *guardedLaw) Say(now time.Time, up limiter.Upcoming) (message any, next time.Time) {
	tellLaw(f, func(l limiter.Law) {
		if speaker, speaks := l.(limiter.Speaker); speaks {
			message, next = speaker.Say(now, up)
		}
	})
	return message, next
}

func (f *guardedLaw) Ended(now time.Time, k limiter.Ticket, o Outcome) {
	tellLaw(f, func(l limiter.Law) {
		if leader, leads := l.(Leader); leads {
			leader.Ended(now, k, o)
		}
	})
}
