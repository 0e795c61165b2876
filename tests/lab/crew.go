package lab

import (
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/provider/sim"
)

// workers is the number of calls that the rivals make at once: enough for each scenario, and
// what their examples use.
const workers = 100

// A gate decides for all workers of a rival together.
type gate interface {
	// wait returns the time until one more call may leave; 0 is now.
	wait(now time.Time) time.Duration
	sent(now time.Time)
	// ended records how a call ended, and returns how long its item is to sleep if it
	// brought nothing. Tries is the number of the item's calls that brought nothing.
	ended(now time.Time, v sim.Verdict, tries int) time.Duration
}

// crew is the usual structure of a client: each worker has one item at a time, waits at the
// gate, calls, and sleeps with its item if the call brought nothing.
type crew struct {
	gate    gate
	workers int
	next    int // item that nobody has taken
	items   int
	left    int
	busy    int                // workers that have an item
	ready   []int              // items at the gate
	naps    virtual.Queue[int] // items whose workers sleep
	tries   []int
}

func newCrew(b Batch, g gate) *crew {
	return &crew{gate: g, workers: b.Workers, items: b.Items, left: b.Items, tries: make([]int, b.Items)}
}

// Over is part of [Law].
func (c *crew) Over() bool { return c.left == 0 }

// Ready is part of [Law].
func (c *crew) Ready(now time.Time) (calls []Call, wakeAt time.Time) {
	until, sleeps := c.naps.Next()
	for ; sleeps && until <= now.Sub(start); until, sleeps = c.naps.Next() {
		c.ready = append(c.ready, c.naps.Take())
	}
	for c.busy < c.workers && c.next < c.items {
		c.ready = append(c.ready, c.next)
		c.next++
		c.busy++
	}
	for len(c.ready) > 0 {
		if wait := c.gate.wait(now); wait > 0 {
			wakeAt = now.Add(wait)
			break
		}
		c.gate.sent(now)
		calls = append(calls, Call{Item: c.ready[0]})
		c.ready = c.ready[1:]
	}
	if at := start.Add(until); sleeps && (wakeAt.IsZero() || at.Before(wakeAt)) {
		wakeAt = at
	}
	return calls, wakeAt
}

// Ended is part of [Law].
func (c *crew) Ended(now time.Time, call Call, v sim.Verdict) bool {
	if v.Kind != sim.Accepted {
		c.tries[call.Item]++
	}
	sleep := c.gate.ended(now, v, c.tries[call.Item])
	if v.Kind == sim.Accepted {
		c.busy--
		c.left--
		return true
	}
	c.naps.Put(now.Add(sleep).Sub(start), call.Item)
	return false
}

// bucket is the token bucket that clients put in front of themselves.
type bucket struct {
	rate, depth, level float64 // calls per second; calls
	at                 time.Time
}

func newBucket(rate, depth float64) bucket {
	return bucket{rate: rate, depth: depth, level: depth, at: start}
}

func (b *bucket) advance(now time.Time) {
	b.level = min(b.depth, b.level+b.rate*now.Sub(b.at).Seconds())
	b.at = now
}

func (b *bucket) wait(now time.Time) time.Duration {
	b.advance(now)
	return seconds((1 - b.level) / b.rate)
}

func (b *bucket) take(now time.Time) {
	b.advance(now)
	b.level--
}

// seconds returns at least a nanosecond for anything over 0: a wait rounded to nothing would
// come back at the same moment.
func seconds(s float64) time.Duration {
	if s <= 1e-9 {
		return 0
	}
	return time.Duration(s*1e9) + 1
}

// fullJitter returns the n-th wait of "exponential backoff and full jitter" (AWS
// Architecture Blog, 2015): anything up to 2ⁿ⁻¹ seconds, but no more than most.
func fullJitter(rng *rand.Rand, n int, most float64) float64 {
	return rng.Float64() * min(most, float64(uint64(1)<<min(n-1, 30)))
}

// asked returns the longer of a client's own wait and the one that the server named.
func asked(v sim.Verdict, own time.Duration) time.Duration {
	if v.HasRetryAfter {
		return max(own, v.RetryAfter)
	}
	return own
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 11)) }
