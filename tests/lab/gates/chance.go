package gates

import (
	"math/rand/v2"
	"time"
)

// Streams of chance, one for each purpose: one more draw for one changes nothing for
// another, and the clairvoyant's answers are the world's.
const (
	answerStream = 21 + iota
	shedStream
	poolStream
	walkStream
	balancerStream
	breakStream
)

// Shed refuses a share of the calls, whatever the law does. Its refusals are imposed.
type Shed struct {
	share float64
	rng   *rand.Rand
}

// NewShed makes one.
func NewShed(share float64, seed uint64) *Shed {
	return &Shed{share: share, rng: rand.New(rand.NewPCG(seed, shedStream))}
}

// Ask is part of [Gate]. There is no wait: a call right after may pass.
func (s *Shed) Ask(time.Duration, float64) (bool, time.Duration) {
	return s.rng.Float64() >= s.share, 0
}

// Take is part of [Gate].
func (s *Shed) Take(time.Duration, float64, time.Duration) {}

// Refused is part of [Gate].
func (s *Shed) Refused(time.Duration, float64) {}

// Next is part of [Gate]: chance does not hit the clairvoyant.
func (s *Shed) Next(at time.Duration, _ float64) time.Duration { return at }

// breaks decides which admitted calls break: the n-th one does or does not, in each run of a
// world, and for the clairvoyant too.
type breaks struct {
	share float64
	rng   *rand.Rand
}

func newBreaks(share float64, seed uint64) *breaks {
	return &breaks{share: share, rng: rand.New(rand.NewPCG(seed, breakStream))}
}

func (b *breaks) next() bool { return b.share > 0 && b.rng.Float64() < b.share }

// Penalty shuts everybody out for a while when one refusal follows another too soon. Its own
// refusals count as well.
type Penalty struct {
	refused bool
	latest  time.Duration
	until   time.Duration
}

// The penalty: two refusals within 5 s cost 10 s.
const (
	penaltySoon = 5 * time.Second
	penaltyFor  = 10 * time.Second
)

// Ask is part of [Gate].
func (p *Penalty) Ask(at time.Duration, _ float64) (bool, time.Duration) {
	return at >= p.until, max(0, p.until-at)
}

// Take is part of [Gate].
func (p *Penalty) Take(time.Duration, float64, time.Duration) {}

// Refused is part of [Gate].
func (p *Penalty) Refused(at time.Duration, _ float64) {
	if p.refused && at-p.latest < penaltySoon {
		p.until = at + penaltyFor
	}
	p.refused, p.latest = true, at
}

// Next is part of [Gate]: a clairvoyant is never refused.
func (p *Penalty) Next(at time.Duration, _ float64) time.Duration { return at }
