package limiter

import (
	"math"
	"time"
)

// View is part of [Law].
func (p *PlainLaw) View(now time.Time, c Cost) View {
	asked := *p
	v := View{
		At: now, Binds: nothing, Next: nothing,
		Most: asked.pace(now), Rate: asked.rate.Limit(), Errors: asked.errors.Rate(now), Weight: 1,
	}
	if until := asked.cooldown.Until(); now.Before(until) {
		v.Hold = until
		v.bind(ByHold, 0)
	}
	for k, d := range dimensionOf {
		v.Limits[k] = asked.toldView(now, d)
		if cost := c.of(d); cost > 0 && v.Limits[k].Known() {
			v.bind(ByRequests+Binding(k), v.Limits[k].Refill/cost)
		}
	}
	if !math.IsInf(v.Rate, 1) {
		asked.learnedView(&v.Limits[dimRequests], v.Rate)
		v.bind(ByRequests, v.Rate)
	}
	if asked.ramp.Active(now) {
		v.Ramp = asked.ramp.Ends()
		v.Rate = min(v.Rate, asked.ramp.shape.Target)
		v.bind(ByRamp, asked.ramp.Rate(now))
	}
	if asked.Slowed(now) > 0 {
		v.bind(ByErrors, v.Most)
	}
	v.Pace = v.Binds.Pace
	if p.mean != nil {
		v.Window = p.mean.Size()
		v.bind(ByLatency, p.mean.pace())
	}
	return v
}

func (p *PlainLaw) toldView(now time.Time, d Dimension) LimitView {
	perMinute := p.quota.Limits().PerMinute(d)
	if !positive(perMinute) {
		return LimitView{}
	}
	return LimitView{
		Source: Told, Refill: perMinute / 60, Ceiling: perMinute / 60,
		Capacity: p.quota.Limits().Capacity(d), Level: p.quota.Level(now, d),
	}
}

// learnedView puts a rate that was learned in the place of what is known of requests, if
// it is the lesser.
func (p *PlainLaw) learnedView(l *LimitView, rate float64) {
	if !l.Known() || rate < l.Refill {
		l.Source, l.Refill = Learned, rate
	}
}
