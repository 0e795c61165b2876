package plain

import (
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// The plain law remembers its rate, its cooldown and its ramp.
func TestPlainLawRemembers(t *testing.T) {
	p := New(limiter.LawConfig{}, noon, seeded(1))
	p.rate.Aim(noon, 10)
	p.rate.Refused(noon, 10, false)
	p.cooldown.Start(noon, 20*time.Second, true, seeded(1))
	p.ramp.StartAs(noon, limiter.RampConfig{Initial: 1, Target: 11, Duration: 100 * time.Second})
	k, now := p.Save(at(10)), at(20)
	next := New(limiter.LawConfig{}, now, seeded(1))
	must.Do(t, next.Restore(now, k))
	near(t, "rate", viewOf(next, now).Rate, viewOf(p, now).Rate, 1e-9)
	want(t, "cooldown", next.cooldown.Until(), p.cooldown.Until())
	want(t, "escalation", next.cooldown.Escalation(), 1)
	near(t, "ramp", next.ramp.Rate(now), 3, 1e-9)
	want(t, "ramp's end", next.ramp.Ends(), at(100))
	next.rate.Success(at(100))
	near(t, "during the ramp", viewOf(next, now).Rate, 7, 0)
	next.rate.Success(at(101))
	near(t, "after it", viewOf(next, now).Rate, 7.3, 1e-9)
	late := New(limiter.LawConfig{}, at(3600), seeded(1))
	must.Do(t, late.Restore(at(3600), k))
	want(t, "a ramp that would be over", late.ramp.Active(at(3600)), false)
	want(t, "a cooldown that would be over", late.View(at(3600), limiter.Cost{}).Hold, time.Time{})
}
