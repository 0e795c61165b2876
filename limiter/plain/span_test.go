package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

var one = limiter.Cost{Requests: 1}

const endless = time.Duration(math.MaxInt64)

// The longest durations that there are lie ahead: a configured one, or one that a server
// names, never wraps around into the past.
func TestLongestDurationsLieAhead(t *testing.T) {
	all := limiter.CooldownConfig{Base: endless, Max: endless, MaxDirected: endless}
	refusal := limiter.News{Sent: noon, Present: true, Cost: limiter.Cost{Requests: 1}, Directed: true, RetryAfter: endless}
	for name, until := range map[string]time.Time{
		"cooldown, undirected": ahead(newCooldown(all)).Start(noon, 0, false, seeded(1)),
		"cooldown, directed":   ahead(newCooldown(all)).Start(noon, endless, true, seeded(1)),
		"cooldown, extended":   extended(newCooldown(all)),
		"plain law":            New(limiter.LawConfig{Law: limiter.Plain, Cooldown: all}, noon, seeded(1)).Refused(noon, refusal).Until,
		"ramp":                 ramped(limiter.RampConfig{Duration: endless}),
	} {
		if until.Sub(noon) < 365*24*time.Hour {
			t.Errorf("%s: until %v", name, until)
		}
	}
}

func ahead[T any](x T) *T { return &x }

func extended(c cooldown) time.Time {
	c.Extend(noon, endless)
	return c.Until()
}

func ramped(c limiter.RampConfig) time.Time {
	r := newRamp(c)
	r.Start(noon)
	return r.Ends()
}
