package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The first half is about calls that go unanswered: hung ones, and outages that last.

const (
	// minOverdue and overdueTimes say when a call is overdue: after that time, and that many
	// times as long as nearly all answers take. An overdue call is not cut off, as some answers
	// take minutes; but nobody counts on it any more.
	minOverdue   = 30 * time.Second
	overdueTimes = 5

	// DefaultOutagePatience is the time without any answer after which a lane stops: longer
	// than nearly all outages that providers report.
	DefaultOutagePatience = 6 * time.Hour
)

// overdueAfter returns the time after which a call is overdue. Before the first answer nobody
// knows how long answers take, and no call is overdue.
func (l *lane) overdueAfter() time.Duration {
	p95 := l.latency.P95()
	if p95 == 0 {
		return forever
	}
	return max(minOverdue, overdueTimes*p95)
}

// allOverdue reports whether each call that is under way on the lane is overdue: for that long
// no call has left, and no call has ended.
func (l *lane) allOverdue(now time.Time) bool {
	since := now.Sub(l.used)
	return since >= minOverdue && since >= l.overdueAfter()
}

// looksHung reports whether a call may leave past the window of the law. So many calls must be
// overdue that they would open the breaker had they broken. It runs only where no call has
// ended for minOverdue. One more call then leaves each time that answers are overdue, and any
// call that ends sets the lane going again.
//
// An example: the server accepts calls and answers none. 64 are under way, and no clock ends
// them for ten minutes. A minute later the server is well again, but has forgotten them. The
// next call finds that out.
func (l *lane) looksHung(now time.Time) bool {
	return !l.remote() && l.breaker.Opens(int(l.inFlightAtEnd)) && !over(l.inFlight, l.cfg.Window) && now.Sub(l.lastEnd) >= l.overdueAfter()
}

// markInFlight notes how many calls are under way as another leaves, if they are overdue. The
// caller checks that no call has ended for minOverdue.
func (l *lane) markInFlight(now time.Time) {
	if now.Sub(l.lastEnd) >= l.overdueAfter() {
		l.hung = l.looksHung(now)
		l.lastEnd, l.inFlightAtEnd = now, int32(l.inFlight)
	}
}

// exceedsPatience notes that a call cooled the lane, or broke while its breaker is open. It reports
// whether nothing was answered for as long as an outage may last.
func (m *Machine) exceedsPatience(now time.Time, l *lane) bool {
	b := l.blameRecord()
	b.noteFailing(now)
	return m.cfg.OutagePatience > 0 && now.Sub(b.failingSince) >= m.cfg.OutagePatience
}

// outage returns the error that stops a lane after so long without an answer.
func (l *lane) outage(now time.Time, cause error) error {
	waiting := 1 // the one whose call this was
	for _, p := range l.pools {
		waiting += p.waiting.n + p.returned.len() + p.delayed.len() + p.undecided
	}
	return &OutageError{Lane: l.name, Since: l.blame.failingSince, For: now.Sub(l.blame.failingSince), Waiting: waiting, Cause: cause}
}

// The second half is about lanes that were never heard: neither answered nor refused. Calls of a lane
// that was heard break in an outage, and its breaker waits for the end of that. Calls of a lane
// that was never heard may break because nobody is there: the address is wrong, or the way to
// it shut. That does not end by itself, so the machine gives such a lane up.

// silentTries is the number of tries, one after the other, that must break alike before a lane
// is given up. Its breaker must be open besides. The breaker may open by a wave of calls that
// were too many for a slow server, which is only one try. The calls that follow are alone
// there.
const silentTries = 3

// silence records how the calls of a lane that was never heard break.
type silence struct {
	way   uint8     // in which all of them break
	tries int       // one after the other; of calls that were under way together one counts
	since time.Time // when the first of them left
	until time.Time // when the latest try was seen to break
}

// heard reports whether the server has said anything: also that it is busy.
func (l *lane) heard() bool {
	return l.answered || l.answers > 0 || l.counts[throttled] > 0 || l.refusedElsewhere
}

