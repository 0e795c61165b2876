package limiter

import (
	"math"
	"testing"
	"time"
)

const endless = time.Duration(math.MaxInt64)

// The longest durations that can be configured lie ahead, and never wrap around into the past.
func TestLongestDurationsLieAhead(t *testing.T) {
	for name, until := range map[string]time.Time{
		"breaker": opened(BreakerConfig{OpenFor: endless, MaxOpen: endless}),
		"backoff": noon.Add(NewBackoff(BackoffConfig{Base: endless, Max: endless}).Delay(1000, seeded(1))),
	} {
		if until.Sub(noon) < 365*24*time.Hour {
			t.Errorf("%s: until %v", name, until)
		}
	}
}

func opened(c BreakerConfig) time.Time {
	b := NewBreaker(c)
	for range DefaultBreakerConsecutive {
		b.Failure(noon, 0)
	}
	return b.Until()
}

// Latencies that no call can have are long ones, and never less than nothing.
func TestEndlessLatencies(t *testing.T) {
	var l Latency
	for range LatencySamples {
		l.Observe(endless)
	}
	if l.Mean() < time.Hour || l.P95() < time.Hour {
		t.Errorf("mean %v, 95th percentile %v", l.Mean(), l.P95())
	}
}
