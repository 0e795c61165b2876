package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file takes the orders of people and programs about runs and lanes, as opposed to the
// lessons of calls.

func (m *Machine) open(id RunID, c RunConfig) {
	if m.runs[id] != nil {
		panic("machine: a run was opened twice")
	}
	r := &run{m: m, id: id, cfg: c.withDefaults(), pools: map[string]*pool{}}
	r.books = newBooks(m.now)
	m.runs[id] = r
	m.touch(r)
}

// close forgets a run that is over.
func (m *Machine) close(r *run) {
	for _, p := range r.opened {
		m.closePool(p)
	}
	if r.turn.of != nil { // as many calls are in flight as may be, so nobody has asked it yet
		m.awake.remove(&r.turn)
	}
	delete(m.runs, r.id)
}

func (m *Machine) closePool(p *pool) {
	m.alarms.clear(&p.alarm)
	m.leaveLines(p)
	p.settle()
	for i, l := range p.lanes {
		if p.forget(i); len(l.pools) == 0 {
			l.wait.end() // the next run to use it waits anew
		}
		m.stir(l)
	}
	delete(p.run.pools, p.name)
	if p.run.recent == p {
		p.run.recent = nil
	}
}

// steer changes a run's course. Steering a run that is over does nothing, and is no fault: the
// news crossed its end.
func (m *Machine) steer(r *run, kind eventKind) {
	if r == nil {
		return
	}
	m.touch(r)
	switch kind {
	case evInputEnded:
		r.inputEnded = true
	case evPaused:
		m.pause(r)
	case evResumed:
		m.resume(r)
	case evDrained:
		m.drain(r)
	}
}

// pause holds a run back, and gives its places in the lines to the others.
func (m *Machine) pause(r *run) {
	r.paused = true
	for _, p := range r.opened {
		m.leaveLines(p)
		p.wake()
		m.stirAll(p)
	}
}

// resume takes a pause back. Nobody has tried the run's lanes meanwhile.
func (m *Machine) resume(r *run) {
	r.paused, r.resumed = false, m.now
	m.attend(r)
	for _, p := range r.opened {
		m.stirAll(p)
		for _, l := range p.lanes {
			if l.phase != Stopped {
				l.waitsAnew()
			}
		}
	}
}

func (m *Machine) drain(r *run) {
	r.draining = true
	for _, p := range r.opened {
		m.empty(p, EndDrained, nil)
		m.stirAll(p)
	}
}

// define sets the config of a lane. A lane that is in use takes over the limits, the window and
// the ramp, and keeps its lessons. No law can use the lessons of another, so a lane that is to
// follow another law begins afresh.
func (m *Machine) define(now time.Time, name string, c LaneConfig) {
	m.defined[name] = &c
	l := m.lanes[name]
	if l == nil {
		return
	}
	old := l.cfg
	l.cfg = &c
	if c.Law != old.Law || c.Local != old.Local || c.Maker != old.Maker {
		m.changeLaw(now, l)
	} else {
		l.law.SetLimits(now, c.Limits)
		m.setRamp(now, l, c.Ramp)
	}
	m.wake(l)
}

// changeLaw has a lane follow the law of its config. Its epoch rises, as the law before let the
// calls in flight go. The reasons that hold the lane back (a wait that is not over, an open
// breaker, a stop) stay. A person who wants another law has not said that the server is well.
// If the new law leads the lane, only a stop stays: the rest is for that law to know.
func (m *Machine) changeLaw(now time.Time, l *lane) {
	if l.phase == Probing {
		m.unprobe(now, l)
	}
	l.nextEpoch()
	m.quiet(l)
	m.beginLaw(now, l)
	switch {
	case l.led() && l.phase != Stopped:
		m.revive(now, l)
		return
	case l.phase == Ramping:
		m.climb(now, l, ByHand)
		return
	}
	reason := l.reason
	m.enter(now, l, l.phase, ByHand)
	l.reason = reason // the reason for its phase has not changed
}

// setRamp has a lane climb in another shape, at once if it is climbing.
func (m *Machine) setRamp(now time.Time, l *lane, c limiter.RampConfig) {
	if until := l.law.SetRamp(now, c); l.phase == Ramping && !until.IsZero() {
		m.alarms.set(&l.alarm, until)
	}
}

func (m *Machine) setLimits(now time.Time, name string, limits limiter.Limits) {
	c := *m.laneConfig(name)
	c.Limits = limits
	m.defined[name] = &c
	if l := m.lanes[name]; l != nil {
		l.cfg = &c
		l.law.SetLimits(now, limits)
		m.wake(l)
	}
}

func (m *Machine) laneConfig(name string) *LaneConfig {
	if c := m.defined[name]; c != nil {
		return c
	}
	return &m.cfg.Lane
}

// reset lets a lane flow at once, with nothing held against it, neither by this machine nor by
// an earlier one whose memory waits for the lane's first use. Its epoch rises, so that calls
// still in flight cannot close it again with old news.
func (m *Machine) reset(now time.Time, name string) {
	delete(m.memory, name)
	l := m.lanes[name]
	if l == nil {
		return
	}
	l.nextEpoch()
	if !l.led() || l.fault() != nil {
		m.quiet(l)
		m.beginLaw(now, l)
	}
	m.revive(now, l)
	l.freeItems()
	m.stir(l)
}

// freeItems ends the waits of items that wait for themselves after a call on the lane.
func (l *lane) freeItems() {
	for _, p := range l.pools {
		p.freeFrom(l)
	}
	if l.wait != nil {
		l.wait.own = time.Time{}
	}
}

// forgive drops what the lane itself holds against its server. Its counts and measurements
// stay.
func (l *lane) forgive() {
	l.vouched = l.epoch
	l.broke, l.unclear, l.revived, l.hung = false, 0, false, false
	l.cause, l.until, l.wave = nil, time.Time{}, 0
	l.listen()
	l.ill = NoReason
	l.wait.end()
}

// strand releases items that can no longer be served, and reports the runs that have lost their
// last lane.
func (m *Machine) strand(l *lane, cause error) {
	for _, p := range l.pools {
		if !p.dead() { // it waits for another lane from now on
			m.leaveLines(p)
			p.wake()
			continue
		}
		m.empty(p, EndStopped, cause)
		m.strandRun(p.run, cause)
	}
}

func (m *Machine) strandRun(r *run, cause error) {
	if !r.stranded && m.deadRun(r) {
		m.giveUp(r, cause)
	}
}

// giveUp reports a run, once, that need not be fed any more.
func (m *Machine) giveUp(r *run, cause error) {
	if !r.stranded {
		r.stranded = true
		m.touch(r)
		m.out.Stranded = append(m.out.Stranded, Stranding{Run: r.id, Cause: cause})
	}
}
