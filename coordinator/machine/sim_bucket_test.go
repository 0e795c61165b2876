package machine

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// buckets is the world's own model of a lane's configured limits, on the generous side:
// what the machine takes away for a refusal it leaves, so that it always holds
// what the machine's holds, or more.
type buckets [4]bucket

type bucket struct {
	perMinute, depth, level float64
	last                    time.Time
	full                    time.Time // when the user gave the limit, and the bucket was taken to be full
}

var dimensions = [4]limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

func (bs *buckets) set(now time.Time, l limiter.Limits) {
	for i, d := range dimensions {
		b := &bs[i]
		b.refill(now)
		known := b.perMinute > 0
		b.perMinute, b.depth = l.PerMinute(d), l.Capacity(d)
		if !known {
			b.level, b.full = b.depth, now
		}
		b.clamp()
	}
}

func (b *bucket) refill(now time.Time) {
	if !b.last.IsZero() && now.After(b.last) {
		b.level += b.perMinute * now.Sub(b.last).Minutes()
	}
	if now.After(b.last) {
		b.last = now
	}
	b.clamp()
}

func (b *bucket) clamp() { b.level = math.Max(-b.perMinute, math.Min(b.level, b.depth)) }

// take takes the cost, and reports whether it was there: up to a full bucket, and
// for a law that models the provider's bucket up to the debt that it allows itself: one call, and
// of tokens two such calls, a second of refill, and what a bucket holds at least. Whatever headers show,
// no more leaves.
func (bs *buckets) take(now time.Time, requests float64, c limiter.Cost, plain bool) bool {
	ok := true
	for i, n := range [4]float64{requests, c.Tokens(), c.Input, c.Output} {
		b := &bs[i]
		if b.perMinute <= 0 {
			continue
		}
		b.refill(now)
		if n == 0 {
			continue // it draws nothing, whatever the debt of others
		}
		debt := 1e-4 + 1e-9*b.perMinute
		if !plain {
			debt += n
			if i > 0 {
				debt += math.Max(n, b.perMinute/60) + 5000
			}
		}
		ok = ok && b.level >= math.Min(n, b.depth)-debt
		b.level -= n
		b.clamp()
	}
	return ok
}

// shownPerMinute is the largest limit that headers may be taken to have shown; 0: none. One
// without a period may be one of a second.
func (s *server) shownPerMinute(d limiter.Dimension) float64 {
	if s.day > 0 && d == limiter.Requests {
		return math.MaxInt32 // when it is
	}
	for _, seen := range s.sightings() {
		switch {
		case seen.Dimension != d:
		case s.period:
			return seen.Limit + 1
		default:
			return 60*seen.Limit + 1
		}
	}
	return 0
}

// give gives back what a call that left at sent did not draw. What it drew in addition was drawn before a bucket that has
// been full since.
func (bs *buckets) give(now, sent time.Time, requests float64, c limiter.Cost) {
	for i, n := range [4]float64{requests, c.Tokens(), c.Input, c.Output} {
		b := &bs[i]
		if b.perMinute > 0 && (n > 0 || !sent.Before(b.full)) {
			b.refill(now)
			b.level += n
			b.clamp()
		}
	}
}

// ended writes a call's end down in its lane's page.
func (l *bookLane) ended(now time.Time, x *bookItem, o Outcome, present bool) {
	l.inFlight--
	if x.grant.Epoch == l.epoch { // still: this end may have begun another
		l.inEpoch--
	}
	l.slowed = l.slowed || o.Signal == Failed
	answered := o.Signal == Succeeded || o.Signal == Answered
	if answered || o.Signal == Exhausted && o.Alike != 0 {
		l.answers++
	}
	if (answered || o.Signal == Failed) && (l.phase == Flowing || l.phase == Ramping) {
		l.letIn = now
	}
	late := x.grant.Epoch < l.began || l.isRemote()
	if l.silence.ended(now, x.item.Sent, o, late); late {
		return // another law was charged for it
	}
	charged := l.charged(x.item)
	if o.Measured {
		l.buckets.give(now, x.item.Sent, 0, charged.Minus(l.charge.Settled(o.Actual, o.Cached)))
	}
	refused := o.Signal == Throttled || o.Signal == Overloaded
	if o.Unsent || refused && (!present || l.config.Law == limiter.Model) { // nothing of it was served
		l.buckets.give(now, x.item.Sent, 1, charged)
	}
}

// charged returns the charge of a call. A model finds out the error in estimates of input; this
// file does not check that.
func (l *bookLane) charged(it *Item) limiter.Cost {
	c := l.charge.Of(it.Cost)
	if l.config.Law == limiter.Model {
		c.Input *= float64(it.ticket.Factor)
	}
	return c
}
