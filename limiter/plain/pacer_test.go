package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter/internal/measure"
)

// The first call is free, and each later one waits its share of a second.
func TestPacerSpacesCalls(t *testing.T) {
	var p pacer
	want(t, "first", p.Take(noon, 10), true)
	want(t, "second at once", p.Take(noon, 10), false)
	want(t, "wait", p.Wait(noon, 10), 100*time.Millisecond)
	want(t, "second in time", p.Take(at(0.1), 10), true)
}

// A rate that rises shortens a wait already begun, and one that falls lengthens it.
func TestPacerFollowsTheRateDuringAWait(t *testing.T) {
	var p pacer
	p.Take(noon, 0.05)
	want(t, "slow", p.Wait(at(1), 0.05), 19*time.Second)
	want(t, "the rate has risen", p.Wait(at(1), 0.5), time.Second)
	want(t, "more", p.Wait(at(1), 10), 0)
	want(t, "looking changed nothing", p.Wait(at(1), 0.05), 19*time.Second)
}

// After a long idle time no more than one call and a tenth of a second's worth leave
// at once.
func TestPacerIdleTimeIsNotSavedUp(t *testing.T) {
	var p pacer
	p.Take(noon, 100)
	calls := 0
	for p.Take(at(3600), 100) {
		calls++
	}
	want(t, "calls", calls, 11)
}

// Nothing is earned during a hold: after Reset the first call waits a whole turn.
func TestPacerReset(t *testing.T) {
	var p pacer
	p.Reset(at(60))
	want(t, "wait", p.Wait(at(60), 4), 250*time.Millisecond)
	p.Take(at(61), 4)
	p.Reset(at(120))
	want(t, "wait", p.Wait(at(120), 4), 250*time.Millisecond)
}

// An infinite rate never waits, and leaves no credit to a finite one that follows.
func TestPacerInfiniteRate(t *testing.T) {
	var p pacer
	for range 1000 {
		want(t, "take", p.Take(noon, math.Inf(1)), true)
	}
	want(t, "finite again", p.Wait(noon, 10), 100*time.Millisecond)
}

// No wait exceeds MaxWait, however slow or senseless the rate.
func TestPacerWaitIsCapped(t *testing.T) {
	var p pacer
	for _, rate := range []float64{0, -1, math.NaN(), 1e-9, math.Inf(-1), 5e-324} {
		p.Reset(noon)
		want(t, "wait", p.Wait(noon, rate), measure.MaxWait)
	}
	p.Reset(noon)
	want(t, "the rest, when asked again", p.Wait(at(120), 0.005), 80*time.Second)
}

// A clock that goes back earns nothing, and nothing twice.
func TestPacerClockGoesBack(t *testing.T) {
	var p pacer
	p.Take(at(10), 10)
	want(t, "wait", p.Wait(noon, 10), 100*time.Millisecond)
	p.Reset(noon)
	want(t, "credit", p.Take(at(10), 10), false)
}

// Take succeeds at the instant Wait named, for any rate and history, and over a minute
// the calls are those of the rate.
func TestPacerKeepsItsPromise(t *testing.T) {
	for seed := range uint64(50) {
		rng := seeded(seed)
		var p pacer
		now, rate, calls := noon, 0.2+rng.ExpFloat64()*30, 0
		for now.Before(at(60)) {
			now = now.Add(p.Wait(now, rate))
			want(t, "take after wait", p.Take(now, rate), true)
			calls++
		}
		near(t, "calls", float64(calls), 60*rate, 2)
	}
}
