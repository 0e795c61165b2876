package gates

import (
	"math/rand/v2"
	"time"
)

// replicas is the number of servers that share the limit, each with its part of it.
const replicas = 8

// Replicas are buckets of an eighth of the rate each, behind a balancer that
// draws one at random.
type Replicas struct {
	buckets [replicas]*Bucket
	rng     *rand.Rand
	drawn   *Bucket
}

// NewReplicas makes them, with that rate in total.
func NewReplicas(perSecond float64, span time.Duration, seed uint64) *Replicas {
	r := &Replicas{rng: rand.New(rand.NewPCG(seed, balancerStream))}
	for i := range r.buckets {
		r.buckets[i] = NewBucket(Steady(perSecond/replicas), span)
	}
	return r
}

// Ask is part of [Gate].
func (r *Replicas) Ask(at time.Duration, tokens float64) (bool, time.Duration) {
	r.drawn = r.buckets[r.rng.IntN(replicas)]
	return r.drawn.Ask(at, tokens)
}

// Take is part of [Gate].
func (r *Replicas) Take(at time.Duration, tokens float64, until time.Duration) {
	r.drawn.Take(at, tokens, until)
}

// Refused is part of [Gate].
func (r *Replicas) Refused(time.Duration, float64) {}

// Next is part of [Gate]: a clairvoyant draws the bucket that opens first, and of several
// the fullest, so that none overflows.
func (r *Replicas) Next(at time.Duration, tokens float64) time.Duration {
	first := never
	for _, b := range r.buckets {
		if next := b.Next(at, tokens); next < first || next == first && b.level > r.drawn.level {
			first, r.drawn = next, b
		}
	}
	return first
}
