package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file has the model law's side of a lane's phases, and the lessons of time.

// Tick is part of [limiter.Law]. Time alone teaches the law only here.
func (m *Law) Tick(now time.Time, blocked bool) {
	t := m.seconds(now)
	m.heldBack = blocked
	gap := t - m.ticked
	if gap <= 0 {
		return
	}
	m.ticked = t
	m.takeKnownFates(t, 0)
	if m.refusals > 0 {
		m.chanceShare = m.chance.share(paceBin(m.lastPace))
	}
	m.learnFromTime(t, gap, blocked)
}

// The in-flight governor. A call that hangs gives no sign, so neither rate nor breaker reacts.
// By Little's law the rate of answers gives the number in flight of calls that do end. The window
// is three times that number, and windowSpare more: no more calls may hang. The floor lets a lane
// start at full width. The window also holds a second of the user's rate: where answers take half
// a minute, growth from 64 to three times as many with each would take minutes.
//
// After a restart the law inherits the rate of answers for a while. Calls that take half a
// minute have no answer for as long. Without that rate no call would join the first ones in
// flight meanwhile.
const (
	leastWindow  = 64
	windowSpare  = 32
	windowFactor = 3
	windowMost   = 1 << 30 // more is no bound
)

// Window is part of [limiter.Law].
func (m *Law) Window(now time.Time) int {
	if m.onlyQueues() {
		return m.local.Size()
	}
	if t := m.seconds(now); m.window == 0 || t != m.windowAt {
		rate := m.answered.PerSecond(now)
		if t < float64(m.inheritedFor) {
			rate = max(rate, float64(m.inherited))
		}
		m.window = int32(min(windowMost, max(leastWindow, m.configuredRate(), windowSpare+windowFactor*rate*m.latency)))
		m.windowAt = t
	}
	most := int(m.window)
	if m.isLocal {
		most = min(most, m.local.Size())
	}
	if m.mean != nil {
		most = min(most, m.mean.Size())
	}
	if m.crowd.cap != nil {
		most = min(most, m.crowd.cap.places())
	}
	return most
}

// configuredRate returns the calls per second that the user's limits allow, as far as the server
// was not found to allow less. 0: the user told none. It takes a call's draw of tokens from the
// latest calls.
func (m *Law) configuredRate() float64 {
	least, last := nothing, m.sends.latest()
	for k := range m.used {
		g := &m.gauges[k]
		if draws := last.drew(k); g.ceiling > 0 && draws > 0 {
			takeLower(&least, limiter.BoundRequests+limiter.Bound(k), g.refill*float64(last.sent)/draws)
		}
	}
	if math.IsInf(least.Pace, 1) {
		return 0
	}
	return least.Pace
}

// onlyQueues reports whether the server takes whatever it is asked, and lets it wait. A server that
// refuses is judged like any other from then on, and its latency is watched besides.
func (m *Law) onlyQueues() bool { return m.isLocal && m.refusals == 0 }

// Resume is part of [limiter.Law]. Where a rate is known, one refusal is no reason to probe.
func (m *Law) Resume(time.Time) bool {
	return m.gauges[dimRequests].known() && (m.drought == nil || m.drought.refusals < 2)
}

// Broken is part of [limiter.Law].
func (m *Law) Broken(time.Time) {
	m.broken = true
	m.errors.Broken()
}

// Climb is part of [limiter.Law]. After an ordinary refusal the level says how much may leave,
// and there is nothing to climb. After an outage nobody knows how many other clients come back.
func (m *Law) Climb(now time.Time) time.Time {
	m.quoted = quote{}
	t := m.seconds(now)
	if m.broken {
		m.broken = false
		m.slowStart(t, backDoubling)
	}
	m.errors.Closed(now)
	if s := m.estimate.search; s != nil && s.pace < s.over {
		// The search goes on from below. It has climbed back when it is as fast as when it was
		// refused. A search that was never refused has over 0.
		return now.Add(ceilSeconds(m.searchTime() * math.Log2(s.over/s.pace)))
	}
	if m.opened(t) < 1 {
		return m.time(m.fullAt())
	}
	return now
}

// SetRamp is part of [limiter.Law]. The model climbs by its knowledge, in no shape of the
// user's.
func (m *Law) SetRamp(time.Time, limiter.RampConfig) time.Time { return time.Time{} }

// pace returns the calls per second that may leave if they draw one request and nothing else.
func (m *Law) pace(t float64) float64 {
	pace, _ := m.paceOf(t, [dims]float64{dimRequests: 1})
	return pace
}

// believed returns the rate of requests that is believed, or at which the law searches.
func (m *Law) believed() float64 {
	if g := &m.gauges[dimRequests]; g.known() {
		return g.refill
	}
	if s := m.estimate.search; s != nil {
		return s.pace
	}
	return unlimited
}

// Slowed is part of [limiter.Law].
func (m *Law) Slowed(now time.Time) float64 { return m.errors.Slowed(now) }

// The lengths of holds that no server asked for, in seconds, and how they grow with each refusal.
const (
	droughtLeast  = 0.1  // of the shortest: a bucket gains something, and a fast server is not asked at once again
	droughtMost   = 30.0 // of the longest: a server that is back is found within half a minute
	droughtGrowth = 1.5  // so a hold is about half as long as all before it, and misses the end of a window by no more
	busyMost      = 2.3  // of the longest for a server that says it is too busy: it is asked again soon, as a refused probe costs nothing
	busyGrowth    = 2.0  // so busyMost is reached within a few refusals
	busyPatience  = 30   // refusals, more than a minute, after which it is asked less and less often: being asked may be what keeps it from letting anything in
)

// What a drought was, once calls are let in again.
const (
	downAfter  = 8.0 // seconds without a call let in, by 503 alone: the server was down
	downApart  = 4.0 // a drought that begins sooner after an outage than so many times its own length is a closed window
	fixedEnd   = 2.0 // seconds of drought at least, and
	fixedCalls = 8   // calls' time, after which calls are let in because a window has ended
)

// A drought is a time in which nothing at all is let in. It lengthens the holds, and
// only its first refusal teaches anything.
type drought struct {
	began    float64 // when the hold began
	refusals int     // with nothing let in between
	busy     bool    // all of them said busy, and nothing of a rate
	pace     float64 // at which calls were let in before
	lesson   *lesson // what the first one taught; nil: nothing
}

// hold returns the seconds for which the lane holds after a refusal that names no wait. (If it
// names one, [Law.directed] does.) delay is the time that a refusal takes. spacing is the time
// between two calls at the believed rate. The first hold lasts for spacing or twice delay,
// whichever is longer. Each further refusal lengthens it. The caller adds holdSpread.
func (d *drought) hold(delay, spacing float64, overloaded bool) float64 {
	first := max(droughtLeast, 2*delay, spacing)
	if !overloaded {
		return min(droughtMost, first*math.Pow(droughtGrowth, float64(d.refusals-1)))
	}
	patience := math.Pow(droughtGrowth, float64(max(0, d.refusals-busyPatience)))
	return min(droughtMost, busyMost*patience, first*math.Pow(busyGrowth, float64(d.refusals-1)))
}

// wasFixed reports whether the drought was the rest of a window. It is asked when calls are let in
// again.
func (d *drought) wasFixed(t, rate float64) bool {
	return t-d.began >= max(fixedEnd, fixedCalls/rate)
}

// wasDown reports whether the server was down. It is asked when calls are let in again.
func (d *drought) wasDown(t float64) bool { return d.busy && t-d.began >= downAfter }
