package limiter

import (
	"math"
	"testing"
	"time"
)

const endless = time.Duration(math.MaxInt64)

// The longest durations that there are lie ahead: a configured one, or one that a server
// names, never wraps around into the past.
func TestLongestDurationsLieAhead(t *testing.T) {
	all := CooldownConfig{Base: endless, Max: endless, MaxDirected: endless}
	for name, until := range map[string]time.Time{
		"cooldown, undirected": ahead(NewCooldown(all)).Start(noon, 0, false, seeded(1)),
		"cooldown, directed":   ahead(NewCooldown(all)).Start(noon, endless, true, seeded(1)),
		"cooldown, extended":   extended(NewCooldown(all)),
		"plain law":            NewPlainLaw(LawConfig{Law: Plain, Cooldown: all}, noon, seeded(1)).Refused(noon, toldToWait(endless)).Until,
		"model law":            NewModelLaw(LawConfig{}, noon, seeded(1)).Refused(noon, toldToWait(endless)).Until,
		"model law, straggler": NewModelLaw(LawConfig{}, noon, seeded(1)).Straggled(noon, toldToWait(endless)),
		"breaker":              opened(BreakerConfig{OpenFor: endless, MaxOpen: endless}),
		"backoff":              noon.Add(NewBackoff(BackoffConfig{Base: endless, Max: endless}).Delay(1000, seeded(1))),
		"ramp":                 ramped(RampConfig{Duration: endless}),
	} {
		if until.Sub(noon) < 365*24*time.Hour {
			t.Errorf("%s: until %v", name, until)
		}
	}
}

func ahead[T any](x T) *T { return &x }

func extended(c Cooldown) time.Time {
	c.Extend(noon, endless)
	return c.Until()
}

func opened(c BreakerConfig) time.Time {
	b := NewBreaker(c)
	for range DefaultBreakerConsecutive {
		b.Failure(noon, 0)
	}
	return b.Until()
}

func ramped(c RampConfig) time.Time {
	r := NewRamp(c)
	r.Start(noon)
	return r.Ends()
}

func toldToWait(d time.Duration) News {
	return News{Sent: noon, Present: true, Cost: Cost{Requests: 1}, Directed: true, RetryAfter: d}
}

// A pace that is lowered for ever stays low, though its window is as long.
func TestEndlessHoldIsKept(t *testing.T) {
	e := NewErrorWindow(ErrorWindowConfig{Window: endless, Hold: endless, Buckets: maxSlots})
	now := noon
	for range DefaultErrorMinSamples {
		now = now.Add(time.Second)
		e.record(now, true)
	}
	for range 1000 {
		now = now.Add(time.Second)
		e.record(now, false)
	}
	want(t, "the factor, after a thousand answers", e.Factor(now), DefaultErrorFactor)
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
	m := NewModelLaw(LawConfig{}, noon, seeded(1))
	m.Answered(noon, News{Ticket: m.Sent(noon, Cost{Requests: 1}, 0), Sent: noon, Present: true, Good: true, Latency: endless, Detour: endless})
	if m.latency < time.Hour.Seconds() {
		t.Errorf("the model takes %v s for the latency", m.latency)
	}
}
