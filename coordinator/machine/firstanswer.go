package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file is about lanes that were never heard: neither answered nor refused. Calls of a lane
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
	return l.answered || l.answers > 0 || l.counts[throttled] > 0 || l.elsewhere
}

// staysSilent notes that a call broke, and reports whether to give the lane up. The lane was
// never heard, and its calls have broken in one way for as long as the first answer may take.
// They are enough for its breaker, so a few bad items are not the cause. No call is under way
// that may yet be answered.
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

// listen restarts the patience with a silent lane: nobody has tried it for a while.
func (l *lane) listen() { l.silence = nil }

// newcomer begins a lane anew for a run that is the only one to draw on it: this run has not
// waited for the lane yet. A lane that stopped because nothing was answered, or because all
// failed alike, is tried again.
func (m *Machine) newcomer(now time.Time, name string) {
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
	l.listen()
	if l.blame != nil {
		l.blame.began = time.Time{}
	}
}
