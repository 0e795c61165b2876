package limiter

import (
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
	rate := NewRate(RateConfig{Initial: 100, LatencyTarget: time.Second})
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
		"Bucket":   func(now time.Time) { b.Wait(now, 1); b.Take(now, 1) },
		"Quota":    func(now time.Time) { q.Wait(now, cost); q.Take(now, cost); q.Settle(now, cost, cost) },
		"Pacer":    func(now time.Time) { p.Wait(now, 1e4); p.Take(now, 1e4) },
		"Ramp":     func(now time.Time) { ramp.Wait(now); ramp.Take(now) },
		"Errors":   func(now time.Time) { e.Record(now, rng.IntN(3) == 0); e.Factor(now) },
		"Meter":    func(now time.Time) { m.Add(now); m.PerSecond(now) },
		"Rate":     func(now time.Time) { rate.Success(now, time.Second); rate.Limit() },
		"Breaker":  func(now time.Time) { breaker.Allow(now); breaker.Success(now); breaker.Failure(now) },
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
