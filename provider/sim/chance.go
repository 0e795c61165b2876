package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// chance makes the draws of one call at a time. Each call has a stream of its
// own, so that one more draw for one call changes nothing for the next.
type chance struct {
	source rand.PCG
}

// begin takes up the stream of a call: of the try of its ID where IDs are
// tracked, else of its place in the order of arrival.
func (c *chance) begin(seed, serial uint64, id string, tracked bool) {
	if tracked {
		seed ^= face.Sum(id)
	}
	c.source.Seed(face.Mix(seed), face.Mix(serial))
}

// uniform returns a number in [0, 1).
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
