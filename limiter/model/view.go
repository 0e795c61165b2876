package model

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// View is part of [limiter.Law].
func (m *Law) View(now time.Time, c limiter.Cost) limiter.View {
	asked := *m // the code below may use the law's own methods, and change nothing of the law
	t := asked.seconds(now)
	v := limiter.View{
		At: now, Binds: nothing, Next: nothing,
		Most: asked.pace(t), Rate: asked.believed(), Errors: asked.errors.Rate(now), Weight: asked.factor,
	}
	for k := range asked.used {
		v.Limits[k] = asked.limitView(k, t)
	}
	asked.viewBounds(&v, t, spread(asked.weigh(c)))
	asked.viewBeliefs(&v)
	asked.viewUnderWay(&v, t)
	return v
}

// foreseeable bounds how far anybody looks ahead of now: a limit of one call a day is the
// slowest that is usual.
const foreseeable = 24 * time.Hour

// WaitInAll is part of [limiter.Foreseer]. It asks [Law.Wait] at moments that lie apart by a
// sixteenth of the wait so far, as the rate changes on the way. Then it closes in on the last
// of them.
func (m *Law) WaitInAll(now time.Time, c limiter.Cost) time.Duration {
	asked := *m
	asked.errors.Part()
	wait := func(after time.Duration) time.Duration {
		w, _ := asked.Wait(now.Add(after), c)
		return w
	}
	var waits, goes time.Duration
	for w := wait(0); w > 0 && goes < foreseeable; w = wait(goes) {
		waits, goes = goes, goes+max(w, goes/16)
	}
	for goes-waits > max(time.Millisecond, goes/1000) {
		if middle := waits + (goes-waits)/2; wait(middle) > 0 {
			waits = middle
		} else {
			goes = middle
		}
	}
	return goes
}

func (m *Law) limitView(k int, t float64) limiter.LimitView {
	g := &m.gauges[k]
	if !g.known() {
		return limiter.LimitView{Ceiling: g.ceiling}
	}
	v := limiter.LimitView{
		Source: g.source, Refill: g.refill, Capacity: g.capacity, Level: g.levelAt(t),
		Others: max(0, g.draw()), Ceiling: g.ceiling,
		Said: g.source == limiter.Seen && g.said,
	}
	if g.isFixed() {
		w := *g.fixed
		w.advance(t)
		v.Period, v.Ends = w.named(), m.time(w.ends)
	}
	return v
}

// named returns the usual period of which the longest reset is nearly all, or else that reset.
func (w *fixedWindow) named() time.Duration {
	for _, p := range periods {
		if w.period <= p*(1+periodNear) && w.period >= p*(1-periodNear) {
			return time.Duration(p * 1e9)
		}
	}
	return measure.Span(max(w.period, 1e-3)).Round(time.Millisecond)
}

// viewBounds finds the bounds on a call of that cost: those of which [Law.Wait] takes the
// least.
func (m *Law) viewBounds(v *limiter.View, t float64, cost [dims]float64) {
	if t < m.hold {
		v.Bind(limiter.BoundCooldown, 0)
	}
	if m.trial != nil {
		v.Bind(limiter.BoundTrial, m.gross(m.trial.pace))
	}
	if s := m.estimate.search; s != nil && !m.queues() {
		v.Bind(limiter.BoundSearch, m.gross(s.pace))
	}
	for k := range m.used {
		if m.gauges[k].known() && cost[k] > 0 {
			by, rate := m.gaugeBound(k, t, cost[k])
			v.Bind(by, m.gross(rate/cost[k]))
		}
	}
	if n := m.places(); n > 0 && m.latency > 0 {
		v.Bind(limiter.BoundWindow, float64(n)/m.latency)
	}
	if m.mean != nil {
		v.Bind(limiter.BoundLatency, m.mean.Pace())
	}
	if m.slowed(t) {
		v.Bind(limiter.BoundErrors, float64(m.eased))
	}
	if v.Pace, _ = m.paceOf(t, cost); t < m.hold {
		v.Pace = 0
	}
}

// gaugeBound returns the rate that one limit allows, in units per second, and what gives it:
// the limit itself, a ramp or the draw of other clients.
func (m *Law) gaugeBound(k int, t, cost float64) (limiter.Bound, float64) {
	fastest, ending := m.opened(t), m.ending(t)
	rate := m.gaugePace(k, t, cost, fastest, ending)
	if fastest < burstCap && m.gaugePace(k, t, cost, burstCap, ending) > rate {
		return limiter.BoundRecovery, rate
	}
	if g := &m.gauges[k]; g.draw() > 0 {
		alone := *m
		alone.gauges[k].others = 0
		if alone.gaugePace(k, t, cost, fastest, ending) > rate {
			return limiter.BoundOthers, rate
		}
	}
	return limiter.BoundRequests + limiter.Bound(k), rate
}

// places returns the calls that the server is believed to take at once; 0: as many as come.
func (m *Law) places() int {
	n := 0
	if m.serves {
		n = m.local.Size()
	}
	if c := m.crowd.cap; c != nil && c.guess == nil && !m.queues() && (n == 0 || c.places() < n) {
		n = c.places()
	}
	return n
}

func (m *Law) viewBeliefs(v *limiter.View) {
	v.Cap, v.Lied = m.places(), m.lied
	if m.mean != nil {
		v.Window = m.mean.Size()
	}
	if m.refusals > 0 {
		bin := paceBin(min(m.lastPace, v.Most)) // the latest may have left faster than is believed now
		v.Chance = m.chance.share(bin)
		_, v.ChanceSeen = m.chance.paces.below(bin)
	}
	if s := m.estimate.search; s != nil && !m.queues() {
		v.Search = s.pace
		if s.refused {
			v.Over = s.over
		}
	}
}

func (m *Law) viewUnderWay(v *limiter.View, t float64) {
	if t < m.hold {
		v.Hold = m.time(m.hold)
	}
	if m.opened(t) < 1 {
		v.Ramp = m.time(m.fullAt())
	}
	if m.trial != nil {
		v.Trial = m.time(m.trial.began)
	}
	if r := m.estimate.try; r != nil {
		v.Try, v.Tried = m.time(r.began), r.rate
	}
	if d := m.drought; d != nil {
		v.Drought, v.Probed = m.time(d.began), d.refusals
	}
}
