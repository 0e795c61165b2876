package limiter

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter/internal/parttest"
)

// Copies are independent.
func TestCopiesOfPartsAreIndependent(t *testing.T) {
	parttest.Copies(t,
		parttest.Of(NewBreaker(BreakerConfig{}), func(b *Breaker, now time.Time) { b.Failure(now, 0); b.Success(now, true) }),
		parttest.Of(MeanLatency{}, func(l *MeanLatency, now time.Time) { l.Observe(time.Duration(now.Nanosecond())) }),
		parttest.Of(Latency{}, func(l *Latency, now time.Time) { l.Observe(time.Duration(now.Nanosecond())) }),
	)
}

// hot is every method that an owner calls for each call it admits.
func hot() parttest.Hot {
	rng := seeded(1)
	var breaker Breaker
	var l Latency
	var backoff Backoff
	return parttest.Hot{
		"Breaker": func(now time.Time) { breaker.Allow(now); breaker.Success(now, true); breaker.Failure(now, 0) },
		"Latency": func(time.Time) { l.Observe(time.Second); l.Mean() },
		"P95":     func(time.Time) { l.Observe(time.Duration(rng.IntN(1e9))); l.P95() },
		"Backoff": func(time.Time) { backoff.Delay(3, rng) },
	}
}

// No hot method allocates.
func TestHotMethodsDoNotAllocate(t *testing.T) { hot().Allocate(t) }

func BenchmarkHot(b *testing.B) { hot().Benchmark(b) }
