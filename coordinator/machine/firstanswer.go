package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A lane that was never heard: neither answered nor refused. Calls of one that was heard
// break in an outage, and its breaker waits for the end of that. Calls of one that never
// was may break because nobody is there: the address is wrong, or the way to it shut. That
// does not end by itself, so such a lane is given up.

// silentTries is how many tries, one after the other, must break alike before a lane is
// given up, beside that its breaker is open. What opened it may be a wave of calls that
// were too many for a server which is slow, and is but one try; what follows are calls
// that are alone there.
const silentTries = 3

// silence is what is known of a lane that was never heard: how its calls break.
type silence struct {
	way   uint8     // in which they do, all of them
	tries int       // one after the other; of calls that were under way together one counts
	since time.Time // when the first of them left
	until time.Time // when the latest try was seen to break
}

// heard reports whether the server has said anything: also that it is busy.
func (l *lane) heard() bool {
	return l.answered || l.answers > 0 || l.counts[throttled] > 0 || l.elsewhere
}

// staysSilent notes that a call broke, and reports whether the lane is to be given up: it
// was never heard, its calls have broken for as long as the first answer may take, all in
// one way and enough of them for its breaker, so that it is no matter of a few items, and
// none is under way that may yet be answered.
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

// unheard is why a silent lane is given up.
func (l *lane) unheard(now time.Time, cause error) error {
	err := fmt.Errorf("%w: %d calls on lane %s, in %v", ErrNoAnswer, l.counts[calls], l.name, now.Sub(l.silence.since).Round(time.Second))
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// listen gives a silent lane its time anew: nobody has tried it for a while.
func (l *lane) listen() { l.silence = nil }

// newcomer has a lane begin anew that a run begins to draw on and no other does: this run
// has not waited for it. One that stopped because nothing was answered, or because all
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
