package gates

import "time"

// grain is the part of a unit by which summed fractions may miss a whole.
const grain = 1e-6

// A Bucket fills steadily and holds so many seconds' worth, or so many units. It is full at
// the start.
type Bucket struct {
	Tokens  bool // it counts tokens, and not requests
	Charged bool // a refused call also costs, down to minus the depth

	rate  Rate
	span  float64 // depth in seconds; 0: depth in units
	units float64
	level float64
	at    float64
}

// NewBucket returns a bucket that holds the inflow of span, and at least a call.
func NewBucket(rate Rate, span time.Duration) *Bucket {
	b := &Bucket{rate: rate, span: span.Seconds()}
	b.level = b.depth()
	return b
}

// NewBucketOf returns a bucket that holds so many units.
func NewBucketOf(rate Rate, units float64) *Bucket {
	return &Bucket{rate: rate, units: units, level: units}
}

// NewSpacing lets a call in each 1/R and saves nothing up: it holds only the one call that
// may go now.
func NewSpacing(rate Rate) *Bucket { return NewBucketOf(rate, 1) }

func (b *Bucket) depth() float64 {
	if b.span == 0 {
		return b.units
	}
	return max(1, b.span*b.rate.of(b.at))
}

// cost returns the draw of a call. A call larger than the depth passes when the bucket is
// full, and leaves a debt.
func (b *Bucket) cost(tokens float64) float64 {
	if b.Tokens {
		return tokens
	}
	return 1
}

func (b *Bucket) advance(at time.Duration) {
	now := seconds(at)
	if now <= b.at {
		return
	}
	b.level += b.rate.flow(now) - b.rate.flow(b.at)
	b.at = now
	b.level = min(b.level, b.depth())
}

// Ask is part of [Gate].
func (b *Bucket) Ask(at time.Duration, tokens float64) (bool, time.Duration) {
	b.advance(at)
	missing := min(b.cost(tokens), b.depth()) - b.level
	if missing <= grain {
		return true, 0
	}
	return false, after(missing / b.rate.of(b.at))
}

// Take is part of [Gate].
func (b *Bucket) Take(at time.Duration, tokens float64, _ time.Duration) {
	b.advance(at)
	b.level -= b.cost(tokens)
}

// Refused is part of [Gate].
func (b *Bucket) Refused(at time.Duration, tokens float64) {
	if b.Charged {
		b.advance(at)
		b.level = max(-b.depth(), b.level-b.cost(tokens))
	}
}

// Next is part of [Gate]. If the rate changes meanwhile the wait is only nearly right, and
// the caller asks again.
func (b *Bucket) Next(at time.Duration, tokens float64) time.Duration {
	b.advance(at)
	at = max(at, time.Duration(b.at*1e9))
	for {
		open, wait := b.Ask(at, tokens)
		if open {
			return at
		}
		at += max(wait, time.Microsecond)
	}
}
