package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// A quota holds the limits of one lane, a bucket for each dimension. A call draws on all of
// them together or on none: a call that is short of tokens does not use up a request while it
// waits.
//
//	estimate ─ Take ─▶ call ─┬─ answered ─▶ Settle(estimated, actual)
//	                         └─ never made, or not charged ─▶ Refund
//
// The zero value limits nothing.
type quota struct {
	known    bool // a limit is set: most lanes have none, and need not look further
	lastPass pass
	limits   limiter.Limits
	buckets  [limiter.OutputTokens + 1]bucket // by Dimension; None's is never limited
}

// A pass says that a call of that cost may go at that moment. If the same caller takes right
// after it asked, nothing is computed again. Any change of a level voids the pass; the zero
// pass is void.
type pass struct {
	valid bool
	at    time.Time
	cost  limiter.Cost
}

// newQuota returns a quota with full buckets. Limits that fail [limiter.Limits.Validate] are
// read as no limit in the dimension that is wrong.
func newQuota(l limiter.Limits, now time.Time) quota {
	var q quota
	q.SetLimits(now, l)
	return q
}

// Known reports whether any dimension is limited.
func (q *quota) Known() bool { return q.known }

// Limits returns the limits that were set last.
func (q *quota) Limits() limiter.Limits { return q.limits }

// Wait returns the time until a call of this cost may go, and the dimension for which it waits. If
// it may go now, that is 0 and None. Of equal waits it names the first dimension.
func (q *quota) Wait(now time.Time, cost limiter.Cost) (time.Duration, limiter.Dimension) {
	longest, binds := time.Duration(0), limiter.None
	if !q.known {
		return longest, binds
	}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		b := &q.buckets[d]
		if !b.Limited() {
			continue
		}
		if w := b.Wait(now, cost.In(d)); w > longest {
			longest, binds = w, d
		}
	}
	q.lastPass = pass{}
	if longest == 0 {
		q.lastPass = pass{valid: true, at: now, cost: cost}
	}
	return longest, binds
}

// Take draws the cost in all dimensions if each allows it now, and else in none. It reports whether
// it did.
func (q *quota) Take(now time.Time, cost limiter.Cost) bool {
	if q.lastPass != (pass{true, now, cost}) {
		if w, _ := q.Wait(now, cost); w > 0 {
			return false
		}
	}
	q.lastPass = pass{}
	for d := limiter.Requests; q.known && d <= limiter.OutputTokens; d++ {
		if b := &q.buckets[d]; b.Limited() {
			b.Debit(now, cost.In(d))
		}
	}
	return true
}

// Settle corrects the tokens once the real usage of a call is known. It debits what the estimate
// fell short of, and credits the unused part. Requests stay, as a call is one request whatever it
// wrote.
func (q *quota) Settle(now time.Time, estimated, actual limiter.Cost) {
	q.lastPass = pass{}
	over := actual.Drawn().Minus(estimated.Drawn())
	for d := limiter.Tokens; d <= limiter.OutputTokens; d++ { // all but Requests
		q.buckets[d].Debit(now, over.In(d)) // of the two, the one with a negative amount does nothing
		q.buckets[d].Credit(now, -over.In(d))
	}
}

// Refund gives back the draw of a call that was not made, or that the provider did not charge.
func (q *quota) Refund(now time.Time, cost limiter.Cost) {
	q.lastPass = pass{}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		q.buckets[d].Credit(now, cost.In(d))
	}
}

// SetLimits changes the limits from now on. Levels stay, within the new bounds; a
// dimension that was not limited starts full.
func (q *quota) SetLimits(now time.Time, l limiter.Limits) {
	q.limits, q.known, q.lastPass = l, !l.Zero(), pass{}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		q.buckets[d].SetLimit(now, l.PerMinute(d), l.Capacity(d))
	}
}

// Drain empties every bucket: the provider refused, so by its count nothing is left.
func (q *quota) Drain(now time.Time) {
	q.lastPass = pass{}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		q.buckets[d].Drain(now)
	}
}

// Level returns the units that are there in one dimension; negative in debt, +Inf where it is
// not limited.
func (q *quota) Level(now time.Time, d limiter.Dimension) float64 {
	if d > limiter.OutputTokens {
		d = limiter.None
	}
	return q.buckets[d].Level(now)
}

