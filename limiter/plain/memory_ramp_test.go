package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// climbing is a plain law with that ramp of the user's, at its beginning.
func climbing(c limiter.RampConfig) *Law {
	p := New(limiter.LawConfig{Ramp: c}, noon, seeded(1))
	p.Refused(noon, limiter.News{Present: true})
	p.Climb(noon)
	return p
}

// laterWith is a law with that ramp that takes up the memory so many seconds after noon.
func laterWith(t *testing.T, c limiter.RampConfig, k limiter.Memory, seconds float64) *Law {
	t.Helper()
	next := New(limiter.LawConfig{Ramp: c}, at(seconds), seeded(1))
	must.Do(t, next.Restore(at(seconds), k))
	return next
}

// leaving counts the calls that a law lets go in ten seconds.
func leaving(law limiter.Law, from time.Time) (calls int) {
	for now := from; now.Before(from.Add(10 * time.Second)); {
		wait, _ := law.Wait(now, limiter.Cost{Requests: 1})
		if wait > 0 {
			now = now.Add(wait)
			continue
		}
		law.Sent(now, limiter.Cost{Requests: 1}, 0)
		if calls++; calls == 1e5 {
			return calls
		}
	}
	return calls
}

// A ramp that the user shaped goes on where it would be: the time in which no process
// ran counts like any other. After its end there is nothing of it.
func TestUserRampGoesOnAfterRestart(t *testing.T) {
	shape := limiter.RampConfig{Initial: 1, Target: 11, Duration: 100 * time.Second}
	k := climbing(shape).Save(at(10))
	next := laterWith(t, shape, k, 60)
	near(t, "pace", viewOf(next, at(60)).Most, 7, 1e-9)
	want(t, "ramp's end", next.ramp.Ends(), at(100))
	if n := leaving(next, at(60)); n < 73 || n > 77 {
		t.Errorf("%d calls in ten seconds of a ramp from 7 to 8 a second", n)
	}
	if over := laterWith(t, shape, k, 101); !math.IsInf(viewOf(over, at(101)).Most, 1) || leaving(over, at(101)) < 1e5 {
		t.Errorf("after its end the pace is %v", viewOf(over, at(101)).Most)
	}
	backwards := laterWith(t, shape, k, -3600)
	near(t, "pace by a clock that was put back", viewOf(backwards, at(-3600)).Most, 1, 1e-9)
}

// A ramp may take hours, and goes on as well.
func TestLongRampGoesOnAfterRestart(t *testing.T) {
	shape := limiter.RampConfig{Initial: 1, Target: 11, Duration: 10 * time.Hour}
	next := laterWith(t, shape, climbing(shape).Save(at(10)), 5*3600)
	near(t, "pace", viewOf(next, at(5*3600)).Most, 6, 1e-9)
}

// A ramp of another shape that the user tells this time wins, from the same start.
func TestShapeConfiguredNowWins(t *testing.T) {
	k := climbing(limiter.RampConfig{Initial: 1, Target: 11, Duration: 100 * time.Second}).Save(at(10))
	steeper := limiter.RampConfig{Initial: 1, Target: 101, Duration: 100 * time.Second}
	next := laterWith(t, steeper, k, 50)
	near(t, "pace", viewOf(next, at(50)).Most, 51, 1e-9)
	near(t, "rate that it leads to", viewOf(next, at(50)).Rate, 101, 1e-9)
	want(t, "rate after it", viewOf(next, at(100)).Rate, math.Inf(1))
	shorter := limiter.RampConfig{Initial: 1, Target: 11, Duration: 20 * time.Second}
	want(t, "one that would be over", math.IsInf(viewOf(laterWith(t, shorter, k, 50), at(50)).Most, 1), true)
}
