package observe

import (
	"time"

	"github.com/headrace/headrace/provider"
)

// A tally is what calls and items came to in some span. The zero value is nothing.
type tally struct {
	calls, throttled, broke int
	first                   time.Time      // when the earliest call left; zero: there was none
	took                    time.Duration  // time of calls, without that at the gate
	gated                   time.Duration  // time of calls at the gate
	used                    provider.Usage // by calls

	answers histogram     // latencies of answers
	slowest time.Duration // of these

	answered, failed, notRun, truncated int
	priced, unpriced                    int
	spent                               provider.Usage // by items, of all their calls
	usd                                 float64
}

// add adds another tally.
func (t *tally) add(u *tally) {
	t.calls, t.throttled, t.broke = t.calls+u.calls, t.throttled+u.throttled, t.broke+u.broke
	if t.first.IsZero() || !u.first.IsZero() && u.first.Before(t.first) {
		t.first = u.first
	}
	t.took, t.gated = t.took+u.took, t.gated+u.gated
	t.used, t.spent = t.used.Add(u.used), t.spent.Add(u.spent)
	if u.slowest > 0 {
		t.answers.add(&u.answers)
	}
	t.slowest = max(t.slowest, u.slowest)
	t.answered, t.failed, t.notRun = t.answered+u.answered, t.failed+u.failed, t.notRun+u.notRun
	t.truncated = t.truncated + u.truncated
	t.priced, t.unpriced, t.usd = t.priced+u.priced, t.unpriced+u.unpriced, t.usd+u.usd
}

// ended is how many items did.
func (t *tally) ended() int { return t.answered + t.failed }

// empty reports whether nothing was counted.
func (t *tally) empty() bool { return t.calls+t.answered+t.failed+t.notRun == 0 }

// meanTook is the mean time of a call without that at the gate; 0: there was none.
func (t *tally) meanTook() float64 { return perCall(t.took, t.calls) }

// meanHeld is the mean time for which a call holds its place; 0: there was none.
func (t *tally) meanHeld() float64 { return perCall(t.took+t.gated, t.calls) }

// perCall is in seconds.
func perCall(d time.Duration, calls int) float64 {
	if calls == 0 {
		return 0
	}
	return d.Seconds() / float64(calls)
}

// A histogram is how often each bucket of latencies was met.
type histogram [lastBucket + 1]uint32

func (h *histogram) add(g *histogram) {
	for k, n := range g {
		h[k] += n
	}
}

// buckets are those that are not empty.
func (h *histogram) buckets() (b Buckets) {
	for k, n := range h {
		if n > 0 {
			b = append(b, Bucket{Number: k, Count: int(n)})
		}
	}
	return b
}
