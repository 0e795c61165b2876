package limiter

import (
	"fmt"
	"testing"
	"time"
)

// hot is every method that an owner calls for each call it admits, each over a stream
// of times that moves on.
func hot() map[string]func(time.Time) {
	rng := seeded(1)
	q := NewQuota(Limits{RPM: 1e6, TPM: 1e9, InputTPM: 1e9, OutputTPM: 1e9}, noon)
	cost := Cost{1, 100, 100}
	ramp := NewRamp(RampConfig{Duration: 24 * time.Hour})
	ramp.Start(noon)
	rate := NewRate(RateConfig{Initial: 100})
	var b Bucket
	b.SetLimit(noon, 1e6, 1e6)
	var p Pacer
	var e ErrorWindow
	var m Meter
	var breaker Breaker
	var l Latency
	var backoff Backoff
	var cooldown Cooldown
	return map[string]func(time.Time){
		"Bucket":   func(now time.Time) { b.Wait(now, 1); b.take(now, 1) },
		"Quota":    func(now time.Time) { q.Wait(now, cost); q.Take(now, cost); q.Settle(now, cost, cost) },
		"Pacer":    func(now time.Time) { p.Wait(now, 1e4); p.Take(now, 1e4) },
		"Ramp":     func(now time.Time) { ramp.Wait(now); ramp.Take(now) },
		"Errors":   func(now time.Time) { e.record(now, rng.IntN(3) == 0); e.Factor(now) },
		"Meter":    func(now time.Time) { m.Add(now); m.PerSecond(now) },
		"Rate":     func(now time.Time) { rate.Success(now); rate.Limit() },
		"Breaker":  func(now time.Time) { breaker.Allow(now); breaker.Success(now, true); breaker.Failure(now, 0) },
		"Latency":  func(now time.Time) { l.Observe(time.Second); l.Mean() },
		"P95":      func(now time.Time) { l.Observe(time.Duration(rng.IntN(1e9))); l.P95() },
		"Backoff":  func(now time.Time) { backoff.Delay(3, rng) },
		"Cooldown": func(now time.Time) { cooldown.Start(now, time.Second, true, rng); cooldown.Succeeded() },
	}
}

// No hot method allocates.
func TestHotMethodsDoNotAllocate(t *testing.T) {
	for name, call := range hot() {
		now := noon
		got := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Millisecond)
			call(now)
		})
		want(t, name, got, 0)
	}
}

func BenchmarkHot(b *testing.B) {
	for name, call := range hot() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := noon
			for b.Loop() {
				now = now.Add(time.Microsecond)
				call(now)
			}
		})
	}
}

// What an answer with headers costs while many calls are in flight: no more with
// 4,096 of them than with 64.
func BenchmarkSightings(b *testing.B) {
	for _, inFlight := range []int{1, 64, 4096} {
		b.Run(fmt.Sprintf("inflight=%d", inFlight), func(b *testing.B) {
			law, now := NewModelLaw(LawConfig{}, noon, seeded(1)), noon
			cost := Cost{Requests: 1, Input: 100, Output: 50}
			left := make([]News, inFlight)
			send := func(i int) {
				now = now.Add(time.Millisecond)
				left[i] = News{Ticket: law.Sent(now, cost, 0), Sent: now, Cost: cost, Good: true, Present: true}
			}
			for i := range left {
				send(i)
			}
			seen := []Sighting{
				{Dimension: Requests, Limit: 100_000, Window: time.Minute, Remaining: 90_000},
				{Dimension: Tokens, Limit: 9_000_000, Window: time.Minute, Remaining: 8_000_000},
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % inFlight {
				left[i].Sightings = seen
				law.Answered(now, left[i])
				send(i)
			}
		})
	}
}
