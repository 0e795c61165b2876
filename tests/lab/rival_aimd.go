package lab

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Numbers of the additive increase. They are the best of a few for 600 a minute;
// a client cannot know that.
const (
	aimdFirst    = 2.0 // calls per second
	aimdIncrease = 0.5 // calls per second, each second in which the rate held calls back
	aimdDecrease = 0.7 // of the rate is left
	aimdEpisode  = 2.0 // seconds for which refusals count as one: they left before the cut
)

// aimd is additive increase and multiplicative decrease on the rate (Chiu and Jain, 1989).
// Unlike TCP it does not begin by doubling: where a minute's limit is saved up, the doubling
// meets no refusal until it is far too high, and the cuts that follow cost thousands of
// refusals.
type aimd struct {
	rng     *rand.Rand
	bucket  bucket
	cut     time.Time
	ticked  time.Time
	blocked bool // the rate held a call back since the latest tick
}

// AIMD makes the rival.
func AIMD(b Batch, seed uint64) Law {
	return newCrew(b, &aimd{rng: random(seed), bucket: newBucket(aimdFirst, 1), ticked: start})
}

func (a *aimd) wait(now time.Time) time.Duration {
	for now.Sub(a.ticked) >= time.Second {
		a.ticked = a.ticked.Add(time.Second)
		a.grow()
	}
	wait := a.bucket.wait(now)
	a.blocked = a.blocked || wait > 0
	return wait
}

// grow only follows a second in which the rate held calls back. Otherwise it would run away
// while the workers are the bound.
func (a *aimd) grow() {
	if a.blocked {
		a.bucket.rate += aimdIncrease
	}
	a.blocked = false
}

func (a *aimd) sent(now time.Time) { a.bucket.take(now) }

func (a *aimd) ended(now time.Time, v sim.Verdict, tries int) time.Duration {
	if v.Kind == sim.RateLimited {
		if now.Sub(a.cut).Seconds() > aimdEpisode {
			a.bucket.advance(now)
			a.bucket.rate = math.Max(0.1, a.bucket.rate*aimdDecrease)
			a.cut = now
		}
		return asked(v, 0)
	}
	return seconds(fullJitter(a.rng, max(1, tries), 60))
}
