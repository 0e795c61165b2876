package sim

import "time"

// Demo is the provider behind a first run: small enough a quota that 240
// prompts through 64 workers who know of no limit see it all, a burst of
// refusals, a cooldown, a probe and a ramp, and are still done within 15 to
// 40 s. The figures: 40 requests at once (Burst × RPM/60), then 10 a second, so
// that 240 take 20 s and what the cooldowns cost; 150 ms is the time to a short
// answer of a small hosted model.
func Demo() Config {
	return Config{
		RPM:        600,
		Burst:      4 * time.Second,
		Latency:    Latency{Median: 150 * time.Millisecond, Sigma: 0.4, Max: 1500 * time.Millisecond},
		RetryAfter: Always,
		Terse:      true, // or one refusal would tell all, and there were nothing to probe
		Seed:       1,
	}
}

// Fast is a provider that is never in the way: no limits, no latency, no faults.
func Fast() Config { return Config{} }
