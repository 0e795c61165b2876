package limiter

import (
	"math"
	"math/bits"
	"time"
)

// Defaults and bounds of [RateConfig].
const (
	// DefaultRateFloor is one call in twenty seconds, 3 a minute, the smallest limit
	// that hosted APIs publish. Lower, and the news that it is over arrives too late.
	DefaultRateFloor = 0.05

	// MaxRate is the highest finite limit, calls per second: more than one process
	// can send, so beyond it the number would mean nothing.
	MaxRate = 1e6

	// DefaultRateIncrease is added per success, as a share of what the last decrease
	// left. From 0.7 of the old rate back to all of it are 43 % of what was left, so
	// 21 successes: a rate that sits at the limit pays one refusal in about
	// twenty calls, and needs two seconds to recover at ten calls a second.
	DefaultRateIncrease = 0.02

	// DefaultRateDecrease is what a decrease multiplies by. Halving, TCP's old
	// answer, is for queues that must drain; a limiter that refuses has no queue.
	// 0.7 is the factor that CUBIC settled on (RFC 9438, 4.6), for the same reason.
	DefaultRateDecrease = 0.7

	// RateSlowdown is how far over its target a latency is when it counts as
	// overload, as a multiple. Between one and two the rate merely stops climbing.
	RateSlowdown = 2

	// RateWarmup is how many samples are seen before latency first cuts the rate:
	// with fewer than twenty the 95th percentile is the maximum.
	RateWarmup = 20

	// rateBlind is where an unlimited rate starts that is refused before anything
	// was observed, calls per second: the least that providers say they enforce.
	rateBlind = 1
)

// RateConfig says how a rate adapts. A field that is 0 (or cannot be meant) has its
// default. The floor gives way to the ceiling where they contradict.
type RateConfig struct {
	Initial       float64       // calls per second; 0: unlimited until something is learned
	Floor         float64       // calls per second, the least
	Ceiling       float64       // calls per second, the most; 0: none
	Increase      float64       // per success, as a share of what the last decrease left
	Decrease      float64       // factor of a decrease, in (0, 1)
	LatencyTarget time.Duration // 0: latency is not judged
}

func (c RateConfig) withDefaults() RateConfig {
	c.Floor = orElse(c.Floor, DefaultRateFloor)
	c.Ceiling = min(MaxRate, orElse(c.Ceiling, MaxRate))
	c.Increase = orElse(c.Increase, DefaultRateIncrease)
	if !(c.Decrease > 0 && c.Decrease < 1) {
		c.Decrease = DefaultRateDecrease
	}
	return c
}

func (c RateConfig) clamp(x float64) float64 { return min(max(x, c.Floor), c.Ceiling) }

// A Rate finds how many calls per second a server takes when nobody says: additive
// increase, multiplicative decrease (Chiu and Jain, 1989, show that of the linear rules
// this one lets clients that share a limit arrive at equal shares).
//
//	success, latency under target         limit + Increase · (what the last decrease left)
//	success, latency over twice it        limit × Decrease, once per ring of samples
//	refused (429, 503)                    min(limit, observed) × Decrease
//
// The caller filters: news from before the last cooldown is not reported here, and a
// wave of refusals is reported once. The zero value is unlimited, with the defaults.
//
// A limit that is not used grows too. That is harmless, as the next refusal starts
// from what was observed.
type Rate struct {
	limit    float64 // calls per second; 0: unlimited
	config   RateConfig
	anchor   float64 // what the last decrease left: increases are a share of it
	told     bool    // a directed refusal was the last news
	cut      bool    // there was a decrease
	since    int     // samples since the last decrease, where latency is judged
	latency  MeanLatency
	slow     [LatencySamples / 64]uint64 // of the last samples, which were over the slowdown: sample i is bit i%LatencySamples
	answered Meter                       // while there is no limit
}

// NewRate gives a rate at c.Initial, or without a limit.
func NewRate(c RateConfig) Rate {
	r := Rate{config: c}
	r.Anchor(c.Initial)
	return r
}

// Limit is how many calls per second may be made, within floor and ceiling. While
// nothing was learned it is the ceiling, or +Inf without one.
func (r *Rate) Limit() float64 {
	switch {
	case r.limit > 0:
		return r.config.withDefaults().clamp(r.limit)
	case positive(r.config.Ceiling):
		return r.config.Ceiling
	}
	return math.Inf(1)
}

// Anchor makes an unlimited rate finite, at what was observed and without a decrease.
// A rate that has a limit keeps it.
func (r *Rate) Anchor(observed float64) {
	if r.limit > 0 || !positive(observed) {
		return
	}
	r.settle(r.config.withDefaults(), observed)
}

// Success learns from a call that was answered, and how long that took.
func (r *Rate) Success(now time.Time, latency time.Duration) {
	r.told = false
	if r.limit <= 0 {
		r.answered.Add(now) // it tells a first decrease where to start, and later ones start from the limit
	}
	if r.config.LatencyTarget > 0 {
		r.observe(latency)
		r.since++
	} else if r.limit <= 0 {
		return
	}
	c := r.config.withDefaults()
	switch {
	case r.overloaded(c):
		r.decrease(now, c, 0)
	case r.limit > 0 && (c.LatencyTarget <= 0 || r.latency.Mean() < c.LatencyTarget):
		r.limit = c.clamp(r.limit + c.Increase*r.anchor)
	}
}

// Refused learns from an answer that says slow down. The decrease starts from the
// limit, or from the observed throughput (calls per second) if that is known, more than
// 0 and lower: a limit nobody had reached is not what was refused.
//
// Directed says that the server named a wait. It decreases once: the next directed
// refusal with no success in between is about the wait, which was too short, and not
// about the rate, which was not used.
func (r *Rate) Refused(now time.Time, observed float64, directed bool) {
	if directed && r.told {
		return
	}
	r.told = directed
	r.decrease(now, r.config.withDefaults(), observed)
}

// overloaded judges latency, when enough samples came since the last decrease for all
// of them to be from after it.
func (r *Rate) overloaded(c RateConfig) bool {
	need := RateWarmup
	if r.cut {
		need = LatencySamples
	}
	if c.LatencyTarget <= 0 || r.since < need {
		return false
	}
	most := RateSlowdown * c.LatencyTarget
	return r.latency.Mean() > most || r.tail()
}

// observe keeps of a sample what is asked of it.
func (r *Rate) observe(latency time.Duration) {
	i := r.latency.Count() % LatencySamples
	r.slow[i/64] &^= 1 << (i % 64)
	if latency > RateSlowdown*r.config.LatencyTarget {
		r.slow[i/64] |= 1 << (i % 64)
	}
	r.latency.Observe(latency)
}

// tail reports whether the 95th percentile is over the slowdown, as [Latency.P95Over].
func (r *Rate) tail() bool {
	n, above := min(r.latency.Count(), LatencySamples), 0
	for _, bits64 := range r.slow {
		above += bits.OnesCount64(bits64)
	}
	return above > n-rank95(n)
}

func (r *Rate) decrease(now time.Time, c RateConfig, observed float64) {
	from := r.Limit()
	if positive(observed) {
		from = min(from, observed)
	}
	if math.IsInf(from, 1) {
		from = orElse(r.answered.PerSecond(now), rateBlind)
	}
	r.cut, r.since = true, 0
	r.settle(c, from*c.Decrease)
}

// settle puts the limit, and the measure of its increases, at x.
func (r *Rate) settle(c RateConfig, x float64) {
	r.limit = c.clamp(x)
	r.anchor = r.limit
}
