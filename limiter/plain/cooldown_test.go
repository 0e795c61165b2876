package plain

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// plain is a cooldown without jitter, so that its instants are exact.
func plain() cooldown { return newCooldown(limiter.CooldownConfig{Jitter: -1}) }

// A cooldown that was never started is not cooling.
func TestCooldownZeroValue(t *testing.T) {
	var c cooldown
	want(t, "until", c.Until(), time.Time{})
	want(t, "escalation", c.Escalation(), 0)
	c.Succeeded()
}

// Undirected waits double from one second to thirty, once per episode, and a success
// takes them back to one.
func TestCooldownEscalates(t *testing.T) {
	c, now := plain(), noon
	for i, seconds := range []float64{1, 2, 4, 8, 16, 30, 30, 30} {
		want(t, "until", c.Start(now, 0, false, seeded(1)), now.Add(time.Duration(seconds*1e9)))
		want(t, "escalation", c.Escalation(), i+1)
		now = c.Until()
	}
	c.Succeeded()
	want(t, "after success", c.Start(now, 0, false, seeded(1)), now.Add(time.Second))
}

// No number of episodes makes the wait overflow.
func TestCooldownEscalationIsBounded(t *testing.T) {
	c := plain()
	c.escalation = 1 << 30
	want(t, "until", c.Start(noon, 0, false, seeded(1)), at(30))
}

// A named wait is a floor, with up to five per cent on top; a wait of our own gets up
// to twenty.
func TestCooldownJitterIsPositive(t *testing.T) {
	rng := seeded(1)
	least, most := [2]float64{99, 99}, [2]float64{}
	for range 5000 {
		for i, directed := range []bool{false, true} {
			var c cooldown
			s := c.Start(noon, time.Second, directed, rng).Sub(noon).Seconds()
			least[i], most[i] = min(least[i], s), max(most[i], s)
		}
	}
	near(t, "undirected, least", least[0], 1.0005, 0.0005)
	near(t, "undirected, most", most[0], 1.1995, 0.0005)
	near(t, "directed, least", least[1], 1.00025, 0.00025)
	near(t, "directed, most", most[1], 1.04975, 0.00025)
}

// The same seed gives the same waits.
func TestCooldownIsSeeded(t *testing.T) {
	one, two := seeded(3), seeded(3)
	var a, b cooldown
	for i := range 10 {
		now := at(float64(i) * 100)
		want(t, "until", a.Start(now, 0, i%2 == 0, one), b.Start(now, 0, i%2 == 0, two))
	}
}

// A Retry-After of zero, or in the past, names no wait: the refusal still costs one.
func TestCooldownRetryAfterOfNothing(t *testing.T) {
	for _, after := range []time.Duration{0, -time.Hour} {
		c := plain()
		want(t, "until", c.Start(noon, after, true, seeded(1)), at(1))
	}
}

// A server that names the same tiny wait again and again is asked less and less often,
// until a call succeeds.
func TestCooldownTinyRetryAfterEscalates(t *testing.T) {
	c, now := plain(), noon
	for _, ms := range []int64{1, 1000, 2000, 4000, 8000, 16000, 30000, 30000} {
		want(t, "until", c.Start(now, time.Millisecond, true, seeded(1)), now.Add(time.Duration(ms)*time.Millisecond))
		now = c.Until()
	}
	c.Succeeded()
	want(t, "until", c.Start(now, time.Millisecond, true, seeded(1)), now.Add(time.Millisecond))
}

// A named wait that is long enough is not lengthened by escalation.
func TestCooldownLongRetryAfterIsObeyed(t *testing.T) {
	c, now := plain(), noon
	for range 10 {
		want(t, "until", c.Start(now, time.Minute, true, seeded(1)), now.Add(time.Minute))
		now = c.Until()
	}
}

// Of two waits the longer holds, whichever came first.
func TestCooldownNeverEndsSooner(t *testing.T) {
	c := plain()
	c.Start(noon, time.Minute, true, seeded(1))
	want(t, "a shorter one", c.Start(at(1), time.Second, true, seeded(1)), at(60))
	want(t, "escalation", c.Escalation(), 2)
	c.Extend(at(2), 10*time.Second)
	want(t, "a shorter extension", c.Until(), at(60))
	c.Extend(at(2), 90*time.Second)
	want(t, "a longer extension", c.Until(), at(92))
	c.Extend(at(3), -time.Hour)
	want(t, "a senseless one", c.Until(), at(92))
	want(t, "an extension does not escalate", c.Escalation(), 2)
}

// No server is believed for more than a quarter of an hour.
func TestCooldownCapsDirectedWaits(t *testing.T) {
	const tenYears = 10 * 365 * 24 * time.Hour
	var c cooldown
	want(t, "until", c.Start(noon, tenYears, true, seeded(1)), at(900))
	c.Start(at(1), time.Second, true, seeded(1))
	want(t, "the cap itself", c.Start(at(60), 15*time.Minute, true, seeded(1)), at(960))
	c.Extend(at(100), math.MaxInt64)
	want(t, "extension", c.Until(), at(1000))
}
