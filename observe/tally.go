package observe

import (
	"time"

	"github.com/headrace/headrace/provider"
)

// A tally holds the counts of calls and items in some span. The zero value is empty.
type tally struct {
	figures
	answers histogram // latencies of answers
}

// add adds another tally.
func (t *tally) add(u *tally) {
	t.figures.add(&u.figures)
	if u.slowest > 0 {
		t.answers.add(&u.answers)
	}
}

// figures holds the part of a tally that fits in a few words.
type figures struct {
	calls, throttled, broke int
	took                    time.Duration  // time of calls, without that at the gate
	gated                   time.Duration  // time of calls at the gate
	slowest                 time.Duration  // of answers; 0: there was none
	used                    provider.Usage // by calls

	answered, failed, notRun int
	truncated, filtered      int // of the answered
	priced, unpriced         int
	spent                    provider.Usage // by items, of all their calls
	doubtful                 provider.Doubtful
	usd                      float64
	bytes                    int64 // of the items' requests
}

func (t *figures) add(u *figures) {
	t.calls, t.throttled, t.broke = t.calls+u.calls, t.throttled+u.throttled, t.broke+u.broke
	t.took, t.gated, t.slowest = t.took+u.took, t.gated+u.gated, max(t.slowest, u.slowest)
	t.used, t.spent = t.used.Add(u.used), t.spent.Add(u.spent)
	t.answered, t.failed, t.notRun = t.answered+u.answered, t.failed+u.failed, t.notRun+u.notRun
	t.truncated, t.filtered = t.truncated+u.truncated, t.filtered+u.filtered
	t.priced, t.unpriced, t.usd = t.priced+u.priced, t.unpriced+u.unpriced, t.usd+u.usd
	t.doubtful, t.bytes = t.doubtful.Add(u.doubtful), t.bytes+u.bytes
}

// cost returns the consumption of the items.
func (t *figures) cost() Spent {
	return Spent{Usage: t.spent, Doubtful: t.doubtful, USD: t.usd, Unpriced: t.unpriced, Priced: t.priced}
}

// ended returns the number of items that ended.
func (t *figures) ended() int { return t.answered + t.failed }

// empty reports whether nothing was counted.
func (t *figures) empty() bool { return t.calls+t.answered+t.failed+t.notRun == 0 }

// meanTook returns the mean time of a call without its time at the gate; 0: there was none.
func (t *figures) meanTook() float64 { return perCall(t.took, t.calls) }

// meanHeld returns the mean time for which a call holds its place; 0: there was none.
func (t *figures) meanHeld() float64 { return perCall(t.took+t.gated, t.calls) }

// perCall returns the mean in seconds.
func perCall(d time.Duration, calls int) float64 {
	if calls == 0 {
		return 0
	}
	return d.Seconds() / float64(calls)
}

// A histogram counts the latencies in each bucket.
type histogram [lastBucket + 1]uint32

func (h *histogram) add(g *histogram) {
	for k, n := range g {
		h[k] += n
	}
}

// buckets returns the buckets that are not empty.
func (h *histogram) buckets() (b Buckets) {
	for k, n := range h {
		if n > 0 {
			b = append(b, Bucket{Number: k, Count: int(n)})
		}
	}
	return b
}
