package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

func climb(initial, target float64, d time.Duration) ramp {
	return newRamp(limiter.RampConfig{Initial: initial, Target: target, Duration: d})
}

// The defaults are 5 calls a second to 20, in five minutes, in a straight line.
func TestRampDefaults(t *testing.T) {
	for _, c := range []limiter.RampConfig{{}, {Initial: -1, Target: math.NaN(), Duration: -time.Second}, {Initial: math.Inf(1), Target: math.Inf(1)}} {
		r := newRamp(c)
		r.Start(noon)
		near(t, "at the start", r.Rate(noon), 5, 0)
		near(t, "half way", r.Rate(at(150)), 12.5, 1e-9)
		near(t, "just before the end", r.Rate(at(299.999)), 20, 1e-3)
		want(t, "ends", r.Ends(), at(300))
	}
}

// Outside a ramp nothing is limited.
func TestRampLimitsNothingOutside(t *testing.T) {
	var r ramp
	for range 100 {
		want(t, "take before", r.Take(noon), true)
	}
	want(t, "active", r.Active(noon), false)
	want(t, "rate", r.Rate(noon), math.Inf(1))
	want(t, "wait", r.Wait(noon), 0)
	want(t, "ends", r.Ends(), time.Time{})
}

// The end is exact: limited one nanosecond before, and from the end on not at all,
// with nothing owed for what was just taken.
func TestRampEndsExactly(t *testing.T) {
	r := climb(1, 2, 10*time.Second)
	r.Start(noon)
	last := at(10).Add(-time.Nanosecond)
	want(t, "take", r.Take(last), true)
	want(t, "active", r.Active(last), true)
	want(t, "take again", r.Take(last), false)
	want(t, "the wait does not reach past the end", r.Wait(last), time.Nanosecond)
	want(t, "active at the end", r.Active(at(10)), false)
	for range 1000 {
		want(t, "take at the end", r.Take(at(10)), true)
	}
}

// A started ramp lets one call through at once, and only one.
func TestRampFirstCallIsFree(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	want(t, "first", r.Take(noon), true)
	want(t, "second", r.Take(noon), false)
	near(t, "wait", r.Wait(noon).Seconds(), 0.2, 0.001)
}

// Credit does not pile up: after an idle stretch one call leaves, not many.
func TestRampHoldsOneCall(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	want(t, "first", r.Take(at(100)), true)
	want(t, "second", r.Take(at(100)), false)
}

// A second start begins anew.
func TestRampSecondStartResets(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	r.Take(at(200))
	r.Start(at(200))
	near(t, "rate", r.Rate(at(200)), 5, 0)
	want(t, "ends", r.Ends(), at(500))
	want(t, "first call", r.Take(at(200)), true)
}

// A ramp of another shape is for once: the next start has the configured one.
func TestRampStartAs(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.StartAs(noon, limiter.RampConfig{Initial: 1, Target: 3, Duration: 2 * time.Second})
	near(t, "rate", r.Rate(at(1)), 2, 1e-9)
	want(t, "ends", r.Ends(), at(2))
	r.Start(at(5))
	want(t, "ends", r.Ends(), at(305))
}

// A stopped ramp limits nothing and is not exported.
func TestRampStop(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	r.Stop()
	want(t, "active", r.Active(at(1)), false)
	_, ok := r.Started()
	want(t, "started", ok, false)
}

// A ramp restored in its middle goes on where it would be, without a burst for the
// time in between.
func TestRampRestoresInTheMiddle(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	start, ok := r.Started()
	want(t, "started", ok, true)
	again := climb(5, 20, 300*time.Second)
	again.Restore(start, at(150))
	near(t, "rate", again.Rate(at(150)), 12.5, 1e-9)
	want(t, "ends", again.Ends(), at(300))
	want(t, "first", again.Take(at(150)), true)
	want(t, "second", again.Take(at(150)), false)
}

// A ramp restored after its end means full speed, and one whose start has yet to come
// begins now.
func TestRampRestoresOutside(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Restore(noon, at(300))
	want(t, "active after the end", r.Active(at(300)), false)
	want(t, "take", r.Take(at(300)), true)
	want(t, "take again", r.Take(at(300)), true)
	r.Restore(at(1000), at(10))
	near(t, "rate", r.Rate(at(10)), 5, 0)
	want(t, "ends", r.Ends(), at(310))
	want(t, "first", r.Take(at(10)), true)
	near(t, "earns at once", r.Wait(at(10)).Seconds(), 0.2, 0.001)
}

