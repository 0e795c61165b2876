package plain

import (
	"time"

	"github.com/headrace/headrace/limiter"
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
	known   bool // a limit is set: most lanes have none, and need not look further
	free    pass
	limits  limiter.Limits
	buckets [limiter.OutputTokens + 1]bucket // by Dimension; None's is never limited
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

// Wait returns the time until a call of this cost may go, and the dimension it waits for; 0 and
// None if it may go now. If waits are equal, it returns the first dimension.
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
		if w := b.Wait(now, of(cost, d)); w > longest {
			longest, binds = w, d
		}
	}
	q.free = pass{}
	if longest == 0 {
		q.free = pass{valid: true, at: now, cost: cost}
	}
	return longest, binds
}

// Take draws the cost in all dimensions if each allows it now, else in none, and
// reports whether it did.
func (q *quota) Take(now time.Time, cost limiter.Cost) bool {
	if q.free != (pass{true, now, cost}) {
		if w, _ := q.Wait(now, cost); w > 0 {
			return false
		}
	}
	q.free = pass{}
	for d := limiter.Requests; q.known && d <= limiter.OutputTokens; d++ {
		if b := &q.buckets[d]; b.Limited() {
			b.Debit(now, of(cost, d))
		}
	}
	return true
}

// Settle corrects the tokens once the real usage of a call is known. It debits the draw beyond
// the estimate, and credits the unused part. It does not touch requests, as a call is one
// request whatever it wrote.
func (q *quota) Settle(now time.Time, estimated, actual limiter.Cost) {
	q.free = pass{}
	over := actual.Drawn().Minus(estimated.Drawn())
	for d := limiter.Tokens; d <= limiter.OutputTokens; d++ {
		q.buckets[d].Debit(now, of(over, d))
		q.buckets[d].Credit(now, -of(over, d))
	}
}

// Refund gives back the draw of a call that was not made, or that the provider did not charge.
func (q *quota) Refund(now time.Time, cost limiter.Cost) {
	q.free = pass{}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		q.buckets[d].Credit(now, of(cost, d))
	}
}

// SetLimits changes the limits from now on. Levels stay, within the new bounds; a
// dimension that was not limited starts full.
func (q *quota) SetLimits(now time.Time, l limiter.Limits) {
	q.limits, q.known, q.free = l, !l.Zero(), pass{}
	for d := limiter.Requests; d <= limiter.OutputTokens; d++ {
		q.buckets[d].SetLimit(now, l.PerMinute(d), l.Capacity(d))
	}
}

// Drain empties every bucket: the provider refused, so by its count nothing is left.
func (q *quota) Drain(now time.Time) {
	q.free = pass{}
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

// of returns the part of the cost that is drawn in dimension d.
func of(c limiter.Cost, d limiter.Dimension) float64 {
	switch d {
	case limiter.Requests:
		return c.Requests
	case limiter.Tokens:
		return c.Tokens()
	case limiter.InputTokens:
		return c.Input
	case limiter.OutputTokens:
		return c.Output
	}
	return 0
}
