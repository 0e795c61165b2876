package sim

import "time"

// Demo returns the provider of a first run. Its headers show what is left of its limit, so that a
// run follows them and meets no refusal. The figures: 40 requests at once (Burst × RPM/60),
// then 10 a second, so that 240 prompts take 20 s; 150 ms is the time to a short answer of a
// small hosted model.
func Demo() Config {
	demo := Silent()
	demo.Headers = true
	return demo
}

// Silent is Demo without headers: only refusals show where its limit is. 240 prompts through 64
// workers meet a burst of them, a cooldown, a probe and a ramp, and are done within 15 to 40 s.
func Silent() Config {
	return Config{
		RPM:        600,
		Burst:      4 * time.Second,
		Latency:    Latency{Median: 150 * time.Millisecond, Sigma: 0.4, Max: 1500 * time.Millisecond},
		RetryAfter: Always,
		Terse:      true, // or one refusal would tell all, and there would be nothing to probe
		Seed:       1,
	}
}

// Fast returns a provider that never holds a run back: no limits, no latency, no faults.
func Fast() Config { return Config{} }
