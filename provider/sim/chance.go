package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// chance deals the draws of one call at a time. Each call has a stream of its
// own, so that one more draw for one call changes nothing for the next.
type chance struct {
	source rand.PCG
}

// begin takes up the stream of a call: of the try of its ID where IDs are
// tracked, else of its place in the order of arrival.
func (c *chance) begin(seed, serial uint64, id string, tracked bool) {
	if tracked {
		seed ^= checksum(id)
	}
	c.source.Seed(mix(seed), mix(serial))
}

// mix spreads near seeds over the whole range (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// uniform is in [0, 1).
func (c *chance) uniform() float64 {
	return float64(c.source.Uint64()>>11) / (1 << 53)
}

// lognormal draws by Box and Muller; 1−u keeps the logarithm from zero.
func (c *chance) lognormal(l Latency) time.Duration {
	if l.Median == 0 || l.Sigma == 0 {
		return min(l.Median, l.Max)
	}
	normal := math.Sqrt(-2*math.Log(1-c.uniform())) * math.Cos(2*math.Pi*c.uniform())
	d := float64(l.Median) * math.Exp(l.Sigma*normal)
	return time.Duration(min(d, float64(l.Max)))
}
