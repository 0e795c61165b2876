package machine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/laws"
)

// A law that a limiter.Maker made runs code of somebody else. If it fails, its lane stops, and
// nothing else does.
//
//	a method panics ──▶ foreignLaw ─▶ spentLaw answers from then on ─▶ Machine.faulty ─▶ the lane stops
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

// foreignLaw is a law of another package, behind the one place that recovers from its panics.
// Laws that laws.New makes by their name are in their lanes directly, and pay nothing for it.
type foreignLaw struct {
	law     limiter.Law
	machine *Machine
	lane    *lane
	fault   *LawError // nil: it is well
}

// spentLaw answers for a law that has failed until its lane stops: nothing leaves.
type spentLaw struct{ limiter.Unlimited }

func (spentLaw) Wait(time.Time, limiter.Cost) (time.Duration, limiter.Bound) {
	return limiter.UntilTold, limiter.BoundNone
}

func (spentLaw) ProbeWait(time.Time, limiter.Cost) time.Duration { return limiter.UntilTold }

// newLaw makes the law of a lane's config.
func (m *Machine) newLaw(now time.Time, l *lane) limiter.Law {
	if l.cfg.Maker == nil {
		return laws.New(l.cfg.law(), now, m.rng)
	}
	f := &foreignLaw{machine: m, lane: l}
	if f.make(now); f.law == nil {
		f.fails(&LawError{Lane: l.name})
	}
	return f
}

// make asks the maker.
func (f *foreignLaw) make(now time.Time) {
	defer func() { f.caught(recover()) }()
	f.law = laws.New(f.lane.cfg.law(), now, f.machine.rng)
}

// caught takes the value that a deferred function has recovered, and reports whether there was
// a panic.
func (f *foreignLaw) caught(v any) bool {
	if v == nil {
		return false
	}
	f.fails(&LawError{Lane: f.lane.name, Value: v, Stack: debug.Stack()})
	return true
}

// fails has the spent law answer from now on, and the lane stop at the next decision.
func (f *foreignLaw) fails(err *LawError) {
	f.law, f.fault = spentLaw{}, err
	f.machine.faulty = append(f.machine.faulty, f.lane)
}

// fault returns the failure of the lane's law; nil: it is well.
func (l *lane) fault() *LawError {
	if f, foreign := l.law.(*foreignLaw); foreign {
		return f.fault
	}
	return nil
}

// stopFaulty stops the lanes whose law has failed, and reports whether there was any. A lane
// that has another law by now goes on.
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

// askLaw asks a law. If the law panics, the spent law answers in its place.
func askLaw[T any](f *foreignLaw, ask func(limiter.Law) T) (answer T) {
	defer func() {
		if f.caught(recover()) {
			answer = ask(f.law)
		}
	}()
	return ask(f.law)
}

// tellLaw passes news to a law. A panic of the law is caught, and nothing is returned.
func tellLaw(f *foreignLaw, tell func(limiter.Law)) {
	defer func() { f.caught(recover()) }()
	tell(f.law)
}

func (f *foreignLaw) Tick(now time.Time, held bool) {
	tellLaw(f, func(l limiter.Law) { l.Tick(now, held) })
}

func (f *foreignLaw) Wait(now time.Time, c limiter.Cost) (wait time.Duration, by limiter.Bound) {
	wait = askLaw(f, func(l limiter.Law) (wait time.Duration) {
		wait, by = l.Wait(now, c)
		return wait
	})
	return wait, by
}

func (f *foreignLaw) ProbeWait(now time.Time, c limiter.Cost) time.Duration {
	return askLaw(f, func(l limiter.Law) time.Duration { return l.ProbeWait(now, c) })
}

// WaitInAll returns Wait if the law foresees nothing.
func (f *foreignLaw) WaitInAll(now time.Time, c limiter.Cost) time.Duration {
	return askLaw(f, func(l limiter.Law) time.Duration {
		if foreseer, foresees := l.(limiter.Foreseer); foresees {
			return foreseer.WaitInAll(now, c)
		}
		wait, _ := l.Wait(now, c)
		return wait
	})
}

func (f *foreignLaw) Sent(now time.Time, c limiter.Cost, beside int) limiter.Ticket {
	return askLaw(f, func(l limiter.Law) limiter.Ticket { return l.Sent(now, c, beside) })
}

func (f *foreignLaw) Answered(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Answered(now, n) })
}

func (f *foreignLaw) Failed(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Failed(now, n) })
}

func (f *foreignLaw) Refused(now time.Time, n limiter.News) limiter.Refusal {
	return askLaw(f, func(l limiter.Law) limiter.Refusal { return l.Refused(now, n) })
}

func (f *foreignLaw) Straggled(now time.Time, n limiter.News) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.Straggled(now, n) })
}

func (f *foreignLaw) Vanished(now time.Time, n limiter.News) {
	tellLaw(f, func(l limiter.Law) { l.Vanished(now, n) })
}

func (f *foreignLaw) Broken(now time.Time) {
	tellLaw(f, func(l limiter.Law) { l.Broken(now) })
}

func (f *foreignLaw) Resume(now time.Time) bool {
	return askLaw(f, func(l limiter.Law) bool { return l.Resume(now) })
}

func (f *foreignLaw) Climb(now time.Time) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.Climb(now) })
}

func (f *foreignLaw) Window(now time.Time) int {
	return askLaw(f, func(l limiter.Law) int { return l.Window(now) })
}

func (f *foreignLaw) Remaining(c limiter.Cost) {
	tellLaw(f, func(l limiter.Law) { l.Remaining(c) })
}

func (f *foreignLaw) SetLimits(now time.Time, limits limiter.Limits) {
	tellLaw(f, func(l limiter.Law) { l.SetLimits(now, limits) })
}

func (f *foreignLaw) SetRamp(now time.Time, c limiter.RampConfig) time.Time {
	return askLaw(f, func(l limiter.Law) time.Time { return l.SetRamp(now, c) })
}

func (f *foreignLaw) Slowed(now time.Time) float64 {
	return askLaw(f, func(l limiter.Law) float64 { return l.Slowed(now) })
}

func (f *foreignLaw) View(now time.Time, c limiter.Cost) limiter.View {
	return askLaw(f, func(l limiter.Law) limiter.View { return l.View(now, c) })
}

func (f *foreignLaw) Save(now time.Time) limiter.Memory {
	return askLaw(f, func(l limiter.Law) limiter.Memory { return l.Save(now) })
}

func (f *foreignLaw) Restore(now time.Time, k limiter.Memory) error {
	return askLaw(f, func(l limiter.Law) error { return l.Restore(now, k) })
}

func (f *foreignLaw) Hear(now time.Time, word any) limiter.Reply {
	return askLaw(f, func(l limiter.Law) (r limiter.Reply) {
		if listener, listens := l.(limiter.Listener); listens {
			r = listener.Hear(now, word)
		}
		return r
	})
}

func (f *foreignLaw) Say(now time.Time, up limiter.Upcoming) (word any, next time.Time) {
	tellLaw(f, func(l limiter.Law) {
		if speaker, speaks := l.(limiter.Speaker); speaks {
			word, next = speaker.Say(now, up)
		}
	})
	return word, next
}

func (f *foreignLaw) Ended(now time.Time, k limiter.Ticket, o Outcome) {
	tellLaw(f, func(l limiter.Law) {
		if leader, leads := l.(Leader); leads {
			leader.Ended(now, k, o)
		}
	})
}
