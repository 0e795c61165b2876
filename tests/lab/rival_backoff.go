package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// backoff is a hundred workers, each of which looks after its own item. It is the first
// example of the OpenAI cookbook's "How to handle rate limits", tenacity's
// wait_random_exponential(min=1, max=60). There an item is given up after six tries; here a
// worker tries it until it is answered.
type backoff struct{ rng *rand.Rand }

// Backoff makes the rival.
func Backoff(b Batch, seed uint64) Law { return newCrew(b, backoff{random(seed)}) }

func (backoff) wait(time.Time) time.Duration { return 0 }
func (backoff) sent(time.Time)               {}
func (b backoff) ended(_ time.Time, _ sim.Verdict, tries int) time.Duration {
	const least, most = 1.0, 60.0
	high := min(most, float64(uint64(1)<<min(max(1, tries)-1, 30)))
	return seconds(least + b.rng.Float64()*(high-least))
}
