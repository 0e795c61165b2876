package model

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// This file takes the lessons of an answer's headers about a limit.

// shown holds what headers have shown of a gauge.
type shown struct {
	period        periodGuess
	sighted       bool // headers were seen at this refill
	seenAt        float64
	lastRemaining float64 // the remainder then
	began         float64 // when this refill was first seen
	saved         uint64  // steps of a replay that answers have paid for since the last one
	lag           float64 // units that flowed in beyond the limit
	named         bool    // the period was in the headers too
	printed       float64 // units per second that they tell, whatever the user said
	said          bool    // no header told it, but the words of a refusal
	shape         shapeGuess
	brim          brim
	fixed         *fixedWindow // nil: it refills all the time
}

func (g *gauge) isFixed() bool { return g.shown != nil && g.fixed != nil }

// recheck pretends that enough calls were spared, so that the next sighting is looked at.
func (g *gauge) recheck() {
	if g.shown != nil {
		g.saved = slotsKept
	}
}

// takeSighting learns from a sighting of dimension k, in the headers of a call that left at sent.
// It reports whether the limit is a new one.
//
// A call of the law before this one left before 0, as did other calls that are not in own. drew
// is the units per second that these took.
//
// Headers round the remainder down, so remaining + reset·refill is up to one less than the
// depth. The depth is the most that was read, and never less.
func (g *gauge) takeSighting(k int, s limiter.Sighting, own *sends, sent, now, drew float64) (changed bool) {
	if g.shown == nil {
		g.shown = &shown{}
	}
	if g.sighted && sent <= g.seenAt {
		return false
	}
	printed := s.Limit / g.periodOf(s)
	if g.ceiling > 0 && printed > underUser*g.ceiling {
		return g.keepToUser(s, now)
	}
	refill := g.capped(printed)
	changed = g.source != limiter.Seen || math.Abs(refill-g.refill) > 0.01*g.refill
	if changed {
		*g.shown = shown{period: g.period, printed: printed, began: now, brim: brim{most: s.Remaining}}
		g.others, g.capacity = 0, 0
	} else if !g.due(own.slotsSince(sent)) {
		return false
	}
	g.brim.raise(s.Remaining)
	level := s.Remaining + half
	var capacity float64
	if s.HasReset {
		missing := s.Reset.Seconds() * printed
		full := s.Remaining + missing
		capacity = min(s.Limit, max(full, min(g.capacity, full+1)))
		level = min(s.Remaining+1, max(s.Remaining, capacity-missing))
		if g.shape.addSighting(full, s.Reset.Seconds()) && g.fixed == nil {
			g.fixed = &fixedWindow{}
		}
	} else {
		capacity = g.brim.capacity(s.Limit)
	}
	g.source, g.refill, g.capacity = limiter.Seen, refill, capacity
	g.said = s.Said && (changed || g.said)
	if g.fixed != nil {
		g.fixed.see(s, sent)
		g.capacity = max(s.Limit, g.fixed.most)
		g.level, g.at = own.replay(k, drawnBefore(level, sent, drew), 0, g.capacity, sent, now), now
		g.sighted, g.seenAt = true, sent
		return changed
	}
	if !g.sighted || sent > g.seenAt+sightingGap {
		g.compare(k, own, sent, s.Remaining)
		g.sighted, g.seenAt, g.lastRemaining = true, sent, s.Remaining
	}
	level = drawnBefore(level, sent, drew-refill) // the inflow before 0 was drawn, too
	g.level, g.at = own.replay(k, level, refill-g.othersDraw(), capacity, max(0, sent), now), now
	g.take(0)
	return changed
}

// A brim finds the depth of a bucket whose headers do not say when it is full; that is often
// less than the limit. If the remainder stays at its highest, time and again, though more
// should have flowed in, the bucket was full. A neighbour would have left less.
type brim struct {
	most  float64 // units, the most that was ever left
	times int     // in a row that the remainder was that, and more was expected
}

// brimTimes is the number of times in a row that prove a brim: neighbours do not take exactly
// the inflow that often.
const brimTimes = 5

// raise notes a remainder that may be a new highest. While it still rises, the bucket was not full.
func (b *brim) raise(remaining float64) {
	if remaining <= b.most {
		return
	}
	if b.most = remaining; b.times < brimTimes {
		b.times = 0
	}
}

// compare counts how often the remainder stayed at its highest although more was expected.
func (b *brim) compare(remaining, expected float64) {
	switch {
	case b.times >= brimTimes: // found out
	case remaining < b.most:
		b.times = 0
	case expected > remaining+1:
		b.times++
	}
}

// capacity returns the depth of a bucket with that limit: no more than the limit.
func (b *brim) capacity(limit float64) float64 {
	if b.times < brimTimes {
		return limit
	}
	return min(limit, b.most+1)
}

// drawnBefore returns what the law before this one left over of a level that one of its own
// calls found; at least 0. That law drew at that rate until 0.
func drawnBefore(level, sent, rate float64) float64 {
	if sent >= 0 || rate <= 0 {
		return level
	}
	return max(0, level+rate*sent)
}

