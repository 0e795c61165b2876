package machine

import (
	"time"
)

// This file is about calls that go unanswered: hung ones, and outages that last.

const (
	// overdueLeast and overdueTimes say when a call is overdue: after that time, and that many
	// times as long as nearly all answers take. An overdue call is not cut off, as some answers
	// take minutes; but nobody counts on it any more.
	overdueLeast = 30 * time.Second
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
	return max(overdueLeast, overdueTimes*p95)
}

// allOverdue reports whether each call that is under way on the lane is overdue: for that long
// no call has left, and no call has ended.
func (l *lane) allOverdue(now time.Time) bool {
	since := now.Sub(l.used)
	return since >= overdueLeast && since >= l.overdueAfter()
}

// hangs reports whether a call may leave past the window of the law. So many calls must be
// overdue that they would open the breaker had they broken. It runs only where no call has
// ended for overdueLeast. One more call then leaves each time that answers are overdue, and any
// call that ends sets the lane going again.
//
// An example: the server accepts calls and answers none. 64 are under way, and no clock ends
// them for ten minutes. A minute later the server is well again, but has forgotten them. The
// next call finds that out.
func (l *lane) hangs(now time.Time) bool {
	return !l.led() && l.breaker.Opens(l.flying) && !over(l.inFlight, l.cfg.Window) && now.Sub(l.ended) >= l.overdueAfter()
}

// mark notes how many calls are under way as another leaves, if they are overdue. It runs only
// where no call has ended for overdueLeast.
func (l *lane) mark(now time.Time) {
	if now.Sub(l.ended) >= l.overdueAfter() {
		l.hung = l.hangs(now)
		l.ended, l.flying = now, l.inFlight
	}
}

// outlasts notes that a call cooled the lane, or broke while its breaker is open. It reports
// whether nothing was answered for as long as an outage may last.
func (m *Machine) outlasts(now time.Time, l *lane) bool {
	b := l.blames()
	b.begin(now)
	return m.cfg.OutagePatience > 0 && now.Sub(b.began) >= m.cfg.OutagePatience
}

// outage returns the error that stops a lane after so long without an answer.
func (l *lane) outage(now time.Time, cause error) error {
	waiting := 1 // the one whose call this was
	for _, p := range l.pools {
		waiting += p.waiting.n + p.returned.len() + p.delayed.len() + p.undecided
	}
	return &OutageError{Lane: l.name, Since: l.blame.began, For: now.Sub(l.blame.began), Waiting: waiting, Cause: cause}
}
