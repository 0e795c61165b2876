package plain

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// directedShare is the part of the jitter that a directed wait gets, so 5 %. The server has
// chosen the moment; jitter only keeps calls from meeting it to the millisecond.
const directedShare = 0.25

// completeCooldown returns c with the defaults.
func completeCooldown(c limiter.CooldownConfig) limiter.CooldownConfig {
	c.Base = measure.OrElseDuration(c.Base, limiter.DefaultCooldownBase)
	c.Max = measure.OrElseDuration(c.Max, limiter.DefaultCooldownMax)
	c.MaxDirected = measure.OrElseDuration(c.MaxDirected, limiter.DefaultMaxDirected)
	switch {
	case c.Jitter == 0 || c.Jitter != c.Jitter:
		c.Jitter = limiter.DefaultCooldownJitter
	case c.Jitter < 0:
		c.Jitter = 0
	}
	c.Jitter = min(1, c.Jitter)
	return c
}

// A cooldown is the time in which a lane makes no calls because the server refused
// one. An episode is one wave of refusals: the caller starts one cooldown for it,
// however many calls were refused.
//
//	Start ──▶ until = max(until, now + wait),  k rises by one
//	          wait: Retry-After · (1 + 0–5 %), at most MaxDirected
//	             or Base·2^k, at most Max,    · (1 + 0–20 %)
//	Extend ─▶ until = max(until, now + Retry-After), k stays
//	Succeeded ─▶ k = 0
//
// Nothing ever brings Until forward: of two waits the longer one is the true one. The zero
// value is not cooling and has the default configuration.
type cooldown struct {
	escalation int // k: cooldowns started since the last success
	until      time.Time
	config     limiter.CooldownConfig
}

// NewCooldown returns a cooldown that is not cooling.
func newCooldown(c limiter.CooldownConfig) cooldown { return cooldown{config: c} }

// Start begins an episode at now and returns the time until which no call may leave.
//
// directed says that the server named retryAfter, which is then a floor. A value of 0 or less
// names no wait, as a refusal that says "now" contradicts itself. If several episodes came with
// no success between them, the named waits were too short. So from the second one on the wait
// is at least the one that undirected refusals would have had one episode earlier. Otherwise a
// server that always says "1 ms" would be asked a thousand times a second.
//
// The generator must not be nil; one number is drawn from it.
func (c *cooldown) Start(now time.Time, retryAfter time.Duration, directed bool, rng *rand.Rand) time.Time {
	cfg, jitter := completeCooldown(c.config), rng.Float64()
	wait := stretch(own(cfg, c.escalation), cfg.Jitter*jitter)
	if directed && retryAfter > 0 {
		floor := max(min(retryAfter, cfg.MaxDirected), c.patience(cfg))
		wait = min(stretch(floor, directedShare*cfg.Jitter*jitter), cfg.MaxDirected)
	}
	c.escalation++
	c.until = measure.Later(c.until, now.Add(wait))
	return c.until
}

// Extend takes news of an older epoch into account: it may lengthen the wait, because
// the server itself asks for that, but it does not escalate.
func (c *cooldown) Extend(now time.Time, retryAfter time.Duration) {
	cfg := completeCooldown(c.config)
	c.until = measure.Later(c.until, now.Add(min(max(0, retryAfter), cfg.MaxDirected)))
}

// Until returns when calls may be made again; the zero time if none was ever refused. It stays
// after it has passed.
func (c *cooldown) Until() time.Time { return c.until }

// Escalation returns the number of cooldowns started since the last success.
func (c *cooldown) Escalation() int { return c.escalation }

// Succeeded ends the escalation: a call of the present epoch was answered.
func (c *cooldown) Succeeded() { c.escalation = 0 }

// own returns the wait of our choosing after k cooldowns without success.
func own(c limiter.CooldownConfig, k int) time.Duration { return measure.Grown(c.Base, 2, k, c.Max) }

// patience returns the least directed wait: 0 in the first episode.
func (c *cooldown) patience(cfg limiter.CooldownConfig) time.Duration {
	if c.escalation == 0 {
		return 0
	}
	return own(cfg, c.escalation-1)
}

func stretch(d time.Duration, share float64) time.Duration {
	return d + time.Duration(float64(d)*share)
}