// underUser is the factor by which a sighted limit must exceed the user's to count as larger:
// both are rounded.
const underUser = 1.01

// keepToUser learns from a sighting of a limit that is larger than the user's. The user's limit and
// burst bind. Of the sighting only a remainder below that level counts. What refusals taught stays.
func (g *gauge) keepToUser(s limiter.Sighting, now float64) (changed bool) {
	g.advance(now)
	if changed = g.source == limiter.Seen; changed { // the user's was lowered since
		*g.shown = shown{period: g.period}
		g.source, g.refill, g.capacity, g.others = limiter.Configured, g.ceiling, g.usersCapacity(), 0
	}
	g.level = min(g.level, g.capacity, s.Remaining+half)
	return changed
}

// half is added to a remainder without a reset: it is rounded down, so on average half a unit
// more is there.
const half = 0.5

// due bounds the work per answer. A sighting is replayed over all sends since its own. With
// thousands in flight and headers on each answer, that would be thousands of steps for each.
// One sighting of many says nearly the same as the others. So each answer pays for replayShare
// steps, and the first one after enough was paid is looked at.
func (g *gauge) due(steps uint64) bool {
	if g.saved += replayShare; g.saved < steps {
		return false
	}
	g.saved = 0
	return true
}

// replayShare is the number of calls in flight up to which each answer is looked at.
const replayShare = 64

const (
	// sightingGap keeps two sightings that are nearly one from being compared: the rounding of
	// the remainder would look like a neighbour.
	sightingGap = 0.2
	// othersMemory is the seconds over which the draw of other clients is averaged.
	othersMemory = 8
	// othersMost bounds the share of the refill that others are believed to draw: a lane that
	// believed nothing was left for it would never hear of the limit again.
	othersMost = 0.9
	// lagMost is the number of calls beyond a limit that must have flowed in before the limit
	// is taken for one of a shorter period: well over rounding. lagSpread seconds of refill
	// come on top, as a busy machine dates its calls no better.
	lagMost   = 5
	lagSpread = 0.1
	lagSlack  = 0.01 // of the limit may flow in besides: clocks differ
)

// periodOf returns the period of a sighted limit in seconds, named by the headers or guessed.
func (g *gauge) periodOf(s limiter.Sighting) float64 {
	if g.named = s.Window > 0; g.named {
		return s.Window.Seconds()
	}
	if !g.isFixed() {
		g.period.learn(s)
	}
	return g.period.period()
}

// compare compares the remainder with what our own calls would have left. The missing part was
// drawn by others. A surplus, time and again, says that more flows in than the limit is believed to
// allow.
func (g *gauge) compare(k int, own *sends, sent, remaining float64) {
	if !g.sighted || g.seenAt < 0 { // what the law before drew meanwhile is not in own
		return
	}
	gap := sent - g.seenAt
	weight := 1 - math.Exp(-gap/othersMemory)
	expected := own.replay(k, g.lastRemaining, g.refill, g.capacity, g.seenAt, sent)
	switch {
	case k != dimRequests:
	case remaining > g.lastRemaining+1: // a window has begun, or nobody called
		g.lag = 0
	default:
		g.lag = max(0, g.lag+remaining-expected-own.together(sent)-lagSlack*g.refill*gap)
	}
	g.brim.compare(remaining, expected)
	if expected >= 0.95*g.capacity { // full: whatever they took has flowed back
		g.others *= 1 - weight
		return
	}
	drawn := (expected - remaining) / gap
	g.others = (1-weight)*g.others + weight*drawn
	g.others = min(othersMost*g.refill, max(-0.1*g.refill, g.others))
}

// outgrown reports whether the headers are wrong because more flows in than they allow. It first
// tries the next shorter period, if there is one. Calls that were counted and never left look the
// same, so a period that the resets prove stands.
func (g *gauge) outgrown() (wrong bool) {
	if g.shown == nil || g.lag < lagMost+lagSpread*g.refill || g.isFixed() {
		return false
	}
	g.lag = 0
	if !g.named && g.period.slope.proved() {
		return false
	}
	return g.named || !g.period.shorten()
}

// leastJitter is the time, in seconds, by which calls overtake each other on an ordinary way:
// half of the usual spread of one hop.
const leastJitter = 0.010

// A shapeGuess tells a window from a bucket by their headers: in a bucket remaining +
// reset·refill is always the same; in a window it falls until that ends.
type shapeGuess struct {
	most    float64 // units, the most that remaining + reset·refill was
	longest float64 // seconds, the longest reset
	falling int     // sightings in a row that were well under it
}

const (
	fixedShare     = 0.8 // of the most is well under it,
	fixedRounding  = 2   // less what the rounding of remaining and reset amounts to
	fixedSightings = 5
	fixedLeast     = 3.0 // seconds; a shorter window has ended before its answers say so
)

