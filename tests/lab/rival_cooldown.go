package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Numbers of the pause. async-batch-llm's default pause is 300 s, which makes ten of every
// minute's limit idle; a tenth of it is kinder to the rival. Its target is the user's guess,
// and here twice the limit: 5 to 20 a second at 600 a minute.
const (
	cooldownPause = 30 * time.Second
	cooldownClimb = 60 * time.Second
	cooldownFrom  = 0.25 // of the target
	cooldownTimes = 2    // the target as a multiple of the limit
)

// cooldown is the fixed pause and graduated recovery of batch libraries
// (async-batch-llm's rate-limit strategy): a refusal stops everybody for a while,
// and then the rate climbs to its target in a straight line.
type cooldown struct {
	rng    *rand.Rand
	bucket bucket
	target float64
	resume time.Time // the end of the pause, and the start of the climb
}

// Cooldown makes the rival.
func Cooldown(b Batch, seed uint64) Law {
	target := cooldownTimes * b.PerSecond
	return newCrew(b, &cooldown{
		rng: random(seed), target: target, bucket: newBucket(cooldownFrom*target, 1), resume: start,
	})
}

func (c *cooldown) wait(now time.Time) time.Duration {
	if now.Before(c.resume) {
		return c.resume.Sub(now)
	}
	c.bucket.advance(now) // at the rate until now
	climbed := min(1, now.Sub(c.resume).Seconds()/cooldownClimb.Seconds())
	c.bucket.rate = c.target * (cooldownFrom + (1-cooldownFrom)*climbed)
	return c.bucket.wait(now)
}

func (c *cooldown) sent(now time.Time) { c.bucket.take(now) }

func (c *cooldown) ended(now time.Time, v sim.Verdict, tries int) time.Duration {
	if v.Kind != sim.RateLimited {
		return seconds(fullJitter(c.rng, max(1, tries), 60))
	}
	if !now.Before(c.resume) { // refusals of calls that left before the pause are of the same wave
		c.resume = now.Add(asked(v, cooldownPause))
	}
	return 0
}