// DebtBudget bounds the debt of a bucket, in minutes of its budget. Debts exist because the
// real draw of a call is known only after it. The bound exists because without it one wrong
// number (a million units debited from 60 a minute) stops a lane for eleven days. A provider
// that counts per minute has forgotten older calls, so deeper debt would model nothing.
const DebtBudget = 1

// A bucket holds units that flow in at a steady rate up to a capacity; calls take them. Its
// level may be negative: a debt, from a call larger than the bucket or from one that drew more
// than was estimated.
//
//	capacity ≤ one minute of budget ──┐ no inflow above; one unit where that is less
//	                             ▒▒▒▒▒│
//	       0 ────────────────────▒▒▒▒▒│ calls that fit go while level ≥ what they draw
//	                                  │
//	−one minute of budget ────────────┘ the debt ends here
//
// So a bucket that gains a unit a minute is full again within two minutes, whatever was drawn
// from it. No wait is longer than [measure.MaxWait]. The zero value has no limit: it grants
// everything at once.
type bucket struct {
	perMinute float64 // 0: no limit
	capacity  float64 // MinCapacity ≤ capacity ≤ perMinute, or MinCapacity
	level     float64 // −DebtBudget·perMinute ≤ level ≤ capacity, as of last
	last      time.Time
}

// Limited reports whether the bucket has a limit at all.
func (b *bucket) Limited() bool { return b.perMinute > 0 }

// Level returns the units that are there; negative in debt, +Inf without a limit.
func (b *bucket) Level(now time.Time) float64 {
	if !b.Limited() {
		return math.Inf(1)
	}
	return min(b.capacity, b.level+b.perMinute*(measure.Elapsed(b.last, now)/60))
}

// Wait returns the time until n units may be taken: 0 if now, never more than
// [measure.MaxWait]. An n larger than the capacity waits for a full bucket, passes then and
// leaves a debt; a wait for n would never end. An n of 0 waits until no debt is left: a caller
// that cannot estimate its calls still waits for their real draw.
func (b *bucket) Wait(now time.Time, n float64) time.Duration {
	if !b.Limited() {
		return 0
	}
	missing := min(units(n), b.capacity) - b.Level(now)
	if missing <= 0 {
		return 0
	}
	return measure.Wait(missing / b.perMinute * 60)
}

// Debit takes n units that are gone already, whether they were there or not.
func (b *bucket) Debit(now time.Time, n float64) { b.move(now, -units(n)) }

// Credit gives n units back, up to the capacity.
func (b *bucket) Credit(now time.Time, n float64) { b.move(now, units(n)) }

// Drain empties the bucket: the provider said that nothing is left. A debt stays.
func (b *bucket) Drain(now time.Time) { b.move(now, -max(0, b.Level(now))) }

// SetLimit changes rate and capacity from now on, to a bucket that gains perMinute units a
// minute and holds capacity units. perMinute of 0, less, NaN or infinity is no limit. The
// bucket holds at least [limiter.MinCapacity] whatever is asked, and beyond that never more than
// perMinute. The level stays, within the new bounds: a higher limit does not invent units that were
// not earned. A bucket that had no limit starts full.
func (b *bucket) SetLimit(now time.Time, perMinute, capacity float64) {
	if !measure.Positive(perMinute) {
		*b = bucket{}
		return
	}
	level := b.Level(now) // +Inf where there was no limit: clamped to full
	if !(capacity > limiter.MinCapacity) {
		capacity = limiter.MinCapacity
	}
	b.perMinute = perMinute
	b.capacity = min(capacity, max(perMinute, limiter.MinCapacity))
	b.set(now, level)
}

// move adds n units, in a limited bucket, to what is there now.
func (b *bucket) move(now time.Time, n float64) {
	if b.Limited() {
		b.set(now, b.Level(now)+n)
	}
}

// set is the only place that writes the level, and so the one that keeps its bounds.
func (b *bucket) set(now time.Time, level float64) {
	b.level = min(max(level, -DebtBudget*b.perMinute), b.capacity)
	if now != b.last {
		b.last = measure.Later(b.last, now)
	}
}

// units makes an amount of n: 0 if n is negative or NaN.
func units(n float64) float64 {
	if n > 0 {
		return n
	}
	return 0
}