// staysSilent notes that a call broke, and reports whether to give the lane up. It does under four
// conditions. The lane was never heard. Its calls have broken in one way for as long as the first
// answer may take. They are enough for its breaker, so a few bad items are not the cause. No call
// is under way that may yet be answered.
func (m *Machine) staysSilent(now time.Time, it *Item, o *Outcome) bool {
	l := it.lane
	if m.cfg.FirstAnswer < 0 || l.heard() {
		return false
	}
	if l.silence == nil {
		l.silence = &silence{}
	}
	s := l.silence
	if s.tries == 0 || s.way != o.Way {
		*s = silence{way: o.Way, since: it.Sent}
	}
	if !it.Sent.Before(s.until) {
		s.tries++
		s.until = now
	}
	enough := s.tries >= silentTries && l.breaker.State(now) != limiter.Closed
	return enough && now.Sub(s.since) >= m.cfg.FirstAnswer && l.inFlight == 0
}

// unheard returns the error for a silent lane that is given up.
func (l *lane) unheard(now time.Time, cause error) error {
	err := fmt.Errorf("%w: %d calls on lane %s, in %v", ErrNoAnswer, l.counts[calls], l.name, now.Sub(l.silence.since).Round(time.Second))
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// restartSilence gives a silent lane its full time again to be heard, as nobody has tried it for a
// while.
func (l *lane) restartSilence() { l.silence = nil }

// prepareForNewRun begins a lane anew if no other run draws on it, as the new run has not waited
// for it yet. A lane is tried again if it stopped because nothing was answered, or because all
// items failed alike.
func (m *Machine) prepareForNewRun(now time.Time, name string) {
	l := m.lanes[name]
	if l == nil || len(l.pools) > 0 {
		return
	}
	l.waitsAnew()
	switch {
	case l.phase != Stopped:
	case errors.Is(l.cause, ErrNoAnswer):
		m.forget(l)
	case errors.Is(l.cause, ErrOutage), errors.Is(l.cause, ErrAlike):
		l.nextEpoch()
		m.revive(now, l)
	}
}

// waitsAnew begins the waits for an answer of the lane again.
func (l *lane) waitsAnew() {
	l.restartSilence()
	if l.blame != nil {
		l.blame.failingSince = time.Time{}
	}
}

// A latency is a [limiter.Latency] that takes its room with the second sample: most of many
// lanes make few calls. The zero value is ready.
type latency struct {
	first time.Duration
	all   *limiter.Latency // nil: there was one at most
}

// Observe adds a sample, which must be more than 0.
func (l *latency) Observe(d time.Duration) {
	switch {
	case l.all != nil:
	case l.first == 0:
		l.first = d
		return
	default:
		l.all = &limiter.Latency{}
		l.all.Observe(l.first)
	}
	l.all.Observe(d)
}

func (l *latency) Mean() time.Duration {
	if l.all == nil {
		return l.first
	}
	return l.all.Mean()
}

func (l *latency) P95() time.Duration {
	if l.all == nil {
		return l.first
	}
	return l.all.P95()
}

// An OutageError says that a lane has stopped because nothing was answered for longer than
// [Config].OutagePatience. errors.Is finds [ErrOutage] in it, and the error of the latest call.
type OutageError struct {
	Lane    string
	Since   time.Time     // when the first call failed, or was refused, after the latest answer
	For     time.Duration // how long ago that was
	Waiting int           // items that waited for the lane
	Cause   error         // what the latest call met; nil: that is not known
}

func (e *OutageError) Error() string {
	text := fmt.Sprintf("%v: lane %s, for %v, %s waiting", ErrOutage, e.Lane, e.For.Round(time.Second), items(e.Waiting))
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Is reports the kind of the error.
func (e *OutageError) Is(target error) bool { return target == ErrOutage }

// Unwrap returns the error of the latest call.
func (e *OutageError) Unwrap() error { return e.Cause }
