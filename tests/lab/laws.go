package lab

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Rival is a named law; ours is among them.
type Rival struct {
	Name string
	New  func(Batch, uint64) Law
}

// Rivals returns the laws that are compared: ours, our plain one, and those of others,
// written from their published descriptions.
func Rivals() []Rival {
	return []Rival{
		{"headrace", Headrace(limiter.Model)},
		{"plain", Headrace(limiter.Plain)},
		{"aws", AWS},
		{"aimd", AIMD},
		{"bucket", FixedBucket(1)},
		{"bucket2", FixedBucket(2)},
		{"cooldown", Cooldown},
		{"backoff", Backoff},
	}
}

// Mean holds the figures of a law in a scenario, over several seeds.
type Mean struct {
	Ratio, Refused, Wasted float64
	Attempts               int           // most refusals of one item
	Recovered              time.Duration // the longest; negative: never
	Lost, Repeated         int           // items, in all
}

// Measure runs a law in a scenario, once for each seed.
func Measure(s Scenario, law func(Batch, uint64) Law, seeds []uint64) Mean {
	var m Mean
	n := float64(len(seeds))
	for _, seed := range seeds {
		f := Run(s, law(s.Batch(), seed), seed)
		m.Ratio += f.Ratio() / n
		m.Refused += float64(f.Refused) / n
		m.Wasted += float64(f.Wasted) / n
		m.Attempts = max(m.Attempts, f.Attempts)
		m.Lost += s.Items - f.Done
		m.Repeated += f.Repeated
		if m.Recovered >= 0 && (f.Recovered < 0 || f.Recovered > m.Recovered) {
			m.Recovered = f.Recovered
		}
	}
	return m
}

// Seeds that the law was tuned on, and seeds that were kept for the report.
var (
	TunedSeeds   = []uint64{0, 1, 2}
	HeldOutSeeds = []uint64{100, 101, 102}
)

// HeldOutLimits are limits in requests a minute that nothing was tuned on: no multiples of
// 60, and on either side of the 600 of most scenarios.
var HeldOutLimits = []float64{450, 1700}

// Scaled returns the scenario with every limit, and the user's knowledge of it, multiplied,
// and as many more items: it takes as long.
func (s Scenario) Scaled(factor float64) Scenario {
	s.Items = int(float64(s.Items) * factor)
	s.RPM *= factor
	s.TPM *= factor
	s.Guess *= factor
	s.Configured.RPM *= factor
	s.Configured.TPM *= factor
	changes := s.Changes
	s.Changes = nil
	for _, c := range changes {
		c.RPM *= factor
		c.TPM *= factor
		s.Changes = append(s.Changes, c)
	}
	return s
}