// A clock that goes back earns nothing, and nothing twice.
func TestRampClockGoesBack(t *testing.T) {
	r := climb(5, 20, 300*time.Second)
	r.Start(noon)
	r.Take(at(100))
	want(t, "take earlier", r.Take(at(50)), false)
	want(t, "still active before its start", r.Active(at(-50)), true)
	near(t, "rate does not fall back", r.Rate(at(50)), 10, 1e-9)
	want(t, "take again", r.Take(at(100)), false)
}

// integrate is the area under the ramp's line between two times, by small steps.
func integrate(c limiter.RampConfig, from, to float64) float64 {
	const step = 1e-4
	area := 0.0
	for t := from; t < to; t += step {
		h := min(step, to-t)
		area += h * (c.Initial + (c.Target-c.Initial)*(t+h/2)/c.Duration.Seconds())
	}
	return area
}

// Between any two calls that leave as early as they may, the area under the line is
// one call, and Take succeeds at the instant Wait named: rising, flat, falling, slow.
func TestRampAgreesWithIntegration(t *testing.T) {
	for _, c := range []limiter.RampConfig{
		{Initial: 5, Target: 20, Duration: 30 * time.Second},
		{Initial: 0.1, Target: 10, Duration: 20 * time.Second},
		{Initial: 8, Target: 8, Duration: 10 * time.Second},
		{Initial: 20, Target: 1, Duration: 15 * time.Second},
		{Initial: 1, Target: 0.01, Duration: 20 * time.Second},
		{Initial: 50, Target: 400, Duration: 3 * time.Second},
	} {
		r := newRamp(c)
		r.Start(noon)
		want(t, "first", r.Take(noon), true)
		previous, calls := 0.0, 1.0
		for now := noon; ; calls++ {
			now = now.Add(r.Wait(now))
			if !r.Active(now) {
				break
			}
			want(t, "take after wait", r.Take(now), true)
			t1 := now.Sub(noon).Seconds()
			near(t, "area of a call", integrate(c, previous, t1), 1, 1e-6)
			previous = t1
		}
		near(t, "calls in all", calls, 1+integrate(c, 0, c.Duration.Seconds()), 1.001)
	}
}

// How often one looks, and how many wait, changes nothing: calls that leave in any
// tenth of a second are bounded by the line.
func TestRampIsTheSameHoweverOftenOneLooks(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 50 * time.Millisecond} {
		r := climb(5, 20, 10*time.Second)
		r.Start(noon)
		calls := 0
		for now := noon; now.Before(at(10)); now = now.Add(every) {
			for r.Take(now) {
				calls++
			}
		}
		// A call that leaves late by up to one look loses what it would have earned above 1.
		lost := 20 * every.Seconds() * 126
		near(t, every.String(), float64(calls), 126-lost/2, lost/2+1)
	}
}

// No configuration, however slow, gives a wait over MaxWait.
func TestRampWaitIsCapped(t *testing.T) {
	r := climb(1e-12, 1e-12, 1000*time.Hour)
	r.Start(noon)
	r.Take(noon)
	w := r.Wait(noon)
	if w > measure.MaxWait || w <= 0 {
		t.Errorf("wait %v", w)
	}
	want(t, "take after wait", r.Take(noon.Add(w)), true)
}

// A ramp keeps the promise of Wait at any time it is asked.
func FuzzRamp(f *testing.F) {
	f.Add(5.0, 20.0, uint32(300_000), uint32(1234), uint32(9999))
	f.Add(20.0, 0.001, uint32(3000), uint32(1), uint32(2998))
	f.Fuzz(func(t *testing.T, initial, target float64, ms, first, second uint32) {
		r := climb(initial, target, time.Duration(ms)*time.Millisecond)
		r.Start(noon)
		for _, pause := range []uint32{0, first, 0, second, 0} {
			now := measure.Later(noon, r.last).Add(time.Duration(pause) * time.Microsecond)
			w := r.Wait(now)
			if w < 0 || w > measure.MaxWait || now.Add(w).After(measure.Later(now, r.Ends())) {
				t.Fatalf("wait %v: %+v", w, r)
			}
			if !r.Take(now.Add(w)) {
				t.Fatalf("take after %v failed: %+v", w, r)
			}
		}
	})
}
