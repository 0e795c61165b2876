package plain

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// directedShare is the part of the jitter that a directed wait gets, so 5 %. The server has
// chosen the moment; jitter only keeps calls from meeting it to the millisecond.
const directedShare = 0.25

// completeCooldown returns c with its default for each field that is 0 or cannot be meant.
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

// newCooldown returns a cooldown that is not cooling.
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
	wait := withJitter(undirectedWait(cfg, c.escalation), cfg.Jitter*jitter)
	if directed && retryAfter > 0 {
		floor := max(min(retryAfter, cfg.MaxDirected), c.escalatedFloor(cfg))
		wait = min(withJitter(floor, directedShare*cfg.Jitter*jitter), cfg.MaxDirected)
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

// undirectedWait returns how long to wait if the server names no wait, after k cooldowns without
// success.
func undirectedWait(c limiter.CooldownConfig, k int) time.Duration {
	return measure.Grown(c.Base, 2, k, c.Max)
}

// escalatedFloor returns the least wait even if the server names a shorter one; 0 in the first
// episode.
func (c *cooldown) escalatedFloor(cfg limiter.CooldownConfig) time.Duration {
	if c.escalation == 0 {
		return 0
	}
	return undirectedWait(cfg, c.escalation-1)
}

func withJitter(d time.Duration, share float64) time.Duration {
	return d + time.Duration(float64(d)*share)
}

// A pacer spaces calls evenly at a rate that may change from one look to the next. It keeps
// credit, which rises with rate·time, and a call costs 1. If it kept the next send time
// instead, a rate that rises would not shorten a wait already begun. One call at 0.05/s would
// hold its successor for 20 s, whatever was learned since.
//
// The whole time since the last Take counts at the rate given now; owners that change
// the rate look often enough for that, and [measure.Slack] bounds what it can give.
//
// The zero value is ready, and its first call is free.
type pacer struct {
	begun  bool
	credit float64 // as of last
	last   time.Time
}

// Wait returns the time until a call may leave at this rate: 0 if now, never more than
// [measure.MaxWait]. A rate of +Inf never waits; a rate of 0, less or NaN earns nothing.
func (p *pacer) Wait(now time.Time, perSecond float64) time.Duration {
	if math.IsInf(perSecond, 1) {
		return 0
	}
	rate := units(perSecond)
	missing := 1 - p.creditAt(now, rate)
	if missing <= 0 {
		return 0
	}
	return measure.Wait(missing / rate) // +Inf at rate 0, which MaxWait caps
}

// Take spends the credit of one call if it is there, and reports whether it was.
func (p *pacer) Take(now time.Time, perSecond float64) bool {
	if p.Wait(now, perSecond) > 0 {
		return false
	}
	credit := 0.0 // an infinite rate saves nothing up: the credit would belong to no rate
	if !math.IsInf(perSecond, 1) {
		credit = p.creditAt(now, units(perSecond)) - 1
	}
	p.set(now, credit)
	return true
}

// Reset leaves no credit at now. It runs when a hold ends, so that the credit of the hold does
// not leave all at once.
func (p *pacer) Reset(now time.Time) { p.set(now, 0) }

func (p *pacer) creditAt(now time.Time, rate float64) float64 {
	if !p.begun {
		return 1
	}
	return min(1+measure.Slack*rate, p.credit+rate*measure.Elapsed(p.last, now))
}

func (p *pacer) set(now time.Time, credit float64) {
	p.begun, p.credit, p.last = true, credit, measure.Later(p.last, now)
}
