package gates

import (
	"math"
	"math/rand/v2"
	"time"
)

// longest bounds an answer, in medians, so that no world depends on a single one.
const longest = 10

// Answers are lognormal, the usual shape of generation times.
type Answers struct {
	Median time.Duration
	Sigma  float64 // 0: all the same
}

// Mean returns the mean time of an answer.
func (a Answers) Mean() time.Duration {
	return time.Duration(float64(a.Median) * math.Exp(a.Sigma*a.Sigma/2))
}

// answers deals them: the n-th admitted call takes the same time in each run of a world, and
// for the clairvoyant too.
type answers struct {
	Answers
	rng *rand.Rand
}

func newAnswers(a Answers, seed uint64) *answers {
	return &answers{Answers: a, rng: rand.New(rand.NewPCG(seed, answerStream))}
}

func (a *answers) next() time.Duration {
	if a.Sigma == 0 {
		return a.Median
	}
	factor := min(longest, math.Exp(a.Sigma*a.rng.NormFloat64()))
	return time.Duration(float64(a.Median) * factor)
}
