package limiter

import (
	"testing"
	"time"
)

// A plain law that is told another ramp climbs by it, at once if it is climbing; where the
// user takes his ramp back, to the rate that is known. The model has no shape of its own.
func TestSetRamp(t *testing.T) {
	p := NewPlainLaw(LawConfig{Law: Plain, Ramp: RampConfig{Initial: 1, Target: 11, Duration: 10 * time.Second}}, noon, seeded(1))
	want(t, "no climb is under way", p.SetRamp(at(0), RampConfig{Initial: 2, Target: 12, Duration: 10 * time.Second}), time.Time{})
	want(t, "climbs", p.Climb(at(0)), at(10))
	near(t, "in the middle", lookAt(p, at(5)).Most, 7, 1e-9)
	want(t, "goes on", p.SetRamp(at(5), RampConfig{Initial: 1, Target: 5, Duration: 20 * time.Second}), at(20))
	near(t, "where it would be", lookAt(p, at(5)).Most, 2, 1e-9)
	near(t, "later", lookAt(p, at(15)).Most, 4, 1e-9)
	near(t, "the rate goes on from its end", lookAt(p, at(20)).Rate, 5, 1e-9)
	want(t, "to what is known", p.SetRamp(at(15), RampConfig{}), at(10))
	near(t, "which it has reached", lookAt(p, at(15)).Most, 5, 1e-9)

	want(t, "model", NewModelLaw(LawConfig{}, noon, seeded(1)).SetRamp(at(0), RampConfig{Target: 5}), time.Time{})
}
