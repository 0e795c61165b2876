package model

import (
	"math"

	"github.com/headrace/headrace/limiter"
)

// Chance explains refusals, too. It strikes at any pace, so the share that is refused at slower
// paces is the share that it may be blamed for at this one.
const (
	leastShare  = 0.003 // of calls: less is not worth reckoning with
	mostShare   = 0.5   // more is nobody's chance
	doubtCalls  = 10    // a share is thinned by so many calls, or the first refusal would be one of one
	fewRefusals = 2     // of an item count: with 1 a share of 0.45 is underestimated, with 3 a silent limit on tokens refuses 4 %
	ownCalls    = 60    // with so many calls of its own a pace has a say in its share
	alarmNats   = 6.0   // such a sum has about e⁶ = 400 calls between two false alarms
	alarmPace   = 10.0  // calls per second from which on alarms become rarer, or they were more per second
	creepMargin = 0.03  // a little more than chance: twice its share, and this
)

// chance knows what share of calls is refused at which pace, and sounds the alarm when
// refusals come thicker than that.
//
//	flood  rises fast where every second call is refused
//	creep  rises slowly where a little more is refused than chance explains
//
// Both are cumulative sums of log-likelihoods, never under 0. Invariant: what is booked
// here was let in, or refused without another explanation.
type chance struct {
	paces        table
	flood, creep float64
	run          float64 // calls let in since the latest refusal
	calls        float64 // since creep was 0
	refused      float64 // of those
}

// share returns the share of calls that chance may be blamed for at a pace: the share refused
// at slower paces, and not more than at this one.
func (c *chance) share(bin int) float64 {
	calls, refused := c.paces.below(bin)
	if refused < 1 {
		return 0
	}
	s := min(mostShare, refused/(calls+doubtCalls))
	if own := c.paces.at(bin); own.calls >= ownCalls {
		s = min(s, float64(own.refused)/float64(own.calls))
	}
	return s
}

// strike books a refusal, unless its item was refused often. Chance strikes all items alike. A limit on
// tokens strikes large items again and again, and would pass for chance.
func (c *chance) strike(bin int, n *limiter.News) {
	if n.Refusals < fewRefusals {
		c.paces.book(bin, true)
	}
}

// strikes takes a refusal, and reports whether it is one too many.
func (c *chance) strikes(bin int, pace float64) (alarm bool) {
	p := max(leastShare, c.share(bin))
	half, more := (1+p)/2, min(0.97, 2*p+creepMargin)
	c.flood = max(0, c.flood+c.run*lessLikely(p, half)) + math.Log(half/p)
	if c.creep += c.run * lessLikely(p, more); c.creep <= 0 {
		c.creep, c.calls, c.refused = 0, 0, 0
	} else {
		c.calls += c.run
	}
	c.creep += math.Log(more / p)
	c.calls++
	c.refused++
	c.run = 0
	rarer := math.Log(max(1, pace/alarmPace))
	return c.flood > alarmNats+alarmNats*p+rarer || c.creep > alarmNats+rarer
}

// lessLikely returns how far a call that was let in speaks for the larger share q and against
// p, in nats; it is negative.
func lessLikely(p, q float64) float64 { return math.Log((1 - q) / (1 - p)) }

// calm empties the sums once their refusals are explained.
func (c *chance) calm() { c.flood, c.creep, c.calls, c.refused = 0, 0, 0, 0 }

// excess returns the share of calls that were refused since creep began.
func (c *chance) excess() float64 {
	return min(0.9, max(0.02, (c.refused-1.5)/(c.calls+1)))
}
