package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A plain law that gets another ramp climbs by it, at once if it is climbing. If the user takes
// the ramp back, the law climbs to the rate that is known.
func TestSetRamp(t *testing.T) {
	p := New(limiter.LawConfig{Law: limiter.Plain, Ramp: limiter.RampConfig{Initial: 1, Target: 11, Duration: 10 * time.Second}}, noon, seeded(1))
	want(t, "no climb is under way", p.SetRamp(at(0), limiter.RampConfig{Initial: 2, Target: 12, Duration: 10 * time.Second}), time.Time{})
	want(t, "climbs", p.Climb(at(0)), at(10))
	near(t, "in the middle", viewOf(p, at(5)).Most, 7, 1e-9)
	want(t, "goes on", p.SetRamp(at(5), limiter.RampConfig{Initial: 1, Target: 5, Duration: 20 * time.Second}), at(20))
	near(t, "where it would be", viewOf(p, at(5)).Most, 2, 1e-9)
	near(t, "later", viewOf(p, at(15)).Most, 4, 1e-9)
	want(t, "to what is known", p.SetRamp(at(15), limiter.RampConfig{}), at(10))
	want(t, "which is nothing", viewOf(p, at(15)).Most, math.Inf(1))
}

// Outside a ramp that the user shaped nothing limits: neither what it led to nor what was
// learned before, and no idle time is needed for that.
func TestNothingIsLeftOfAUserRamp(t *testing.T) {
	p := climbing(limiter.RampConfig{Initial: 5, Target: 20, Duration: 10 * time.Second})
	if n := leaving(p, noon); n < 120 || n > 130 {
		t.Errorf("%d calls in a ramp from 5 to 20 a second, want 125", n)
	}
	want(t, "rate after it", viewOf(p, at(10)).Rate, math.Inf(1))
	for i := range 1000 {
		if wait, by := p.Wait(at(10), one); wait > 0 {
			t.Fatalf("call %d after the ramp waits %v for %v", i, wait, by)
		}
		p.Sent(at(10), one, i)
	}
}

// While too many calls break, half of a ramp is left, and half of its end after it.
func TestBrokenCallsSlowWhatFollowsARamp(t *testing.T) {
	shape := limiter.RampConfig{Initial: 5, Target: 20, Duration: 30 * time.Second}
	p := climbing(shape)
	p.Failed(noon, limiter.News{Ticket: p.Sent(noon, one, 0), Sent: noon, Present: true}) // it looks on for ten seconds
	for i := range 40 {
		n := limiter.News{Ticket: p.Sent(at(15), one, i), Sent: at(15), Present: true}
		p.Failed(at(15), n)
	}
	near(t, "within the ramp", viewOf(p, at(15)).Most, 12.5/2, 1e-9)
	near(t, "after it", viewOf(p, at(31)).Most, 10, 1e-9)
	p.SetRamp(at(16), limiter.RampConfig{Initial: 5, Target: 40, Duration: 30 * time.Second})
	near(t, "after one that was told since", viewOf(p, at(31)).Most, 20, 1e-9)
}

// The pace counts as refused only where it held calls and they came near it; otherwise the observed rate does.
func TestUsedPace(t *testing.T) {
	for _, c := range []struct {
		bound       bool
		pace, wants float64
	}{
		{bound: true, pace: 15, wants: 15}, // 10 a second were seen
		{bound: true, pace: 25, wants: 10},
		{bound: false, pace: 15, wants: 10},
		{bound: false, pace: 25, wants: 10},
		{bound: true, pace: 5, wants: 10},
	} {
		p := New(limiter.LawConfig{Law: limiter.Plain}, noon, seeded(1))
		for i := range 101 {
			p.answered.Add(noon.Add(time.Duration(i) * 100 * time.Millisecond))
		}
		p.lastHeldBack = c.bound
		near(t, "used", p.usedRate(at(10), c.pace), c.wants, 0.2)
	}
}

// A view names the limit that holds a call of such a cost: each dimension has its own name.
func TestViewNamesTheLimit(t *testing.T) {
	p := New(limiter.LawConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 600, TPM: 60_000}}, noon, seeded(1))
	for by, c := range map[limiter.Bound]limiter.Cost{
		limiter.BoundRequests: {Requests: 1, Input: 10},
		limiter.BoundTokens:   {Requests: 1, Input: 500},
	} {
		if v := p.View(at(1), c); v.Binds.By != by {
			t.Errorf("a call of %v is bound by %v, want %v", c, v.Binds.By, by)
		}
	}
}
