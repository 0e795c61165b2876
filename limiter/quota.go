package limiter

import "time"

// A Quota is the limits of one lane, a [Bucket] for each dimension. A call draws on
// all of them together or on none: a call that is short of tokens does not use up a
// request while it waits.
//
//	estimate ─ Take ─▶ call ─┬─ answered ─▶ Settle(estimated, actual)
//	                         └─ never made, or not charged ─▶ Refund
//
// The zero value limits nothing.
type Quota struct {
	known   bool // some limit is: most lanes have none, and need not look further
	free    pass
	limits  Limits
	buckets [OutputTokens + 1]Bucket // by Dimension; None's is never limited
}

// A pass says that a call of that cost may go at that moment: who has just asked takes,
// and what was found out need not be found out again. Whatever moves a level voids it;
// the zero pass is void.
type pass struct {
	valid bool
	at    time.Time
	cost  Cost
}

// NewQuota gives a quota with full buckets. Limits that do not pass
// [Limits.Validate] are read as no limit in the dimension that is wrong.
func NewQuota(l Limits, now time.Time) Quota {
	var q Quota
	q.SetLimits(now, l)
	return q
}

// Known reports whether any dimension is limited.
func (q *Quota) Known() bool { return q.known }

// Limits is what was set last.
func (q *Quota) Limits() Limits { return q.limits }

// Wait is how long until a call of this cost may go, and the dimension it waits for;
// 0 and None if it may go now. Of equal waits the first dimension is named.
func (q *Quota) Wait(now time.Time, cost Cost) (time.Duration, Dimension) {
	longest, binds := time.Duration(0), None
	if !q.known {
		return longest, binds
	}
	for d := Requests; d <= OutputTokens; d++ {
		b := &q.buckets[d]
		if !b.Limited() {
			continue
		}
		if w := b.Wait(now, cost.of(d)); w > longest {
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
func (q *Quota) Take(now time.Time, cost Cost) bool {
	if q.free != (pass{true, now, cost}) {
		if w, _ := q.Wait(now, cost); w > 0 {
			return false
		}
	}
	q.free = pass{}
	for d := Requests; q.known && d <= OutputTokens; d++ {
		if b := &q.buckets[d]; b.Limited() {
			b.Debit(now, cost.of(d))
		}
	}
	return true
}

// Settle puts the tokens right once the real usage of a call is known: what it drew
// beyond the estimate is debited, what it did not need is credited. Requests are not
// touched, as a call is one request whatever it wrote.
func (q *Quota) Settle(now time.Time, estimated, actual Cost) {
	q.free = pass{}
	over := actual.Drawn().Minus(estimated.Drawn())
	for d := Tokens; d <= OutputTokens; d++ {
		q.buckets[d].Debit(now, over.of(d))
		q.buckets[d].Credit(now, -over.of(d))
	}
}

// Refund gives back what a call took that was not made, or that the provider did
// not charge.
func (q *Quota) Refund(now time.Time, cost Cost) {
	q.free = pass{}
	for d := Requests; d <= OutputTokens; d++ {
		q.buckets[d].Credit(now, cost.of(d))
	}
}

// SetLimits changes the limits from now on. Levels stay, within the new bounds; a
// dimension that was not limited starts full.
func (q *Quota) SetLimits(now time.Time, l Limits) {
	q.limits, q.known, q.free = l, !l.Zero(), pass{}
	for d := Requests; d <= OutputTokens; d++ {
		q.buckets[d].SetLimit(now, l.PerMinute(d), l.Capacity(d))
	}
}

// Drain empties every bucket: the provider refused, so by its count nothing is left.
func (q *Quota) Drain(now time.Time) {
	q.free = pass{}
	for d := Requests; d <= OutputTokens; d++ {
		q.buckets[d].Drain(now)
	}
}

// Level is how many units are there in one dimension; negative in debt, +Inf where
// it is not limited.
func (q *Quota) Level(now time.Time, d Dimension) float64 {
	if d > OutputTokens {
		d = None
	}
	return q.buckets[d].Level(now)
}
