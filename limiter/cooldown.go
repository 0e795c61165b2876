package limiter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Defaults of [CooldownConfig].
const (
	DefaultCooldownBase = time.Second
	DefaultCooldownMax  = 30 * time.Second // by then a limit per minute is half refilled

	// DefaultMaxDirected is the longest wait that a server is believed. Limits are
	// per second, minute or day: a quarter of an hour covers every wait of the first
	// two, and one that is longer means a quota which no run should sit out unasked.
	DefaultMaxDirected = 15 * time.Minute

	// DefaultCooldownJitter is the positive jitter of a wait of our own choosing:
	// enough to part clients that were refused together, and never a shorter wait.
	DefaultCooldownJitter = 0.20

	// directedShare is how much of that jitter a directed wait gets, so 5 %. The
	// server has chosen the moment; it is only not to be met to the millisecond.
	directedShare = 0.25
)

// CooldownConfig says how long a refusal stops a lane. A field that is 0 has its
// default.
type CooldownConfig struct {
	Base        time.Duration // the first wait that the server did not name
	Max         time.Duration // the longest such wait, before jitter
	MaxDirected time.Duration // the longest wait that the server may name, jitter included
	Jitter      float64       // share of an undirected wait, in 0..1; less than 0: none
}

// ErrCooldown is the kind of every error of [CooldownConfig.Validate].
var ErrCooldown = errors.New("limiter: cooldown")

// Validate says whether the configuration can be meant. The error names the field
// and is [ErrCooldown].
func (c CooldownConfig) Validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"base", c.Base}, {"max", c.Max}, {"max directed", c.MaxDirected}} {
		if f.d < 0 {
			return fmt.Errorf("%w: %s: %v is negative", ErrCooldown, f.name, f.d)
		}
	}
	if d := c.withDefaults(); d.Base > d.Max {
		return fmt.Errorf("%w: base: %v is more than max %v", ErrCooldown, d.Base, d.Max)
	}
	if !(c.Jitter <= 1) { // NaN too
		return fmt.Errorf("%w: jitter: %v is not a share of 1", ErrCooldown, c.Jitter)
	}
	return nil
}

func (c CooldownConfig) withDefaults() CooldownConfig {
	c.Base = orElseDuration(c.Base, DefaultCooldownBase)
	c.Max = orElseDuration(c.Max, DefaultCooldownMax)
	c.MaxDirected = orElseDuration(c.MaxDirected, DefaultMaxDirected)
	switch {
	case c.Jitter == 0 || c.Jitter != c.Jitter:
		c.Jitter = DefaultCooldownJitter
	case c.Jitter < 0:
		c.Jitter = 0
	}
	c.Jitter = min(1, c.Jitter)
	return c
}

// A Cooldown is the time in which a lane makes no calls because the server refused
// one. An episode is one wave of refusals: the caller starts one cooldown for it,
// however many calls were refused.
//
//	Start ──▶ until = max(until, now + wait),  k rises by one
//	          wait: Retry-After · (1 + 0–5 %), at most MaxDirected
//	             or Base·2^k, at most Max,    · (1 + 0–20 %)
//	Extend ─▶ until = max(until, now + Retry-After), k stays
//	Succeeded ─▶ k = 0
//
// Nothing ever brings Until forward: of two waits the longer one is the true one. The
// zero value is not cooling and has the default configuration.
type Cooldown struct {
	escalation int // k: cooldowns started since the last success
	until      time.Time
	config     CooldownConfig
}

// NewCooldown gives a cooldown that is not cooling.
func NewCooldown(c CooldownConfig) Cooldown { return Cooldown{config: c} }

// Start begins an episode at now and gives the time until which nothing may be sent.
//
// Directed says that the server named retryAfter, which is then a floor. One of 0 or
// less names no wait, as a refusal that says "now" contradicts itself. And where
// several episodes came with no success in between, the named waits were too short:
// from the second on the wait is no shorter than what undirected refusals had led to
// one episode earlier, so that a server that always says "1 ms" is not asked a thousand
// times a second.
//
// The generator must not be nil; one number is drawn from it.
func (c *Cooldown) Start(now time.Time, retryAfter time.Duration, directed bool, rng *rand.Rand) time.Time {
	cfg, jitter := c.config.withDefaults(), rng.Float64()
	wait := stretch(cfg.own(c.escalation), cfg.Jitter*jitter)
	if directed && retryAfter > 0 {
		floor := max(min(retryAfter, cfg.MaxDirected), c.patience(cfg))
		wait = min(stretch(floor, directedShare*cfg.Jitter*jitter), cfg.MaxDirected)
	}
	c.escalation++
	c.until = later(c.until, now.Add(wait))
	return c.until
}

// Extend takes news of an older epoch into account: it may lengthen the wait, because
// the server itself asks for that, but it does not escalate.
func (c *Cooldown) Extend(now time.Time, retryAfter time.Duration) {
	cfg := c.config.withDefaults()
	c.until = later(c.until, now.Add(min(max(0, retryAfter), cfg.MaxDirected)))
}

// Until is when calls may be made again; the zero time if none was ever refused. It
// stays after it has passed.
func (c *Cooldown) Until() time.Time { return c.until }

// Escalation is how many cooldowns were started since the last success.
func (c *Cooldown) Escalation() int { return c.escalation }

// Succeeded ends the escalation: a call of the present epoch was answered.
func (c *Cooldown) Succeeded() { c.escalation = 0 }

// own is the wait of our choosing after k cooldowns without success.
func (c CooldownConfig) own(k int) time.Duration { return grown(c.Base, 2, k, c.Max) }

// patience is the least directed wait: none in the first episode.
func (c *Cooldown) patience(cfg CooldownConfig) time.Duration {
	if c.escalation == 0 {
		return 0
	}
	return cfg.own(c.escalation - 1)
}

func stretch(d time.Duration, share float64) time.Duration {
	return d + time.Duration(float64(d)*share)
}
