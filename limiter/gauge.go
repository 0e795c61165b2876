package limiter

import "math"

// The dimensions as indexes of arrays.
const (
	dimRequests = iota
	dimTokens
	dimInput
	dimOutput
	dims
)

var dimensionOf = [dims]Dimension{Requests, Tokens, InputTokens, OutputTokens}

func spread(c Cost) [dims]float64 {
	return [dims]float64{c.Requests, c.Tokens(), c.Input, c.Output}
}

// A source is how well a gauge knows its limit. Each outranks those before it.
type source uint8

const (
	unknown source = iota
	told           // by the user
	learned        // from the calls accepted between two refusals
	seen           // in the headers of an answer
)

// neighbourFloor is the share of the refill under which other clients' draw is
// taken for noise: remaining is rounded, and a rounded difference is never
// exactly nought.
const neighbourFloor = 0.03

// A gauge is our model of one of the provider's buckets. Times are seconds
// since the law began.
//
//	level(t) rises by refill − others, never above capacity; a call takes its cost
//
// The level may be negative: a debt, which says that the provider has been
// found to hold more than was believed, or less than was charged.
type gauge struct {
	source   source
	refill   float64 // units per second
	capacity float64
	level    float64
	others   float64 // units per second that other clients draw; signed, for an unbiased mean
	at       float64 // the level is true of this moment
	ceiling  float64 // the user's limit, units per second; 0: none

	*shown // nil: no header spoke of this limit, so that most gauges are a line of a processor's cache
}

// shown is what headers have told of a gauge.
type shown struct {
	period   periodGuess
	sighted  bool // headers were seen at this refill
	seenAt   float64
	seenLeft float64
	saved    uint64 // replays of so many sends were not made since the last one
}

// draw is what other clients take, as far as it is more than noise.
func (g *gauge) draw() float64 {
	if g.others >= neighbourFloor*g.refill {
		return g.others
	}
	return 0
}

func (g *gauge) advance(t float64) {
	if t > g.at {
		g.level = min(g.capacity, g.level+(g.refill-g.draw())*(t-g.at))
		g.at = t
	}
}

// leastDebt is what a debt may be at least: two calls. Where a minute's refill is
// less, a bound that one call reaches would let the next one pass at once.
const leastDebt = 2

// take draws n units; a negative n gives them back. The debt is bounded by a
// minute of refill.
func (g *gauge) take(n float64) {
	g.level = min(g.capacity, max(g.level-n, -max(60*g.refill, leastDebt)))
}

func (g *gauge) warm() uint64 { return uint64(g.source) + uint64(int64(g.ceiling)) }

// capped is a refill under the user's ceiling.
func (g *gauge) capped(refill float64) float64 {
	if g.ceiling > 0 {
		return min(refill, g.ceiling)
	}
	return refill
}

// slack is how far into debt calls may lead where no header tells the level: a
// second's refill, which is less than any bucket that was learned holds. A told
// limit has none: it may be kept by a window that slides.
func (g *gauge) slack() float64 {
	if g.source == told {
		return 0
	}
	return margin * g.refill
}

// burstSeconds is how many seconds of refill the gauge holds, within reason: it
// decides how long probes take.
func (g *gauge) burstSeconds() float64 {
	return min(60, max(1.5, g.capacity/g.refill))
}

// replay is the level at to, from a level at from, with our own sends of
// dimension k between them. The cap applies between the sends: what overflows
// before a send is not there for it.
func (s *sends) replay(k int, level, refill, capacity, from, to float64) float64 {
	t := from
	for n := s.after(from); n < s.count; {
		run := s.from(n)
		for i := range run {
			e := &run[i]
			if e.at > to {
				return min(capacity, level+refill*(to-t))
			}
			level, t = min(capacity, level+refill*(e.at-t)), e.at
			if s.rare == nil {
				level -= e.usual(k)
			} else {
				level -= s.unusual(n+uint64(i), e, k)
			}
		}
		n += uint64(len(run))
	}
	return min(capacity, level+refill*(to-t))
}

// half is added to a remainder that is told: it is floored, so on average half
// a unit more is there.
const half = 0.5

// recheck has the next sighting looked at in any case.
func (g *gauge) recheck() {
	if g.shown != nil {
		g.saved = sendsKept
	}
}

// see takes a sighting of dimension k, in the headers of a call sent at sent.
// It reports whether the limit is a new one.
func (g *gauge) see(k int, s Sighting, own *sends, sent, now float64) bool {
	if g.shown == nil {
		g.shown = &shown{}
	}
	refill := s.Limit / g.window(s)
	capacity := s.Limit
	if s.HasReset {
		capacity = min(s.Limit, s.Remaining+s.Reset.Seconds()*refill)
	}
	refill = g.capped(refill)
	if g.sighted && sent <= g.seenAt {
		return false
	}
	changed := g.source != seen || math.Abs(refill-g.refill) > 0.01*g.refill
	if changed {
		g.sighted, g.others = false, 0
	} else if !g.due(own.count - own.after(sent)) {
		return false
	}
	if !g.sighted || sent > g.seenAt+sightingGap {
		g.estimateOthers(k, own, refill, capacity, sent, s.Remaining)
		g.sighted, g.seenAt, g.seenLeft = true, sent, s.Remaining
	}
	g.source, g.refill, g.capacity = seen, refill, capacity
	g.level, g.at = own.replay(k, s.Remaining+half, refill-g.draw(), capacity, sent, now), now
	g.take(0)
	return changed
}

// due bounds what answers cost. A sighting is replayed over all sends since its own:
// with thousands in flight and headers on each answer, that were thousands of steps
// for each. One of many says nearly what each of them would, so an answer pays for
// replayShare steps, and who comes when enough has been paid is looked at.
func (g *gauge) due(steps uint64) bool {
	if g.saved += replayShare; g.saved < steps {
		return false
	}
	g.saved = 0
	return true
}

// replayShare is as many calls in flight as have each answer looked at.
const replayShare = 64

const (
	// sightingGap keeps two sightings that are nearly one from being compared: the
	// rounding of the remainder would look like a neighbour.
	sightingGap = 0.2
	// othersMemory is over how many seconds the draw of other clients is averaged.
	othersMemory = 8
)

// window is the period of a sighted limit, in seconds.
func (g *gauge) window(s Sighting) float64 {
	if s.Window > 0 {
		return s.Window.Seconds()
	}
	g.period.learn(s)
	return g.period.period()
}

// estimateOthers compares what is left with what our own calls would have left.
func (g *gauge) estimateOthers(k int, own *sends, refill, capacity, sent, left float64) {
	if !g.sighted {
		return
	}
	gap := sent - g.seenAt
	weight := 1 - math.Exp(-gap/othersMemory)
	expected := own.replay(k, g.seenLeft, refill, capacity, g.seenAt, sent)
	if expected >= 0.95*capacity { // full: whatever they took has flowed back
		g.others *= 1 - weight
		return
	}
	drawn := (expected - left) / gap
	g.others = (1-weight)*g.others + weight*drawn
	g.others = min(0.9*refill, max(-0.1*refill, g.others))
}
