package limiter

import (
	"math"
	"time"
)

// The model law's side of a lane's phases, and what it shows.

// The in-flight governor. A call that hangs gives no sign, so neither rate nor
// breaker reacts; what Little's law justifies for the calls that do end, three
// times over, is all that may hang. The floor lets a lane start at full width.
const (
	leastWindow  = 64
	windowSpare  = 32
	windowFactor = 3
)

// Window is part of [Law].
func (m *ModelLaw) Window(now time.Time) int {
	if m.serves {
		return m.local.Size()
	}
	if m.window == 0 || now != m.windowAt {
		m.window = max(leastWindow, windowSpare+int(windowFactor*m.answered.PerSecond(now)*m.latency))
		m.windowAt = now
	}
	return m.window
}

// Resume is part of [Law]. Where a level is known there is nothing to probe.
func (m *ModelLaw) Resume(now time.Time) bool {
	g := &m.gauges[dimRequests]
	return g.source != unknown
}

// Vanished is part of [Law].
func (m *ModelLaw) Vanished(now time.Time) { m.gone(now, false) }

// gone tells the window of a local server that a call has ended, and whether that
// was the server's fault.
func (m *ModelLaw) gone(now time.Time, fault bool) {
	if !m.serves {
		return
	}
	m.local.Ended()
	if fault {
		m.local.Faulted(now)
	}
}

// Broken is part of [Law].
func (m *ModelLaw) Broken(time.Time) {
	m.broken = true
}

// Climb is part of [Law]. After an ordinary refusal the level says how much may
// leave, and there is nothing to climb; after an outage nobody knows who else
// comes back.
func (m *ModelLaw) Climb(now time.Time) time.Time {
	m.quoted = quote{}
	t := m.seconds(now)
	if m.broken {
		m.slowStart(t, backShare, backDoubling)
	}
	m.broken = false
	if m.gauges[dimRequests].source == unknown && m.unknownRate < m.refusedRate {
		// The search goes on from below. It has climbed back when it is as fast as when
		// it was refused.
		return now.Add(ceilSeconds(m.searchTime() * math.Log2(m.refusedRate/m.unknownRate)))
	}
	if m.pace(t) >= 1 {
		return now
	}
	return now.Add(ceilSeconds(m.paceAt + m.paceTime*math.Log2(1/m.paceFrom) - t))
}

// Pace is part of [Law].
func (m *ModelLaw) Pace(now time.Time) float64 {
	return m.rate(m.seconds(now), [dims]float64{dimRequests: 1})
}

// Rate is part of [Law].
func (m *ModelLaw) Rate(time.Time) float64 {
	if g := &m.gauges[dimRequests]; g.source != unknown {
		return g.refill
	}
	return m.unknownRate
}

// Level is part of [Law].
func (m *ModelLaw) Level(now time.Time, d Dimension) float64 {
	k := index(d)
	if k < 0 || m.gauges[k].source == unknown {
		return math.Inf(1)
	}
	g := m.gauges[k]
	g.advance(m.seconds(now))
	return g.level
}

// Errors is part of [Law].
func (m *ModelLaw) Errors(now time.Time) float64 { return m.errors.Rate(now) }

// Warm is part of [Law].
func (m *ModelLaw) Warm() uint64 {
	n := m.answered.warm() + m.errors.calls.warm() + uint64(m.used)
	for k := range m.used {
		n += m.gauges[k].warm()
	}
	if m.serves {
		n += m.local.warm()
	}
	n += uint64(m.silentRun) + m.sends.warm()
	return n + uint64(int64(m.hold+m.remember+m.credited+m.remains.Requests))
}

// Escalation is part of [Law].
func (m *ModelLaw) Escalation() int { return m.silentRun }

// Failed is part of [Law].
func (m *ModelLaw) Failed(now time.Time, n News) {
	m.quoted = quote{}
	m.errors.Record(now, true)
	m.gone(now, n.Timeout)
	m.settle(m.seconds(now), &n)
	m.see(m.seconds(now), &n)
}
