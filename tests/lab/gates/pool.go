package gates

import (
	"math"
	"math/rand/v2"
	"time"
)

// Numbers of a pool that others also use.
const (
	poolSteepness = 20.0 // a tenth over the capacity, it refuses seven in eight
	poolMean      = 0.65 // of R: the mean of the walking capacity
	poolSpread    = 0.25
	poolMemory    = 60.0 // seconds in which the walk forgets
	poolLeast     = 0.3
	poolMost      = 1.0
	poolAverage   = 2.0 // seconds over which the load is averaged
)

// Pool is a capacity shared with others, who take now more, now less. It refuses more often
// the nearer the load is to what is left.
type Pool struct {
	walk *walk
	rate float64
	rng  *rand.Rand
	load float64 // calls per second, averaged
	at   float64
	free time.Duration // for the oracle: when the next call may go
}

// NewPool makes one of that capacity.
func NewPool(perSecond float64, seed uint64) *Pool {
	return &Pool{walk: newWalk(seed), rate: perSecond, rng: rand.New(rand.NewPCG(seed, poolStream))}
}

func (p *Pool) capacity(at float64) float64 { return p.rate * p.walk.of(at) }

// Ask is part of [Gate]. Refused calls are load too: the server has to refuse them.
func (p *Pool) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	now := seconds(at)
	p.load = p.load*math.Exp(-(now-p.at)/poolAverage) + 1/poolAverage
	p.at = now
	return p.rng.Float64() >= refusedAt(p.load/p.capacity(now)), 0
}

// refusedAt returns the share that is refused at a load, in capacities.
func refusedAt(load float64) float64 { return 1 / (1 + math.Exp(-poolSteepness*(load-1))) }

// bestLoad is the throughput of the best steady load, in capacities: some four fifths.
var bestLoad = func() (best float64) {
	for load := 0.0; load < 2; load += 0.001 {
		best = max(best, load*(1-refusedAt(load)))
	}
	return best
}()

// Take is part of [Gate]. The oracle's next call waits until the best steady load
// would have brought one more.
func (p *Pool) Take(at time.Duration, _ float64, _ time.Duration) {
	now, left := seconds(at), 1.0
	for {
		rate := bestLoad * p.capacity(now)
		edge := math.Floor(now) + 1
		if brings := rate * (edge - now); brings < left {
			left, now = left-brings, edge
			continue
		}
		p.free = time.Duration((now + left/rate) * 1e9)
		return
	}
}

// Refused is part of [Gate].
func (p *Pool) Refused(time.Duration, float64) {}

// Next is part of [Gate].
func (p *Pool) Next(at time.Duration, _ float64) time.Duration { return max(at, p.free) }

// walk is an Ornstein-Uhlenbeck walk, a step each second.
type walk struct {
	rng   *rand.Rand
	steps []float64
}

func newWalk(seed uint64) *walk {
	return &walk{rng: rand.New(rand.NewPCG(seed, walkStream)), steps: []float64{0}}
}

func (w *walk) of(at float64) float64 {
	keep := math.Exp(-1 / poolMemory)
	for len(w.steps) <= int(at) {
		w.steps = append(w.steps, w.steps[len(w.steps)-1]*keep+poolSpread*math.Sqrt(1-keep*keep)*w.rng.NormFloat64())
	}
	return min(poolMost, max(poolLeast, poolMean+w.steps[int(at)]))
}