// addSighting adds a sighting, and reports whether the limit is a window. full is remaining +
// reset·refill.
func (g *shapeGuess) addSighting(full, reset float64) bool {
	g.most, g.longest = max(g.most, full), max(g.longest, reset)
	g.falling++
	if full >= fixedShare*g.most-fixedRounding {
		g.falling = 0
	}
	return g.falling >= fixedSightings && g.longest > fixedLeast
}

// A fixedWindow is a limit that is whole again all at once. Nothing flows in before it
// ends.
type fixedWindow struct {
	ends   float64 // when, in seconds since the law began
	period float64 // the longest reset
	most   float64 // units, the most that was ever left
}

// fixedEdge is the extra seconds of a wait for the end of a window: a hop's usual spread, as
// the server refuses calls that arrive before the end.
const fixedEdge = 0.020

func (w *fixedWindow) see(s limiter.Sighting, sent float64) {
	w.ends = sent + s.Reset.Seconds()
	w.period = max(w.period, s.Reset.Seconds())
	w.most = max(w.most, s.Remaining+1)
}

func (w *fixedWindow) levelAt(level, t float64) float64 {
	if t < w.ends+fixedEdge {
		return level
	}
	return w.most
}

func (w *fixedWindow) advance(t float64) {
	if t >= w.ends+fixedEdge {
		w.ends += w.period * math.Ceil(max(1e-9, t-fixedEdge-w.ends)/max(w.period, fixedLeast))
	}
}

// The periods that providers' limits are known to have, in seconds.
var periods = [...]float64{1, 10, 60, 3600, 86400}

const (
	usualPeriod = 60   // until something else was found out
	periodNear  = 0.15 // how far a measured period may lie from a known one
	// periodVotes is the number of sightings that must agree, at different levels. A bucket
	// whose depth is not its limit looks like some period at any one level, but not like the
	// same period at two.
	periodVotes = 3
	periodSpan  = 1.4
	// roundedMost bounds the resets in whole seconds that are taken for rounded ones, which are
	// too coarse to measure by.
	roundedMost = 5 * time.Second
	// slopeUsed is the least difference, in units, between two sightings that are compared. The
	// remainder is rounded to one, so the slope is good to a tenth.
	slopeUsed = 10
)

// periodGuess finds out what period a limit is for, where the headers do not say:
// a bucket that refills in its period is whole again after
//
//	reset = used / limit · period
//
// So Groq's "limit 14400, remaining 14370, reset 2m59.56s" is a limit by the day.
type periodGuess struct {
	found       float64 // 0: not yet
	candidate   float64
	votes       int
	least, most float64 // used, of the votes
	slope       slopeProof
}

// slopeProof shows that resets agree with the believed period. In a bucket of any depth each
// unit that is drawn delays the reset by the same time:
//
//	Δreset = −Δremaining / limit · period
//
// In a window both fall together, which proves nothing.
type slopeProof struct {
	last  limiter.Sighting // the next one is compared with it
	votes int              // in a row
}

// addSighting compares a sighting with the last one. It counts a vote if both agree with the
// believed period.
func (p *slopeProof) addSighting(s *limiter.Sighting, period float64) {
	drawn := p.last.Remaining - s.Remaining
	if p.last.Limit != s.Limit {
		*p = slopeProof{last: *s}
		return
	}
	if math.Abs(drawn) < slopeUsed {
		return
	}
	measured := (s.Reset - p.last.Reset).Seconds() * s.Limit / drawn
	if p.last = *s; math.Abs(measured-period) > periodNear*period {
		p.votes = 0
		return
	}
	p.votes++
}

// proved reports whether resets have agreed with the period time and again.
func (p *slopeProof) proved() bool { return p.votes >= periodVotes }

// period returns the believed period, in seconds.
func (p *periodGuess) period() float64 {
	if p.found > 0 {
		return p.found
	}
	return usualPeriod
}

// learn counts a sighting as a vote for the period that its reset comes near to. Enough votes find
// the period.
func (p *periodGuess) learn(s limiter.Sighting) {
	used := s.Limit - s.Remaining
	if !s.HasReset || used < 2 || s.Reset <= 0 || s.Reset < roundedMost && s.Reset%time.Second == 0 {
		return
	}
	p.slope.addSighting(&s, p.period())
	near := nearest(s.Reset.Seconds() * s.Limit / used)
	if near == 0 || near != p.candidate {
		*p = periodGuess{found: p.found, candidate: near, least: used, most: used, slope: p.slope}
	}
	if near == 0 {
		return
	}
	p.votes++
	p.least, p.most = min(p.least, used), max(p.most, used)
	if p.votes >= periodVotes && p.most >= periodSpan*p.least {
		p.found = near
	}
}

// shorten replaces the believed period by the next shorter one, and reports whether there is one.
func (p *periodGuess) shorten() bool {
	for i := len(periods) - 1; i >= 0; i-- {
		if periods[i] < p.period() {
			*p = periodGuess{found: periods[i]}
			return true
		}
	}
	return false
}

// nearest returns the known period that seconds come near to; 0: none.
func nearest(seconds float64) float64 {
	for _, p := range periods {
		if math.Abs(seconds-p) <= periodNear*p {
			return p
		}
	}
	return 0
}
