package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// What people and programs tell a machine about its runs and lanes, as opposed
// to what calls teach it.

func (m *Machine) open(id RunID, c RunConfig) {
	if m.runs[id] != nil {
		panic("machine: a run was opened twice")
	}
	r := &run{id: id, cfg: c.withDefaults(), pools: map[string]*pool{}}
	m.runs[id] = r
	m.turns = append(m.turns, r)
}

// close forgets a run that is over.
func (m *Machine) close(r *run) {
	for _, p := range r.opened {
		m.closePool(p)
	}
	delete(m.runs, r.id)
}

func (m *Machine) closePool(p *pool) {
	m.alarms.clear(&p.alarm)
	p.letGo()
	for _, l := range p.lanes {
		l.forget(p)
	}
	delete(p.run.pools, p.name)
	if p.run.recent == p {
		p.run.recent = nil
	}
}

// steer changes a run's course. A run that is over cannot be steered, which is
// no fault: the news crossed its end.
func (m *Machine) steer(r *run, kind eventKind) {
	if r == nil {
		return
	}
	switch kind {
	case evInputEnded:
		r.inputEnded = true
	case evPaused:
		m.pause(r)
	case evResumed:
		r.paused = false
	case evDrained:
		m.drain(r)
	}
}

// pause holds a run back, and what its pools have reserved is for the others.
func (m *Machine) pause(r *run) {
	r.paused = true
	for _, p := range r.opened {
		p.letGo()
	}
}

func (m *Machine) drain(r *run) {
	r.draining = true
	for _, p := range r.opened {
		m.empty(p, EndDrained, nil)
	}
}

// define says what a lane is like. One that is in use takes over the limits, the
// window and the ramp, and keeps what it has learned until it is reset.
func (m *Machine) define(now time.Time, name string, c LaneConfig) {
	m.defined[name] = &c
	if l := m.lanes[name]; l != nil {
		l.cfg = &c
		m.setLimits(now, name, c.Limits)
	}
}

func (m *Machine) setLimits(now time.Time, name string, limits limiter.Limits) {
	c := *m.laneConfig(name)
	c.Limits = limits
	m.defined[name] = &c
	if l := m.lanes[name]; l != nil {
		l.cfg = &c
		l.law.SetLimits(now, limits)
		l.wake()
	}
}

func (m *Machine) laneConfig(name string) *LaneConfig {
	if c := m.defined[name]; c != nil {
		return c
	}
	return &m.cfg.Lane
}

// reset lets a lane flow at once. Its epoch rises, so that what is still in
// flight cannot close it again with old news.
func (m *Machine) reset(now time.Time, name string) {
	l := m.lanes[name]
	if l == nil {
		return
	}
	l.begin(now, m.rng)
	l.cause, l.until, l.reserved = nil, time.Time{}, nil
	l.nextEpoch()
	l.vouched = l.epoch
	m.enter(now, l, Flowing, ByHand)
	l.wake()
}

// strand releases what can no longer be served, and tells the runs that have
// lost their last lane.
func (m *Machine) strand(l *lane, cause error) {
	for _, p := range l.pools {
		if !p.dead() {
			continue
		}
		m.empty(p, EndStopped, cause)
		m.strandRun(p.run, cause)
	}
}

func (m *Machine) strandRun(r *run, cause error) {
	if !r.stranded && m.deadRun(r) {
		r.stranded = true
		m.out.Stranded = append(m.out.Stranded, Stranding{Run: r.id, Cause: cause})
	}
}
