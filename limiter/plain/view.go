package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// View is part of [limiter.Law].
func (p *Law) View(now time.Time, c limiter.Cost) limiter.View {
	asked, nothing := *p, limiter.PaceBound{Pace: math.Inf(1)}
	v := limiter.View{
		At: now, Binds: nothing, Next: nothing,
		Most: asked.pace(now), Rate: asked.rate.Limit(), Errors: asked.errors.Rate(now), Weight: 1,
	}
	if until := asked.cooldown.Until(); now.Before(until) {
		v.Hold = until
		v.Bind(limiter.BoundCooldown, 0)
	}
	for k := range v.Limits {
		d := limiter.Dimension(k + 1)
		v.Limits[k] = asked.toldView(now, d)
		if cost := of(c, d); cost > 0 && v.Limits[k].Known() {
			v.Bind(limiter.BoundRequests+limiter.Bound(k), v.Limits[k].Refill/cost)
		}
	}
	if !math.IsInf(v.Rate, 1) {
		asked.learnedView(&v.Limits[0], v.Rate)
		v.Bind(limiter.BoundRequests, v.Rate)
	}
	if asked.ramp.Active(now) {
		v.Ramp = asked.ramp.Ends()
		v.Rate = min(v.Rate, asked.ramp.shape.Target)
		v.Bind(limiter.BoundRecovery, asked.ramp.Rate(now))
	}
	if asked.Slowed(now) > 0 {
		v.Bind(limiter.BoundErrors, v.Most)
	}
	v.Pace = v.Binds.Pace
	if p.mean != nil {
		v.Window = p.mean.Size()
		v.Bind(limiter.BoundLatency, p.mean.Pace())
	}
	return v
}

func (p *Law) toldView(now time.Time, d limiter.Dimension) limiter.LimitView {
	perMinute := p.quota.Limits().PerMinute(d)
	if !measure.Positive(perMinute) {
		return limiter.LimitView{}
	}
	return limiter.LimitView{
		Source: limiter.Told, Refill: perMinute / 60, Ceiling: perMinute / 60,
		Capacity: p.quota.Limits().Capacity(d), Level: p.quota.Level(now, d),
	}
}

// learnedView puts a learned rate in the place of the known limit on requests, if the rate is
// lower.
func (p *Law) learnedView(l *limiter.LimitView, rate float64) {
	if !l.Known() || rate < l.Refill {
		l.Source, l.Refill = limiter.Learned, rate
	}
}
