package plain

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/parttest"
)

// Copies are independent.
func TestCopiesOfPartsAreIndependent(t *testing.T) {
	parttest.Copies(t,
		parttest.Of(bucket{}, func(b *bucket, now time.Time) { b.SetLimit(now, 600, 100); b.take(now, 3) }),
		parttest.Of(newQuota(limiter.Limits{RPM: 600, TPM: 1e6}, noon), func(q *quota, now time.Time) { q.Take(now, limiter.Cost{Requests: 1, Input: 50}) }),
		parttest.Of(pacer{}, func(p *pacer, now time.Time) { p.Take(now, 5) }),
		parttest.Of(newRate(limiter.RateConfig{Initial: 10}), func(r *rate, now time.Time) { r.Aim(now, 20); r.Success(now) }),
		parttest.Of(newRate(limiter.RateConfig{}), func(r *rate, now time.Time) { r.Success(now) }),
		parttest.Of(ramp{}, func(r *ramp, now time.Time) { r.Start(now) }),
		parttest.Of(cooldown{}, func(c *cooldown, now time.Time) { c.Start(now, 0, false, seeded(1)) }),
	)
}

// hot is every method that the law calls for each call it admits.
func hot() parttest.Hot {
	rng := seeded(1)
	q := newQuota(limiter.Limits{RPM: 1e6, TPM: 1e9, InputTPM: 1e9, OutputTPM: 1e9}, noon)
	cost := limiter.Cost{Requests: 1, Input: 100, Output: 100}
	climb := newRamp(limiter.RampConfig{Duration: 24 * time.Hour})
	climb.Start(noon)
	paced := newRate(limiter.RateConfig{Initial: 100})
	var b bucket
	b.SetLimit(noon, 1e6, 1e6)
	var p pacer
	var c cooldown
	return parttest.Hot{
		"bucket":   func(now time.Time) { b.Wait(now, 1); b.take(now, 1) },
		"quota":    func(now time.Time) { q.Wait(now, cost); q.Take(now, cost); q.Settle(now, cost, cost) },
		"pacer":    func(now time.Time) { p.Wait(now, 1e4); p.Take(now, 1e4) },
		"ramp":     func(now time.Time) { climb.Wait(now); climb.Take(now) },
		"rate":     func(now time.Time) { paced.Success(now); paced.Limit() },
		"cooldown": func(now time.Time) { c.Start(now, time.Second, true, rng); c.Succeeded() },
	}
}

// No hot method allocates.
func TestHotMethodsDoNotAllocate(t *testing.T) { hot().Allocate(t) }

func BenchmarkHot(b *testing.B) { hot().Benchmark(b) }
