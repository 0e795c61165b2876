package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// A Batch is what a law receives: the items, and what we know of the provider.
type Batch struct {
	Items       int
	Concurrency int                    // calls in flight that the user allows
	Workers     int                    // of a rival, which has a fixed number
	Configured  limiter.Limits         // the limits that the user has set
	Guess       float64                // calls per second that the user thinks are allowed; 0: no guess
	PerSecond   float64                // items that are really allowed, for rivals that know it
	Tokens      func(item int) float64 // the draw of an item; nil: no tokens are counted
	Estimate    float64                // our estimate of that draw, as a share of Tokens; 0: 1
	Thought     func(item int) float64 // our estimate, where it is no share of Tokens; nil: see Estimate
	Local       bool                   // the user says that the server is one's own
	Period      time.Duration          // of the limits in headers, where their names give it; 0: the law has to find it out
}

func (b Batch) tokens(item int) float64 {
	if b.Tokens == nil {
		return 0
	}
	return b.Tokens(item)
}

func (b Batch) cost(item int) limiter.Cost {
	c := limiter.Cost{Requests: 1, Input: b.tokens(item)}
	if b.Estimate > 0 {
		c.Input *= b.Estimate
	}
	if b.Thought != nil {
		c.Input = b.Thought(item)
	}
	return c
}

// A Provider judges the calls that arrive. [sim.Model] is one.
type Provider interface {
	Decide(now time.Time, c sim.Call) sim.Verdict
}

// neighbourKey is the bearer key of the other client of the same limits.
const neighbourKey = "neighbour"

// FromNeighbour reports whether a call is the neighbour's, and not ours.
func FromNeighbour(c sim.Call) bool { return c.Key == neighbourKey }

// A Neighbour is another client of the same limits. It calls at random, in
// bursts, and does nothing between them. The zero Neighbour never calls.
type Neighbour struct {
	PerSecond float64       // calls, while it calls
	On, Off   time.Duration // its bursts, and the pauses between; both 0: it never stops
	From      time.Duration // when its first burst begins
}

// gap is the time to the neighbour's next call.
func (n Neighbour) gap(now time.Time, rng *rand.Rand) time.Duration {
	gap := time.Duration(rng.ExpFloat64() / n.PerSecond * 1e9)
	if early := n.From - now.Sub(start); early > 0 {
		return early + gap
	}
	period := n.On + n.Off
	if period == 0 {
		return gap
	}
	at := now.Add(gap).Sub(start)
	if phase := (at - n.From) % period; phase >= n.On {
		gap += period - phase
	}
	return gap
}
