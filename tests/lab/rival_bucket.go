package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// fixed is the client that knows its limit. It has a token bucket of one second, like
// golang.org/x/time/rate with a burst of the rate. Calls that are refused all the same back
// off with full jitter.
type fixed struct {
	rng    *rand.Rand
	bucket bucket
}

// FixedBucket makes the rival with a limit of so many times the one at the start.
func FixedBucket(times float64) func(Batch, uint64) Law {
	return func(b Batch, seed uint64) Law {
		rate := times * b.PerSecond
		return newCrew(b, &fixed{rng: random(seed), bucket: newBucket(rate, max(1, rate))})
	}
}

func (f *fixed) wait(now time.Time) time.Duration { return f.bucket.wait(now) }
func (f *fixed) sent(now time.Time)               { f.bucket.take(now) }
func (f *fixed) ended(_ time.Time, v sim.Verdict, tries int) time.Duration {
	return asked(v, seconds(fullJitter(f.rng, max(1, tries), 60)))
}
